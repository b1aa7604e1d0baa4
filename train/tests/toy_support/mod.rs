//! A queue before eight accelerators, re-stated from the prototype that Stable-Baselines3's
//! MaskablePPO was measured on: 16 waiting rigid jobs at most, what does not fit in is lost, and a
//! step is either a start, which takes no time, or one tick of it.
//!
//! It is not a configuration of our simulator: whether a job arrives depends on the queue, hence on
//! the policy.
#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests and of a benchmark, each of which uses a part")]

use std::num::NonZeroUsize;

use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::gae::{GaeConfig, TraceDecay};
use goodput_agents::learning::imitation::{ImitationBatch, ImitationConfig};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::ppo::{PpoConfig, PpoRates};
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::{NetConfig, SetConfig, Weights};
use goodput_env::gym::{EnvError, Environment, Layout, Observation, ObservationMut, ResetOptions, Step};
use goodput_env::seed::{Stream, keyed};
use goodput_train::guide::Guide;
use goodput_train::ppo::ArrivalRuns;
use goodput_train::rollout::{Collect, ExperienceBuffer, Rollout};
use goodput_train::scaling::ReturnScale;
use rand::RngExt;

const SLOTS: usize = 16;
const GPUS: u32 = 8;
const TICKS: u32 = 200;
const WIDTH: NonZeroUsize = NonZeroUsize::new(16).unwrap();

pub const LAYOUT: Layout =
    Layout { slots: SLOTS, slot_features: 4, globals: 1, verbs: 1, services: 0, pools: false, types: 0 };

/// A waiting job: accelerators, ticks, and its age, a hundredth a tick.
#[derive(Clone, Copy)]
pub struct Job {
    pub gpus: u32,
    pub ticks: u32,
    pub age: f32,
}

#[derive(Clone)]
pub struct Toy {
    random: u64,
    tick: u32,
    pub free: u32,
    /// Ticks left and accelerators held.
    running: Vec<(u32, u32)>,
    pub waiting: Vec<Job>,
}

impl Toy {
    pub fn new(seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut toy = Self { random, tick: 0, free: GPUS, running: Vec::new(), waiting: Vec::new() };
        toy.arrive();
        toy
    }

    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn arrive(&mut self) {
        if self.waiting.len() < SLOTS && self.draw() % 10 < 6 {
            let gpus = 1 << (self.draw() % 4);
            let ticks = 1 + self.draw() % 9;
            self.waiting.push(Job { gpus, ticks: ticks as u32, age: 0.0 });
        }
    }

    pub fn fits(&self, slot: usize) -> bool {
        self.waiting.get(slot).is_some_and(|job| job.gpus <= self.free)
    }

    /// Reward, time and whether the episode is cut off.
    pub fn act(&mut self, action: usize) -> (f32, f64, bool) {
        if self.fits(action) {
            let job = self.waiting.swap_remove(action);
            self.free -= job.gpus;
            self.running.push((job.ticks, job.gpus));
            return (0.0, 0.0, false);
        }
        self.tick += 1;
        self.running.iter_mut().for_each(|(left, _)| *left -= 1);
        self.free += self.running.iter().filter(|job| job.0 == 0).map(|job| job.1).sum::<u32>();
        self.running.retain(|job| job.0 > 0);
        self.waiting.iter_mut().for_each(|job| job.age = (job.age + 0.01).min(1.0));
        self.arrive();
        (-((self.waiting.len() + self.running.len()) as f32) / 32.0, 1.0, self.tick >= TICKS)
    }

    fn write(&self, out: ObservationMut<'_>) {
        out.features.fill(0.0);
        out.mask.fill(0);
        for (slot, job) in self.waiting.iter().enumerate() {
            let features = [1.0, job.gpus as f32 / 8.0, job.ticks as f32 / 10.0, job.age];
            out.features[4 * slot..4 * slot + 4].copy_from_slice(&features);
            out.mask[slot] = u8::from(self.fits(slot));
        }
        out.features[4 * SLOTS] = self.free as f32 / 8.0;
        out.mask[SLOTS] = 1;
    }
}

impl Environment for Toy {
    fn layout(&self) -> Layout {
        LAYOUT
    }

    fn reset(&mut self, seed: Option<u64>, _: &ResetOptions, out: ObservationMut<'_>) -> Result<(), EnvError> {
        *self = Self::new(seed.unwrap_or_else(|| self.random.wrapping_add(1)));
        self.write(out);
        Ok(())
    }

    fn allows(&self, action: usize) -> bool {
        self.tick < TICKS && (action == SLOTS || (action < SLOTS && self.fits(action)))
    }

    fn step(&mut self, action: usize, out: ObservationMut<'_>) -> Result<Step, EnvError> {
        if self.tick >= TICKS {
            return Err(EnvError::NotReset);
        }
        if !self.allows(action) {
            return Err(EnvError::Forbidden { action });
        }
        let (reward, elapsed_secs, truncated) = self.act(action);
        self.write(out);
        Ok(Step { reward: f64::from(reward), elapsed_secs, terminated: false, truncated })
    }
}

/// The first job that fits.
pub fn first_fit(toy: &Toy) -> usize {
    (0..SLOTS).find(|&slot| toy.fits(slot)).unwrap_or(SLOTS)
}

/// The shortest of the jobs that fit.
pub fn shortest(toy: &Toy) -> usize {
    (0..SLOTS).filter(|&slot| toy.fits(slot)).min_by_key(|&slot| toy.waiting[slot].ticks).unwrap_or(SLOTS)
}

/// Any action that is allowed.
pub fn any(random: &mut impl rand::Rng, toy: &Toy) -> usize {
    let allowed: Vec<usize> = (0..SLOTS).filter(|&slot| toy.fits(slot)).chain([SLOTS]).collect();
    allowed[random.random_range(0..allowed.len())]
}

/// The sum of rewards of one episode, and the decisions in it.
pub fn play(seed: u64, mut choose: impl FnMut(&Toy) -> usize) -> (f64, usize) {
    let (mut toy, mut total) = (Toy::new(seed), 0.0);
    for decisions in 1.. {
        let (reward, _, over) = toy.act(choose(&toy));
        total += f64::from(reward);
        if over {
            return (total, decisions);
        }
    }
    unreachable!("an episode ends after {TICKS} ticks")
}

/// The sum of rewards of one episode under the greedy policy of a net.
pub fn play_net(seed: u64, net: &Fused) -> (f64, usize) {
    let (mut scratch, mut seen) = (net.scratch(), Observation::zeros(&LAYOUT));
    play(seed, |toy| {
        toy.write(seen.as_mut());
        net.greedy(&seen.features, &seen.mask, &mut scratch)
    })
}

struct Shortest;

impl Guide<Toy> for Shortest {
    fn action(&mut self, toy: &Toy) -> Result<usize, EnvError> {
        Ok(shortest(toy))
    }
}

/// Imitation of the shortest job first on the learner's own states, then PPO: the recipe of
/// `goodput train`.
#[derive(Clone)]
pub struct Recipe {
    pub net: NetConfig,
    pub seed: u64,
    pub envs: usize,
    pub steps: usize,
    pub imitation: u64,
    pub updates: u64,
    pub learning_rate: f32,
    /// Ticks in which the weight of the future halves.
    pub half_life: f64,
    pub ppo: PpoConfig,
    /// Runs of an episode that are each other's baseline; 0: the critic is the baseline.
    pub runs: usize,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            net: NetConfig::Set(SetConfig::new(WIDTH)),
            seed: 1,
            envs: 32,
            steps: 128,
            imitation: 6,
            updates: 100,
            learning_rate: 2e-3,
            half_life: 1000.0,
            ppo: PpoConfig { epochs: 3, minibatch: 256, ..PpoConfig::default() },
            runs: 0,
        }
    }
}

impl Recipe {
    /// Number of decisions that the policy learns from.
    pub fn decisions(&self) -> u64 {
        (self.imitation + self.updates) * (self.envs * self.steps) as u64
    }

    /// The weights after imitation and in the end.
    pub fn train(&self) -> [Weights; 2] {
        let mut rollout = Rollout::new(&Toy::new(0), self.envs, self.steps, self.seed).expect("the toy always starts");
        let mut learner = Learner::new(&self.net, LAYOUT, AdamConfig::default(), self.seed);
        let (mut scale, mut e) = (ReturnScale::new(self.envs), rollout.experience());
        for iteration in 0..self.imitation {
            self.imitate(&mut learner, &mut rollout, &mut scale, &mut e, iteration);
        }
        let imitated = learner.weights().clone();
        learner.reset_optimiser();
        let beta = self.gae().beta;
        let arrivals =
            (self.runs > 0).then(|| ArrivalRuns::new(Toy::new(0), self.envs / self.runs, self.runs, self.seed, beta));
        for iteration in 0..self.updates {
            let how = Collect { iteration, seed: self.seed, gae: self.gae(), teacher_share: 0.0 };
            match &arrivals {
                None => rollout.collect(learner.weights(), how, None, &mut scale, &mut e),
                Some(arrivals) => arrivals.collect(learner.weights(), Some(&imitated), iteration, &mut e),
            }
            .expect("actions are allowed");
            let left = 1.0 - iteration as f32 / self.updates as f32;
            let rates = PpoRates { learning_rate: self.learning_rate * left, entropy: 0.01 * left, reference_kl: 0.0 };
            let mut shuffle = keyed(self.seed, Stream::Exploration, 1 << 40 | iteration);
            learner.ppo(&self.ppo, rates, &e.batch(), None, &mut shuffle).expect("finite gradients");
        }
        [imitated, learner.weights().clone()]
    }

    fn imitate(
        &self,
        learner: &mut Learner,
        rollout: &mut Rollout<Toy>,
        scale: &mut ReturnScale,
        e: &mut ExperienceBuffer,
        iteration: u64,
    ) {
        let iteration = 1 << 32 | iteration;
        let how = Collect { iteration, seed: self.seed, gae: self.gae(), teacher_share: 0.3 };
        let guide = || -> Box<dyn Guide<Toy>> { Box::new(Shortest) };
        rollout.collect(learner.weights(), how, Some(&guide), scale, e).expect("actions are allowed");
        let batch = ImitationBatch {
            observations: &e.observations,
            masks: &e.masks,
            actions: &e.labels,
            weights: None,
            returns: Some(&e.returns),
        };
        let config = ImitationConfig { epochs: 2, minibatch: 256, ..ImitationConfig::default() };
        let mut shuffle = keyed(self.seed, Stream::Exploration, iteration);
        learner.imitate(&config, 2e-3, &batch, &mut shuffle).expect("finite gradients");
    }

    fn gae(&self) -> GaeConfig {
        let beta = std::f64::consts::LN_2 / self.half_life;
        GaeConfig { beta, lambda: 0.95, trace: TraceDecay::Time { seconds: 1.0 } }
    }
}
