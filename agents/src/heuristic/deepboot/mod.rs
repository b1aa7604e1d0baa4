//! DeepBoot (Chen et al., TPDS'23): training on the idle accelerators of an inference cluster,
//! request by request.
//!
//! - [`sizes`], ATS-T: every 60 s a multiple-choice knapsack gives accelerators to training jobs
//!   for the largest sum of speedups.
//! - [`requests`], ATS-I: a request goes to a warm instance of its model as soon as it comes, else
//!   to an idle accelerator, else to one taken from training.
//! - [`WithAtsI`]: any training policy beside ATS-I, so that every policy can be compared with
//!   the same access to inference accelerators. Users type `NAME+ats-i`.
//!
//! AFE, the third part, is the cost of a change of size:
//! `goodput_env::model::SwitchCost::DeepbootAfe`. Protection of instances is the environment's
//! (`goodput_env::scenario::InstanceOptions`).
//!
//! `deepboot@replica` is the artifact (czq693497091/DeepBoot, `simulator/dp.py`): a job without age
//! has no value, a job that has restarted more often than once every 10 s of its age is not even
//! started again, and a job with nodes out of ascending order restarts where it is.

mod choice;
pub mod requests;
pub mod sizes;
mod speedup;
mod with_requests;

pub use choice::SizeChoice;
pub use with_requests::{SUFFIX, WithAtsI};

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Batching;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::parameters::{Parameterised, secs};
use crate::heuristic::{ListedPolicy, Traits};
use requests::RequestScheduler;
use sizes::{SizeScheduler, StartValue};

/// Entries of DeepBoot in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "deepboot",
    about: "largest sum of speedups every 60 s by a knapsack, on what inference requests leave; answers them",
    source: "Chen et al. (DeepBoot), TPDS 2023",
    traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
    constructor: &Parameterised {
        defaults: DeepBootParameters::default,
        build: |parameters, _| Box::new(DeepBoot::with(*parameters)),
    },
    replica: Some(|_| Box::new(DeepBoot::new(StartValue::Discounted))),
}];

/// Parameters of [`DeepBoot`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeepBootParameters {
    /// Interval between plans for training.
    #[serde(rename = "period_secs", with = "secs")]
    #[schemars(with = "f64", range(min = 1.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "TPDS 2023: every minute"))]
    pub period: SimTime,
    /// Time that a restart counts in the objective, whatever a restart costs in the run.
    #[schemars(range(min = 0.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "dp.py of its artifact"))]
    pub restart_secs: f64,
}

impl Default for DeepBootParameters {
    fn default() -> Self {
        Self { period: SimTime::from_secs(60), restart_secs: 10.0 }
    }
}

/// DeepBoot: ATS-T for training and ATS-I for requests.
#[derive(Clone, Debug)]
pub struct DeepBoot {
    period: SimTime,
    sizes: SizeScheduler,
    requests: RequestScheduler,
    now: SimTime,
}

impl DeepBoot {
    /// A policy with the given value of starting a job.
    pub fn new(start: StartValue) -> Self {
        let DeepBootParameters { period, restart_secs } = DeepBootParameters::default();
        let sizes = SizeScheduler::new(start, restart_secs);
        Self { period, sizes, requests: RequestScheduler::default(), now: SimTime::ZERO }
    }

    /// A policy by the paper's rule with the given parameters.
    pub fn with(DeepBootParameters { period, restart_secs }: DeepBootParameters) -> Self {
        let sizes = SizeScheduler::new(StartValue::Full, restart_secs);
        Self { period, sizes, ..Self::new(StartValue::Full) }
    }

    /// This policy with requests answered by `requests`, for example on an inference cluster's own
    /// nodes only.
    #[must_use]
    pub fn answering(self, requests: RequestScheduler) -> Self {
        Self { requests, ..self }
    }
}

impl Policy for DeepBoot {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.now = view.now;
        let mut plan = Plan::keep();
        if view.now.next_multiple_of(self.period) == view.now {
            self.sizes.plan(view, &mut plan);
        } else if self.sizes.start() == StartValue::Discounted {
            relist(view, &mut plan);
        }
        self.requests.place(view, &mut plan);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        Some((self.now + SimTime::from_millis(1)).next_multiple_of(self.period))
    }

    fn batching(&self) -> Batching {
        Batching::Agent
    }
}

/// Restarts jobs with nodes out of ascending order. The artifact's inference scheduler lists
/// every job's nodes in ascending order and takes a list in another order for another placement. So
/// a job that ATS-T spread in the order of free accelerators restarts, in full, at the next event
/// of a request.
fn relist(view: &ClusterView<'_>, plan: &mut Plan) {
    for job in view.jobs() {
        let held = &job.state.placement;
        if !held.slices().is_sorted_by_key(|slice| slice.node) {
            let mut slices: Vec<_> = held.slices().iter().map(|slice| (slice.node, slice.gpus)).collect();
            slices.sort_unstable();
            plan.set(job.id(), slices.into_iter().collect());
        }
    }
}
