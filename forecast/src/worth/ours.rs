//! The rule of this crate: the load ahead until an order of now serves, at a level that follows misses.
//!
//! Until an order of now serves, capacity cannot grow, so that what is paid for has to be enough for the largest load
//! of those steps. A miss is a step that needed more than the least capacity asked for since it came into reach.

use std::ops::Range;

use super::ServiceLoad;
use crate::decide::{OnlineLevel, PooledForecast, RATE, Statistic};

/// Loads to hold capacity for at each step of `part`, for each aim of `aims`, shape `[aims, steps]`; orders of now
/// serve within `reach` steps, the present one included.
pub(super) fn asked(service: &ServiceLoad, part: &Range<usize>, reach: usize, aims: &[f64]) -> Vec<Vec<f64>> {
    let known = &service.seen[..service.first];
    let mean = known.iter().map(|load| load.abs()).sum::<f64>() / known.len().max(1) as f64;
    let mut pooled = PooledForecast::new(0..reach, Statistic::Largest, service.day_steps, mean, aims);
    // Windows of the past need no forecast. The series of a study are short, so all of their past teaches; a `Decider`
    // learns from the second half of what it knows, which lends more at as few missed steps.
    service.load[..service.first].iter().for_each(|load| pooled.learn((!load.is_nan()).then_some(*load)));
    let mut levels: Vec<OnlineLevel> = aims.iter().map(|&aim| OnlineLevel::new(aim, RATE * aim)).collect();
    let mut asked: Vec<Vec<f64>> = aims.iter().map(|_| Vec::with_capacity(part.len())).collect();
    for step in service.first..part.end {
        let point = &service.point(step)[..reach];
        pooled.issue(point.to_vec());
        let load = service.load[step];
        if part.contains(&step) {
            let tails: Vec<f64> = levels.iter().map(|level| level.tail()).collect();
            let expected = point.iter().copied().fold(0.0, f64::max);
            let loads = pooled.exceeded_with(&tails).unwrap_or_else(|| vec![expected; tails.len()]);
            for ((level, asked), ahead) in levels.iter_mut().zip(&mut asked).zip(loads) {
                asked.push(ahead.max(0.0));
                let least = asked[asked.len().saturating_sub(reach)..].iter().copied().fold(f64::INFINITY, f64::min);
                if !load.is_nan() {
                    level.settle(f64::from(u8::from(load > least)), 1.0);
                }
            }
        }
        pooled.learn((!load.is_nan()).then_some(load));
    }
    asked
}
