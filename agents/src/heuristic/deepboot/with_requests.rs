//! Training policies with DeepBoot's inference scheduler beside them.

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::requests::RequestScheduler;

/// Suffix of a policy's name that puts the policy beside ATS-I.
pub const SUFFIX: &str = "+ats-i";

/// Training policy without notion of inference, and ATS-I, which answers requests on accelerators
/// that the policy leaves idle or on accelerators taken from its jobs. The training policy is
/// called when it would be called without requests.
pub struct WithAtsI {
    training: Box<dyn Policy>,
    requests: RequestScheduler,
}

impl std::fmt::Debug for WithAtsI {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WithAtsI").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl WithAtsI {
    /// A policy of `training`, with requests answered by `requests`.
    pub fn new(training: Box<dyn Policy>, requests: RequestScheduler) -> Self {
        Self { training, requests }
    }
}

impl Policy for WithAtsI {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let trigger = view.trigger;
        // Called about requests while none waits: an instance gave up an accelerator that a job may
        // want.
        let given_up = trigger.request && view.waiting_requests().is_empty();
        let asked = trigger.is_churn() || trigger.round || trigger.wake || given_up;
        let mut plan = if asked { self.training.decide(view) } else { Plan::keep() };
        self.requests.place(view, &mut plan);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.training.wake_at()
    }

    fn round(&self) -> Option<SimTime> {
        self.training.round()
    }

    fn batching(&self) -> Batching {
        self.training.batching()
    }

    fn information(&self) -> Information {
        self.training.information()
    }

    fn needs(&self) -> Information {
        self.training.needs()
    }
}
