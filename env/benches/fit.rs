//! Cost of one fit of the throughput model, on random subsets of a synthetic profile.
//! Run with `cargo xtask bench fit`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use goodput_env::model::{Sample, ThroughputParams, fit};
use goodput_env::seed::{Stream, rng};
use rand::RngExt;
use rand::seq::SliceRandom;

/// Step times of known parameters over all sizes up to 4 x 4, with 3 % noise.
fn profile() -> Vec<Sample> {
    let truth = ThroughputParams::from([0.08, 0.0021, 0.21, 0.006, 0.04, 0.002, 1.7]);
    let mut noise = rng(1, Stream::Workload);
    let mut samples = Vec::new();
    for nodes in 1..=4 {
        for replicas in nodes..=4 * nodes {
            for atomic in [32, 64, 128, 256, 512] {
                let mut noisy = |secs: f64| secs * (1.0 + 0.03 * (noise.random::<f64>() - 0.5));
                let step_secs = noisy(truth.optim_time(nodes, replicas, atomic));
                let sync_secs = (step_secs - noisy(truth.grad_time(atomic))).max(0.0);
                samples.push(Sample { nodes, replicas, atomic, step_secs, sync_secs });
            }
        }
    }
    samples
}

fn main() {
    let mut all = profile();
    let mut order = rng(2, Stream::Exploration);
    println!("{:>8} {:>12} {:>10} {:>10}", "samples", "median_us", "p95_us", "max_us");
    for count in [1, 2, 3, 5, 8, 12, 20, 30] {
        let mut micros: Vec<f64> = (0..600)
            .map(|_| {
                all.shuffle(&mut order);
                let timed = |samples: &[Sample]| {
                    let start = Instant::now();
                    std::hint::black_box(fit(samples));
                    start.elapsed().as_secs_f64() * 1e6
                };
                (0..3).map(|_| timed(&all[..count])).fold(f64::INFINITY, f64::min)
            })
            .collect();
        micros.sort_by(f64::total_cmp);
        println!("{count:>8} {:>12.1} {:>10.1} {:>10.1}", micros[300], micros[570], micros[599]);
    }
}
