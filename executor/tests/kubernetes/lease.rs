//! The lease in Kubernetes: one leader, growing terms, what a leader does while the API server is away, and the mode
//! that holds for the daemons of all hosts.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::{Deployment, Mode};
use goodput_configs::live::leader::{KubernetesLeaseConfig, LeaseKeeper};
use goodput_executor::daemon::Daemon;
use goodput_executor::daemon::durability::journal::Journal;
use goodput_executor::daemon::durability::leader::kubernetes::KubernetesLease;
use goodput_executor::daemon::durability::leader::lease_mode::LeaseMode;
use goodput_executor::daemon::durability::leader::{DaemonName, Leader, LeaseTerms};
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{Engine, JobPhase};
use goodput_testkit::kubernetes::ControlPlane;
use hyper::{Method, Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Site, buildable, drills, job, runtime, shared};

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

/// A deployment that acts on the site, on a host of its own, with the lease in the namespace of the site.
fn on_host(site: &Site, host: &str) -> Deployment {
    let mut settings = drills::settings(site, "name = \"fifo\"");
    settings.state.directory = site.directory.path().join(host);
    (settings.state.name, settings.state.lease_secs) = (Some(host.into()), 6);
    settings.leader.lease = LeaseKeeper::Kubernetes(KubernetesLeaseConfig {
        kubeconfig: site.settings.kubeconfig.clone(),
        namespace: site.name.clone(),
        ..KubernetesLeaseConfig::default()
    });
    settings
}

async fn until_it_leads(daemon: &mut Daemon<KubernetesEngine>) {
    let began = Instant::now();
    while !daemon.cycle().await.is_ok_and(|report| report.leads) {
        assert!(began.elapsed() < Duration::from_secs(60), "it never leads");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A stop outlives the leader, also on a host that has no file of it. The files of both hosts say `act`.
#[test]
fn a_stop_holds_at_the_leader_of_another_host() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("stopped").await;
        let mut one = drills::open(&on_host(&site, "one"));
        let mut two = drills::open(&on_host(&site, "two"));
        until_it_leads(&mut one).await;
        assert!(!two.cycle().await.unwrap().leads);
        assert_eq!((one.mode(), two.mode()), (Mode::Act, Mode::Act));
        let first = site.engine.submit(&site.submission("runs", 2, 2, 20)).await.unwrap();
        let began = Instant::now();
        while site.said(&first, "start").is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "the leader does not act");
            one.cycle().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        one.set_mode("test", Mode::Observe).await.unwrap();
        one.cycle().await.unwrap();
        assert_eq!(one.mode(), Mode::Observe);
        let lease: Lease = site.api().get("goodput").await.unwrap();
        assert_eq!(lease.metadata.annotations.unwrap()["goodput.dev/mode"], "observe");
        let second = site.engine.submit(&site.submission("waits", 2, 2, 20)).await.unwrap();
        // The leader dies without a last word.
        drop(one);
        until_it_leads(&mut two).await;
        assert_eq!(two.mode(), Mode::Observe);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(8) {
            assert!(two.cycle().await.unwrap().leads);
            assert_eq!(two.mode(), Mode::Observe);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let seen = site.phase(&second, JobPhase::Held).await;
        assert_eq!(job(&seen, &second).starts, 0, "the new leader changes nothing");
        assert!(site.said(&second, "start").is_empty());

        // So does it hold on a third host with an empty directory, which stands by and may set another mode.
        let mut three = drills::open(&on_host(&site, "three"));
        assert!(!three.cycle().await.unwrap().leads);
        assert_eq!(three.mode(), Mode::Observe);
        // A daemon that is started to observe does not take up a mode that was set before.
        three.set_mode("test", Mode::Act).await.unwrap();
        let mut four = drills::open(&on_host(&site, "four"));
        four.observe_only();
        assert!(!four.cycle().await.unwrap().leads);
        assert_eq!(four.mode(), Mode::Observe);
        let began = Instant::now();
        while site.said(&second, "start").is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "the leader does not follow");
            assert!(two.cycle().await.unwrap().leads, "a new mode costs the leader no lease");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(two.mode(), Mode::Act);
        let alerts = two.status().lock().unwrap().alerts.clone();
        assert!(!alerts.iter().any(|alert| alert.starts_with("lease")), "{alerts:?}");
    });
}

/// The mode that a host kept before, where the Lease has none, holds for all hosts from the next leadership on.
#[test]
fn a_mode_of_the_journal_moves_to_the_lease() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let site = Site::start("mode-moved").await;
        let mut alone = on_host(&site, "one");
        alone.leader.lease = LeaseKeeper::Journal;
        let mut daemon = drills::open(&alone);
        daemon.set_mode("test", Mode::Observe).await.unwrap();
        drop(daemon);
        let mut one = drills::open(&on_host(&site, "one"));
        until_it_leads(&mut one).await;
        drop(one);
        let mut two = drills::open(&on_host(&site, "two"));
        until_it_leads(&mut two).await;
        assert_eq!(two.mode(), Mode::Observe);
    });
}

/// A Lease that is played: its object, and what the next calls are answered.
#[derive(Default)]
struct PlayedLease {
    lease: Option<Value>,
    version: u32,
    /// Writes that are refused with 409, each after a change by another writer.
    others: Vec<Option<&'static str>>,
    /// Status of everything.
    down: Option<u16>,
    writes: u32,
}

impl PlayedLease {
    fn annotate(&mut self, mode: Option<&str>) {
        self.version += 1;
        let lease = self.lease.get_or_insert_with(|| json!({ "metadata": { "name": "goodput" } }));
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if let Some(mode) = mode {
            lease["metadata"]["annotations"] = json!({ "goodput.dev/mode": mode, "goodput.dev/mode-set": "once" });
        }
    }

    fn answer(&mut self, method: &Method, body: Value) -> (u16, Value) {
        let status = |code: u16, reason: &str| {
            let text = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": reason, "message": "as played", "metadata": {} });
            (code, text)
        };
        if let Some(code) = self.down {
            return status(code, "Played");
        }
        if *method == Method::GET {
            return self.lease.clone().map_or_else(|| status(404, "NotFound"), |lease| (200, lease));
        }
        self.writes += 1;
        if !self.others.is_empty() {
            let mode = self.others.remove(0);
            self.annotate(mode);
        }
        let known = self.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        let named = body["metadata"].get("resourceVersion").cloned();
        if (*method == Method::POST) != self.lease.is_none() || known != named {
            return status(409, "Conflict");
        }
        self.lease = Some(body);
        self.annotate(None);
        (200, self.lease.clone().unwrap())
    }
}

fn played_mode(lease: PlayedLease) -> (LeaseMode, Arc<Mutex<PlayedLease>>) {
    let shared = Arc::new(Mutex::new(lease));
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let server = shared.clone();
    tokio::spawn(async move {
        while let Some((request, send)) = handle.next_request().await {
            let method = request.method().clone();
            let bytes = request.into_body().collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            let (code, answer) = server.lock().unwrap().answer(&method, body);
            let answer = Body::from(serde_json::to_vec(&answer).unwrap());
            send.send_response(Response::builder().status(code).body(answer).unwrap());
        }
    });
    (LeaseMode::with_client(&KubernetesLeaseConfig::default(), Client::new(service, "default")), shared)
}

#[test]
fn a_mode_is_written_against_other_writers_and_a_word_that_is_no_mode_observes() {
    runtime().block_on(async {
        // No Lease yet: the first mode makes it. Every write makes a new version, so a late call is refused.
        let (mut mode, server) = played_mode(PlayedLease::default());
        assert_eq!(mode.mode().await, Ok(None));
        mode.set(Mode::Act).await.unwrap();
        let set = |server: &Arc<Mutex<PlayedLease>>| {
            server.lock().unwrap().lease.as_ref().unwrap()["metadata"]["annotations"].clone()
        };
        let first = set(&server);
        mode.set(Mode::Act).await.unwrap();
        assert_eq!((mode.mode().await, set(&server)["goodput.dev/mode"].as_str()), (Ok(Some(Mode::Act)), Some("act")));
        assert_ne!(first["goodput.dev/mode-set"], set(&server)["goodput.dev/mode-set"]);

        // The leader renews meanwhile: 409, and the write is made anew.
        server.lock().unwrap().others = vec![None, None, None];
        server.lock().unwrap().writes = 0;
        mode.set(Mode::Canary).await.unwrap();
        assert_eq!((mode.mode().await, server.lock().unwrap().writes), (Ok(Some(Mode::Canary)), 4));

        // Another person sets the mode meanwhile: only a stop goes over that.
        server.lock().unwrap().others = vec![Some("observe")];
        let told = mode.set(Mode::Act).await.unwrap_err();
        assert!(told.contains("set by another call just now"), "{told}");
        assert_eq!(mode.mode().await, Ok(Some(Mode::Observe)));
        server.lock().unwrap().others = vec![Some("act")];
        mode.set(Mode::Observe).await.unwrap();
        assert_eq!(mode.mode().await, Ok(Some(Mode::Observe)));
        server.lock().unwrap().others = vec![None; 20];
        let told = mode.set(Mode::Observe).await.unwrap_err();
        assert!(told.contains("6 times in a row"), "{told}");
        server.lock().unwrap().others.clear();

        // What another leader has begun with stays.
        server.lock().unwrap().annotate(Some("act"));
        mode.begin(Mode::Canary).await.unwrap();
        assert_eq!(mode.mode().await, Ok(Some(Mode::Act)));
        server.lock().unwrap().annotate(Some("atc"));
        assert_eq!(mode.mode().await, Ok(Some(Mode::Observe)));
        for code in [403, 500] {
            server.lock().unwrap().down = Some(code);
            assert!(mode.mode().await.is_err() && mode.set(Mode::Observe).await.is_err());
        }
    });
}

#[test]
fn the_leader_of_a_term_alone_names_the_policy_that_rules() {
    runtime().block_on(async {
        let (mut lease, server) = played_mode(PlayedLease::default());
        let told = lease.set_policy(1, "tiresias", "").await.unwrap_err();
        assert!(told.contains("term 1 is over"), "nobody leads: {told}");
        lease.set(Mode::Act).await.unwrap();
        let term = |term: &str| {
            let mut server = server.lock().unwrap();
            server.lease.as_mut().unwrap()["metadata"]["annotations"]["goodput.dev/term"] = term.into();
        };
        term("7");
        assert_eq!(lease.policy().await, Ok(None));
        // The renewal of the leader is in between.
        server.lock().unwrap().others = vec![None, None];
        let first = lease.set_policy(7, "tiresias", "").await.unwrap();
        let second = lease.set_policy(7, "zoo:elastic", "ab").await.unwrap();
        assert_eq!((first.number, second.number), (1, 2));
        assert_eq!((lease.policy().await, lease.mode().await), (Ok(Some(second.clone())), Ok(Some(Mode::Act))));
        term("8");
        assert!(lease.set_policy(7, "fifo", "").await.is_err());
        assert_eq!(lease.policy().await, Ok(Some(second)));
    });
}
