//! Level that follows what was missed: adaptive conformal inference.
//!
//! `tail' = tail + rate * (aim - missed)`: Gibbs and Candes, "Adaptive conformal inference under distribution shift",
//! NeurIPS 2021, equation 2. The step is taken in the space of levels, so that the capacity never leaves what the
//! scenarios say is possible, and it is taken in both directions. As long as the level is not held at its bounds, the
//! mean share missed over `n` settlements differs from the aim by at most `1 / (rate * n)`, whatever the load does
//! (proposition 4.1 there). Rates are small here, so a level needs hundreds of settlements before that bound says much.
//!
//! A settlement may weigh more than another one: `tail' = tail + rate * weight * (aim - missed)`. With the requests of
//! a step, relative to their mean, as its weight, the bound is one on the share of all requests.

use serde::{Deserialize, Serialize};

/// Least and greatest tail probability.
const BOUNDS: (f64, f64) = (1e-5, 0.9);

/// Tail probability of a quantile, under feedback of the share that was missed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OnlineLevel {
    aim: f64,
    rate: f64,
    tail: f64,
}

impl OnlineLevel {
    /// Level that begins at the tail probability `aim`, the share that may be missed; `rate` is the change of the tail
    /// for a whole miss, 0 for a level that stays.
    pub fn new(aim: f64, rate: f64) -> Self {
        Self { aim, rate, tail: aim.clamp(BOUNDS.0, BOUNDS.1) }
    }

    /// Present tail probability.
    pub fn tail(&self) -> f64 {
        self.tail
    }

    /// Takes in the share, in `[0, 1]`, that a decision missed; the mean `weight` of decisions is 1.
    pub fn settle(&mut self, missed: f64, weight: f64) {
        self.tail = (self.tail + self.rate * weight * (self.aim - missed)).clamp(BOUNDS.0, BOUNDS.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_missed_meets_the_aim_whatever_the_scenarios_say() {
        // Loads are uniform in (0, 2), and the scenarios take them for uniform in (0, 1.9).
        let mut level = OnlineLevel::new(0.1, 0.02);
        let n = 5_000;
        let mut missed = 0.0;
        for step in 0..n {
            let load = f64::from(step * 7_919 % 1_000) / 500.0;
            let miss = f64::from(u8::from(load > 1.9 * (1.0 - level.tail())));
            missed += miss;
            level.settle(miss, 1.0);
        }
        let share = missed / f64::from(n);
        assert!((share - 0.1).abs() <= 1.0 / (0.02 * f64::from(n)), "{share}");
    }

    #[test]
    fn weights_make_it_the_share_of_requests() {
        // Every fourth step has thirteen times the requests of the others, and loads that the scenarios do not know.
        let mut level = OnlineLevel::new(0.1, 0.002);
        let n = 80_000;
        let (mut late, mut requests) = (0.0, 0.0);
        for step in 0..n {
            let (weight, most) = if step % 4 == 0 { (3.25, 2.2) } else { (0.25, 1.0) };
            let load = f64::from(step * 7_919 % 1_000) / 1_000.0 * most;
            let miss = f64::from(u8::from(load > 2.0 * (1.0 - level.tail())));
            (late, requests) = (late + weight * miss, requests + weight);
            level.settle(miss, weight);
        }
        assert!((late / requests - 0.1).abs() <= 1.0 / (0.002 * f64::from(n)), "{}", late / requests);
    }
}
