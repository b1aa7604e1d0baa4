//! A log of decisions as minibatches.

use std::collections::BTreeMap;
use std::path::Path;

use goodput_agents::learning::offline::OfflineBatch;
use goodput_datasets::store::DecisionLog;
use goodput_datasets::store::decisions::Episode;
use goodput_env::gym::Layout;

use super::baseline::relative_rewards;
use crate::error::TrainError;

/// Decisions to learn from and what they led to.
pub struct Dataset {
    log: DecisionLog,
    /// Rate of discounting, per second.
    beta: f64,
    /// Rows of the log to learn from.
    rows: Vec<usize>,
    /// By row of the log.
    rewards: Vec<f32>,
    /// By row of the log the discounted sum of rewards to the end of its episode, over the scale.
    returns: Vec<f32>,
    /// Standard deviation of those sums: what rewards are divided by.
    scale: f32,
}

/// Room for a minibatch.
#[derive(Default)]
pub struct Minibatch {
    observations: Vec<f32>,
    masks: Vec<u8>,
    actions: Vec<u32>,
    rewards: Vec<f32>,
    discounts: Vec<f32>,
    next_observations: Vec<f32>,
    next_masks: Vec<u8>,
    returns: Vec<f32>,
}

impl Dataset {
    /// Reads a log of observations of `layout` where accelerators of `types` are told apart; `keep`
    /// is the share of episodes that are learnt from.
    ///
    /// # Errors
    /// [`TrainError`] where it cannot be read or was made by another environment.
    pub fn read(path: &Path, (layout, types): (&Layout, &[String]), beta: f64, keep: f64) -> Result<Self, TrainError> {
        let log = DecisionLog::read(path)?;
        let problem = if log.layout() != layout {
            Some(format!("its observations are {:?}, the experiment's {layout:?}", log.layout()))
        } else if log.schema_hash() != layout.schema_hash() {
            Some("its features are those of another version".into())
        } else if log.types() != types {
            let names = |types: &[String]| types.join(", ");
            Some(format!("it tells {} apart, the experiment {}", names(log.types()), names(types)))
        } else if log.decisions() == 0 {
            Some("it holds no decisions".into())
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(TrainError::Log { path: path.into(), problem });
        }
        Ok(Self::new(log, beta, keep))
    }

    /// A dataset of a log that is not empty.
    pub fn new(log: DecisionLog, beta: f64, keep: f64) -> Self {
        let rewards = (0..log.rows()).map(|row| log.reward(row)).collect();
        Self::of_rewards(log, rewards, beta, keep)
    }

    /// Data set with each reward relative to the mean reward of the other behaviours on the same
    /// workload.
    #[must_use]
    pub fn relative(self, keep: f64) -> Self {
        let rewards = relative_rewards(&self.log, self.beta);
        Self::of_rewards(self.log, rewards, self.beta, keep)
    }

    fn of_rewards(log: DecisionLog, rewards: Vec<f32>, beta: f64, keep: f64) -> Self {
        let mut returns = vec![0.0; log.rows()];
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for episode in log.episodes() {
            let mut later = 0.0;
            for row in episode.rows.clone().rev() {
                later = f64::from(rewards[row]) + (-beta * f64::from(log.dt_secs(row))).exp() * later;
                returns[row] = later as f32;
                count += 1.0;
                // Welford's update keeps its digits where the mean is large against the spread.
                let delta = later - mean;
                mean += delta / count;
                squares += delta * (later - mean);
            }
        }
        let deviation = (squares / f64::max(count, 1.0)).sqrt();
        let scale = if deviation > 1e-6 { deviation as f32 } else { 1.0 };
        returns.iter_mut().for_each(|value| *value /= scale);
        let rows = best(log.episodes(), keep).into_iter().flat_map(|episode| episode.rows.clone()).collect();
        Self { log, beta, rows, rewards, returns, scale }
    }

    /// Decisions to learn from.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none; never so of a log that holds decisions.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Copies the decisions `picks`, numbers below [`Self::len`].
    pub fn gather(&self, picks: &[usize], into: &mut Minibatch) {
        let (dim, actions, count) = (self.log.layout().obs_dim(), self.log.layout().actions(), picks.len());
        for observations in [&mut into.observations, &mut into.next_observations] {
            observations.resize(count * dim, 0.0);
        }
        for masks in [&mut into.masks, &mut into.next_masks] {
            masks.resize(count * actions, 0);
        }
        let of = |number: fn(&Self, usize) -> f32| picks.iter().map(|&pick| number(self, self.rows[pick])).collect();
        into.actions = picks.iter().map(|&pick| self.log.action(self.rows[pick])).collect();
        into.rewards = of(|set, row| set.rewards[row] / set.scale);
        into.returns = of(|set, row| set.returns[row]);
        into.discounts = of(|set, row| match set.log.next(row) {
            Some(_) => (-set.beta * f64::from(set.log.dt_secs(row))).exp() as f32,
            None => 0.0,
        });
        for (at, &pick) in picks.iter().enumerate() {
            let row = self.rows[pick];
            // Where nothing follows, the discount is 0 and any observation will do.
            let next = self.log.next(row).unwrap_or(row);
            let (o, m) = (at * dim..(at + 1) * dim, at * actions..(at + 1) * actions);
            self.log.observation(row, &mut into.observations[o.clone()]);
            self.log.observation(next, &mut into.next_observations[o]);
            self.log.mask(row, &mut into.masks[m.clone()]);
            self.log.mask(next, &mut into.next_masks[m]);
        }
    }
}

impl Minibatch {
    /// Batch from which critics and policies learn, where critics regress on the logged returns.
    pub fn batch_with_returns(&self) -> OfflineBatch<'_> {
        OfflineBatch { returns: Some(&self.returns), ..self.batch() }
    }

    /// Batch from which critics and policies learn.
    pub fn batch(&self) -> OfflineBatch<'_> {
        OfflineBatch {
            observations: &self.observations,
            masks: &self.masks,
            actions: &self.actions,
            rewards: &self.rewards,
            discounts: &self.discounts,
            next_observations: &self.next_observations,
            next_masks: &self.next_masks,
            returns: None,
        }
    }
}

/// The share `keep` of episodes with the greatest return less the mean return of all behaviours on
/// the same workload: workloads differ more than behaviours do.
fn best(episodes: &[Episode], keep: f64) -> Vec<&Episode> {
    let mut of_seed: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for episode in episodes {
        let (sum, count) = of_seed.entry(episode.seed).or_default();
        *sum += episode.total;
        *count += 1.0;
    }
    let relative =
        |episode: &Episode| episode.total - of_seed.get(&episode.seed).map_or(0.0, |(sum, count)| sum / count);
    let mut ranked: Vec<(f64, &Episode)> = episodes.iter().map(|episode| (relative(episode), episode)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.rows.start.cmp(&b.1.rows.start)));
    ranked.truncate(((episodes.len() as f64 * keep).ceil() as usize).max(1));
    ranked.into_iter().map(|(_, episode)| episode).collect()
}
