//! A run up to a moment, from what was decided before: how a scheduler comes back after a crash.

use std::sync::Arc;

use super::{SimError, Simulator, Status};
use crate::plan::Plan;
use crate::policy::Policy;
use crate::scenario::Scenario;

impl Simulator {
    /// Carries out `log`, the plans of a run's decisions from the first on. A fresh `policy` is
    /// asked at each, which gives it back what it knew; its answers are not used, so that a
    /// restored scheduler never contradicts what has happened.
    ///
    /// # Errors
    /// [`SimError`] where the log is not one of this scenario.
    pub fn replay(scenario: Arc<Scenario>, log: &[Plan], policy: &mut dyn Policy) -> Result<Self, SimError> {
        let mut simulator = Self::new(scenario);
        for plan in log {
            if simulator.run_until_decision()? != Status::Decision {
                break;
            }
            policy.decide(&simulator.view());
            simulator.apply(plan)?;
            simulator.wake_at(policy.wake_at());
        }
        Ok(simulator)
    }
}
