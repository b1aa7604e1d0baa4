//! The lease in Kubernetes: one leader, growing terms, and what a leader does while the API server is away.

use std::path::Path;
use std::time::{Duration, Instant};

use goodput_configs::live::leader::KubernetesLeaseConfig;
use goodput_executor::daemon::durability::journal::Journal;
use goodput_executor::daemon::durability::leader::kubernetes::KubernetesLease;
use goodput_executor::daemon::durability::leader::{DaemonName, Leader, LeaseTerms};
use goodput_testkit::kubernetes::ControlPlane;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tempfile::TempDir;

use super::{buildable, runtime, shared};

const LEASE_S: u32 = 4;

/// A host: its journal, and its daemon's part in the election.
struct Host {
    _directory: TempDir,
    journal: Journal,
    leader: Leader,
}

impl Host {
    fn new(name: &str, kubeconfig: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(&directory.path().join("journal.sqlite")).unwrap();
        let lease = Duration::from_secs(u64::from(LEASE_S));
        let terms = LeaseTerms { lease, renew: lease / 3 };
        let me = DaemonName { name: name.into(), address: Some(format!("http://{name}:7070")) };
        let config = KubernetesLeaseConfig {
            kubeconfig: Some(kubeconfig.into()),
            namespace: "default".into(),
            ..KubernetesLeaseConfig::default()
        };
        let keeper = Box::new(KubernetesLease::new(&config, LEASE_S));
        let leader = Leader::new(me, &directory.path().join("leader.lock"), terms).unwrap().outside(keeper, terms);
        Self { _directory: directory, journal, leader }
    }

    async fn tick(&mut self) -> Option<u64> {
        self.leader.tick(&mut self.journal, Instant::now()).await.unwrap()
    }

    /// Ticks until the daemon leads, or does not; the term and the time that it took.
    async fn until(&mut self, leads: bool) -> (Option<u64>, Duration) {
        let began = Instant::now();
        loop {
            let term = self.tick().await;
            if term.is_some() == leads {
                return (term, began.elapsed());
            }
            assert!(began.elapsed() < Duration::from_secs(60), "leads: {term:?}; {:?}", self.leader.trouble());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[test]
fn one_of_two_daemons_leads_and_terms_grow() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let file = shared().kubeconfig();
        let (mut one, mut two) = (Host::new("one", &file), Host::new("two", &file));
        assert_eq!(one.until(true).await.0, Some(1));
        assert_eq!(two.tick().await, None);
        let seen = two.leader.seen().unwrap();
        assert_eq!((seen.name.as_str(), seen.address.as_deref()), ("one", Some("http://one:7070")));
        assert!(one.leader.try_act().is_some() && two.leader.try_act().is_none());

        // An annotation of another hand takes the lease from no daemon: the next try renews it.
        let client = ControlPlane::client(&file).await.unwrap();
        let leases: Api<Lease> = Api::namespaced(client, "default");
        let noted = Patch::Merge(json!({ "metadata": { "annotations": { "seen-by": "an administrator" } } }));
        let mut renewed = leases.patch("goodput", &PatchParams::default(), &noted).await.unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2 * u64::from(LEASE_S)) {
            assert_eq!(one.tick().await, Some(1), "{:?}", one.leader.trouble());
            assert_eq!(two.tick().await, None);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let now = leases.get("goodput").await.unwrap();
        let renewals = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
        assert!(renewals(&now) > renewals(&renewed), "it was renewed");
        renewed = now;
        assert!(renewed.metadata.annotations.unwrap().contains_key("seen-by"), "what others wrote stays");

        // A lease that is given up is free at once; one that is not renewed is free after its time.
        one.leader.resign(&mut one.journal).await;
        assert_eq!(two.tick().await, Some(2));
        assert_eq!(one.tick().await, None);
        drop(two);
        let (term, waited) = one.until(true).await;
        assert_eq!(term, Some(3));
        assert!(waited > Duration::from_secs(u64::from(LEASE_S) - 1), "{waited:?}");
        let held = leases.get("goodput").await.unwrap().spec.unwrap();
        assert_eq!((held.holder_identity.as_deref(), held.lease_transitions), (Some("one"), Some(3)));
    });
}

#[test]
fn a_leader_without_the_api_server_stands_down_when_its_lease_is_over() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let home = tempfile::tempdir().unwrap();
        let mut plane = ControlPlane::start(&home.path().join("plane")).unwrap();
        let (mut one, mut two) = (Host::new("one", &plane.kubeconfig()), Host::new("two", &plane.kubeconfig()));
        assert_eq!(one.until(true).await.0, Some(1));
        plane.kill_api_server();
        assert_eq!(one.tick().await, Some(1), "it leads on while its lease lasts");
        let (_, lasted) = one.until(false).await;
        assert!(lasted <= Duration::from_secs(u64::from(LEASE_S) + 30), "{lasted:?}");
        assert!(one.leader.trouble().is_some() && one.leader.try_act().is_none());
        assert_eq!(two.tick().await, None);
        // The term outlives the API server.
        plane.start_api_server().unwrap();
        plane.wait_until_ready().unwrap();
        assert_eq!(two.until(true).await.0, Some(2));
        assert_eq!(one.tick().await, None);
    });
}
