//! The lease in etcd: one leader, growing terms, and what a leader does without etcd.

use std::path::Path;
use std::time::{Duration, Instant};

use goodput_configs::live::leader::EtcdConfig;
use goodput_configs::live::tls::TlsFiles;
use goodput_executor::daemon::durability::journal::Journal;
use goodput_executor::daemon::durability::leader::etcd::EtcdLease;
use goodput_executor::daemon::durability::leader::{DaemonName, Leader, LeaseTerms};
use goodput_executor::etcd::writer::LeaderWriter;
use goodput_executor::etcd::{Change, Etcd, EtcdError};
use goodput_testkit::etcd::PrivateEtcd;
use tempfile::TempDir;

use super::{skipped, started};

const LEASE_S: u32 = 3;

/// A host: its directory, its journal, and its daemon's part in the election.
pub struct Host {
    directory: TempDir,
    journal: Journal,
    leader: Leader,
}

impl Host {
    pub fn new(name: &str, etcd: &EtcdConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(&directory.path().join("journal.sqlite")).unwrap();
        let leader = leader(name, directory.path(), etcd);
        Self { directory, journal, leader }
    }

    async fn tick(&mut self) -> Option<u64> {
        self.leader.tick(&mut self.journal, Instant::now()).await.unwrap()
    }

    /// Ticks until the daemon leads, or does not.
    pub async fn until(&mut self, leads: bool) -> Option<u64> {
        let began = Instant::now();
        loop {
            let term = self.tick().await;
            if term.is_some() == leads {
                return term;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "leads: {term:?}; {:?}", self.leader.trouble());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn leader(name: &str, directory: &Path, etcd: &EtcdConfig) -> Leader {
    let lease = Duration::from_secs(u64::from(LEASE_S));
    let terms = LeaseTerms { lease, renew: lease / 3 };
    let me = DaemonName { name: name.into(), address: Some(format!("http://{name}:7070")) };
    let keeper = EtcdLease::new(Etcd::new(etcd).unwrap(), LEASE_S, directory.join("leader.etcd"));
    Leader::new(me, &directory.join("leader.lock"), terms).unwrap().outside(Box::new(keeper), terms)
}

#[tokio::test]
async fn one_of_two_hosts_leads_and_terms_grow() {
    let Some((_folder, mut etcd)) = started() else { return };
    let config = etcd.config(None);
    let (mut one, mut two) = (Host::new("one", &config), Host::new("two", &config));
    assert_eq!(one.until(true).await, Some(1));
    assert_eq!(two.tick().await, None);
    let seen = two.leader.seen().unwrap();
    assert_eq!((seen.name.as_str(), seen.address.as_deref()), ("one", Some("http://one:7070")));
    assert!(one.leader.try_act().is_some() && two.leader.try_act().is_none());

    // A lease that is given up is free at once.
    one.leader.resign(&mut one.journal).await;
    assert_eq!(two.until(true).await, Some(2));
    assert_eq!(one.tick().await, None);

    // A daemon that comes back after kill -9 does not wait for its own lease.
    let Host { directory, leader: dead, journal } = two;
    drop((dead, journal));
    let journal = Journal::open(&directory.path().join("journal.sqlite")).unwrap();
    let mut two = Host { leader: leader("two", directory.path(), &config), journal, directory };
    assert_eq!(two.tick().await, Some(3));
    assert_eq!(two.journal.lease().unwrap().term, 3);
    assert!(two.directory.path().join("leader.etcd").exists());

    // Without etcd the leader leads on, but no longer than its lease, and no daemon takes over.
    let began = Instant::now();
    etcd.kill();
    assert_eq!(two.tick().await, Some(3));
    assert_eq!(two.until(false).await, None);
    assert!(began.elapsed() <= Duration::from_secs(u64::from(LEASE_S) + 30));
    assert!(two.leader.trouble().is_some_and(|trouble| trouble.contains("etcd does not answer")));
    assert!(two.leader.try_act().is_none());
    assert_eq!(one.tick().await, None);

    // etcd remembers the term over its own death.
    etcd.run().unwrap();
    let term = one.until(true).await.unwrap();
    assert!(term > 3, "{term}");
    assert_eq!(two.tick().await, None);
}

#[tokio::test]
async fn a_deposed_leader_writes_nothing() {
    let Some((_folder, etcd)) = started() else { return };
    let config = etcd.config(None);
    let (mut one, mut two) = (Host::new("one", &config), Host::new("two", &config));
    let old = one.until(true).await.unwrap();
    let store = Etcd::new(&config).unwrap();
    let writer = LeaderWriter::new(store.clone(), "jobs");
    writer.write(old, (0..250).map(|n| Change::put(format!("jobs/{n:03}"), "old")).collect()).await.unwrap();
    one.leader.resign(&mut one.journal).await;
    let new = two.until(true).await.unwrap();
    let late = writer.write(old, vec![Change::put("jobs/000", "late"), Change::delete("jobs/001")]).await;
    assert!(matches!(late, Err(EtcdError::Deposed { term }) if term == old), "{late:?}");
    let before = store.list("jobs/", 0).await.unwrap();
    assert_eq!((before.count, before.entries.len()), (250, 250));
    assert!(before.entries.iter().all(|entry| entry.value == b"old"));
    writer.write(new, vec![Change::put("jobs/000", "new"), Change::delete("jobs/001")]).await.unwrap();
    let since = store.list("jobs/", before.revision + 1).await.unwrap();
    assert_eq!(since.count, 249, "the count is of all keys");
    assert_eq!(since.entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["jobs/000"]);
}

/// Certificates of an authority for a member of etcd, which its gateway uses as a client too, and
/// for a daemon.
fn certificates(folder: &Path) -> (TlsFiles, TlsFiles) {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    std::fs::write(folder.join("ca.pem"), authority.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(authority, key);
    let usages = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let made = [("etcd", "127.0.0.1", &usages[..]), ("daemon", "goodput-daemon", &usages[1..])];
    let [etcd, daemon] = made.map(|(file, name, usages)| {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = usages.to_vec();
        let key = KeyPair::generate().unwrap();
        let files = TlsFiles::of(folder, file);
        std::fs::write(&files.cert, params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    });
    (etcd, daemon)
}

#[tokio::test]
async fn etcd_is_asked_over_mutual_tls_and_the_next_member_where_one_is_silent() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = certificates(folder.path());
    let etcd = PrivateEtcd::start(folder.path(), Some(server)).unwrap();
    assert!(etcd.wait(Duration::from_secs(60)));
    // The first member takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = etcd.config(Some(client));
    config.patience_ms = 1000;
    config.endpoints.insert(0, format!("https://{}", silent.local_addr().unwrap()));
    let mut host = Host::new("one", &config);
    assert_eq!(host.until(true).await, Some(1));

    let (folder, mut stranger) = (tempfile::tempdir().unwrap(), config.clone());
    stranger.tls = Some(certificates(folder.path()).1);
    let refused = Etcd::new(&stranger).unwrap().get("term").await;
    assert!(matches!(refused, Err(EtcdError::Unreachable { .. })), "{refused:?}");
}
