//! Exactness of training to the bit: resuming and threads change nothing, a batch can be memorised,
//! and broken checkpoints are refused.
#![cfg(feature = "learn")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::num::NonZeroUsize;
use std::process::Command;

use crate::learned_support::{Env, Loop, Recipe};
use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::imitation::{ImitationBatch, ImitationConfig, ImitationStats};
use goodput_agents::learning::learner::{CheckpointError, Learner};
use goodput_agents::learning::ppo::{PpoBatch, PpoConfig, PpoRates, PpoStats};
use goodput_agents::nets::archive::ArchiveError;
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::{NetConfig, SetConfig};
use goodput_env::gym::Layout;
use goodput_env::seed::{Stream, rng};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Environment that rewards serving the shortest of a few jobs; the queue shrinks, so rows of a
/// batch differ in how many slots they use.
struct Queue {
    sizes: Vec<f32>,
}

impl Env for Queue {
    const LAYOUT: Layout =
        Layout { slots: 12, slot_features: 3, globals: 2, verbs: 2, services: 0, pools: false, types: 0 };

    fn reset(random: &mut ChaCha8Rng) -> Self {
        let count = random.random_range(1..=12);
        Self { sizes: (0..count).map(|_| random.random_range(0.1..1.0)).collect() }
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [u8]) {
        for (slot, &size) in self.sizes.iter().enumerate() {
            observation[3 * slot..3 * slot + 3].copy_from_slice(&[1.0, size, size.ln()]);
            mask[2 * slot] = 1;
        }
        observation[36] = self.sizes.len() as f32 / 12.0;
        mask[24] = u8::from(self.sizes.is_empty());
    }

    fn step(&mut self, action: usize) -> (f32, bool, bool) {
        let served = self.sizes.remove(action / 2);
        (-served * (self.sizes.len() + 1) as f32, self.sizes.is_empty(), false)
    }
}

fn recipe() -> Recipe {
    let net = NetConfig::Set(SetConfig { width: NonZeroUsize::new(12).unwrap(), heads: 2 });
    let ppo = PpoConfig { epochs: 2, minibatch: 160, ..PpoConfig::default() };
    Recipe { net, envs: 5, steps: 64, updates: 8, gamma: 0.99, lambda: 0.95, learning_rate: 1e-3, entropy: 0.01, ppo }
}

/// Learner after eight updates on `threads` threads, stopped and resumed after `stop`.
fn trained(threads: usize, stop: Option<usize>) -> Vec<u8> {
    let mut agent = Loop::<Queue>::new(&recipe(), 11);
    agent.learner = agent.learner.with_threads(threads);
    for update in 0..8 {
        if stop == Some(update) {
            let bytes = agent.learner.to_bytes();
            agent.learner = Learner::from_bytes(&bytes).unwrap().with_threads(threads);
            assert_eq!(agent.learner.to_bytes(), bytes);
        }
        agent.update();
    }
    agent.learner.to_bytes()
}

#[test]
fn resuming_and_threads_change_no_bit() {
    let straight = trained(1, None);
    for (threads, stop) in [(1, Some(4)), (2, None), (3, Some(1))] {
        assert!(trained(threads, stop) == straight, "{threads} threads, stopped after {stop:?}");
    }
}

/// Not a test of its own: prints what the next one compares.
#[test]
fn digest() {
    let sum = trained(2, None)
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    println!("digest {sum:016x}");
}

#[test]
fn the_thread_pool_changes_no_bit() {
    let run = |threads: &str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "learned_exact::digest", "--nocapture"])
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find_map(|line| line.split_once("digest ").map(|(_, sum)| sum[..16].to_owned())).unwrap()
    };
    assert_eq!(run("1"), run("2"));
}

#[test]
fn broken_checkpoints_are_refused() {
    let bytes = Loop::<Queue>::new(&recipe(), 1).learner.to_bytes();
    let error = |bytes: &[u8]| Learner::from_bytes(bytes).unwrap_err();
    for cut in [0, 7, 40, bytes.len() / 2, bytes.len() - 1] {
        let error = error(&bytes[..cut]);
        assert!(matches!(error, CheckpointError::Archive(ArchiveError::Truncated { .. })), "{cut}: {error}");
    }
    assert!(matches!(error(b"[agent]\nlr = 1e-3"), CheckpointError::Archive(ArchiveError::NotAnArchive { .. })));
    let mut poisoned = bytes.clone();
    let end = poisoned.len();
    poisoned[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = Learner::from_bytes(&poisoned).unwrap_err().to_string();
    assert!(error.starts_with("tensor `weights` is not finite at "), "{error}");
}

struct Decisions {
    observations: Vec<f32>,
    masks: Vec<u8>,
    actions: Vec<u32>,
}

/// Random states and random allowed actions.
fn decisions(count: usize) -> Decisions {
    let mut random = rng(5, Stream::Workload);
    let layout = Queue::LAYOUT;
    let (mut observations, mut masks) = (vec![0.0; count * layout.obs_dim()], vec![0; count * layout.actions()]);
    let mut actions = Vec::new();
    for row in 0..count {
        let queue = Queue::reset(&mut random);
        let mask = &mut masks[row * layout.actions()..(row + 1) * layout.actions()];
        let observation = &mut observations[row * layout.obs_dim()..(row + 1) * layout.obs_dim()];
        queue.observe(observation, mask);
        // A mark to tell jobs of about the same size apart.
        (0..queue.sizes.len()).for_each(|slot| observation[3 * slot + 2] = random.random_range(-2.0..2.0));
        actions.push(2 * random.random_range(0..queue.sizes.len()) as u32);
    }
    Decisions { observations, masks, actions }
}

#[test]
fn a_batch_is_learned_by_heart() {
    let Decisions { observations, masks, actions } = decisions(24);
    let net = NetConfig::Set(SetConfig::default());
    let mut learner = Learner::new(&net, Queue::LAYOUT, AdamConfig::default(), 3);
    let returns: Vec<f32> = (0..24).map(|row| (row % 5) as f32 - 2.0).collect();
    let batch = ImitationBatch {
        observations: &observations,
        masks: &masks,
        actions: &actions,
        weights: None,
        returns: Some(&returns),
    };
    let config = ImitationConfig { epochs: 800, minibatch: 24, max_grad_norm: 10.0, ..ImitationConfig::default() };
    let mut random = rng(1, Stream::Exploration);
    for rate in [3e-3, 1e-3, 2e-4] {
        learner.imitate(&config, rate, &batch, &mut random).unwrap();
    }
    let (ImitationStats { cross_entropy, accuracy, value_loss, .. }, _) = learner.imitation_gradient(&config, &batch);
    println!("cross-entropy {cross_entropy}, value loss {value_loss}");
    assert!(cross_entropy < 1e-2 && value_loss < 1e-2 && accuracy > 0.9999, "{cross_entropy} {value_loss} {accuracy}");
}

fn ppo_on(
    decisions: &Decisions,
    config: &PpoConfig,
    rates: PpoRates,
    advantage: f32,
    reference: bool,
) -> (Learner, Result<PpoStats, String>) {
    let count = decisions.actions.len();
    let mut learner = Learner::new(&NetConfig::Set(SetConfig::default()), Queue::LAYOUT, AdamConfig::default(), 3);
    let fused = Fused::new(learner.weights());
    let mut scratch = fused.scratch();
    let layout = Queue::LAYOUT;
    let mut probabilities = vec![0.0; layout.actions()];
    let mut log_probs = Vec::new();
    for row in 0..count {
        let observation = &decisions.observations[row * layout.obs_dim()..(row + 1) * layout.obs_dim()];
        let mask = &decisions.masks[row * layout.actions()..(row + 1) * layout.actions()];
        fused.probabilities(observation, mask, &mut scratch, &mut probabilities);
        log_probs.push(probabilities[decisions.actions[row] as usize].ln());
    }
    let advantages: Vec<f32> = (0..count).map(|row| if row % 2 == 0 { advantage } else { -advantage }).collect();
    let batch = PpoBatch {
        observations: &decisions.observations,
        masks: &decisions.masks,
        actions: &decisions.actions,
        log_probs: &log_probs,
        values: &advantages,
        advantages: &advantages,
        returns: &advantages,
    };
    let stats = learner.ppo(config, rates, &batch, reference.then_some(&fused), &mut rng(1, Stream::Exploration));
    (learner, stats.map_err(|e| e.to_string()))
}

#[test]
fn an_update_stops_at_the_target_and_a_reference_holds_it_back() {
    let data = decisions(64);
    let rates = PpoRates { learning_rate: 1e-2, entropy: 0.0, reference_kl: 0.0 };
    let free = PpoConfig { epochs: 20, minibatch: 64, target_kl: 0.0, ..PpoConfig::default() };
    let (_, stats) = ppo_on(&data, &free, rates, 1.0, false);
    let stats = stats.unwrap();
    assert_eq!((stats.minibatches, stats.stopped), (20, false));
    assert!((stats.explained_variance - 1.0).abs() < 1e-9 && stats.approx_kl > 0.002, "{stats:?}");

    let (_, stopped) = ppo_on(&data, &PpoConfig { target_kl: 0.001, ..free }, rates, 1.0, false);
    let stopped = stopped.unwrap();
    assert!(stopped.stopped && stopped.minibatches < 20 && stopped.approx_kl < 0.0015, "{stopped:?}");

    let (_, held) = ppo_on(&data, &free, PpoRates { reference_kl: 10.0, ..rates }, 1.0, true);
    let held = held.unwrap();
    assert!(held.reference_kl > 0.0 && held.approx_kl < 0.2 * stats.approx_kl, "{held:?} {stats:?}");
}

#[test]
fn a_gradient_that_is_not_finite_is_an_error_and_leaves_the_weights() {
    let rates = PpoRates { learning_rate: 1e-2, entropy: 0.0, reference_kl: 0.0 };
    let (learner, stats) = ppo_on(&decisions(8), &PpoConfig::default(), rates, f32::NAN, false);
    assert!(stats.unwrap_err().starts_with("the gradient is not finite in minibatch 0"));
    assert_eq!(
        learner.weights(),
        Learner::new(learner.weights().config(), Queue::LAYOUT, AdamConfig::default(), 3).weights()
    );
}

/// One epoch on one minibatch is A2C (Huang et al. 2022, arXiv:2205.09123): the ratio is 1
/// everywhere, so nothing is clipped, and the gradient is that of `-mean(A ln p) + c mean((V -
/// R)^2)`, worked out here row by row.
#[test]
fn one_epoch_of_one_minibatch_is_a2c() {
    let data = decisions(16);
    let Decisions { observations, masks, actions } = &data;
    let layout = Queue::LAYOUT;
    let learner = Learner::new(&NetConfig::Set(SetConfig::default()), layout, AdamConfig::default(), 3);
    let fused = Fused::new(learner.weights());
    let (mut scratch, mut probabilities) = (fused.scratch(), vec![0.0; layout.actions()]);
    let observation = |row: usize| &observations[row * layout.obs_dim()..(row + 1) * layout.obs_dim()];
    let mask = |row: usize| &masks[row * layout.actions()..(row + 1) * layout.actions()];
    let log_prob = |row: usize| {
        fused.probabilities(observation(row), mask(row), &mut scratch, &mut probabilities);
        probabilities[actions[row] as usize].ln()
    };
    let log_probs: Vec<f32> = (0..16).map(log_prob).collect();
    let returns: Vec<f32> = (0..16).map(|row| (row % 7) as f32 - 2.0).collect();
    // Mean 0 and deviation 1 already: the normalisation over the minibatch, which A2C may leave
    // out, then changes nothing.
    let advantages: Vec<f32> =
        (0..16).map(|row| (15.0f32 / 16.0).sqrt() * if row % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let batch = PpoBatch {
        observations,
        masks,
        actions,
        log_probs: &log_probs,
        values: &returns,
        advantages: &advantages,
        returns: &returns,
    };
    let rates = PpoRates { learning_rate: 1e-3, entropy: 0.0, reference_kl: 0.0 };
    let config = PpoConfig { epochs: 1, minibatch: 16, max_grad_norm: 1e9, ..PpoConfig::default() };
    let ppo = learner.ppo_gradient(&config, rates, &batch, None);
    assert_eq!(ppo.terms.clipfrac, 0.0);

    let mut a2c = vec![0.0f64; ppo.gradient.len()];
    let imitation = ImitationConfig { value_coefficient: config.value_coefficient, ..ImitationConfig::default() };
    for row in 0..16 {
        let one = ImitationBatch {
            observations: observation(row),
            masks: mask(row),
            actions: &actions[row..=row],
            weights: None,
            returns: None,
        };
        let (_, policy) = learner.imitation_gradient(&imitation, &one);
        let value = ImitationBatch { weights: Some(&[0.0]), returns: Some(&returns[row..=row]), ..one };
        let (_, value) = learner.imitation_gradient(&imitation, &value);
        for (sum, (policy, value)) in a2c.iter_mut().zip(policy.iter().zip(&value)) {
            *sum +=
                (f64::from(advantages[row]) / deviation(&advantages) * f64::from(*policy) + f64::from(*value)) / 16.0;
        }
    }
    assert!(a2c.iter().any(|g| g.abs() > 1e-2), "a gradient worth comparing");
    for (at, (&ppo, &a2c)) in ppo.gradient.iter().zip(&a2c).enumerate() {
        assert!((f64::from(ppo) - a2c).abs() < 1e-5, "parameter {at}: PPO {ppo}, A2C {a2c}");
    }

    // And so is the step, wherever the clip is.
    let stepped = |clip: f32| {
        let mut learner = learner.clone();
        let config = PpoConfig { clip, target_kl: 0.0, ..config };
        learner.ppo(&config, rates, &batch, None, &mut rng(1, Stream::Exploration)).unwrap();
        learner.weights().data().to_vec()
    };
    assert_eq!(stepped(0.2), stepped(0.9));
}

fn deviation(values: &[f32]) -> f64 {
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len() as f64;
    (values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}
