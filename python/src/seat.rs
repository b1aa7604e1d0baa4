//! One environment of several: its player, the action that it takes next, and the length of its rounds.

use goodput_env::gym::{Autoreset, ClusterEnv, EnvError, Environment, ObservationMut, Player, ResetOptions, StepRow};
use goodput_env::time::SimTime;

use crate::options::Options;

/// Environment with the action that it takes next.
pub struct EnvironmentSeat {
    /// Player of its episodes.
    pub player: Player<ClusterEnv>,
    /// Action of the next step.
    pub action: usize,
}

impl EnvironmentSeat {
    /// Seat of `env`, in which no episode is under way.
    pub fn new(env: ClusterEnv) -> Self {
        Self { player: Player::new(env, 0), action: 0 }
    }

    /// Whether an action may be taken now. After the last action that a round may have, the round must end.
    pub fn allows(&self, action: usize, options: &Options) -> bool {
        self.player.allows(action, options.autoreset) && (action == self.wait() || !self.must_end(options))
    }

    /// Steps with the action, and weighs the reward.
    ///
    /// # Errors
    /// Those of the environment.
    pub fn step(&mut self, options: &Options, row: StepRow<'_>) -> Result<(), EnvError> {
        let now = self.player.env().simulator().map_or(SimTime::ZERO, |simulator| simulator.now());
        let whole = options.discount.filter(|_| options.present_value);
        let weight = whole.map_or(1.0, |discount| discount.after(now.as_secs_f64()));
        let StepRow { observation, final_features, reward, elapsed_secs, terminated, truncated, jct_mean_secs } = row;
        let ObservationMut { features, mask } = observation;
        let observation = ObservationMut { features, mask: &mut *mask };
        let row = StepRow {
            observation,
            final_features,
            reward: &mut *reward,
            elapsed_secs,
            terminated,
            truncated,
            jct_mean_secs,
        };
        self.player.step(self.action, options.autoreset, &ResetOptions::default(), row)?;
        *reward *= weight;
        self.close(options, mask);
        Ok(())
    }

    /// Leaves the end of the round alone in the mask where the round must end.
    pub fn close(&self, options: &Options, mask: &mut [u8]) {
        if self.must_end(options) {
            let wait = self.wait();
            mask.iter_mut().enumerate().for_each(|(action, allowed)| *allowed = u8::from(action == wait));
        }
    }

    /// Whether the round has had as many actions as it may have, and may end.
    fn must_end(&self, options: &Options) -> bool {
        let Some(most) = options.round_actions else { return false };
        let round = self.player.env().round();
        !self.player.is_over() && round.actions() >= most.get() && self.player.allows(self.wait(), Autoreset::Disabled)
    }

    fn wait(&self) -> usize {
        self.player.env().layout().wait()
    }
}
