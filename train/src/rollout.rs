//! Experience: environments stepped side by side under the current policy, on all cores.
//!
//! Environments are grouped into shards of fixed size, each with buffers, a copy of the net and
//! random streams of its own, so the experience does not depend on the number of threads. Memory is
//! allocated once.

use goodput_agents::learning::gae::{GaeConfig, Transitions, gae};
use goodput_agents::learning::ppo::PpoBatch;
use goodput_agents::nets::fused::{Fused, Scratch};
use goodput_agents::nets::weights::Weights;
use goodput_env::gym::{Cursor, EnvError, Environment, Layout, ResetOptions, VecBuffers, VecEnv};
use goodput_env::seed::{Stream, keyed};
use rand::{Rng, RngExt};
use rayon::prelude::*;

use crate::guide::{Guide, MakeGuide};
use crate::scaling::ReturnScale;
use goodput_configs::seeds::training_seed;

/// Environments in a shard.
const SHARD: usize = 4;

/// Experience of one iteration, all arrays by row. The rows of a [`Rollout`] are shard by shard, within a shard step by
/// step; the rows of whole episodes are run by run.
#[derive(Clone, Debug, Default)]
pub struct ExperienceBuffer {
    /// Rows x observation.
    pub observations: Vec<f32>,
    /// Rows x actions.
    pub masks: Vec<u8>,
    /// Actions taken, one for each row.
    pub actions: Vec<u32>,
    /// Actions the teacher would have taken, where there is one.
    pub labels: Vec<u32>,
    /// Log-probabilities of the actions taken.
    pub log_probs: Vec<f32>,
    /// The critic's values.
    pub values: Vec<f32>,
    /// Advantages of the actions, one for each row.
    pub advantages: Vec<f32>,
    /// Targets of the critic.
    pub returns: Vec<f32>,
    /// Mean completion times of the episodes that ended, seconds, shard by shard.
    pub episode_jct_secs: Vec<f64>,
}

impl ExperienceBuffer {
    /// Adds the actions of `run` with what was observed and drawn. Advantages, values and returns are the caller's.
    pub(crate) fn append(&mut self, run: &Self) {
        self.observations.extend_from_slice(&run.observations);
        self.masks.extend_from_slice(&run.masks);
        self.actions.extend_from_slice(&run.actions);
        self.log_probs.extend_from_slice(&run.log_probs);
        self.episode_jct_secs.extend_from_slice(&run.episode_jct_secs);
    }

    /// Batch for an update of PPO.
    pub fn batch(&self) -> PpoBatch<'_> {
        PpoBatch {
            observations: &self.observations,
            masks: &self.masks,
            actions: &self.actions,
            log_probs: &self.log_probs,
            values: &self.values,
            advantages: &self.advantages,
            returns: &self.returns,
        }
    }
}

/// Settings by which an iteration is collected.
#[derive(Clone, Copy, Debug)]
pub struct Collect {
    /// Number of the iteration: names the random streams.
    pub iteration: u64,
    /// Master seed of the experiment.
    pub seed: u64,
    /// Parameters of generalised advantage estimation, with the rate of discounting.
    pub gae: GaeConfig,
    /// Probability of doing as the teacher says.
    pub teacher_share: f32,
}

/// All environments, stepped in parallel.
pub struct Rollout<E> {
    shards: Vec<EnvironmentShard<E>>,
    layout: Layout,
    steps: usize,
    envs: usize,
}

struct EnvironmentShard<E> {
    vector: VecEnv<E>,
    buffers: VecBuffers,
    net: Option<(Fused, Scratch)>,
    guides: Vec<Option<Box<dyn Guide<E>>>>,
    rewards: Vec<f32>,
    dt: Vec<f32>,
    terminated: Vec<u8>,
    truncated: Vec<u8>,
    final_values: Vec<f32>,
    last_values: Vec<f32>,
    chosen: Vec<usize>,
    jct_secs: Vec<f64>,
    first: usize,
}

/// One shard's rows of the experience.
struct ShardRows<'a> {
    observations: &'a mut [f32],
    masks: &'a mut [u8],
    actions: &'a mut [u32],
    labels: &'a mut [u32],
    log_probs: &'a mut [f32],
    values: &'a mut [f32],
    advantages: &'a mut [f32],
    returns: &'a mut [f32],
}

impl<E: Environment + Clone> Rollout<E> {
    /// `envs` copies of `env`, `steps` decisions each per iteration, episodes seeded from `seed`.
    ///
    /// # Errors
    /// [`EnvError`] where an episode cannot begin.
    pub fn new(env: &E, envs: usize, steps: usize, seed: u64) -> Result<Self, EnvError> {
        let layout = env.layout();
        let shard = |first: usize| {
            let count = SHARD.min(envs - first);
            let seeds = (first..first + count).map(|index| training_seed(seed, index as u64)).collect();
            let mut vector =
                VecEnv::new(vec![env.clone(); count], seeds, ResetOptions::default()).ok_or(EnvError::NotReset)?;
            let mut buffers = VecBuffers::new(count, &layout);
            vector.reset(&mut buffers)?;
            let rows = count * steps;
            Ok(EnvironmentShard {
                vector,
                buffers,
                net: None,
                guides: (0..count).map(|_| None).collect(),
                rewards: vec![0.0; rows],
                dt: vec![0.0; rows],
                terminated: vec![0; rows],
                truncated: vec![0; rows],
                final_values: vec![0.0; rows],
                last_values: vec![0.0; count],
                chosen: vec![0; count],
                jct_secs: Vec::new(),
                first,
            })
        };
        let shards = (0..envs).step_by(SHARD).map(shard).collect::<Result<_, EnvError>>()?;
        Ok(Self { shards, layout, steps, envs })
    }

    /// Decisions per iteration.
    pub fn rows(&self) -> usize {
        self.envs * self.steps
    }

    /// Room for one iteration.
    pub fn experience(&self) -> ExperienceBuffer {
        let rows = self.rows();
        ExperienceBuffer {
            observations: vec![0.0; rows * self.layout.obs_dim()],
            masks: vec![0; rows * self.layout.actions()],
            actions: vec![0; rows],
            labels: vec![0; rows],
            log_probs: vec![0.0; rows],
            values: vec![0.0; rows],
            advantages: vec![0.0; rows],
            returns: vec![0.0; rows],
            episode_jct_secs: Vec::new(),
        }
    }

    /// Positions of all environments in their episodes.
    pub fn cursors(&self) -> Vec<Cursor> {
        self.shards.iter().flat_map(|shard| shard.vector.cursors().cloned()).collect()
    }

    /// Brings all environments to where `cursors` say.
    ///
    /// # Errors
    /// [`EnvError`] where the cursors belong to another experiment.
    pub fn restore(&mut self, cursors: &[Cursor]) -> Result<(), EnvError> {
        let each = self.shards.par_iter_mut().zip(cursors.par_chunks(SHARD));
        each.try_for_each(|(shard, cursors)| shard.vector.restore(cursors, &mut shard.buffers))
    }

    /// Collects one iteration under `weights`. Rewards are divided by `scale`, which learns from
    /// them.
    ///
    /// # Errors
    /// [`EnvError`] where an environment fails.
    pub fn collect(
        &mut self,
        weights: &Weights,
        how: Collect,
        teacher: Option<MakeGuide<'_, E>>,
        scale: &mut ReturnScale,
        into: &mut ExperienceBuffer,
    ) -> Result<(), EnvError> {
        // One factor serves the whole iteration, whichever shard is done first.
        let (steps, layout, factor) = (self.steps, self.layout, scale.factor());
        let rows = SHARD * steps;
        let mut parts = Vec::with_capacity(self.shards.len());
        let each = into
            .observations
            .chunks_mut(rows * layout.obs_dim())
            .zip(into.masks.chunks_mut(rows * layout.actions()))
            .zip(into.actions.chunks_mut(rows).zip(into.labels.chunks_mut(rows)))
            .zip(into.log_probs.chunks_mut(rows).zip(into.values.chunks_mut(rows)))
            .zip(into.advantages.chunks_mut(rows).zip(into.returns.chunks_mut(rows)));
        for ((((observations, masks), (actions, labels)), (log_probs, values)), (advantages, returns)) in each {
            parts.push(ShardRows { observations, masks, actions, labels, log_probs, values, advantages, returns });
        }
        let shards = self.shards.par_iter_mut().zip(parts);
        shards.try_for_each(|(shard, rows)| shard.collect(weights, how, teacher, factor, steps, rows))?;
        into.episode_jct_secs.clear();
        // In the order of shards and not of threads, so that the running moments have the same
        // bits.
        for shard in &mut self.shards {
            into.episode_jct_secs.append(&mut shard.jct_secs);
            let ended = shard.terminated.iter().zip(&shard.truncated).map(|(&t, &u)| t | u);
            scale.learn(
                how.gae.beta,
                shard.first,
                shard.vector.len(),
                // The scale learns from raw rewards, so the division is undone.
                shard.rewards.iter().map(|&r| r * factor),
                &shard.dt,
                ended,
            );
        }
        Ok(())
    }
}

impl<E: Environment> EnvironmentShard<E> {
    fn collect(
        &mut self,
        weights: &Weights,
        how: Collect,
        teacher: Option<MakeGuide<'_, E>>,
        factor: f32,
        steps: usize,
        rows: ShardRows<'_>,
    ) -> Result<(), EnvError> {
        let (net, mut scratch) = self.net.take().map_or_else(
            || {
                let fused = Fused::new(weights);
                let scratch = fused.scratch();
                (fused, scratch)
            },
            |(mut fused, scratch)| {
                fused.load(weights);
                (fused, scratch)
            },
        );
        let layout = self.vector.layout();
        let (count, dim, width) = (self.vector.len(), layout.obs_dim(), layout.actions());
        let mut streams: Vec<_> = (self.first..self.first + count)
            .map(|env| {
                keyed(how.seed, Stream::Exploration, how.iteration.wrapping_mul(65_537).wrapping_add(env as u64))
            })
            .collect();
        for step in 0..steps {
            for (env, stream) in streams.iter_mut().enumerate() {
                let row = step * count + env;
                let observation = &self.buffers.features[env * dim..(env + 1) * dim];
                let mask = &self.buffers.mask[env * width..(env + 1) * width];
                let sampled = net.sample(observation, mask, uniform(stream), &mut scratch);
                rows.observations[row * dim..(row + 1) * dim].copy_from_slice(observation);
                rows.masks[row * width..(row + 1) * width].copy_from_slice(mask);
                rows.log_probs[row] = sampled.log_prob;
                rows.values[row] = sampled.value;
                self.chosen[env] = sampled.action;
                if let Some(make) = teacher {
                    let label = self.guides[env].get_or_insert_with(make).action(self.vector.players()[env].env())?;
                    rows.labels[row] = label as u32;
                    // The learner's own states are those it will meet when it is greedy.
                    let learner_drives = uniform(stream) >= how.teacher_share;
                    self.chosen[env] = if learner_drives { net.greedy(observation, mask, &mut scratch) } else { label };
                }
                rows.actions[row] = self.chosen[env] as u32;
            }
            self.vector.step(&self.chosen, &mut self.buffers)?;
            for env in 0..count {
                let row = step * count + env;
                let b = &self.buffers;
                // `VecNormalize` cuts scaled rewards at 10 too.
                self.rewards[row] = (b.reward[env] as f32 / factor).clamp(-10.0, 10.0);
                self.dt[row] = b.elapsed_secs[env] as f32;
                self.terminated[row] = u8::from(b.terminated[env]);
                self.truncated[row] = u8::from(b.truncated[env]);
                if b.terminated[env] || b.truncated[env] {
                    self.jct_secs.push(b.jct_mean_secs[env]);
                    // A guide belongs to one episode; the next episode gets a fresh one.
                    self.guides[env] = None;
                }
                if b.truncated[env] {
                    self.final_values[row] = net.value(&b.final_features[env * dim..(env + 1) * dim], &mut scratch);
                }
            }
        }
        for env in 0..count {
            self.last_values[env] = net.value(&self.buffers.features[env * dim..(env + 1) * dim], &mut scratch);
        }
        let transitions = Transitions {
            envs: count,
            rewards: &self.rewards,
            dt: &self.dt,
            values: rows.values,
            terminated: &self.terminated,
            truncated: &self.truncated,
            final_values: &self.final_values,
            last_values: &self.last_values,
        };
        gae(&how.gae, &transitions, rows.advantages, rows.returns);
        self.net = Some((net, scratch));
        Ok(())
    }
}

/// A number from 0 to below 1.
pub(crate) fn uniform(random: &mut impl Rng) -> f32 {
    // 24 bits: the largest value is below 1 also as f32.
    (random.random::<u32>() >> 8) as f32 / 16_777_216.0
}
