//! Episodes that begin in the middle: another policy plays first, for a time that the seed draws.
//!
//! A workload starts on an empty cluster, and most of an episode of a learner that is stopped early is that. With a warm-up learners meet full queues, jobs of
//! all ages and fragments from their first decision on. It is a function of the seed, so an episode is played again exactly from its seed and its actions.

use std::sync::Arc;

use rand::RngExt;

use crate::policy::Policy;
use crate::scenario::Scenario;
use crate::seed::{Stream, keyed};
use crate::sim::{SimError, Simulator, Status};
use crate::time::SimTime;

/// Who plays first, made anew for each episode.
pub type MakePolicy = Arc<dyn Fn(&Arc<Scenario>) -> Box<dyn Policy> + Send + Sync>;

/// How episodes are warmed up.
#[derive(Clone)]
pub struct WarmUp {
    /// Who plays.
    pub policy: MakePolicy,
    /// Longest time; each episode's is drawn evenly from zero to it.
    pub longest: SimTime,
}

impl WarmUp {
    /// A simulation of `scenario` that has been under way for the time that `seed` draws; one that would be over by then is begun anew.
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
