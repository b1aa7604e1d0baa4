//! Warm-up of episodes: another policy runs first, for a time drawn from the seed.
//!
//! A workload starts on an empty cluster, so an episode that is truncated early shows mostly an
//! empty cluster. With a warm-up, a learner meets full queues, jobs of all ages and fragmentation
//! from its first decision on. The warm-up is a function of the seed, so seed and actions reproduce
//! an episode exactly.

use std::sync::Arc;

use rand::RngExt;

use crate::policy::Policy;
use crate::scenario::Scenario;
use crate::seed::{Stream, keyed};
use crate::sim::{SimError, Simulator, Status};
use crate::time::SimTime;

/// Constructor of the warm-up policy, called for each episode.
pub type MakePolicy = Arc<dyn Fn(&Arc<Scenario>) -> Box<dyn Policy> + Send + Sync>;

/// Warm-up of episodes by another policy.
#[derive(Clone)]
pub struct WarmUp {
    /// Constructor of the policy that runs during the warm-up.
    pub policy: MakePolicy,
    /// Longest warm-up; the time of each episode is drawn uniformly from zero to this limit.
    pub longest: SimTime,
}

impl WarmUp {
    /// Starts a simulation of `scenario` and runs it for the time drawn from `seed`. A simulation
    /// that would end in that time is started again without a warm-up.
    pub(super) fn begin(&self, scenario: &Arc<Scenario>, seed: u64) -> Result<Simulator, SimError> {
        let share: f64 = keyed(seed, Stream::Circumstances, 1).random();
        let until = SimTime::from_secs_f64(share * self.longest.as_secs_f64());
        let mut simulator = Simulator::new(scenario.clone());
        let mut policy = (self.policy)(scenario);
        while simulator.now() < until {
            if simulator.run_until_decision()? != Status::Decision {
                return Ok(Simulator::new(scenario.clone()));
            }
            let plan = policy.decide(&simulator.view());
            simulator.apply(&plan)?;
        }
        Ok(simulator)
    }
}
