//! The seam between deciding and doing: whatever can run jobs on machines implements [`Engine`].
//!
//! Engines are level-triggered. [`Engine::apply`] takes the *next* step towards what an order wants, given what the engine sees now, and is
//! called with the same order again and again until [`Engine::verify`] finds it done in a snapshot. So the daemon can die between any two steps,
//! an engine may forget what it has acknowledged (slurmctld does), and the one way out of every such state is the way forward.

mod action;
pub mod agents;
mod order;
pub mod recorded;
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
pub use action::{Action, Capabilities, Forgets, Order, OrderId, Outcome, Receipt, Share, Verdict};
pub use order::digest;
pub use slurm::Mailbox;
pub use snapshot::{
    Attempt, History, JobPhase, JobSeen, LoanSeen, NodeHealth, NodeSeen, OnNode, RecallSeen, ReplicaSeen, ReplicaStage,
    Said, ServiceSeen, Snapshot,
};
pub use verify::verify;

/// What a user hands in: the schedulable part of a job, and what to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// What policies see of it and what there is to do. An application is named by `application`, and `spec.work` is then what the daemon makes of it.
    /// Whatever a user says of `request.submit`, the daemon puts its own clock there; an engine that is asked without a daemon takes its own.
    pub spec: JobSpec,
    /// Application of the catalog, where it trains one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Name of the tenant.
    #[serde(default)]
    pub tenant: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment beside the job protocol's.
    #[serde(default)]
    pub environment: std::collections::BTreeMap<String, String>,
    /// Working directory; the engine's own choice where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<std::path::PathBuf>,
    /// Seconds from SIGTERM to SIGKILL.
    #[serde(default = "default_grace")]
    pub grace_s: u32,
    /// Total batch sizes, and those of one replica, among which the program chooses by itself, as AdaptDL's do; where `None`, it keeps to the one it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchLimits>,
    /// How often it may fail, and how long it waits before it is tried again.
    #[serde(default)]
    pub retry: RetryBudget,
    /// Folder that survives attempts and is seen by all nodes; the engine's own choice where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_dir: Option<std::path::PathBuf>,
}

impl Submission {
    /// A command, all else by default.
    #[must_use]
    pub fn new(spec: JobSpec, command: Vec<String>) -> Self {
        Self {
            spec,
            application: None,
            tenant: String::new(),
            command,
            environment: std::collections::BTreeMap::new(),
            directory: None,
            grace_s: default_grace(),
            batch: None,
            retry: RetryBudget::default(),
            checkpoint_dir: None,
        }
    }
}

const fn default_grace() -> u32 {
    60
}

/// Why an engine could not answer.
#[derive(Debug, Error)]
pub enum EngineError {
    /// It cannot be reached or does not answer in time; nothing is known of the cluster.
    #[error("{engine} does not answer: {problem}; {remedy}")]
    Unreachable {
        /// Which engine.
        engine: &'static str,
        /// What happened.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// It answered something that is not understood.
    #[error("{engine}: cannot read {what}: {problem}")]
    Unreadable {
        /// Which engine.
        engine: &'static str,
        /// What was read.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// What was asked cannot be done here.
    #[error("{engine} refuses: {problem}")]
    Refused {
        /// Which engine.
        engine: &'static str,
        /// Why.
        problem: String,
    },
}

/// Something that runs jobs on machines.
pub trait Engine: Send {
    /// Its name: `slurm`, `agents`, `sim`.
    fn name(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// What is there now: all nodes and all jobs that are not over, and jobs that ended since about a minute, so that their end is seen.
    ///
    /// # Errors
    /// [`EngineError`] where the engine does not answer or not sensibly.
    fn snapshot(&mut self) -> impl Future<Output = Result<Snapshot, EngineError>> + Send;

    /// Takes the next step of each order, in order. Repeatable: an order that is under way or done is not begun again.
    /// One receipt per order.
    ///
    /// # Errors
    /// [`EngineError`] where the engine does not answer; what it did before that is found in the next snapshot.
    fn apply(&mut self, orders: &[Order]) -> impl Future<Output = Result<Vec<Receipt>, EngineError>> + Send;

    /// Whether a snapshot shows that an order is carried out.
    fn verify(&self, order: &Order, snapshot: &Snapshot) -> Verdict {
        verify(order, snapshot)
    }

    /// Hands a job in; it waits until an order places it. Returns its key.
    ///
    /// # Errors
    /// [`EngineError::Refused`] where the engine does not take it.
    fn submit(&mut self, job: &Submission) -> impl Future<Output = Result<String, EngineError>> + Send;

    /// What keeps the engine's jobs going, done by a leader that acts, once a cycle.
    ///
    /// # Errors
    /// [`EngineError`] where the engine does not answer.
    fn tend(&mut self) -> impl Future<Output = Result<(), EngineError>> + Send {
        async { Ok(()) }
    }

    /// Where the daemon's interface puts what jobs report to it; `None` where they report to somebody else.
    fn mailbox(&self) -> Option<Arc<Mailbox>> {
        None
    }

    /// Since when the engine remembers all that it has acknowledged, milliseconds of the Unix epoch: what it acknowledged before and does not show it may
    /// have forgotten. Asked of engines that [forget](Capabilities::forgets); `None` where none of it is forgotten.
    ///
    /// # Errors
    /// [`EngineError`] where it does not answer.
    fn remembers_since(&mut self) -> impl Future<Output = Result<Option<i64>, EngineError>> + Send {
        async { Ok(None) }
    }

    /// Tells the engine that its daemon leads, anew or as before: each call to machines carries the term, and lower terms are refused there.
    fn lead(&mut self, _term: u64) -> impl Future<Output = Result<(), EngineError>> + Send {
        async { Ok(()) }
    }

    /// Tells the engine that its daemon does not lead: it looks, and promises nothing to any machine.
    fn follow(&mut self) {}
}
