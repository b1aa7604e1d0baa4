//! The legacy that a leader of another host finds: promises, idempotency keys, a person's order, the mode, the policy.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use goodput_agents::zoo;
use goodput_configs::live::deployment::{Deployment, Mode};
use goodput_configs::live::leader::{EtcdConfig, LeaseKeeper};
use goodput_configs::reader;
use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use goodput_executor::daemon::decide::cycle::CycleReport;
use goodput_executor::daemon::durability::journal::ChangeVerb;
use goodput_executor::daemon::interface::api::PolicyRequest;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::{
    Capabilities, ClusterSnapshot, Engine, EngineAction, EngineError, JobSeen, NodeHealth, NodeSeen, Order, Receipt,
    StepOutcome, Submission, SubmissionDurability,
};
use goodput_executor::etcd::writer::LeaderWriter;
use goodput_executor::etcd::{Change, Etcd};
use goodput_executor::machine::wall_ms;
use goodput_testkit::etcd::PrivateEtcd;

use super::started;

/// A manager of jobs that forgets what it acknowledged when it dies. Both daemons speak with it.
#[derive(Clone, Default)]
struct Manager(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    jobs: Vec<JobSeen>,
    since_ms: i64,
    version: u64,
    submitted: u32,
    drained: Option<String>,
    /// Terms in which daemons led.
    led: Vec<u64>,
    /// Whether the manager answers nothing.
    silent: bool,
}

impl Manager {
    fn crash(&self) {
        let mut state = self.0.lock().unwrap();
        (state.jobs, state.since_ms) = (Vec::new(), wall_ms() + 1);
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().jobs.iter().map(|job| job.spec.request.name.clone()).collect()
    }
}

impl Engine for Manager {
    fn name(&self) -> &'static str {
        "manager"
    }

    fn capabilities(&self) -> Capabilities {
        let durability = SubmissionDurability {
            durable_after: Duration::from_secs(300),
            shows_ended_for: Duration::from_secs(600),
            drains_over: "forgot",
        };
        Capabilities { hold: true, durability: Some(durability), ..Capabilities::default() }
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        let mut state = self.0.lock().unwrap();
        if state.silent {
            let (problem, remedy) = ("it is silent".to_owned(), "wait");
            return Err(EngineError::Unreachable { engine: "manager", problem, remedy });
        }
        state.version += 1;
        let health = if state.drained.is_some() { NodeHealth::Drained } else { NodeHealth::Up };
        // No job ever has room here: only what is handed in counts.
        let node = NodeSeen { name: "n0".into(), accelerator: "a100".into(), gpus: 1, health, ..NodeSeen::default() };
        let (version, at_ms, nodes, jobs) = (state.version, wall_ms(), vec![node], state.jobs.clone());
        Ok(ClusterSnapshot { version, at_ms, nodes, jobs, ..ClusterSnapshot::default() })
    }

    async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        for order in orders {
            if let EngineAction::Drain { node, .. } = &order.action {
                self.0.lock().unwrap().drained = Some(node.clone());
            }
        }
        Ok(orders.iter().map(|order| Receipt { id: order.id.clone(), outcome: StepOutcome::Accepted }).collect())
    }

    async fn submit(&mut self, job: &Submission) -> Result<String, EngineError> {
        let mut state = self.0.lock().unwrap();
        state.submitted += 1;
        let key = state.submitted.to_string();
        let seen = JobSeen::held(key.clone(), job.spec.clone());
        state.jobs.push(seen);
        Ok(key)
    }

    async fn lead(&mut self, term: u64) -> Result<(), EngineError> {
        self.0.lock().unwrap().led.push(term);
        Ok(())
    }

    async fn remembers_since(&mut self) -> Result<Option<i64>, EngineError> {
        Ok(Some(self.0.lock().unwrap().since_ms))
    }
}

fn open_with(manager: &Manager, directory: &Path, name: &str, lease: LeaseKeeper) -> Daemon<Manager> {
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\n[policy]\nname = \"fifo\"\n[reliance]\ntimeout_ms = 20000\nfallback = \"fifo\"\n[state]\ndirectory = \"{}\"\nname = \"{name}\"\nlease_secs = 3\n[api]\nlisten = \"\"\n",
        directory.join(name).display()
    );
    let mut settings = reader::parse::<Deployment>("t.toml", &text).unwrap();
    settings.leader.lease = lease;
    daemon::open(manager.clone(), settings, Vec::new(), Arc::new(Tenants::default())).unwrap()
}

fn open(manager: &Manager, directory: &Path, name: &str, etcd: &PrivateEtcd) -> Daemon<Manager> {
    // Bundles of megabytes go to etcd, which takes longer on a busy machine.
    let config = EtcdConfig { patience_ms: 1000, ..etcd.config(None) };
    open_with(manager, directory, name, LeaseKeeper::Etcd(config))
}

async fn until_it_leads(daemon: &mut Daemon<Manager>) -> CycleReport {
    let began = Instant::now();
    loop {
        if let Some(report) = daemon.cycle().await.ok().filter(|report| report.leads) {
            return report;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it never leads");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The daemon "one", which leads, and the daemon "two", which stands by.
async fn leader_and_standby(
    manager: &Manager,
    directory: &Path,
    etcd: &PrivateEtcd,
) -> (Daemon<Manager>, Daemon<Manager>) {
    let mut one = open(manager, directory, "one", etcd);
    let mut two = open(manager, directory, "two", etcd);
    until_it_leads(&mut one).await;
    two.cycle().await.unwrap();
    (one, two)
}

fn submission(name: &str) -> Submission {
    let request = JobRequest { name: name.into(), ..JobRequest::default() };
    let work = Work::Fixed { duration: SimTime::from_secs(60) };
    Submission::new(JobSpec { request, work }, vec!["/bin/true".into()])
}

#[tokio::test]
async fn a_leader_of_another_host_keeps_what_was_promised() {
    let Some((folder, etcd)) = started() else { return };
    let manager = Manager::default();
    let (mut one, mut two) = leader_and_standby(&manager, folder.path(), &etcd).await;
    let status = two.status();
    assert_eq!(status.lock().unwrap().leader.as_ref().map(|leader| leader.name.clone()), Some("one".into()));

    for job in ["a", "b", "c"] {
        one.submit("test", &submission(job)).await.unwrap();
    }
    assert!(two.submit("test", &submission("d")).await.is_err(), "a daemon that stands by promises nothing");
    let drain = EngineAction::Drain { node: "n0".into(), reason: "a fan".into() };
    one.order_by_hand("test", "", drain).await.unwrap();
    // The first host burns down before its next cycle, and the manager forgets everything.
    drop(one);
    manager.crash();
    until_it_leads(&mut two).await;
    let began = Instant::now();
    while manager.names().len() < 3 || manager.0.lock().unwrap().drained.is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", manager.names());
        two.cycle().await.unwrap();
    }
    assert_eq!(manager.names(), ["a", "b", "c"]);
    for _ in 0..5 {
        two.cycle().await.unwrap();
    }
    assert_eq!(manager.names().len(), 3, "handed in again once");

    // A stop at any daemon is a stop of all, and outlives them.
    let mut three = open(&manager, folder.path(), "three", &etcd);
    three.set_mode("test", Mode::Observe).await.unwrap();
    two.cycle().await.unwrap();
    assert_eq!(two.mode(), Mode::Observe);
    two.resign().await;
    drop(two);
    let mut four = open(&manager, folder.path(), "four", &etcd);
    until_it_leads(&mut four).await;
    assert_eq!(four.mode(), Mode::Observe);
}

/// A client tries again at the new leader, whatever became of its first try at the one that died.
#[tokio::test]
async fn an_idempotency_key_holds_at_the_leader_of_another_host() {
    let Some((folder, etcd)) = started() else { return };
    let manager = Manager::default();
    let mut one = open(&manager, folder.path(), "one", &etcd);
    until_it_leads(&mut one).await;
    let first = one.submit_once("test", &submission("a"), "key-a").await.unwrap();
    assert!(!first.repeated);
    // It dies after the engine has the job and before it wrote the job's key down.
    one.set_hook(Box::new(|place| place == "after-hand-in"));
    one.submit_once("test", &submission("b"), "key-b").await.unwrap_err();
    drop(one);
    assert_eq!(manager.names(), ["a", "b"]);

    let mut two = open(&manager, folder.path(), "two", &etcd);
    until_it_leads(&mut two).await;
    let again = two.submit_once("test", &submission("a"), "key-a").await.unwrap();
    assert_eq!((again.key, again.repeated), (first.key, true));
    let again = two.submit_once("test", &submission("b"), "key-b").await.unwrap();
    assert_eq!((again.key.as_str(), again.repeated), ("2", true));
    let other = two.submit_once("test", &submission("c"), "key-a").await.unwrap_err();
    assert!(other.to_string().contains("was used for another job"), "{other}");
    assert!(!two.submit_once("else", &submission("a"), "key-a").await.unwrap().repeated, "keys are each caller's own");
    assert_eq!(manager.names(), ["a", "b", "a"]);

    // The engine forgets the jobs. Handed in again they have other keys, which the next leader knows.
    manager.crash();
    let began = Instant::now();
    while manager.names().len() < 2 {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", manager.names());
        two.cycle().await.unwrap();
    }
    two.resign().await;
    let mut three = open(&manager, folder.path(), "three", &etcd);
    until_it_leads(&mut three).await;
    let again = three.submit_once("test", &submission("a"), "key-a").await.unwrap();
    let key = manager.0.lock().unwrap().jobs.iter().find(|job| job.spec.request.name == "a").unwrap().key.clone();
    assert_eq!((again.key, again.repeated), (key, true));
}

/// The first leader with a lease in etcd hands on what its journal had from the time before.
#[tokio::test]
async fn what_a_journal_keeps_moves_to_etcd_with_the_lease() {
    let Some((folder, etcd)) = started() else { return };
    let manager = Manager::default();
    let mut alone = open_with(&manager, folder.path(), "one", LeaseKeeper::Journal);
    until_it_leads(&mut alone).await;
    let first = alone.submit_once("test", &submission("a"), "key-a").await.unwrap();
    alone.set_mode("test", Mode::Canary).await.unwrap();
    alone.set_policy("anna", &asked("tiresias")).await.unwrap();
    alone.resign().await;
    drop(alone);
    let mut one = open(&manager, folder.path(), "one", &etcd);
    until_it_leads(&mut one).await;
    drop(one);
    let mut two = open(&manager, folder.path(), "two", &etcd);
    until_it_leads(&mut two).await;
    two.cycle().await.unwrap();
    assert_eq!(two.mode(), Mode::Canary);
    assert_eq!((policy(&two).as_str(), history(&two)), ("tiresias", told(&["file fifo", "set tiresias"])));
    let again = two.submit_once("test", &submission("a"), "key-a").await.unwrap();
    assert_eq!((again.key, again.repeated), (first.key, true));
    two.set_mode("test", Mode::Act).await.unwrap();
    manager.crash();
    let began = Instant::now();
    while manager.names().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "a promise of the journal was not kept");
        two.cycle().await.unwrap();
    }
}

/// A leader that loses its lease while the engine is silent, and is elected again, leads the engine again.
#[tokio::test]
async fn a_leader_that_is_elected_again_leads_its_engine_again() {
    let Some((folder, mut etcd)) = started() else { return };
    let manager = Manager::default();
    let mut one = open(&manager, folder.path(), "one", &etcd);
    until_it_leads(&mut one).await;
    etcd.kill();
    manager.0.lock().unwrap().silent = true;
    let (health, began) = (one.health(), Instant::now());
    while health.report().leads {
        assert!(began.elapsed() < Duration::from_secs(60), "it leads without a lease");
        one.cycle().await.unwrap_err();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    etcd.run().unwrap();
    assert!(etcd.wait(Duration::from_secs(60)));
    manager.0.lock().unwrap().silent = false;
    until_it_leads(&mut one).await;
    let term = one.status().lock().unwrap().term;
    let led = manager.0.lock().unwrap().led.clone();
    assert_eq!(led.last().copied(), term, "{led:?}");
    assert!(led.len() > 1 && term > Some(1), "{led:?}, {term:?}");
}

fn asked(policy: impl Into<String>) -> PolicyRequest {
    PolicyRequest { policy: policy.into(), reason: "a test".into(), ..PolicyRequest::default() }
}

fn policy(daemon: &Daemon<Manager>) -> String {
    daemon.status().lock().unwrap().policy.clone()
}

/// Changes of the policy, oldest first, as a daemon shows them.
fn history(daemon: &Daemon<Manager>) -> Vec<String> {
    let changes = daemon.policy_history().unwrap();
    let word = |verb| match verb {
        ChangeVerb::File => "file",
        ChangeVerb::Set => "set",
        ChangeVerb::Rollback => "rollback",
        ChangeVerb::Regression => "regression",
    };
    changes.iter().rev().map(|change| format!("{} {}", word(change.verb), change.name)).collect()
}

fn told(changes: &[&str]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

fn alerts(daemon: &Daemon<Manager>) -> Vec<String> {
    daemon.status().lock().unwrap().alerts.clone()
}

/// Policies by which a daemon began to decide, as its audit log has them.
fn began_by(directory: &Path, name: &str) -> Vec<String> {
    let log = std::fs::read_to_string(directory.join(name).join("audit.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let starts = lines.filter(|line| line["kind"] == "start");
    starts.map(|line| line["body"]["policy"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A leader of another host decides by the policy that was set, or to which a rollback went, from its first decision
/// on. The bundle comes from etcd.
#[tokio::test]
async fn the_policy_that_was_set_rules_at_the_leader_of_another_host() {
    let Some((folder, etcd)) = started() else { return };
    let manager = Manager::default();
    let (mut one, mut two) = leader_and_standby(&manager, folder.path(), &etcd).await;
    let error = two.set_policy("anna", &asked("tiresias")).await.unwrap_err().to_string();
    assert!(error.contains("stands by"), "{error}");

    let bundle = folder.path().join("own.bundle");
    let mut large = zoo::load("elastic").unwrap();
    // No request to etcd takes as much: the bundle goes there in parts.
    large.card.provenance.argv.push("x".repeat(3 << 20));
    large.save(&bundle).unwrap();
    let own = bundle.display().to_string();
    one.set_policy("anna", &asked("tiresias(starvation_knob=2)")).await.unwrap();
    one.set_policy("anna", &asked(own.clone())).await.unwrap();
    let three_changes = ["file fifo", "set tiresias(starvation_knob=2)", &format!("set {own}")];
    assert_eq!(history(&one), told(&three_changes));
    two.cycle().await.unwrap();
    assert_eq!((policy(&two), history(&two)), (own.clone(), told(&three_changes)), "a daemon that stands by follows");

    // The first host burns down, with the file of the bundle. The third host has never seen the cluster before.
    std::fs::remove_file(&bundle).unwrap();
    drop((one, two));
    let mut three = open(&manager, folder.path(), "three", &etcd);
    assert_eq!(policy(&three), "fifo");
    assert!(until_it_leads(&mut three).await.decided);
    assert_eq!((policy(&three), history(&three)), (own.clone(), told(&three_changes)));
    assert_eq!(began_by(folder.path(), "three"), [own.as_str()]);
    assert_eq!(alerts(&three), Vec::<String>::new());

    // A rollback holds as well, at a host of which the journal has the policy before it.
    three.roll_back_policy("ben", "slow", ChangeVerb::Rollback).await.unwrap();
    assert_eq!(policy(&three), "tiresias(starvation_knob=2)");
    drop(three);
    let mut one = open(&manager, folder.path(), "one", &etcd);
    assert_eq!(policy(&one), own, "the journal of the first host is an old one");
    assert!(until_it_leads(&mut one).await.decided);
    assert_eq!(policy(&one), "tiresias(starvation_knob=2)");
    assert_eq!(began_by(folder.path(), "one"), ["fifo", "tiresias(starvation_knob=2)"]);
    assert_eq!(history(&one).last().unwrap(), "rollback tiresias(starvation_knob=2)");

    // A second rollback goes to the policy of the file.
    one.roll_back_policy("ben", "slow", ChangeVerb::Rollback).await.unwrap();
    one.resign().await;
    let mut two = open(&manager, folder.path(), "two", &etcd);
    until_it_leads(&mut two).await;
    assert_eq!((policy(&two).as_str(), history(&two).len()), ("fifo", 5));
    assert_eq!(alerts(&two), Vec::<String>::new());
}

/// A leader that cannot have the policy that rules decides nothing and says why, until a policy is set.
#[tokio::test]
async fn a_leader_that_cannot_have_the_policy_that_rules_decides_nothing() {
    let Some((folder, etcd)) = started() else { return };
    let manager = Manager::default();
    let mut one = open(&manager, folder.path(), "one", &etcd);
    until_it_leads(&mut one).await;
    let set = one.set_policy("anna", &asked("zoo:elastic")).await.unwrap();
    let term = one.status().lock().unwrap().term.unwrap();
    let keys = Etcd::new(&etcd.config(None)).unwrap();
    let gone = Change::delete(format!("policy/bundles/{}", set.sha256));
    LeaderWriter::new(keys, "test").write(term, vec![gone]).await.unwrap();
    drop(one);

    let mut two = open(&manager, folder.path(), "two", &etcd);
    assert!(!until_it_leads(&mut two).await.decided);
    for _ in 0..3 {
        let turn = two.cycle().await.unwrap();
        assert!(turn.leads && !turn.decided, "{turn:?}");
    }
    let alerts = alerts(&two);
    let told: Vec<&String> = alerts.iter().filter(|alert| alert.contains("nothing is decided")).collect();
    assert_eq!(told.len(), 1, "{alerts:?}");
    for words in
        ["policy: zoo:elastic was set (change 2) and rules", "etcd has the bundle", "`goodput live policy set`"]
    {
        assert!(told[0].contains(words), "{told:?}");
    }
    // A call that sets the policy settles it: the bundle is in etcd again.
    two.set_policy("anna", &asked("zoo:elastic")).await.unwrap();
    assert!(two.cycle().await.unwrap().decided);
    two.resign().await;
    let mut three = open(&manager, folder.path(), "three", &etcd);
    until_it_leads(&mut three).await;
    assert_eq!((policy(&three).as_str(), history(&three).len()), ("zoo:elastic", 3));
}

/// A change that etcd does not take is refused, and the policy before decides on.
#[tokio::test]
async fn a_policy_that_cannot_be_written_outside_is_not_set() {
    let Some((folder, mut etcd)) = started() else { return };
    let manager = Manager::default();
    let mut one = open(&manager, folder.path(), "one", &etcd);
    until_it_leads(&mut one).await;
    one.set_policy("anna", &asked("tiresias")).await.unwrap();
    etcd.kill();
    one.set_policy("anna", &asked("srtf")).await.unwrap_err();
    one.roll_back_policy("anna", "", ChangeVerb::Rollback).await.unwrap_err();
    assert_eq!((policy(&one).as_str(), history(&one)), ("tiresias", told(&["file fifo", "set tiresias"])));
    // Whether the change went through is not known: nothing is decided before that is.
    assert!(one.cycle().await.is_err());
    etcd.run().unwrap();
    assert!(etcd.wait(Duration::from_secs(60)));
    until_it_leads(&mut one).await;
    assert_eq!((policy(&one).as_str(), history(&one)), ("tiresias", told(&["file fifo", "set tiresias"])));
    one.set_policy("anna", &asked("srtf")).await.unwrap();
    assert_eq!(policy(&one), "srtf");
}
