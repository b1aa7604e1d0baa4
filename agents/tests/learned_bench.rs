//! Cost of a forward pass and of an update; not a test. The twin in PyTorch is
//! `fixtures/bench_update.py`.
//!
//!     cargo nextest run --release --workspace --run-ignored only -E 'test(/^learned_bench::/)' --no-capture
#![cfg(feature = "learn")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::ppo::{PpoBatch, PpoConfig, PpoRates};
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::{MlpConfig, NetConfig, SetConfig, Weights};
use goodput_env::gym::Layout;
use goodput_env::seed::{Stream, rng};

const LAYOUT: Layout =
    Layout { slots: 64, slot_features: 20, globals: 16, verbs: 3, services: 0, pools: false, types: 0 };

/// Microseconds per call: the best of many short runs, and the mean of CPU time.
fn bench(name: &str, mut f: impl FnMut()) {
    let cpu = || -> f64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
    };
    (0..3).for_each(|_| f());
    let once = Instant::now();
    f();
    let per_run = ((0.01 / once.elapsed().as_secs_f64()) as usize).clamp(1, 10_000);
    let (mut best, mut calls, start, busy) = (f64::MAX, 0, Instant::now(), cpu());
    while start.elapsed().as_secs_f64() < 2.0 {
        let run = Instant::now();
        (0..per_run).for_each(|_| f());
        best = best.min(run.elapsed().as_secs_f64() / per_run as f64);
        calls += per_run;
    }
    println!("{name:55} best {:10.2} us   cpu mean {:10.2} us", best * 1e6, (cpu() - busy) / calls as f64 * 1e6);
}

fn set(width: usize) -> NetConfig {
    NetConfig::Set(SetConfig::new(NonZeroUsize::new(width).unwrap()))
}

/// Rows with `occupied(row)` slots filled from the front.
fn rows(count: usize, occupied: impl Fn(usize) -> usize) -> (Vec<f32>, Vec<u8>, Vec<u32>) {
    let (mut observations, mut masks) = (vec![0.0; count * LAYOUT.obs_dim()], vec![0; count * LAYOUT.actions()]);
    for row in 0..count {
        for slot in 0..occupied(row) {
            for f in 0..LAYOUT.slot_features {
                let value = if f == 0 { 1.0 } else { ((row * 31 + slot * 7 + f * 3) % 17) as f32 / 17.0 };
                observations[row * LAYOUT.obs_dim() + slot * LAYOUT.slot_features + f] = value;
            }
            masks[row * LAYOUT.actions() + slot * LAYOUT.verbs..][..LAYOUT.verbs].fill(1);
        }
        masks[row * LAYOUT.actions() + LAYOUT.wait()] = 1;
    }
    (observations, masks, vec![0; count])
}

#[test]
#[ignore = "a benchmark"]
fn figures() {
    for (width, n) in [(32, 16), (32, 64), (64, 16), (64, 64)] {
        let fused = Fused::new(&Weights::new(&set(width), LAYOUT, 1));
        let mut scratch = fused.scratch();
        let (observation, mask, _) = rows(1, |_| n);
        bench(&format!("fused sample, W={width}, {n} of 64 slots"), || {
            black_box(fused.sample(black_box(&observation), &mask, 0.5, &mut scratch));
        });
    }
    let mlp = NetConfig::Mlp(MlpConfig::default());
    for (name, net, occupied) in [
        ("W=32, 64 slots full", set(32), [64, 64]),
        ("W=32, 40 of 64", set(32), [40, 40]),
        ("W=32, 16 of 64", set(32), [16, 16]),
        ("W=32, 4..36 of 64", set(32), [4, 36]),
        ("W=64, 40 of 64", set(64), [40, 40]),
        ("mlp 64-64", mlp, [40, 40]),
    ] {
        let [low, high] = occupied;
        let (observations, masks, actions) = rows(256, |row| low + row * 37 % (high - low + 1));
        let numbers: Vec<f32> = (0..256).map(|i| (i % 7) as f32 - 3.0).collect();
        let log_probs = vec![-3.0; 256];
        let batch = PpoBatch {
            observations: &observations,
            masks: &masks,
            actions: &actions,
            log_probs: &log_probs,
            values: &numbers,
            advantages: &numbers,
            returns: &numbers,
        };
        let config = PpoConfig { epochs: 1, minibatch: 256, target_kl: 0.0, ..PpoConfig::default() };
        for threads in [1, 2] {
            let mut learner = Learner::new(&net, LAYOUT, AdamConfig::default(), 1).with_threads(threads);
            let mut random = rng(1, Stream::Exploration);
            let rates = PpoRates { learning_rate: 1e-5, entropy: 0.01, reference_kl: 0.0 };
            bench(&format!("ppo minibatch of 256, {name}, {threads} threads"), || {
                black_box(learner.ppo(&config, rates, &batch, None, &mut random).unwrap());
            });
        }
    }
}
