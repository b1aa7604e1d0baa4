//! Options that bound the knowledge of policies and agents: information level and choice of the
//! batch size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::GoodputModel;

/// Knowledge about jobs that policies of a run have beyond what was asked for and how the jobs ran
/// so far.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Information {
    /// Only what the job's own agent has profiled; remaining work is unknown.
    Profiled,
    /// The application's catalogued model, and remaining work times a log-normal error of median 1
    /// that stays with the job.
    Estimate {
        /// Standard deviation of the logarithm of the error; 0.5 means that one job in three is off
        /// by more than 1.65x.
        sigma: f64,
    },
    /// True remaining work and true speed.
    Oracle,
}

impl Information {
    /// Whether a policy that needs at least `need` can run at this level.
    pub fn allows(self, need: Self) -> bool {
        let rank = |level: Self| match level {
            Self::Profiled => 0,
            Self::Estimate { .. } => 1,
            Self::Oracle => 2,
        };
        rank(self) >= rank(need)
    }
}

impl std::fmt::Display for Information {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Profiled => write!(f, "profiled"),
            Self::Estimate { sigma: 0.0 } => write!(f, "estimate"),
            Self::Estimate { sigma } => write!(f, "estimate (sigma {sigma})"),
            Self::Oracle => write!(f, "oracle"),
        }
    }
}

/// Choice of the batch sizes of running jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Batching {
    /// The total batch size of the request, split over the replicas.
    Requested,
    /// Goodput-optimal by the job's own agent, which fits its model to what it has measured
    /// (Pollux).
    Agent,
    /// Goodput-optimal by the catalogued model.
    Catalog,
    /// Of most samples per second by the job's own agent, which is as large as the limits allow (the baseline of
    /// Pollux' autoscaling, after Or et al., MLSys'20).
    Throughput,
}

impl Batching {
    /// Whether the jobs' own agents measure and choose.
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Agent | Self::Throughput)
    }

    /// Model by which an agent with this fitted model chooses the batch size.
    pub(crate) fn objective(self, model: GoodputModel) -> GoodputModel {
        if self == Self::Throughput { model.by_throughput() } else { model }
    }
}
