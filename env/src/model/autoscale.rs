//! Number of nodes that a cluster should rent (Pollux, OSDI'21, section 4.2.2; the simulator of its
//! artifact).
//!
//! Utility is the achieved part of the ideal speed-up of the rented accelerators. Near 1 the jobs
//! could use more accelerators; near 0 most accelerators are wasted. While the mean utility stays
//! between two thresholds the size is kept. Otherwise the autoscaler searches for the size with a
//! utility nearest the middle of the thresholds.
//!
//! The measure of speed-up decides the behaviour. With goodput, a cluster grows as gradients get
//! noisier. With throughput, which never falls with the batch size, the cluster is large from the
//! first minute (the baseline, after Or et al., MLSys'20).

use std::collections::VecDeque;

use super::goodput::GoodputModel;

/// Bounds of an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoscaleConfig {
    /// Fewest nodes, at least 1.
    pub min_nodes: u32,
    /// Most nodes, at least `min_nodes`.
    pub max_nodes: u32,
    /// Mean utility below which the autoscaler releases nodes.
    pub low: f64,
    /// Mean utility above which the autoscaler adds nodes.
    pub high: f64,
    /// Number of utility samples in the mean.
    pub window: usize,
}

/// Controller that averages samples of utility and proposes cluster sizes.
#[derive(Clone, Debug)]
pub struct Autoscaler {
    config: AutoscaleConfig,
    samples: VecDeque<f64>,
}

impl Autoscaler {
    /// Creates an autoscaler without samples.
    pub fn new(config: AutoscaleConfig) -> Self {
        Self { config, samples: VecDeque::new() }
    }

    /// Takes one sample of the utility of `nodes` and returns the size that the cluster should
    /// have.
    ///
    /// The size is kept until the window has been filled once and one more sample has arrived, as
    /// in the artifact. After a change the window starts empty. `utility_at` returns the utility of
    /// a given number of nodes and must not rise with that number.
    pub fn observe(&mut self, nodes: u32, utility: f64, utility_at: impl FnMut(u32) -> f64) -> u32 {
        let AutoscaleConfig { min_nodes, max_nodes, low, high, window } = self.config;
        self.samples.push_back(utility);
        if self.samples.len() <= window {
            return nodes;
        }
        self.samples.pop_front();
        let mean = self.samples.iter().sum::<f64>() / self.samples.len() as f64;
        let out = (nodes > min_nodes && mean < low) || (nodes < max_nodes && mean > high);
        if !out {
            return nodes;
        }
        // Samples of the old size say nothing about the new one.
        self.samples.clear();
        nearest(min_nodes, max_nodes, nodes, (low + high) / 2.0, utility_at)
    }
}

/// Number of nodes in `min..=max` with a utility nearest `target`, by bisection from `start`; the
/// larger of two equally near sizes. `utility_at` must not rise with the number of nodes.
///
/// The artifact leaves the search at an exact hit of the target and then returns one of the ends.
/// This function returns the exact hit.
pub fn nearest(min: u32, max: u32, start: u32, target: f64, mut utility_at: impl FnMut(u32) -> f64) -> u32 {
    let (mut low, mut high, mut nodes) = (min, max, start.clamp(min, max));
    while low + 1 < high {
        let utility = utility_at(nodes);
        if utility == target {
            return nodes;
        }
        // Utility falls with the number of nodes: a utility below the target means too many nodes.
        *(if utility < target { &mut high } else { &mut low }) = nodes;
        nodes = low + (high - low) / 2;
    }
    let (at_low, at_high) = (utility_at(low), utility_at(high));
    if (target - at_low).abs() < (target - at_high).abs() { low } else { high }
}

/// Used part of the ideal speed-up, at most 1: the sum of speed-ups over the number of accelerators
/// of `nodes` nodes.
pub fn utility(speedups: impl IntoIterator<Item = f64>, nodes: u32, gpus_per_node: u32) -> f64 {
    speedups.into_iter().sum::<f64>() / (f64::from(nodes) * f64::from(gpus_per_node))
}

/// Measure of speed on which a speed-up is based.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Useful samples per second (goodput): the batch grows only while a larger batch helps.
    Goodput,
    /// Samples per second: the batch is as large as the limits allow.
    Throughput,
}

/// Speed-up of a job on `replicas` accelerators of `nodes` nodes over one accelerator, each with
/// its best batch; `None` where no batch is valid.
pub fn speedup(model: &GoodputModel, measure: Measure, nodes: u32, replicas: u32) -> Option<f64> {
    let model = match measure {
        Measure::Goodput => *model,
        Measure::Throughput => model.by_throughput(),
    };
    Some(model.best(nodes, replicas)?.goodput / model.best(1, 1)?.goodput)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BatchLimits, GradientStats, ThroughputParams};

    /// Thresholds of AdaptDL over the window of the artifact's simulator.
    fn bounds(min_nodes: u32, max_nodes: u32) -> AutoscaleConfig {
        AutoscaleConfig { min_nodes, max_nodes, low: 0.35, high: 0.65, window: 15 }
    }

    /// Utility of one job that holds all accelerators of `nodes` nodes of four.
    fn utility_alone(model: &GoodputModel, measure: Measure, nodes: u32) -> f64 {
        utility(speedup(model, measure, nodes, nodes * 4), nodes, 4)
    }

    fn model(var: f64) -> GoodputModel {
        let params = ThroughputParams {
            alpha_c: 0.05,
            beta_c: 0.004,
            alpha_n: 0.08,
            beta_n: 0.0005,
            alpha_r: 0.02,
            beta_r: 0.0002,
            gamma: 2.0,
        };
        let limits = BatchLimits::new(200, 20_000, 25, 200).unwrap();
        GoodputModel { params, stats: GradientStats { sqr: 1.0, var }, limits }
    }

    #[test]
    fn nothing_changes_before_the_window_is_full_or_between_the_thresholds() {
        let mut scaler = Autoscaler::new(bounds(1, 16));
        for sample in 0..40 {
            assert_eq!(scaler.observe(4, 0.5, |_| 0.0), 4, "{sample}");
        }
        let mut scaler = Autoscaler::new(bounds(1, 16));
        let sizes: Vec<u32> = (0..16).map(|_| scaler.observe(4, 0.9, |nodes| 2.0 / f64::from(nodes))).collect();
        assert_eq!(sizes[..15], [4; 15]);
        assert_eq!(sizes[15], 4, "half is exactly what four nodes give");
        let mut scaler = Autoscaler::new(bounds(1, 16));
        let sizes: Vec<u32> = (0..33).map(|_| scaler.observe(4, 0.9, |nodes| 5.0 / f64::from(nodes))).collect();
        assert_eq!((sizes[15], sizes[16], sizes[31]), (10, 4, 10), "the window starts again after a change");
    }

    #[test]
    fn bounds_hold() {
        let mut full = Autoscaler::new(bounds(2, 8));
        assert!((0..50).all(|_| full.observe(8, 0.9, |_| unreachable!("already the largest")) == 8));
        let mut least = Autoscaler::new(bounds(2, 8));
        assert!((0..50).all(|_| least.observe(2, 0.1, |_| unreachable!("already the smallest")) == 2));
    }

    #[test]
    fn the_search_finds_the_nearest() {
        for numerator in 1..200 {
            let curve = |nodes: u32| (f64::from(numerator) / 10.0 / f64::from(nodes)).min(1.0);
            let found = nearest(1, 32, 7, 0.5, curve);
            let miss = |nodes: u32| (curve(nodes) - 0.5).abs();
            let least = (1..=32).map(miss).fold(f64::INFINITY, f64::min);
            assert!((miss(found) - least).abs() < 1e-12, "{numerator}: {found}");
        }
    }

    /// Pollux, OSDI'21, figure 9: early gradients have little noise, so goodput rents few nodes at
    /// first and more later.
    #[test]
    fn goodput_rents_with_the_noise_and_throughput_at_once() {
        let size = |var: f64, measure| nearest(1, 16, 8, 0.5, |nodes| utility_alone(&model(var), measure, nodes));
        let goodput: Vec<u32> = [1.0, 10.0, 100.0].map(|var| size(var, Measure::Goodput)).into();
        assert!(goodput.is_sorted() && goodput[0] < goodput[2], "{goodput:?}");
        let throughput: Vec<u32> = [1.0, 10.0, 100.0].map(|var| size(var, Measure::Throughput)).into();
        assert!(throughput.iter().all(|&nodes| nodes == throughput[0]), "noise does not matter: {throughput:?}");
        assert!(throughput[0] > goodput[0], "{throughput:?} {goodput:?}");
    }
}
