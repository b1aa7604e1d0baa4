//! The daemon: it looks at a cluster, asks a policy, and carries out what the guard lets pass.
//!
//! A cycle is: snapshot, verify open orders, decide, guard, journal (fsync), act, audit. Whatever
//! dies in between, the next cycle finds out what is (by the snapshot) and what was wanted (by the
//! journal) and goes on from there.
//!
//! # Layout
//! Rooms, each of which may use the rooms above it:
//! - [`shadow`]: another policy beside the one that acts, compared by simulation.
//! - [`observe`]: snapshots in the terms of the environment.
//! - [`guard`]: what a plan may do to a running cluster.
//! - [`durability`]: what survives the death of a daemon or of its engine.
//! - [`predict`]: when a job that waits will start.
//! - [`interface`]: what users and monitoring see and ask.
//! - [`decide`]: the cycle, from a snapshot to orders under way.
//!
//! Beside them: `open`, a daemon from its configuration; [`failpoint`], places where a drill ends the
//! daemon.

pub mod decide;
pub mod durability;
pub mod failpoint;
pub mod guard;
pub mod interface;
pub mod observe;
mod open;
mod policies;
pub mod predict;
pub mod shadow;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::{Deployment, Mode};
use goodput_configs::live::leader::LeaseKeeper;
use goodput_env::cluster::AcceleratorType;
use goodput_env::guard::Guard;
use goodput_env::state::ClusterState;
use goodput_env::time::SimTime;
use thiserror::Error;

use crate::engine::{ClusterSnapshot, Engine, EngineError, EngineProblem, Order};
use crate::etcd::{Etcd, EtcdError};
use crate::http::identity::IdentityError;
use crate::private;
use decide::chooser::Chooser;
use decide::failures::FailedCycles;
use decide::ruling_policy::PolicyBar;
use durability::journal::PolicyChange;
use durability::journal::{AcknowledgedSubmission, JobEnd, Journal, JournalError};
use durability::kept_mode;
use durability::leader::etcd::EtcdLease;
use durability::leader::kubernetes::KubernetesLease;
use durability::leader::lease_mode::{LeaseMode, LeasePolicy};
use durability::leader::{self, DaemonName, Leader};
use durability::led_by;
use durability::shared::SharedBook;
use guard::mass_failure::MassFailures;
use interface::audit::{Audit, AuditError, AuditSize};
use interface::health::DaemonHealth;
use interface::metrics::Metrics;
use interface::report::events::Tally;
use interface::status::DaemonStatus;
use observe::load_forecasts::LoadForecasts;
pub use observe::loads::measure as measure_loads;
use observe::loads::{self, ServiceLoads};
use observe::reversals::Reversals;
use observe::{ClusterObserver, ObservationError};
pub use open::{absolute, bundle_sha256, open};
use predict::StartPredictor;
use shadow::Shadow;

/// Reason why a cycle ended early. The next cycle begins anew.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The engine does not answer.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The journal cannot be used; nothing is done without it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The audit log cannot be written; nothing is done without it.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// etcd cannot be used, and what it keeps was not changed.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The Lease of Kubernetes keeps the mode and the name of the policy, and cannot be used.
    #[error("the mode and the policy that were set are kept in the Lease of [leader.lease.kubernetes]: {0}")]
    LeaseMode(String),
    /// The snapshot makes no sense.
    #[error(transparent)]
    ClusterObserver(#[from] ObservationError),
    /// A file or a thread could not be had.
    #[error("{action}: {source}")]
    System {
        /// Action that failed.
        action: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The certificate or the key of the interface cannot be used.
    #[error("[api] tls: {0}")]
    Identity(#[from] IdentityError),
    /// The certificates of the authorities that sign Prometheus' cannot be read.
    #[error("[prometheus] ca: {0}")]
    Prometheus(IdentityError),
    /// The request is not allowed now.
    #[error("{0}")]
    Refused(String),
    /// Another daemon leads, or none.
    #[error("this daemon stands by: {}", led_by::words(.0.as_ref()))]
    Standby(Option<DaemonName>),
    /// Nothing is accepted now.
    #[error("{0}")]
    Unavailable(String),
    /// A drill ends the cycle here.
    #[error("the drill ends the daemon at {0}")]
    Drill(&'static str),
}

/// File of the journal in the state directory.
const JOURNAL: &str = "journal.sqlite";

/// Files in the state directory. Versions before this one left them readable by others.
const STATE_FILES: [&str; 7] =
    [JOURNAL, "journal.sqlite-wal", "journal.sqlite-shm", "audit.jsonl", "audit.lock", "leader.lock", "leader.alive"];

/// An order under way.
#[derive(Clone, Debug)]
struct UnderWay {
    order: Order,
    since: Instant,
    /// Last note of the engine.
    note: String,
}

/// Times and attempt of a job that is not over, as last seen.
#[derive(Clone, Copy, Debug)]
struct JobClock {
    /// Time of submission, milliseconds of the engine's clock.
    submit_ms: i64,
    /// Whether the job has started.
    started: bool,
    /// Number of the attempt that runs; `None` where none does.
    attempt: Option<u32>,
}

/// Ends a cycle at a place where it says so; for drills within one process.
pub type Hook = Box<dyn FnMut(&'static str) -> bool + Send>;

/// A daemon for one cluster.
pub struct Daemon<E> {
    engine: E,
    settings: Deployment,
    observer: ClusterObserver,
    /// Loads of services that Prometheus knows; `None` where no service has a query.
    loads: Option<ServiceLoads>,
    /// Loads that the policy expects, beside those that came.
    forecasts: LoadForecasts,
    chooser: Chooser,
    guard: Guard,
    journal: Journal,
    audit: Audit,
    leader: Leader,
    /// State that daemons of other hosts read; `None` where the journal is all there is.
    shared: Option<SharedBook>,
    /// The mode and the policy in the Lease of Kubernetes; `None` where the lease is not kept there.
    lease_mode: Option<LeaseMode>,
    metrics: Arc<Metrics>,
    status: Arc<Mutex<DaemonStatus>>,
    health: Arc<DaemonHealth>,
    mode: Mode,
    stop_file: PathBuf,
    open: Vec<UnderWay>,
    /// Submissions that were acknowledged to their users while the engine may yet forget them, by
    /// time of submission.
    promises: Vec<AcknowledgedSubmission>,
    /// Jobs that were seen to be over while the engine may yet forget it, and when that was,
    /// milliseconds of the Unix epoch.
    ends: BTreeMap<JobEnd, i64>,
    /// Orders of the last decision, acted on or not.
    proposed: Vec<Order>,
    watch: Reversals,
    mass_failures: MassFailures,
    /// Jobs that are not over, by key.
    clocks: BTreeMap<String, JobClock>,
    /// Time of the last order that moved or stopped a job, by key.
    preempted: BTreeMap<String, SimTime>,
    /// Times of the last orders of a canary.
    acted: VecDeque<Instant>,
    last_decision: Option<SimTime>,
    /// Mode in which the daemon last decided.
    decided_in: Mode,
    wake: Option<SimTime>,
    last: Option<(Arc<ClusterSnapshot>, Instant)>,
    /// Term for which it was taken up what earlier leaders left.
    recovered: Option<u64>,
    kept: Instant,
    hook: Option<Hook>,
    shadow: Option<Shadow>,
    /// Comparison with the cluster as it is, made in the mode `observe`.
    outlook: Option<Shadow>,
    /// Predictions of starts under the policy; `None` where that is a program.
    starts: Option<StartPredictor>,
    tally: Tally,
    /// Policy that a call has set, as the journal has it.
    kept_policy: Option<PolicyChange>,
    /// Number of the last change of the policy that this daemon knows.
    policy_number: i64,
    /// SHA-256 of the bundle of the deployment file, as the file was read last; empty for a heuristic and a program.
    file_sha256: String,
    /// Whether a change may or may not have been written outside the host.
    policy_doubt: bool,
    /// Reason why nothing is decided: the policy that rules on all hosts is not this daemon's.
    policy_bar: Option<PolicyBar>,
    /// Time of the last comparison with the Lease by a daemon that stands by.
    lease_compared: Option<Instant>,
    /// Policy of the Lease that an alert has told to be another one than this daemon's.
    lease_differs: Option<LeasePolicy>,
    /// Errors of the last cycles, as far as the log has them.
    failures: FailedCycles,
    /// Problems of the names under `[canary]` that alerts have told.
    canary_problems: BTreeSet<String>,
    /// Trouble with the keeper of the lease that an alert has told.
    lease_trouble: Option<String>,
    /// Problems of the engine that alerts have told.
    engine_problems: BTreeSet<EngineProblem>,
    /// Time of the last submission, milliseconds of the Unix epoch.
    last_submit_ms: i64,
    /// Time of the last look at the certificates.
    certificates_seen: Option<Instant>,
    /// Mode that a call set, as it was last read.
    kept_mode: Option<Mode>,
    /// Time of the last look at the mode that succeeded.
    mode_read: Instant,
    /// Whether an alert has told that the mode cannot be read.
    tells_of_mode: bool,
    /// Whether the mode that is kept now does not rule: the daemon was started to observe.
    ignores_kept_mode: bool,
}

impl<E: Engine> Daemon<E> {
    /// A daemon that has not looked yet, with its files in the settings' directory.
    ///
    /// # Errors
    /// [`DaemonError`] where its files cannot be used.
    pub fn new(
        engine: E,
        settings: Deployment,
        observer: ClusterObserver,
        chooser: Chooser,
    ) -> Result<Self, DaemonError> {
        let directory = settings.state.directory.clone();
        let system = |action: &str| {
            let action = format!("cannot {action} in {}", directory.display());
            move |source| DaemonError::System { action, source }
        };
        private::folder(&directory).map_err(system("make the state directory"))?;
        let files = STATE_FILES.iter().try_for_each(|name| private::file(&directory.join(name)));
        files.map_err(system("close files to other users"))?;
        let name = match &settings.state.name {
            Some(name) => name.clone(),
            None => {
                format!("{}:{}", crate::machine::host_name(), std::process::id())
            }
        };
        let lease = Duration::from_secs(u64::from(settings.state.lease_secs.max(1)));
        // Two renewals may be missed before the lease runs out.
        let terms = leader::LeaseTerms { lease, renew: lease / 3 };
        let me = DaemonName { name, address: led_by::address(&settings) };
        let mut leader = Leader::new(me, &directory.join("leader.lock"), terms).map_err(system("open the lock"))?;
        let lease_s = settings.state.lease_secs;
        let etcd = settings.leader.etcd().map(Etcd::new).transpose()?;
        leader = match (&settings.leader.lease, &etcd) {
            (LeaseKeeper::Kubernetes(kubernetes), _) => {
                leader.outside(Box::new(KubernetesLease::new(kubernetes, lease_s)), terms)
            }
            (_, Some(etcd)) => {
                let lease = EtcdLease::new(etcd.clone(), lease_s, directory.join("leader.etcd"));
                leader.outside(Box::new(lease), terms)
            }
            (_, None) => leader,
        };
        let status =
            DaemonStatus { policy: chooser.name().into(), engine: engine.name().into(), ..DaemonStatus::default() };
        let journal = Journal::open(&directory.join(JOURNAL))?;
        let observer = match journal.fact("epoch_ms")?.and_then(|text| text.parse().ok()) {
            Some(epoch_ms) => observer.since(epoch_ms),
            // Time zero lies before the loads that forecasts learn from.
            None => match loads::first_millis(&settings) {
                Some(first_ms) => observer.since(first_ms),
                None => observer,
            },
        };
        let loads = ServiceLoads::of(&settings, observer.epoch_ms()).map_err(DaemonError::Prometheus)?;
        let kept_mode = kept_mode::read(&journal)?;
        let poll = Duration::from_secs_f64(settings.cycle.poll_secs);
        let oldest = Duration::from_secs_f64(settings.guard.max_snapshot_age_secs).max(poll * 3);
        let size = AuditSize { file: u64::from(settings.state.audit_mib) << 20, kept: settings.state.audit_files };
        let mut daemon = Self {
            mode: kept_mode.unwrap_or(settings.mode),
            stop_file: directory.join("STOP"),
            audit: Audit::open(&directory.join("audit.jsonl"), size)?,
            journal,
            leader,
            shared: etcd.map(SharedBook::new),
            lease_mode: match &settings.leader.lease {
                LeaseKeeper::Kubernetes(kubernetes) => Some(LeaseMode::new(kubernetes)),
                LeaseKeeper::Journal | LeaseKeeper::Etcd(_) => None,
            },
            status: Arc::new(Mutex::new(status)),
            metrics: Arc::new(Metrics::new()),
            health: Arc::new(DaemonHealth::new(oldest)),
            guard: Guard::default(),
            open: Vec::new(),
            promises: Vec::new(),
            ends: BTreeMap::new(),
            proposed: Vec::new(),
            watch: Reversals::default(),
            mass_failures: MassFailures::default(),
            clocks: BTreeMap::new(),
            preempted: BTreeMap::new(),
            acted: VecDeque::new(),
            last_decision: None,
            decided_in: Mode::Observe,
            wake: None,
            last: None,
            recovered: None,
            kept: Instant::now(),
            hook: None,
            shadow: None,
            outlook: None,
            starts: None,
            tally: Tally::default(),
            kept_policy: None,
            policy_number: 0,
            file_sha256: String::new(),
            policy_doubt: false,
            policy_bar: None,
            lease_compared: None,
            lease_differs: None,
            failures: FailedCycles::default(),
            canary_problems: BTreeSet::new(),
            certificates_seen: None,
            lease_trouble: None,
            engine_problems: BTreeSet::new(),
            last_submit_ms: 0,
            kept_mode,
            mode_read: Instant::now(),
            tells_of_mode: false,
            ignores_kept_mode: false,
            engine,
            settings,
            observer,
            loads,
            forecasts: LoadForecasts::default(),
            chooser,
        };
        let note = daemon.mode_note();
        if !note.is_empty() {
            tracing::warn!("{note}");
            daemon.show_kept_mode();
        }
        daemon.tell_audit_damage();
        Ok(daemon)
    }

    /// Ends cycles where `hook` says so.
    pub fn set_hook(&mut self, hook: Hook) {
        self.hook = Some(hook);
    }

    /// Engine of the daemon.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// The engine, when the daemon is no more.
    pub fn into_engine(self) -> E {
        self.engine
    }

    /// Orders of the last decision, whether they are acted on or not.
    pub fn proposed(&self) -> &[Order] {
        &self.proposed
    }

    /// Journal of the daemon.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The daemon with what is known of the power and the price of accelerator types.
    #[must_use]
    pub fn knowing(mut self, types: Vec<AcceleratorType>) -> Self {
        self.observer.know(types);
        self
    }

    /// Observation of the cluster.
    pub fn observer(&self) -> &ClusterObserver {
        &self.observer
    }

    /// State that a policy would see now, by the last snapshot; `None` before the first.
    ///
    /// # Errors
    /// [`DaemonError::ClusterObserver`] where the snapshot makes no sense.
    pub fn seen(&mut self) -> Result<Option<ClusterState>, DaemonError> {
        let Some((snapshot, _)) = &self.last else { return Ok(None) };
        // What jobs said is learned already.
        let snapshot = ClusterSnapshot { said: Vec::new(), ..ClusterSnapshot::clone(snapshot) };
        let open: Vec<Order> = self.open.iter().map(|under_way| under_way.order.clone()).collect();
        Ok(Some(self.observer.read(&snapshot, &open)?))
    }

    /// Status for users.
    pub fn status(&self) -> Arc<Mutex<DaemonStatus>> {
        self.status.clone()
    }

    /// Health for those that watch over the daemon.
    pub fn health(&self) -> Arc<DaemonHealth> {
        self.health.clone()
    }

    /// Metrics for monitoring.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// Mode of the daemon now: no further than observing while there is a stop file, and where a mode that is kept
    /// outside the host could not be read for a lease.
    pub fn mode(&self) -> Mode {
        if self.stop_file.exists() || self.mode_is_unread() { Mode::Observe } else { self.mode }
    }

    /// Passes a place where a drill may end it.
    fn pass(&mut self, place: &'static str) -> Result<(), DaemonError> {
        failpoint::pass(place);
        let ends = self.hook.as_mut().is_some_and(|hook| hook(place));
        if ends { Err(DaemonError::Drill(place)) } else { Ok(()) }
    }
}
