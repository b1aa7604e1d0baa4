//! Many environments stepped together, writing into contiguous buffers that the caller owns.
//!
//! Autoreset mode is *same step*: when an episode ends, the observation returned is the first of the next episode and the
//! last one of the old goes to a separate buffer, for the bootstrap of truncated episodes.

use serde::{Deserialize, Serialize};

use crate::gym::environment::{EnvError, Environment, ObservationMut, ResetOptions};
use crate::gym::layout::Layout;

/// Buffers of one vector step, row per environment.
#[derive(Clone, Debug, Default)]
pub struct VecBuffers {
    /// Observations, environments x [`Layout::obs_dim`].
    pub features: Vec<f32>,
    /// Masks, environments x [`Layout::actions`].
    pub mask: Vec<u8>,
    /// Rewards.
    pub reward: Vec<f64>,
    /// Seconds that passed.
    pub elapsed_secs: Vec<f64>,
    /// Episode ended by itself.
    pub terminated: Vec<bool>,
    /// Episode was cut off.
    pub truncated: Vec<bool>,
    /// Last observation of the episode, where one ended; environments x [`Layout::obs_dim`].
    pub final_features: Vec<f32>,
    /// Mean job completion time of the episode that ended, seconds; NaN elsewhere.
    pub mean_jct_secs: Vec<f64>,
}

impl VecBuffers {
    /// Buffers for `count` environments of `layout`.
    pub fn new(count: usize, layout: &Layout) -> Self {
        Self {
            features: vec![0.0; count * layout.obs_dim()],
            mask: vec![0; count * layout.actions()],
            reward: vec![0.0; count],
            elapsed_secs: vec![0.0; count],
            terminated: vec![false; count],
            truncated: vec![false; count],
            final_features: vec![0.0; count * layout.obs_dim()],
            mean_jct_secs: vec![f64::NAN; count],
        }
    }
}

/// Where an environment stands: enough to bring a fresh one to the same state, bit for bit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Episodes begun so far.
    pub episode: u64,
    /// Actions taken in the current one.
    pub actions: Vec<u32>,
}

/// Environments in step.
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
    /// Puts `envs`, all of one layout, in step. Environment `i` runs episode `k` with seed `seeds[i]` + `k`, so give seeds
    /// that are far apart. `None` where there is no environment or the layouts differ.
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

    /// Whether there are none; never so.
    pub fn is_empty(&self) -> bool {
        self.envs.is_empty()
    }

    /// Shapes of one environment.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The environments.
    pub fn envs(&self) -> &[E] {
        &self.envs
    }

    /// Starts the next episode in every environment.
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

    /// Steps every environment.
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
            out.mean_jct_secs[index] = f64::NAN;
            if step.terminated || step.truncated {
                out.mean_jct_secs[index] = self.envs[index].mean_jct_secs().unwrap_or(f64::NAN);
                let dim = self.layout.obs_dim();
                let span = index * dim..(index + 1) * dim;
                out.final_features[span.clone()].copy_from_slice(&out.features[span]);
                self.reset_one(index, out)?;
            }
        }
        Ok(())
    }

    /// Where every environment stands.
    pub fn cursors(&self) -> &[Cursor] {
        &self.cursors
    }

    /// Brings every environment to where `cursors` say, by playing their actions again, and writes the observations.
    ///
    /// # Errors
    /// [`EnvError`] where the actions do not fit, which means that something other than the cursors has changed.
    pub fn restore(&mut self, cursors: &[Cursor], out: &mut VecBuffers) -> Result<(), EnvError> {
        for (index, cursor) in cursors.iter().enumerate() {
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
