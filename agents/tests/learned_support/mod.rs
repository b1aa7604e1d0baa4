//! A small rollout loop for tests: environments side by side, one batch per update.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::gae::{GaeConfig, TraceDecay, Transitions, gae};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::ppo::{PpoBatch, PpoConfig, PpoRates, PpoStats};
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::NetConfig;
use goodput_env::gym::Layout;
use goodput_env::seed::{Stream, keyed};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A test environment.
pub trait Env {
    /// Layout of observations and actions.
    const LAYOUT: Layout;
    /// A new episode.
    fn reset(random: &mut ChaCha8Rng) -> Self;
    /// Writes the observation and the mask, both zeroed.
    fn observe(&self, observation: &mut [f32], mask: &mut [u8]);
    /// Reward, terminated, truncated.
    fn step(&mut self, action: usize) -> (f32, bool, bool);
}

/// Sizes of the loop.
#[derive(Clone)]
pub struct Recipe {
    pub net: NetConfig,
    pub envs: usize,
    pub steps: usize,
    pub updates: usize,
    pub gamma: f64,
    pub lambda: f64,
    pub learning_rate: f32,
    pub entropy: f32,
    pub ppo: PpoConfig,
}

/// A learner in its environments.
pub struct Loop<E> {
    pub learner: Learner,
    recipe: Recipe,
    envs: Vec<E>,
    seed: u64,
    update: usize,
}

impl<E: Env> Loop<E> {
    pub fn new(recipe: &Recipe, seed: u64) -> Self {
        let adam = AdamConfig::default();
        let learner = Learner::new(&recipe.net, E::LAYOUT, adam, seed);
        let mut random = keyed(seed, Stream::Workload, u64::MAX);
        let envs = (0..recipe.envs).map(|_| E::reset(&mut random)).collect();
        Self { learner, recipe: recipe.clone(), envs, seed, update: 0 }
    }

    pub fn train(mut self) -> Self {
        while self.update < self.recipe.updates {
            self.update();
        }
        self
    }

    /// One rollout and one update. Random numbers depend on the number of the update only.
    pub fn update(&mut self) -> PpoStats {
        let Recipe { envs, steps, .. } = self.recipe;
        let (layout, size) = (E::LAYOUT, envs * steps);
        let fused = Fused::new(self.learner.weights());
        let mut scratch = fused.scratch();
        let mut random = keyed(self.seed, Stream::Exploration, self.update as u64);
        let mut births = keyed(self.seed, Stream::Workload, self.update as u64);
        let (mut observations, mut masks) = (vec![0.0; size * layout.obs_dim()], vec![0; size * layout.actions()]);
        let mut actions = vec![0; size];
        let [mut log_probs, mut values, mut rewards, mut final_values] = std::array::from_fn(|_| vec![0.0; size]);
        let (mut terminated, mut truncated) = (vec![0; size], vec![0; size]);
        let mut value_of = |env: &E| {
            let (mut observation, mut mask) = (vec![0.0; layout.obs_dim()], vec![0; layout.actions()]);
            env.observe(&mut observation, &mut mask);
            fused.value(&observation, &mut fused.scratch())
        };
        for i in 0..size {
            let env = &mut self.envs[i % envs];
            let observation = &mut observations[i * layout.obs_dim()..(i + 1) * layout.obs_dim()];
            let mask = &mut masks[i * layout.actions()..(i + 1) * layout.actions()];
            env.observe(observation, mask);
            let sampled = fused.sample(observation, mask, random.random(), &mut scratch);
            assert_eq!(mask[sampled.action], 1, "only allowed actions are drawn");
            (actions[i], log_probs[i], values[i]) = (sampled.action as u32, sampled.log_prob, sampled.value);
            let (reward, over, cut) = env.step(sampled.action);
            (rewards[i], terminated[i], truncated[i]) = (reward, u8::from(over), u8::from(cut && !over));
            if over || cut {
                final_values[i] = value_of(env);
                *env = E::reset(&mut births);
            }
        }
        let last_values: Vec<f32> = self.envs.iter().map(&mut value_of).collect();
        let (mut advantages, mut returns) = (vec![0.0; size], vec![0.0; size]);
        let config =
            GaeConfig { beta: -self.recipe.gamma.ln(), lambda: self.recipe.lambda, trace: TraceDecay::Decision };
        let transitions = Transitions {
            envs,
            rewards: &rewards,
            dt: &vec![1.0; size],
            values: &values,
            terminated: &terminated,
            truncated: &truncated,
            final_values: &final_values,
            last_values: &last_values,
        };
        gae(&config, &transitions, &mut advantages, &mut returns);
        let batch = PpoBatch {
            observations: &observations,
            masks: &masks,
            actions: &actions,
            log_probs: &log_probs,
            values: &values,
            advantages: &advantages,
            returns: &returns,
        };
        let left = 1.0 - self.update as f32 / self.recipe.updates as f32;
        let rates = PpoRates {
            learning_rate: self.recipe.learning_rate * left,
            entropy: self.recipe.entropy * left,
            reference_kl: 0.0,
        };
        self.update += 1;
        self.learner.ppo(&self.recipe.ppo, rates, &batch, None, &mut random).unwrap()
    }

    /// The greedy action and the value in a state.
    pub fn ask(&self, env: &E) -> (usize, f32) {
        let fused = Fused::new(self.learner.weights());
        let mut scratch = fused.scratch();
        let (mut observation, mut mask) = (vec![0.0; E::LAYOUT.obs_dim()], vec![0; E::LAYOUT.actions()]);
        env.observe(&mut observation, &mut mask);
        (fused.greedy(&observation, &mask, &mut scratch), fused.value(&observation, &mut scratch))
    }

    /// Mean return of greedy episodes.
    pub fn evaluate(&self, episodes: usize, seed: u64) -> f32 {
        let fused = Fused::new(self.learner.weights());
        let mut scratch = fused.scratch();
        let mut random = keyed(seed, Stream::Workload, 0);
        let mut total = 0.0;
        for _ in 0..episodes {
            let mut env = E::reset(&mut random);
            loop {
                let (mut observation, mut mask) = (vec![0.0; E::LAYOUT.obs_dim()], vec![0; E::LAYOUT.actions()]);
                env.observe(&mut observation, &mut mask);
                let (reward, over, cut) = env.step(fused.greedy(&observation, &mask, &mut scratch));
                total += reward;
                if over || cut {
                    break;
                }
            }
        }
        total / episodes as f32
    }
}
