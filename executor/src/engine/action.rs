//! Actions of an engine, and its answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::snapshot::OnNode;

/// Bounds of a share of an accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceleratorShare {
    /// Percent of compute, 1..=100.
    pub compute_percent: u8,
    /// Device memory, MiB.
    pub memory_mib: u32,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verb")]
pub enum EngineAction {
    /// A waiting job starts.
    Place {
        /// Accelerators of the job.
        placement: Vec<OnNode>,
        /// Part of each accelerator; all of it where `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<AcceleratorShare>,
    },
    /// A running job checkpoints, leaves and waits again.
    Stop {
        /// Seconds from SIGTERM to SIGKILL.
        grace_s: u32,
    },
    /// A running job goes on with another number of accelerators.
    Resize {
        /// Accelerators of the job from now on.
        placement: Vec<OnNode>,
        /// Seconds from SIGTERM to SIGKILL.
        grace_s: u32,
    },
    /// A running job goes on elsewhere.
    Migrate {
        /// Accelerators of the job from now on.
        placement: Vec<OnNode>,
        /// Seconds from SIGTERM to SIGKILL.
        grace_s: u32,
    },
    /// A running job stands still and keeps its accelerators.
    Suspend,
    /// A suspended job goes on.
    Resume,
    /// A job is taken back for good.
    Cancel {
        /// Seconds from SIGTERM to SIGKILL.
        grace_s: u32,
    },
    /// No job starts on a node any more.
    Drain {
        /// Name of the node.
        node: String,
        /// Reason, for the administrators.
        reason: String,
    },
    /// Jobs may start on a node again.
    Undrain {
        /// Name of the node.
        node: String,
    },
    /// A node of the inference pool is training's for now.
    Lend {
        /// Name of the node.
        node: String,
    },
    /// A service has another number of replicas on a node.
    Scale {
        /// Name of the service.
        service: String,
        /// Name of the node.
        node: String,
        /// Replicas on the node from now on; new ones start cold, surplus ones finish their
        /// requests and go.
        replicas: u32,
    },
    /// A lent node goes back.
    Return {
        /// Name of the node.
        node: String,
        /// Time at which training has to be gone, on the engine's clock, milliseconds.
        deadline_ms: i64,
    },
}

impl EngineAction {
    /// The verb, for ids, metrics and logs.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Place { .. } => "place",
            Self::Stop { .. } => "stop",
            Self::Resize { .. } => "resize",
            Self::Migrate { .. } => "migrate",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Cancel { .. } => "cancel",
            Self::Drain { .. } => "drain",
            Self::Undrain { .. } => "undrain",
            Self::Lend { .. } => "lend",
            Self::Scale { .. } => "scale",
            Self::Return { .. } => "return",
        }
    }

    /// Node, or replicas of a service on a node, that the action is about; `None` for an action on a
    /// job. Of two open orders about one subject the newer one counts.
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::Drain { node, .. } | Self::Undrain { node } => Some(format!("drain of {node}")),
            Self::Lend { node } | Self::Return { node, .. } => Some(format!("loan of {node}")),
            Self::Scale { service, node, .. } => Some(format!("{service} on {node}")),
            _ => None,
        }
    }

    /// Placement of the job after the action; `None` where the action does not say.
    pub fn placement(&self) -> Option<&[OnNode]> {
        match self {
            Self::Place { placement, .. } | Self::Resize { placement, .. } | Self::Migrate { placement, .. } => {
                Some(placement)
            }
            _ => None,
        }
    }

    /// Whether the action takes accelerators away from a running job.
    pub fn preempts(&self) -> bool {
        matches!(self, Self::Stop { .. } | Self::Resize { .. } | Self::Migrate { .. })
    }
}

/// Names an order: a hash of plan, subject, attempt and verb, so that one decision can be carried
/// out twice only under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(pub String);

/// An action with a name and a subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Name of the order.
    pub id: OrderId,
    /// Key of the job; empty for actions on nodes.
    #[serde(default)]
    pub job: String,
    /// Starts of the job at the decision ([`super::JobSeen::starts`]): an order for an older
    /// attempt is void.
    #[serde(default)]
    pub starts: u32,
    /// Action of the order.
    pub action: EngineAction,
}

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    /// The engine took it.
    Accepted,
    /// Not now: the same order is to be tried again.
    Later {
        /// Reason of the delay.
        reason: String,
    },
    /// The engine never takes this step.
    Refused {
        /// Reason of the refusal.
        reason: String,
    },
}

/// Answer to one order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Order of the step.
    pub id: OrderId,
    /// Outcome of this step.
    pub outcome: StepOutcome,
}

/// Whether an order is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderProgress {
    /// The order is carried out.
    Done,
    /// The order is not carried out yet.
    Pending,
    /// The order will never be carried out: the cluster moved on.
    Lost {
        /// Event that makes the order void.
        reason: String,
    },
}

/// Capabilities of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Places a job on named accelerators.
    pub exact_accelerator: bool,
    /// Gives parts of accelerators.
    pub fractional: bool,
    /// Changes a running job's size without stopping it.
    pub resize_in_place: bool,
    /// Suspends and resumes.
    pub suspend: bool,
    /// Keeps submitted jobs waiting for an order.
    pub hold: bool,
    /// Lends nodes between pools.
    pub lend: bool,
    /// Starts and ends replicas of services.
    pub scale: bool,
    /// Durability of an acknowledged submission; `None` where the engine acknowledges only what it
    /// has on disk.
    pub durability: Option<SubmissionDurability>,
}

/// Durability of submissions in an engine that acknowledges before it writes to disk. A controller
/// that is killed in between comes back without the submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmissionDurability {
    /// Age at which an acknowledged submission is surely on the engine's disk.
    pub durable_after: Duration,
    /// Time for which the engine still lists ended jobs. After that, a daemon that was away cannot
    /// learn their outcome.
    pub shows_ended_for: Duration,
    /// Prefix of the reason with which the engine drains a node where a forgotten start still runs.
    pub drains_over: &'static str,
}
