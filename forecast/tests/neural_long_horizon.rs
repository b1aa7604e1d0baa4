//! Neural forecasters on ETTh1 at L = 336, H = 96 against published figures. The whole runs are
//! `--run-ignored all`, or `--example etth1`.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::etth1::{Etth1, MONTHS4, TRAIN};
use goodput_forecast::neural::{Architecture, Centre, Dlinear, NetLoss, Spec, Trainer, Training};

fn dlinear(steps: u64, every: usize) -> f64 {
    let spec = Spec {
        architecture: Architecture::Dlinear(Dlinear::default()),
        day_steps: 24,
        lookback: 336,
        horizon: 96,
        levels: vec![0.5],
        centre: Centre::Series,
        loss: NetLoss::Squared,
        series_day_steps: None,
    };
    let training = Training { steps, batch: 256, learning_rate: 5e-4, ..Training::default() };
    let data = Etth1::load();
    let mut trainer = Trainer::new(&spec, &training, &data.known(TRAIN + MONTHS4), TRAIN, 1).unwrap();
    while !trainer.is_done() {
        trainer.step().unwrap();
    }
    data.errors(trainer.net(), TRAIN + MONTHS4, TRAIN + 2 * MONTHS4, every).0
}

/// A tenth of the steps, every fifth window.
#[test]
fn dlinear_is_on_its_way_to_the_published_figure() {
    let mse = dlinear(200, 5);
    assert!(mse < 0.41, "{mse}");
}

/// DLinear: 0.375 in LTSF-Benchmark.md of cure-lab/LTSF-Linear.
#[test]
#[ignore = "trains for seven processor seconds, tests for one"]
fn dlinear_has_the_published_figure() {
    let mse = dlinear(2000, 1);
    assert!((mse - 0.375).abs() <= 0.005, "{mse}");
}
