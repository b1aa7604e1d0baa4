//! ETTh1: the standard 12/4/4-month split, z-scored by the training part, all seven channels.
#![allow(dead_code, clippy::unwrap_used, reason = "shared by tests and an example")]

use std::fs;

use goodput_forecast::Series;
use goodput_forecast::neural::NeuralNet;

pub const TRAIN: usize = 12 * 30 * 24;
pub const MONTHS4: usize = 4 * 30 * 24;

pub struct Etth1 {
    /// Z-scored by the training part.
    pub channels: Vec<Vec<f64>>,
}

impl Etth1 {
    pub fn load() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/load/ETTh1.csv");
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path} is needed: {error}"));
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').skip(1).map(|cell| cell.parse().unwrap()).collect())
            .collect();
        let channel = |column: usize| {
            let y: Vec<f64> = rows.iter().map(|row| row[column]).collect();
            let mean = y[..TRAIN].iter().sum::<f64>() / TRAIN as f64;
            let variance = y[..TRAIN].iter().map(|y| (y - mean).powi(2)).sum::<f64>() / TRAIN as f64;
            y.iter().map(|y| (y - mean) / variance.sqrt()).collect()
        };
        Self { channels: (0..7).map(channel).collect() }
    }

    /// The channels up to a step.
    pub fn known(&self, end: usize) -> Vec<Series> {
        self.channels.iter().map(|y| Series::new(0, 3_600_000, y[..end].to_vec().into()).unwrap()).collect()
    }

    /// Mean squared and absolute error over every `every`-th window with targets in `from..to`.
    pub fn errors(&self, net: &NeuralNet, from: usize, to: usize, every: usize) -> (f64, f64) {
        let (lookback, horizon) = (net.spec().lookback, net.spec().horizon);
        let (mut squares, mut sizes, mut count) = (0.0, 0.0, 0.0);
        for y in &self.channels {
            for origin in (from..=to - horizon).step_by(every) {
                for (f, y) in net.median(&y[origin - lookback..origin]).iter().zip(&y[origin..]) {
                    squares += (y - f).powi(2);
                    sizes += (y - f).abs();
                    count += 1.0;
                }
            }
        }
        (squares / count, sizes / count)
    }
}
