//! The rule of this crate: joint scenarios of the load until an order of now serves, at a level that follows misses.
//!
//! Until an order of now serves, capacity cannot grow, so that what is paid for has to be enough for the largest load
//! of
//! those steps. A miss is a step that needed more than the least capacity asked for since it came into reach.

use std::ops::Range;

use super::ServiceLoad;
use crate::decide::{OnlineLevel, ResidualPaths, Statistic};

/// Change of the level after a missed step, as a share of the aim.
const RATE: f64 = 0.2;

/// Loads to hold capacity for at each step of `part`, for each aim of `aims`, shape `[aims, steps]`; orders of now
/// serve within `reach` steps, the present one included.
pub(super) fn asked(service: &ServiceLoad, part: &Range<usize>, reach: usize, aims: &[f64]) -> Vec<Vec<f64>> {
    let known: Vec<f64> = service.seen[..service.first].to_vec();
    let mean = known.iter().map(|load| load.abs()).sum::<f64>() / known.len().max(1) as f64;
    let mut residuals = ResidualPaths::new(reach, service.day_steps, mean);
    let mut levels: Vec<OnlineLevel> = aims.iter().map(|&aim| OnlineLevel::new(aim, RATE * aim)).collect();
    let mut asked: Vec<Vec<f64>> = aims.iter().map(|_| Vec::with_capacity(part.len())).collect();
    for step in service.first..part.end {
        let point = &service.point(step)[..reach];
        residuals.issue(point);
        let load = service.load[step];
        if part.contains(&step) {
            let scenarios = residuals.scenarios(point);
            let largest = scenarios.and_then(|scenarios| scenarios.distribution(&(0..reach), Statistic::Largest));
            let expected = point.iter().copied().fold(0.0, f64::max);
            for (level, asked) in levels.iter_mut().zip(&mut asked) {
                asked.push(largest.as_ref().map_or(expected, |largest| largest.exceeded_with(level.tail()).max(0.0)));
                let least = asked[asked.len().saturating_sub(reach)..].iter().copied().fold(f64::INFINITY, f64::min);
                if !load.is_nan() {
                    level.settle(f64::from(u8::from(load > least)));
                }
            }
        }
        residuals.learn((!load.is_nan()).then_some(load));
    }
    asked
}
