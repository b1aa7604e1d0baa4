//! How many nodes a cluster should rent (Pollux, OSDI'21, section 4.2.2; the simulator of its artifact).
//!
//! Utility is the part of ideal speed-up that the rented accelerators give: near 1 jobs would use more, near 0 they waste what they have. While
//! its mean stays between two thresholds nothing changes; else the size with utility nearest the middle is searched. What a speed-up
//! is of decides the behaviour: of goodput, a cluster grows as gradients get noisier; of throughput, which never falls with
//! the batch, it is large from the first minute (the baseline, after Or et al., MLSys'20).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::efficiency::GradientStats;
use super::goodput::GoodputModel;

/// Bounds of an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoscaleConfig {
    /// Fewest nodes, at least 1.
    pub min_nodes: u32,
    /// Most nodes.
    pub max_nodes: u32,
    /// Mean utility below which nodes are given back.
    pub low: f64,
    /// Mean utility above which nodes are added.
    pub high: f64,
    /// Samples in the mean.
    pub window: usize,
}

impl AutoscaleConfig {
    /// Thresholds 0.35 and 0.65 (AdaptDL) over 15 samples (the artifact's simulator, one a minute).
    pub fn pollux(min_nodes: u32, max_nodes: u32) -> Self {
        Self { min_nodes, max_nodes, low: 0.35, high: 0.65, window: 15 }
    }
}

/// Watches utility and proposes sizes.
#[derive(Clone, Debug)]
pub struct Autoscaler {
    config: AutoscaleConfig,
    samples: VecDeque<f64>,
}

impl Autoscaler {
    /// With no samples yet.
    pub fn new(config: AutoscaleConfig) -> Self {
        Self { config, samples: VecDeque::new() }
    }

    /// Takes one sample of the utility of `nodes`; gives the size the cluster should have.
    ///
    /// Nothing changes before the window has been filled once and one more sample has come, as in the artifact. After a change
    /// the window starts empty. `utility_at` gives the utility that a number of nodes would have, which falls with it.
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
        self.samples.clear();
        nearest(min_nodes, max_nodes, nodes, (low + high) / 2.0, utility_at)
    }
}

/// The number of nodes from `min` to `max` with utility nearest `target`, by bisection from `start`; of two equally near
/// the larger. `utility_at` must not rise with nodes.
///
/// The artifact leaves the search where it hits the target exactly and then takes one of the ends; here the hit is taken.
pub fn nearest(min: u32, max: u32, start: u32, target: f64, mut utility_at: impl FnMut(u32) -> f64) -> u32 {
    let (mut low, mut high, mut nodes) = (min, max, start.clamp(min, max));
    while low + 1 < high {
        let utility = utility_at(nodes);
        if utility == target {
            return nodes;
        }
        *(if utility < target { &mut high } else { &mut low }) = nodes;
        nodes = low + (high - low) / 2;
    }
    let (at_low, at_high) = (utility_at(low), utility_at(high));
    if (target - at_low).abs() < (target - at_high).abs() { low } else { high }
}

/// Sum of speed-ups over the accelerators of `nodes` nodes: the part of ideal speed-up that is used, at most 1.
pub fn utility(speedups: impl IntoIterator<Item = f64>, nodes: u32, gpus_per_node: u32) -> f64 {
    speedups.into_iter().sum::<f64>() / (f64::from(nodes) * f64::from(gpus_per_node))
}

/// What a speed-up is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Useful samples per second: the batch grows only while that helps.
    #[default]
    Goodput,
    /// Samples per second: the batch is as large as it may be.
    Throughput,
}

/// Speed-up of a job on `replicas` accelerators of `nodes` nodes over one accelerator, each with its best batch; `None`
/// where no batch is valid.
pub fn speedup(model: &GoodputModel, measure: Measure, nodes: u32, replicas: u32) -> Option<f64> {
    let model = match measure {
        Measure::Goodput => *model,
        // With nothing but noise every sample is worth the same.
        Measure::Throughput => GoodputModel { stats: GradientStats { sqr: 0.0, var: 1.0 }, ..*model },
    };
    Some(model.best(nodes, replicas)?.goodput / model.best(1, 1)?.goodput)
}

/// Utility of one job that has all of `nodes` nodes; 0 where no batch is valid.
pub fn utility_alone(model: &GoodputModel, measure: Measure, nodes: u32, gpus_per_node: u32) -> f64 {
    utility(speedup(model, measure, nodes, nodes * gpus_per_node), nodes, gpus_per_node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BatchLimits, ThroughputParams};

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
        let mut scaler = Autoscaler::new(AutoscaleConfig::pollux(1, 16));
        for sample in 0..40 {
            assert_eq!(scaler.observe(4, 0.5, |_| 0.0), 4, "{sample}");
        }
        let mut scaler = Autoscaler::new(AutoscaleConfig::pollux(1, 16));
        let sizes: Vec<u32> = (0..16).map(|_| scaler.observe(4, 0.9, |nodes| 2.0 / f64::from(nodes))).collect();
        assert_eq!(sizes[..15], [4; 15]);
        assert_eq!(sizes[15], 4, "half is exactly what four nodes give");
        let mut scaler = Autoscaler::new(AutoscaleConfig::pollux(1, 16));
        let sizes: Vec<u32> = (0..33).map(|_| scaler.observe(4, 0.9, |nodes| 5.0 / f64::from(nodes))).collect();
        assert_eq!((sizes[15], sizes[16], sizes[31]), (10, 4, 10), "the window starts again after a change");
    }

    #[test]
    fn bounds_hold() {
        let mut full = Autoscaler::new(AutoscaleConfig::pollux(2, 8));
        assert!((0..50).all(|_| full.observe(8, 0.9, |_| unreachable!("already the largest")) == 8));
        let mut least = Autoscaler::new(AutoscaleConfig::pollux(2, 8));
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

    /// Pollux, OSDI'21, figure 9: early gradients have little noise, so goodput rents few nodes at first and more later.
    #[test]
    fn goodput_rents_with_the_noise_and_throughput_at_once() {
        let size = |var: f64, measure| nearest(1, 16, 8, 0.5, |nodes| utility_alone(&model(var), measure, nodes, 4));
        let goodput: Vec<u32> = [1.0, 10.0, 100.0].map(|var| size(var, Measure::Goodput)).into();
        assert!(goodput.is_sorted() && goodput[0] < goodput[2], "{goodput:?}");
        let throughput: Vec<u32> = [1.0, 10.0, 100.0].map(|var| size(var, Measure::Throughput)).into();
        assert!(throughput.iter().all(|&nodes| nodes == throughput[0]), "noise does not matter: {throughput:?}");
        assert!(throughput[0] > goodput[0], "{throughput:?} {goodput:?}");
    }
}
