//! The one interface of a scheduler: a view in, a plan out. Simulator, evaluation and live cluster
//! all meet here.

mod look;

use crate::plan::Plan;
use crate::scenario::{Batching, Information, Preset, SimOptions};
use crate::service::ServiceId;
use crate::time::SimTime;
use crate::view::ClusterView;

pub use look::{Look, SimulatedWay};

/// Scope of a policy on a cluster with services or pools: the things that it decides about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Training jobs only.
    #[default]
    Training,
    /// Training jobs only, and it was published with servers lent by inference.
    Borrowing,
    /// Services and loans too.
    Everything,
}

/// The highest load of a service that a policy expects from a decision until a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedLoad {
    /// Service that the load is of.
    pub service: ServiceId,
    /// Time of the decision.
    pub from: SimTime,
    /// End of the time that the forecast is about.
    pub until: SimTime,
    /// Highest load of the expected path, requests per second.
    pub usual: f64,
    /// Load that the highest one seldom exceeds, requests per second; no less than `usual`.
    pub high: f64,
}

/// A scheduling policy, heuristic or learned.
///
/// # Example
/// The oldest waiting job starts on the first node that has room for the whole job:
///
/// ```
/// use goodput_env::cluster::NodeId;
/// use goodput_env::placement::Placement;
/// use goodput_env::plan::Plan;
/// use goodput_env::policy::Policy;
/// use goodput_env::view::ClusterView;
///
/// struct OldestOnOneNode;
///
/// impl Policy for OldestOnOneNode {
///     fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
///         let mut plan = Plan::keep();
///         if let Some(job) = view.jobs().find(|job| !job.state.is_allocated()) {
///             let gpus = job.request().gpus;
///             if let Some(node) = view.free().iter().position(|&free| free >= gpus) {
///                 plan.set(job.id(), Placement::on(NodeId::at(node), gpus));
///             }
///         }
///         plan
///     }
/// }
/// ```
pub trait Policy: Send {
    /// Decides what changes now. Called on every decision point of a run; may keep state between calls.
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan;

    /// Latest time of the next decision, as of the last one. Where decisions fall on churn, the
    /// simulator keeps to it. Where decisions fall at rounds only, it waits for the next round.
    fn wake_at(&self) -> Option<SimTime> {
        None
    }

    /// Forecasts of loads by the last decision about services; none of a service that nothing is forecast of.
    fn expected_loads(&self) -> &[ExpectedLoad] {
        &[]
    }

    /// The last look of the policy ahead; `None` for a policy that does not look ahead.
    fn last_look(&self) -> Option<&Look> {
        None
    }

    /// Length of the rounds that the policy keeps by itself, as published, however often it is asked; `None` where each
    /// call is a decision of its own.
    fn round(&self) -> Option<SimTime> {
        None
    }

    /// Choice of the batch sizes of jobs under this policy as published.
    fn batching(&self) -> Batching {
        Batching::Requested
    }

    /// Scope of the policy.
    fn scope(&self) -> Scope {
        Scope::Training
    }

    /// Whether the policy goes by the allocation of a run ([`crate::scenario::Allocation`]): it starts only what the
    /// tenants may hold, and stops running jobs for others only where the run preempts.
    fn keeps_allocation(&self) -> bool {
        false
    }

    /// Information level at which the policy was published.
    fn information(&self) -> Information {
        Information::Profiled
    }

    /// The least it has to know to run at all.
    fn needs(&self) -> Information {
        Information::Profiled
    }
}

impl Preset {
    /// Options of a run of `policy`, at its own level of information and with its own batching where the preset leaves
    /// them to it.
    pub fn options_for(self, policy: &dyn Policy) -> SimOptions {
        let options = self.options(policy.batching(), policy.information());
        SimOptions { rounds: self.rounds(policy.round()), ..options }
    }
}
