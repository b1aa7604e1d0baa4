//! Losses and gradients against PyTorch's on a saved batch; the fused forward pass against burn's.
//!
//! The batch comes from `fixtures/make_golden.py`. It has empty slots between occupied ones, a row
//! where waiting is all there is, ratios on both sides of the clip and a reference policy.
#![cfg(feature = "learn")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::num::NonZeroUsize;

use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::imitation::{ImitationBatch, ImitationConfig};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::ppo::{PpoBatch, PpoConfig, PpoRates};
use goodput_agents::nets::archive::Archive;
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::layers::forward;
use goodput_agents::nets::weights::{MlpConfig, NetConfig, SetConfig, Weights};
use goodput_env::gym::Layout;
use proptest::prelude::*;

const LAYOUT: Layout = Layout { slots: 8, slot_features: 6, globals: 3, verbs: 3, services: 0, pools: false, types: 0 };
const ROWS: usize = 96;
const TOLERANCE: f64 = 1e-5;

fn width(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

fn nets() -> [(&'static str, NetConfig); 3] {
    let mlp = MlpConfig { hidden: vec![width(16); 2] };
    let set = SetConfig::new(width(16));
    let attention = SetConfig { heads: 3, ..set.clone() };
    [("set", NetConfig::Set(set)), ("mlp", NetConfig::Mlp(mlp)), ("attention", NetConfig::Set(attention))]
}

struct Golden {
    bytes: Vec<u8>,
}

impl Golden {
    fn open() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/golden.safetensors");
        Self { bytes: std::fs::read(path).unwrap() }
    }

    fn get(&self, name: &str, shape: &[usize]) -> Vec<f32> {
        Archive::read(&self.bytes).unwrap().tensor(name, shape).unwrap()
    }

    fn masks(&self) -> Vec<u8> {
        self.get("masks", &[ROWS, LAYOUT.actions()]).iter().map(|&m| m as u8).collect()
    }

    fn weights(&self, net: &NetConfig, name: &str) -> Weights {
        let size = net.parameters(&LAYOUT);
        Weights::from_data(net, LAYOUT, self.get(name, &[size])).unwrap()
    }
}

fn close(what: &str, got: f64, want: f64) {
    assert!((got - want).abs() <= TOLERANCE * want.abs().max(1.0), "{what}: {got}, PyTorch has {want}");
}

fn same_gradient(net: &NetConfig, got: &[f32], want: &[f32]) {
    assert!(want.iter().any(|g| g.abs() > 1e-2), "a gradient worth comparing");
    for layer in net.layers(&LAYOUT) {
        for i in 0..layer.len() {
            let at = layer.offset + i;
            close(&format!("{}[{i}]", layer.name), f64::from(got[at]), f64::from(want[at]));
        }
    }
}

#[test]
fn loss_and_gradients_equal_pytorch() {
    let golden = Golden::open();
    let (observations, masks) = (golden.get("observations", &[ROWS, LAYOUT.obs_dim()]), golden.masks());
    let actions: Vec<u32> = golden.get("actions", &[ROWS]).iter().map(|&a| a as u32).collect();
    let [advantages, returns, importance] = ["advantages", "returns", "weights"].map(|name| golden.get(name, &[ROWS]));
    for (name, net) in nets() {
        let learner = Learner::from_weights(golden.weights(&net, &format!("{name}.parameters")), AdamConfig::default());
        let reference = Fused::new(&golden.weights(&net, &format!("{name}.reference")));
        let log_probs = golden.get(&format!("{name}.log_probs"), &[ROWS]);
        let batch = PpoBatch {
            observations: &observations,
            masks: &masks,
            actions: &actions,
            log_probs: &log_probs,
            values: &returns,
            advantages: &advantages,
            returns: &returns,
        };
        let rates = PpoRates { learning_rate: 0.0, entropy: 0.01, reference_kl: 0.1 };
        let got = learner.ppo_gradient(&PpoConfig::default(), rates, &batch, Some(&reference));
        let want: Vec<f64> = golden.get(&format!("{name}.terms"), &[9]).into_iter().map(f64::from).collect();
        let t = got.terms;
        let terms = [got.loss, t.policy_loss, t.value_loss, t.entropy, t.approx_kl, t.clipfrac, t.reference_kl];
        for (i, term) in terms.into_iter().enumerate() {
            close(&format!("{name} term {i}"), term, want[i]);
        }
        let size = learner.weights().data().len();
        same_gradient(&net, &got.gradient, &golden.get(&format!("{name}.gradient"), &[size]));

        let batch = ImitationBatch {
            observations: &observations,
            masks: &masks,
            actions: &actions,
            weights: Some(&importance),
            returns: Some(&returns),
        };
        let (terms, gradient) = learner.imitation_gradient(&ImitationConfig::default(), &batch);
        for (what, term, want) in
            [("cross-entropy", terms.cross_entropy, want[7]), ("accuracy", terms.accuracy, want[8])]
        {
            close(what, term, want);
        }
        same_gradient(&net, &gradient, &golden.get(&format!("{name}.imitation_gradient"), &[size]));
    }
}

#[test]
fn fused_and_burn_equal_pytorch_and_each_other() {
    let golden = Golden::open();
    let (observations, masks) = (golden.get("observations", &[ROWS, LAYOUT.obs_dim()]), golden.masks());
    for (name, net) in nets() {
        let weights = golden.weights(&net, &format!("{name}.parameters"));
        let (want, want_values) = (
            golden.get(&format!("{name}.logits"), &[ROWS, LAYOUT.actions()]),
            golden.get(&format!("{name}.values"), &[ROWS]),
        );
        let (burn, burn_values) = forward(&weights, &observations, &masks);
        let fused = Fused::new(&weights);
        let mut scratch = fused.scratch();
        for row in 0..ROWS {
            let observation = &observations[row * LAYOUT.obs_dim()..(row + 1) * LAYOUT.obs_dim()];
            let (logits, value) = fused.forward(observation, &mut scratch);
            close("value", f64::from(value), f64::from(want_values[row]));
            close("burn's value", f64::from(burn_values[row]), f64::from(value));
            for (action, &logit) in logits.iter().enumerate() {
                let at = row * LAYOUT.actions() + action;
                if masks[at] == 1 {
                    close("logit", f64::from(logit), f64::from(want[at]));
                    close("burn's logit", f64::from(burn[at]), f64::from(logit));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fused_equals_burn_for_any_shape(
        slots in 1usize..12, slot_features in 1usize..9, globals in 0usize..5, verbs in 1usize..5, w in 1usize..40,
        flat in any::<bool>(), heads in 0usize..5, seed in any::<u64>()
    ) {
        let layout = Layout { slots, slot_features, globals, verbs, services: 0, pools: false, types: 0 };
        let net = if flat {
            NetConfig::Mlp(MlpConfig { hidden: vec![width(w), width(w / 2 + 1)] })
        } else {
            NetConfig::Set(SetConfig { width: width(w), heads })
        };
        let weights = noisy(Weights::new(&net, layout, seed), seed);
        let (observation, mask) = observation(&layout, seed);
        let (want, want_value) = forward(&weights, &observation, &mask);
        let fused = Fused::new(&weights);
        let mut scratch = fused.scratch();
        let (logits, value) = fused.forward(&observation, &mut scratch);
        prop_assert!((value - want_value[0]).abs() <= 1e-5 * value.abs().max(1.0), "{value} {}", want_value[0]);
        for action in (0..layout.actions()).filter(|&a| mask[a] == 1) {
            prop_assert!((logits[action] - want[action]).abs() <= 1e-5 * logits[action].abs().max(1.0));
        }
    }

    #[test]
    fn rounds_end_as_probably_as_ever_and_changes_are_sharpened(
        seed in any::<u64>(), bias in -4f32..4.0, temperature in 0.2f32..3.0
    ) {
        let mut weights = noisy(Weights::new(&NetConfig::Set(SetConfig::new(width(8))), LAYOUT, seed), seed);
        let wait = weights.layers()[6].clone();
        weights.data_mut()[wait.offset + wait.len() - 1] += bias;
        let (seen, mask) = observation(&LAYOUT, seed);
        let fused = Fused::new(&weights);
        let (mut scratch, mut probabilities) = (fused.scratch(), vec![0.0; LAYOUT.actions()]);
        fused.probabilities(&seen, &mask, &mut scratch, &mut probabilities);
        let mut draws = |temperature: f32| {
            const DRAWS: u32 = 2000;
            let mut counts = vec![0.0; LAYOUT.actions()];
            for draw in 0..DRAWS {
                let uniform = (draw as f32 + 0.5) / DRAWS as f32;
                counts[fused.draw(&seen, &mask, temperature, uniform, &mut scratch)] += 1.0 / DRAWS as f32;
            }
            counts
        };
        let close = |one: f32, other: f32| (one - other).abs() < 0.002;
        let plain = draws(1.0);
        prop_assert!(plain.iter().zip(&probabilities).all(|(one, other)| close(*one, *other)), "{plain:?} {probabilities:?}");
        let (end, changes) = probabilities.split_last().unwrap();
        let total: f32 = changes.iter().map(|p| p.powf(1.0 / temperature)).sum();
        let sharpened = draws(temperature);
        prop_assert!(close(sharpened[LAYOUT.wait()], *end), "{} {end}", sharpened[LAYOUT.wait()]);
        for (drawn, p) in sharpened.iter().zip(changes).filter(|_| total > 0.0) {
            let want = (1.0 - end) * p.powf(1.0 / temperature) / total;
            prop_assert!(close(*drawn, want), "{drawn} {want}");
        }
        let best = draws(0.0);
        let made = best[..LAYOUT.wait()].iter().filter(|count| **count > 0.0).count();
        prop_assert!(made <= 1 && close(best[LAYOUT.wait()], *end));
    }

    #[test]
    fn scores_follow_their_slots_and_the_value_ignores_their_order(
        seed in any::<u64>(), rotate in 1usize..8, heads in 0usize..3
    ) {
        let net = NetConfig::Set(SetConfig { width: width(16), heads });
        let weights = noisy(Weights::new(&net, LAYOUT, seed), seed);
        let (seen, _) = observation(&LAYOUT, seed);
        let mut permuted = seen.clone();
        permuted[..LAYOUT.slots * LAYOUT.slot_features].rotate_left(rotate * LAYOUT.slot_features);
        let fused = Fused::new(&weights);
        let mut scratch = fused.scratch();
        let (logits, value) = fused.forward(&seen, &mut scratch);
        let mut logits = logits.to_vec();
        let (wait, slots) = logits.split_last_mut().unwrap();
        slots.rotate_left(rotate * LAYOUT.verbs);
        let (moved, moved_value) = fused.forward(&permuted, &mut scratch);
        prop_assert!((value - moved_value).abs() < 1e-5);
        prop_assert!((*wait - moved[LAYOUT.wait()]).abs() < 1e-5);
        for (a, b) in slots.iter().zip(moved) {
            prop_assert!((a - b).abs() < 1e-5);
        }
        // Weights loaded in place are the same net.
        let mut reloaded = Fused::new(&Weights::new(&net, LAYOUT, 1));
        reloaded.load(&weights);
        prop_assert_eq!(reloaded.forward(&permuted, &mut reloaded.scratch()).1.to_bits(), moved_value.to_bits());
    }
}

/// Weights with biases and heads large enough to show in scores.
fn noisy(mut weights: Weights, seed: u64) -> Weights {
    let mut state = seed | 1;
    weights.data_mut().iter_mut().for_each(|w| *w += 0.2 * noise(&mut state));
    weights
}

fn observation(layout: &Layout, seed: u64) -> (Vec<f32>, Vec<u8>) {
    let mut state = seed.wrapping_mul(31) | 1;
    let mut observation: Vec<f32> = (0..layout.obs_dim()).map(|_| noise(&mut state)).collect();
    let mut mask = vec![1; layout.actions()];
    for slot in 0..layout.slots {
        let features = &mut observation[slot * layout.slot_features..(slot + 1) * layout.slot_features];
        if noise(&mut state) < 0.0 {
            features.fill(0.0);
            mask[slot * layout.verbs..(slot + 1) * layout.verbs].fill(0);
        } else {
            features[0] = 1.0;
        }
    }
    (observation, mask)
}

/// A number in -1 to 1 by xorshift.
fn noise(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}
