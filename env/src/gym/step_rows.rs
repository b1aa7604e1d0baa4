//! Buffers of a step of several environments, one row an environment.

use crate::gym::environment::ObservationMut;
use crate::gym::layout::Layout;

/// Buffers of one environment for one step.
#[derive(Debug)]
pub struct StepRow<'a> {
    /// Observation and mask after the step.
    pub observation: ObservationMut<'a>,
    /// Last observation of an episode that ended in this step, [`Layout::obs_dim`] numbers; unchanged by other steps.
    pub final_features: &'a mut [f32],
    /// Reward of this step.
    pub reward: &'a mut f64,
    /// Simulated seconds that passed in this step.
    pub elapsed_secs: &'a mut f64,
    /// Whether the episode ended by itself.
    pub terminated: &'a mut bool,
    /// Whether the episode was truncated.
    pub truncated: &'a mut bool,
    /// Mean job completion time of an episode that ended in this step, seconds; NaN otherwise.
    pub jct_mean_secs: &'a mut f64,
}

/// Contiguous buffers of a step of `N` environments. They belong to the caller.
#[derive(Debug)]
pub struct StepSlices<'a> {
    /// Layout of one environment.
    pub layout: Layout,
    /// Observations, `N` x [`Layout::obs_dim`].
    pub features: &'a mut [f32],
    /// Action masks, `N` x [`Layout::actions`].
    pub masks: &'a mut [u8],
    /// Last observations of episodes that ended, `N` x [`Layout::obs_dim`].
    pub final_features: &'a mut [f32],
    /// Rewards, `N` numbers.
    pub rewards: &'a mut [f64],
    /// Simulated seconds that passed, `N` numbers.
    pub elapsed_secs: &'a mut [f64],
    /// Whether episodes ended by themselves, `N` flags.
    pub terminated: &'a mut [bool],
    /// Whether episodes were truncated, `N` flags.
    pub truncated: &'a mut [bool],
    /// Mean job completion times of episodes that ended, seconds, `N` numbers; NaN elsewhere.
    pub jct_mean_secs: &'a mut [f64],
}

impl<'a> StepSlices<'a> {
    /// Rows of the environments, in order.
    pub fn rows(self) -> impl Iterator<Item = StepRow<'a>> {
        let (dim, actions) = (self.layout.obs_dim(), self.layout.actions());
        let pictures = self.features.chunks_exact_mut(dim).zip(self.masks.chunks_exact_mut(actions));
        let gains = self.rewards.iter_mut().zip(self.elapsed_secs);
        let ends = self.terminated.iter_mut().zip(self.truncated).zip(self.jct_mean_secs);
        let rows = pictures.zip(self.final_features.chunks_exact_mut(dim)).zip(gains).zip(ends);
        rows.map(|((((features, mask), final_features), gains), ((terminated, truncated), jct_mean_secs))| StepRow {
            observation: ObservationMut { features, mask },
            final_features,
            reward: gains.0,
            elapsed_secs: gains.1,
            terminated,
            truncated,
            jct_mean_secs,
        })
    }

    /// Buffers of the first `count` environments, and those of the others.
    ///
    /// # Panics
    /// When there are fewer than `count` environments.
    pub fn split_at(self, count: usize) -> (Self, Self) {
        let (dim, actions) = (self.layout.obs_dim(), self.layout.actions());
        let features = self.features.split_at_mut(count * dim);
        let masks = self.masks.split_at_mut(count * actions);
        let last = self.final_features.split_at_mut(count * dim);
        let (rewards, elapsed) = (self.rewards.split_at_mut(count), self.elapsed_secs.split_at_mut(count));
        let (terminated, truncated) = (self.terminated.split_at_mut(count), self.truncated.split_at_mut(count));
        let jct = self.jct_mean_secs.split_at_mut(count);
        let layout = self.layout;
        let first = Self {
            layout,
            features: features.0,
            masks: masks.0,
            final_features: last.0,
            rewards: rewards.0,
            elapsed_secs: elapsed.0,
            terminated: terminated.0,
            truncated: truncated.0,
            jct_mean_secs: jct.0,
        };
        let others = Self {
            layout,
            features: features.1,
            masks: masks.1,
            final_features: last.1,
            rewards: rewards.1,
            elapsed_secs: elapsed.1,
            terminated: terminated.1,
            truncated: truncated.1,
            jct_mean_secs: jct.1,
        };
        (first, others)
    }
}
