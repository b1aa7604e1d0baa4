//! Player: one environment that plays episode after episode, each from a seed of its own.

use serde::{Deserialize, Serialize};

use crate::gym::environment::{EnvError, Environment, ObservationMut, ResetOptions};
use crate::gym::step_rows::StepRow;

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

/// Moment at which the next episode begins, with the names of Gymnasium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Autoreset {
    /// The step that ends an episode returns the first observation of the next episode.
    #[default]
    SameStep,
    /// The step that ends an episode returns the last observation of the episode. The step after
    /// it ignores its action, and returns the first observation of the next episode.
    NextStep,
    /// An episode that has ended stays as it is until [`Player::begin`].
    Disabled,
}

/// Environment with its place in a stream of episodes. Episode `k` has seed `seed + k`.
#[derive(Clone, Debug)]
pub struct Player<E> {
    env: E,
    seed: u64,
    cursor: Cursor,
    /// Whether no episode is under way: before the first one, and after the end of one that the
    /// mode of [`Player::step`] has left.
    over: bool,
    /// Number of episodes begun, whatever the stream.
    begun: u64,
}

impl<E: Environment> Player<E> {
    /// Player of the stream of episodes that begins with `seed`. No episode is under way.
    pub fn new(env: E, seed: u64) -> Self {
        Self { env, seed, cursor: Cursor::default(), over: true, begun: 0 }
    }

    /// Environment in its current state.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// Position in the stream.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Seed of the first episode of the stream.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Leaves the stream for the one that begins with `seed`.
    pub fn reseed(&mut self, seed: u64) {
        (self.seed, self.cursor, self.over) = (seed, Cursor::default(), true);
    }

    /// Whether no episode is under way.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Number of episodes that the player has begun in all of its streams. It tells one episode from another of the
    /// same seed.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Begins the next episode of the stream.
    ///
    /// # Errors
    /// [`EnvError`] where the workload cannot be run.
    pub fn begin(&mut self, options: &ResetOptions, out: ObservationMut<'_>) -> Result<(), EnvError> {
        let seed = self.seed.wrapping_add(self.cursor.episode);
        self.cursor.episode += 1;
        self.cursor.actions.clear();
        self.over = false;
        self.begun += 1;
        self.env.reset(Some(seed), options, out)
    }

    /// Whether [`Player::step`] takes `action` now. An action that begins an episode is ignored, so
    /// any will do.
    pub fn allows(&self, action: usize, autoreset: Autoreset) -> bool {
        if self.over { autoreset == Autoreset::NextStep } else { self.env.allows(action) }
    }

    /// Takes one action, and begins the next episode as `autoreset` says.
    ///
    /// # Errors
    /// [`EnvError::Forbidden`] for an action that the mask forbids, [`EnvError::NotReset`] where no
    /// episode is under way and none begins.
    pub fn step(
        &mut self,
        action: usize,
        autoreset: Autoreset,
        options: &ResetOptions,
        row: StepRow<'_>,
    ) -> Result<(), EnvError> {
        let StepRow { observation: ObservationMut { features, mask }, final_features, .. } = row;
        (*row.reward, *row.elapsed_secs, *row.jct_mean_secs) = (0.0, 0.0, f64::NAN);
        (*row.terminated, *row.truncated) = (false, false);
        if self.over {
            return match autoreset {
                Autoreset::NextStep => self.begin(options, ObservationMut { features, mask }),
                Autoreset::SameStep | Autoreset::Disabled => Err(EnvError::NotReset),
            };
        }
        let step = self.env.step(action, ObservationMut { features, mask })?;
        self.cursor.actions.push(action as u32);
        (*row.reward, *row.elapsed_secs) = (step.reward, step.elapsed_secs);
        (*row.terminated, *row.truncated) = (step.terminated, step.truncated);
        if step.terminated || step.truncated {
            *row.jct_mean_secs = self.env.jct_mean_secs().unwrap_or(f64::NAN);
            // The first observation of the next episode may overwrite the row.
            final_features.copy_from_slice(features);
            self.over = true;
            if autoreset == Autoreset::SameStep {
                self.begin(options, ObservationMut { features, mask })?;
            }
        }
        Ok(())
    }

    /// Brings the player to the position `cursor` of its stream by repeating the recorded actions,
    /// and writes the observation.
    ///
    /// # Errors
    /// [`EnvError`] where the recorded actions do not fit, which means that the scenario or the
    /// program has changed since.
    pub fn restore(
        &mut self,
        cursor: &Cursor,
        options: &ResetOptions,
        out: ObservationMut<'_>,
    ) -> Result<(), EnvError> {
        self.reseed(self.seed);
        let Some(episode) = cursor.episode.checked_sub(1) else { return Ok(()) };
        self.cursor.episode = episode;
        let ObservationMut { features, mask } = out;
        self.begin(options, ObservationMut { features: &mut *features, mask: &mut *mask })?;
        for &action in &cursor.actions {
            let step = self.env.step(action as usize, ObservationMut { features: &mut *features, mask: &mut *mask })?;
            self.over = step.terminated || step.truncated;
        }
        self.cursor.actions.extend_from_slice(&cursor.actions);
        Ok(())
    }
}
