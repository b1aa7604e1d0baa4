//! Status of a daemon: the state after its last cycle, for users.

use goodput_env::policy::Look;
use serde::{Deserialize, Serialize};

use crate::daemon::durability::leader::DaemonName;
use crate::daemon::interface::reasons::ChangeReasons;
use crate::daemon::interface::resize::LastResize;
use crate::daemon::observe::load_forecasts::ForecastRecord;
use crate::daemon::shadow::ShadowComparison;
use crate::engine::{NodeSeen, OnNode, ServiceSeen};

/// After a cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Name of the engine.
    pub engine: String,
    /// Release of the program behind the engine, such as `24.11`; empty where there is none.
    #[serde(default)]
    pub engine_release: String,
    /// Name of the policy that is to decide.
    pub policy: String,
    /// Mode, stop file included.
    pub mode: String,
    /// Sentence on which mode rules, where the kept mode is not that of the deployment file.
    #[serde(default)]
    pub mode_note: String,
    /// Term in which this daemon leads; `None` where it does not lead.
    pub term: Option<u64>,
    /// Daemon that leads, as last seen; `None` where none does, or none is known.
    #[serde(default)]
    pub leader: Option<DaemonName>,
    /// Reason why the fallback decides; empty where it does not.
    pub fallback: String,
    /// Reason why nothing is decided; empty where decisions are taken.
    #[serde(default)]
    pub undecided: String,
    /// The policy's clock, seconds.
    pub now_secs: f64,
    /// The engine's clock, milliseconds.
    pub at_ms: i64,
    /// Number of decisions taken.
    pub decisions: u64,
    /// Duration of the latest decision, milliseconds.
    pub decision_ms: f64,
    /// The last look of the policy ahead; `None` for a policy that does not look ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
    /// Orders under way.
    pub open_orders: usize,
    /// Alerts, newest last.
    pub alerts: Vec<String>,
    /// Last comparison with the shadow policy.
    #[serde(default)]
    pub shadow: Option<ShadowComparison>,
    /// Nodes of the last snapshot.
    pub nodes: Vec<NodeSeen>,
    /// Inference services of the last snapshot.
    #[serde(default)]
    pub services: Vec<ServiceRow>,
    /// Jobs that are not over, oldest first.
    pub queue: Vec<QueueRow>,
    /// Jobs that ended lately, newest last.
    #[serde(default)]
    pub ended: Vec<QueueRow>,
}

/// Inference service, and the load that the policy expects of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceRow {
    /// The service as the engine shows it.
    #[serde(flatten)]
    pub seen: ServiceSeen,
    /// Forecast that holds now; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastRecord>,
}

/// Job in the queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Key of the job.
    pub key: String,
    /// Name of the job.
    pub name: String,
    /// Tenant of the job.
    pub tenant: String,
    /// Owner of the job: the name of a user, where the engine knows.
    #[serde(default)]
    pub owner: String,
    /// Phase of the job.
    pub phase: String,
    /// Fewest, asked and most accelerators.
    pub gpus: [u32; 3],
    /// Placement of the job.
    pub placement: Vec<OnNode>,
    /// Starts so far.
    pub starts: u32,
    /// Since submission, seconds of the policy's clock.
    pub age_secs: f64,
    /// Accelerator time held, seconds.
    pub attained_gpu_secs: f64,
    /// Share of its work that is done, where known.
    pub progress: Option<f64>,
    /// Reason of the job's state: a code of `Reason` in `decide::explain`.
    pub reason: String,
    /// Reason as a sentence.
    pub detail: String,
    /// Score that the policy gave the job, where the policy scores.
    pub score: Option<f32>,
    /// Attempts that failed by themselves.
    #[serde(default)]
    pub failures: u32,
    /// Known speed of the job, in words; empty where nothing is known.
    #[serde(default)]
    pub learned: String,
    /// Placement under the shadow policy, in words; empty where both agree, or nothing is known.
    #[serde(default)]
    pub beside: String,
    /// Reasons of a learned policy for the last change that it decided, since this daemon runs.
    #[serde(default)]
    pub change: Option<ChangeReasons>,
    /// Last resize of the job while it ran, since this daemon runs.
    #[serde(default)]
    pub resize: Option<LastResize>,
}
