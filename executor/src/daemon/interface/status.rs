//! What people see of a daemon: the state after its last cycle.

use serde::{Deserialize, Serialize};

use crate::daemon::shadow::Comparison;
use crate::engine::{NodeSeen, OnNode};

/// After a cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the engine.
    pub engine: String,
    /// Name of the policy that is to decide.
    pub policy: String,
    /// Mode, stop file included.
    pub mode: String,
    /// Whether it leads, and in which term.
    pub term: Option<u64>,
    /// Why the fallback decides; empty where it does not.
    pub fallback: String,
    /// The policy's clock, seconds.
    pub now_secs: f64,
    /// The engine's clock, milliseconds.
    pub at_ms: i64,
    /// Decisions taken.
    pub decisions: u64,
    /// How long the last one took, milliseconds.
    pub decision_ms: f64,
    /// Orders under way.
    pub open_orders: usize,
    /// What is wrong, newest last.
    pub alerts: Vec<String>,
    /// What would come of the policy beside, as last compared.
    #[serde(default)]
    pub shadow: Option<Comparison>,
    /// Nodes.
    pub nodes: Vec<NodeSeen>,
    /// Jobs that are not over.
    pub queue: Vec<QueueRow>,
    /// Jobs that ended lately, newest last.
    #[serde(default)]
    pub ended: Vec<QueueRow>,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Its key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its tenant.
    pub tenant: String,
    /// What it is doing.
    pub phase: String,
    /// Fewest, asked and most accelerators.
    pub gpus: [u32; 3],
    /// Where it is.
    pub placement: Vec<OnNode>,
    /// Starts so far.
    pub starts: u32,
    /// Since submission, seconds of the policy's clock.
    pub age_secs: f64,
    /// Accelerator time held, seconds.
    pub attained_gpu_secs: f64,
    /// Share of its work that is done, where known.
    pub progress: Option<f64>,
    /// Why it is as it is: a code of [`crate::daemon::decide::explain::Reason`].
    pub reason: String,
    /// The same in words.
    pub detail: String,
    /// What the policy scored it, where it scores.
    pub score: Option<f32>,
    /// Attempts that failed by themselves.
    #[serde(default)]
    pub failures: u32,
    /// What is known of its speed, in words; empty where nothing is.
    #[serde(default)]
    pub learned: String,
    /// What the policy beside would do with it, in words; empty where the same, or nothing is known.
    #[serde(default)]
    pub beside: String,
}
