//! Vector of environments that are stepped together and write into contiguous buffers of the
//! caller.
//!
//! The autoreset mode is *same step*: when an episode ends, the returned observation is the first
//! of the next episode. The last observation of the ended episode goes to a separate buffer, for
//! bootstrapping at truncation.

use serde::{Deserialize, Serialize};

use crate::gym::environment::{EnvError, Environment, ObservationMut, ResetOptions};
use crate::gym::layout::Layout;

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
}

/// Position of an environment in its run, sufficient to bring a fresh environment to a
/// bit-identical state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Number of episodes started so far.
    pub episode: u64,
    /// Actions taken in the current episode.
    pub actions: Vec<u32>,
}

/// Environments that are stepped together.
#[derive(Clone, Debug)]
pub struct VecEnv<E> {
    envs: Vec<E>,
    cursors: Vec<Cursor>,
    seeds: Vec<u64>,
    layout: Layout,
    options: ResetOptions,
    scratch: (Vec<f32>, Vec<u8>),
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
        let scratch = (vec![0.0; layout.obs_dim()], vec![0; layout.actions()]);
        Some(Self { cursors: vec![Cursor::default(); envs.len()], envs, seeds, layout, options, scratch })
    }

    /// Number of environments.
    pub fn len(&self) -> usize {
        self.envs.len()
    }

    /// Whether the vector is empty, which is always false.
    pub fn is_empty(&self) -> bool {
        self.envs.is_empty()
    }

    /// Layout of one environment.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Environments in the order of their rows.
    pub fn envs(&self) -> &[E] {
        &self.envs
    }

    /// Starts the next episode in all environments.
    ///
    /// # Errors
    /// The first [`EnvError`].
    pub fn reset(&mut self, out: &mut VecBuffers) -> Result<(), EnvError> {
        for index in 0..self.envs.len() {
            self.reset_one(index, out)?;
        }
        Ok(())
    }

    fn reset_one(&mut self, index: usize, out: &mut VecBuffers) -> Result<(), EnvError> {
        let cursor = &mut self.cursors[index];
        let seed = self.seeds[index].wrapping_add(cursor.episode);
        cursor.episode += 1;
        cursor.actions.clear();
        self.envs[index].reset(Some(seed), &self.options, row(out, index, &self.layout))
    }

    /// Steps all environments with one action each.
    ///
    /// # Errors
    /// The first [`EnvError`], for example an action that the mask forbids.
    pub fn step(&mut self, actions: &[usize], out: &mut VecBuffers) -> Result<(), EnvError> {
        for (index, &action) in actions.iter().enumerate() {
            let step = self.envs[index].step(action, row(out, index, &self.layout))?;
            self.cursors[index].actions.push(action as u32);
            out.reward[index] = step.reward;
            out.elapsed_secs[index] = step.elapsed_secs;
            out.terminated[index] = step.terminated;
            out.truncated[index] = step.truncated;
            out.jct_mean_secs[index] = f64::NAN;
            if step.terminated || step.truncated {
                out.jct_mean_secs[index] = self.envs[index].jct_mean_secs().unwrap_or(f64::NAN);
                // The first observation of the next episode overwrites the row, so save the last
                // one before.
                let dim = self.layout.obs_dim();
                let span = index * dim..(index + 1) * dim;
                out.final_features[span.clone()].copy_from_slice(&out.features[span]);
                self.reset_one(index, out)?;
            }
        }
        Ok(())
    }

    /// Position of each environment in its run.
    pub fn cursors(&self) -> &[Cursor] {
        &self.cursors
    }

    /// Brings each environment to the position in `cursors` by repeating the recorded actions, and
    /// writes the observations.
    ///
    /// # Errors
    /// [`EnvError`] where the recorded actions do not fit, which means that the scenario or the
    /// program has changed since.
    pub fn restore(&mut self, cursors: &[Cursor], out: &mut VecBuffers) -> Result<(), EnvError> {
        for (index, cursor) in cursors.iter().enumerate() {
            // `reset_one` advances the episode by one.
            self.cursors[index].episode = cursor.episode - 1;
            self.reset_one(index, out)?;
            for &action in &cursor.actions {
                let (features, mask) = (&mut self.scratch.0[..], &mut self.scratch.1[..]);
                self.envs[index].step(action as usize, ObservationMut { features, mask })?;
                let into = row(out, index, &self.layout);
                into.features.copy_from_slice(&self.scratch.0);
                into.mask.copy_from_slice(&self.scratch.1);
            }
            self.cursors[index].actions.extend_from_slice(&cursor.actions);
        }
        Ok(())
    }
}

fn row<'a>(out: &'a mut VecBuffers, index: usize, layout: &Layout) -> ObservationMut<'a> {
    let (dim, actions) = (layout.obs_dim(), layout.actions());
    ObservationMut {
        features: &mut out.features[index * dim..(index + 1) * dim],
        mask: &mut out.mask[index * actions..(index + 1) * actions],
    }
}
