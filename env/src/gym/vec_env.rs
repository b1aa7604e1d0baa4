//! Vector of environments that are stepped together and write into contiguous buffers of the
//! caller.
//!
//! The autoreset mode is *same step*: when an episode ends, the returned observation is the first
//! of the next episode. The last observation of the ended episode goes to a separate buffer, for
//! bootstrapping at truncation.

use crate::gym::environment::{EnvError, Environment, ResetOptions};
use crate::gym::layout::Layout;
use crate::gym::player::{Autoreset, Cursor, Player};
use crate::gym::step_rows::StepSlices;

/// Buffers of one vector step, with one row per environment.
#[derive(Clone, Debug, Default)]
pub struct VecBuffers {
    /// Observations, environments x [`Layout::obs_dim`].
    pub features: Vec<f32>,
    /// Action masks, environments x [`Layout::actions`].
    pub mask: Vec<u8>,
    /// Reward of each environment for this step.
    pub reward: Vec<f64>,
    /// Simulated seconds that passed in this step.
    pub elapsed_secs: Vec<f64>,
    /// Whether the episode ended by itself.
    pub terminated: Vec<bool>,
    /// Whether the episode was truncated.
    pub truncated: Vec<bool>,
    /// Last observation of an episode that ended in this step; environments x [`Layout::obs_dim`].
    pub final_features: Vec<f32>,
    /// Mean job completion time of an episode that ended in this step, seconds; NaN elsewhere.
    pub jct_mean_secs: Vec<f64>,
}

impl VecBuffers {
    /// Creates buffers for `count` environments of `layout`.
    pub fn new(count: usize, layout: &Layout) -> Self {
        Self {
            features: vec![0.0; count * layout.obs_dim()],
            mask: vec![0; count * layout.actions()],
            reward: vec![0.0; count],
            elapsed_secs: vec![0.0; count],
            terminated: vec![false; count],
            truncated: vec![false; count],
            final_features: vec![0.0; count * layout.obs_dim()],
            jct_mean_secs: vec![f64::NAN; count],
        }
    }

    /// Buffers as slices, for environments of `layout`.
    pub fn slices(&mut self, layout: Layout) -> StepSlices<'_> {
        StepSlices {
            layout,
            features: &mut self.features,
            masks: &mut self.mask,
            final_features: &mut self.final_features,
            rewards: &mut self.reward,
            elapsed_secs: &mut self.elapsed_secs,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            jct_mean_secs: &mut self.jct_mean_secs,
        }
    }
}

/// Environments that are stepped together.
#[derive(Clone, Debug)]
pub struct VecEnv<E> {
    players: Vec<Player<E>>,
    layout: Layout,
    options: ResetOptions,
}

impl<E: Environment> VecEnv<E> {
    /// Creates a vector of environments of one layout. Environment `i` runs episode `k` with seed
    /// `seeds[i]` + `k`, so the seeds should be far apart. `None` where there is no environment or
    /// the layouts differ.
    pub fn new(envs: Vec<E>, seeds: Vec<u64>, options: ResetOptions) -> Option<Self> {
        let layout = envs.first()?.layout();
        if envs.iter().any(|env| env.layout() != layout) || envs.len() != seeds.len() {
            return None;
        }
        let players = envs.into_iter().zip(seeds).map(|(env, seed)| Player::new(env, seed)).collect();
        Some(Self { players, layout, options })
    }

    /// Number of environments.
    pub fn len(&self) -> usize {
        self.players.len()
    }

    /// Whether the vector is empty, which is always false.
    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Layout of one environment.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Environments in the order of their rows, each with its place in its stream of episodes.
    pub fn players(&self) -> &[Player<E>] {
        &self.players
    }

    /// Starts the next episode in all environments.
    ///
    /// # Errors
    /// The first [`EnvError`].
    pub fn reset(&mut self, out: &mut VecBuffers) -> Result<(), EnvError> {
        let mut rows = self.players.iter_mut().zip(out.slices(self.layout).rows());
        rows.try_for_each(|(player, row)| player.begin(&self.options, row.observation))
    }

    /// Steps all environments with one action each. Where an action is forbidden, no environment
    /// is stepped.
    ///
    /// # Errors
    /// The first [`EnvError`], for example an action that the mask forbids.
    pub fn step(&mut self, actions: &[usize], out: &mut VecBuffers) -> Result<(), EnvError> {
        let mut asked = self.players.iter().zip(actions);
        if let Some((_, &action)) = asked.find(|(player, action)| !player.allows(**action, Autoreset::SameStep)) {
            return Err(EnvError::Forbidden { action });
        }
        let mut rows = self.players.iter_mut().zip(actions).zip(out.slices(self.layout).rows());
        rows.try_for_each(|((player, &action), row)| player.step(action, Autoreset::SameStep, &self.options, row))
    }

    /// Position of each environment in its run.
    pub fn cursors(&self) -> impl Iterator<Item = &Cursor> {
        self.players.iter().map(Player::cursor)
    }

    /// Brings each environment to the position in `cursors` by repeating the recorded actions, and
    /// writes the observations.
    ///
    /// # Errors
    /// [`EnvError`] where the recorded actions do not fit, which means that the scenario or the
    /// program has changed since.
    pub fn restore(&mut self, cursors: &[Cursor], out: &mut VecBuffers) -> Result<(), EnvError> {
        let mut rows = self.players.iter_mut().zip(cursors).zip(out.slices(self.layout).rows());
        rows.try_for_each(|((player, cursor), row)| player.restore(cursor, &self.options, row.observation))
    }
}
