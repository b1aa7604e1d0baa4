//! The seam between deciding and doing: whatever can run jobs on machines implements [`Engine`].
//!
//! Engines are level-triggered. [`Engine::apply`] takes the *next* step towards what an order
//! wants, given what the engine sees now, and is called with the same order again and again until
//! [`Engine::verify`] finds it done in a snapshot. So the daemon can die between any two steps, an
//! engine may forget what it has acknowledged (slurmctld does), and the one way out of every such
//! state is the way forward.

mod action;
pub mod agents;
pub mod batch_text;
mod declared;
pub mod kubernetes;
mod mailbox;
mod order;
pub mod recorded;
mod resources;
mod service;
pub mod sim;
pub mod slurm;
mod snapshot;
mod verify;

use std::future::Future;
use std::sync::Arc;

use goodput_env::job::JobSpec;
use goodput_env::model::BatchLimits;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::job::RetryBudget;
pub use action::{
    AcceleratorShare, Capabilities, EngineAction, Order, OrderId, OrderProgress, Receipt, StepOutcome,
    SubmissionDurability,
};
pub use declared::DeclaredService;
pub use mailbox::Mailbox;
pub use order::digest;
pub use resources::JobResources;
pub use service::{ReplicaSeen, ReplicaStage, ServiceSeen, ServiceSpec};
pub use snapshot::{
    Attempt, ClusterSnapshot, JobPhase, JobSeen, Lender, LoanSeen, MembersSeen, NodeHealth, NodeSeen, OnNode,
    RecallSeen, SpeedReport,
};
pub use verify::verify;

/// Submission of a user: the schedulable part of a job, and the program to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// Job as policies see it, and its work. An application is named by `application`, and
    /// `spec.work` is then what the daemon makes of it. Whatever a user says of `request.submit`,
    /// the daemon puts its own clock there; an engine that is asked without a daemon takes its own.
    pub spec: JobSpec,
    /// Application of the catalog, where it trains one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Name of the tenant.
    #[serde(default)]
    pub tenant: String,
    /// Owner of the job. The daemon writes the owner of the caller's token here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Resources beside accelerators.
    #[serde(default, skip_serializing_if = "JobResources::is_empty")]
    pub resources: JobResources,
    /// Environment beside the job protocol's.
    #[serde(default)]
    pub environment: std::collections::BTreeMap<String, String>,
    /// Working directory; the engine's own choice where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<std::path::PathBuf>,
    /// Seconds from SIGTERM to SIGKILL.
    #[serde(default = "default_grace")]
    pub grace_s: u32,
    /// Total batch sizes, and those of one replica, among which the program chooses by itself, as
    /// AdaptDL's do; where `None`, it keeps to the one it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchLimits>,
    /// Number of failures that the job may have, and the wait before the next attempt.
    #[serde(default)]
    pub retry: RetryBudget,
    /// Folder that survives attempts and is seen by all nodes; the engine's own choice where
    /// `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_dir: Option<std::path::PathBuf>,
    /// Whether the program takes in new processes and lets others go while it trains. An engine that knows how resizes
    /// such a job without a stop: node agents do, and the other engines stop it and start it anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elastic: bool,
}

impl Submission {
    /// A command, all else by default.
    #[must_use]
    pub fn new(spec: JobSpec, command: Vec<String>) -> Self {
        Self {
            spec,
            application: None,
            tenant: String::new(),
            owner: String::new(),
            command,
            resources: JobResources::default(),
            environment: std::collections::BTreeMap::new(),
            directory: None,
            grace_s: default_grace(),
            batch: None,
            retry: RetryBudget::default(),
            checkpoint_dir: None,
            elastic: false,
        }
    }
}

const fn default_grace() -> u32 {
    60
}

/// Reason why an engine could not answer.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The engine cannot be reached or does not answer in time; nothing is known of the cluster.
    #[error("{engine} does not answer: {problem}; {remedy}")]
    Unreachable {
        /// Name of the engine.
        engine: &'static str,
        /// Failure of the call.
        problem: String,
        /// Remedy for the administrator.
        remedy: &'static str,
    },
    /// The answer of the engine is not understood.
    #[error("{engine}: cannot read {what}: {problem}")]
    Unreadable {
        /// Name of the engine.
        engine: &'static str,
        /// Part of the answer that was read.
        what: &'static str,
        /// Fault of the answer.
        problem: String,
    },
    /// The request cannot be carried out here.
    #[error("{engine} refuses: {problem}")]
    Refused {
        /// Name of the engine.
        engine: &'static str,
        /// Reason of the refusal.
        problem: String,
    },
}

/// Problem of an engine that raises an alert, once for as long as it lasts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineProblem {
    /// Kind of the alert.
    pub kind: &'static str,
    /// Problem and remedy, for people.
    pub text: String,
}

impl EngineProblem {
    /// A problem of the kind `kind`.
    pub fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// Something that runs jobs on machines.
pub trait Engine: Send {
    /// Name of the engine: `slurm`, `agents`, `kubernetes`, `sim`.
    fn name(&self) -> &'static str;

    /// Capabilities of the engine.
    fn capabilities(&self) -> Capabilities;

    /// Release of the program behind the engine; `None` where there is none, or it was not asked yet.
    fn release(&self) -> Option<String> {
        None
    }

    /// Snapshot of the cluster now: all nodes and all jobs that are not over, and jobs that ended
    /// within about a minute, so that their end is seen.
    ///
    /// # Errors
    /// [`EngineError`] where the engine does not answer or not sensibly.
    fn snapshot(&mut self) -> impl Future<Output = Result<ClusterSnapshot, EngineError>> + Send;

    /// Takes the next step of each order, in order. Repeatable: an order that is under way or done
    /// is not begun again. One receipt per order.
    ///
    /// # Errors
    /// [`EngineError`] where the engine does not answer; what it did before that is found in the
    /// next snapshot.
    fn apply(&mut self, orders: &[Order]) -> impl Future<Output = Result<Vec<Receipt>, EngineError>> + Send;

    /// Whether a snapshot shows that an order is carried out.
    fn verify(&self, order: &Order, snapshot: &ClusterSnapshot) -> OrderProgress {
        verify(order, snapshot)
    }

    /// Hands a job in; it waits until an order places it. Returns its key.
    ///
    /// # Errors
    /// [`EngineError::Refused`] where the engine does not take it.
    fn submit(&mut self, job: &Submission) -> impl Future<Output = Result<String, EngineError>> + Send;

    /// Tries a submission out: nothing is handed in.
    ///
    /// # Errors
    /// [`EngineError::Refused`] where the engine would not take the job, as far as that is known before.
    fn try_out(&mut self, _job: &Submission) -> impl Future<Output = Result<(), EngineError>> + Send {
        async { Ok(()) }
    }

    /// Upkeep of the engine's jobs, done by a leader that acts, once a cycle.
    ///
    /// # Errors
    /// [`EngineError`] where the engine does not answer.
    fn maintain(&mut self) -> impl Future<Output = Result<(), EngineError>> + Send {
        async { Ok(()) }
    }

    /// Mailbox into which the daemon's interface puts the reports of jobs; `None` where jobs report
    /// elsewhere.
    fn mailbox(&self) -> Option<Arc<Mailbox>> {
        None
    }

    /// Since when the engine remembers all that it has acknowledged, milliseconds of the Unix
    /// epoch: what it acknowledged before and does not show it may have forgotten. Asked of engines
    /// that [forget](Capabilities::forgets); `None` where none of it is forgotten.
    ///
    /// # Errors
    /// [`EngineError`] where it does not answer.
    fn remembers_since(&mut self) -> impl Future<Output = Result<Option<i64>, EngineError>> + Send {
        async { Ok(None) }
    }

    /// Tells the engine that its daemon leads, anew or as before: each call to machines carries the
    /// term, and lower terms are refused there.
    fn lead(&mut self, _term: u64) -> impl Future<Output = Result<(), EngineError>> + Send {
        async { Ok(()) }
    }

    /// Problems that a person has to look at, as of the last snapshot.
    fn problems(&self) -> Vec<EngineProblem> {
        Vec::new()
    }

    /// Key of the job with this time of submission, milliseconds of the Unix epoch, also where snapshots show the job
    /// no more; `None` where there is none, or the engine knows only what it shows.
    fn submitted_at(&self, _submit_ms: i64) -> Option<String> {
        None
    }

    /// Highest term that machines have seen, where it is above the term of this daemon and the daemon of that term has
    /// been silent for as long as a lease lasts: this daemon has lost its journal, and is to lead in a later term.
    fn outdated(&self) -> Option<u64> {
        None
    }

    /// Tells the engine that its daemon does not lead: it looks, and promises nothing to any
    /// machine.
    fn follow(&mut self) {}
}
