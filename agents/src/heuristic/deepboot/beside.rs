//! Any training policy beside ATS-I.

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::requests::RequestScheduler;

/// Ends the name of a training policy that runs beside ATS-I.
pub const SUFFIX: &str = "+ats-i";

/// A training policy that knows nothing of inference, and ATS-I, which answers requests on what it leaves, and on what it can take from it. The
/// training policy is asked when it would be asked without requests.
pub struct Beside {
    training: Box<dyn Policy>,
    requests: RequestScheduler,
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beside").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl Beside {
    /// Of the two.
    pub fn new(training: Box<dyn Policy>, requests: RequestScheduler) -> Self {
        Self { training, requests }
    }
}

impl Policy for Beside {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let trigger = view.trigger;
        // Woken about requests while none waits: an instance gave up what a job may want.
        let given_up = trigger.request && view.waiting_requests().is_empty();
        let asked = trigger.is_churn() || trigger.round || trigger.wake || given_up;
        let mut plan = if asked { self.training.decide(view) } else { Plan::keep() };
        self.requests.place(view, &mut plan);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.training.wake_at()
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
