//! Coverage control: recent coverage of the quantiles, and the level to ask for in place of the
//! nominal one.

use serde::{Deserialize, Serialize};

/// Grid of levels at which coverage is tracked; corrections between them are interpolated.
pub(crate) const GRID: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
/// Half-life of an outcome, in days.
const HALF_LIFE_DAYS: f64 = 3.0;
/// Prior evidence, in days of perfect coverage.
const PRIOR_DAYS: f64 = 0.5;
/// Change of the requested level per unit of missing coverage.
const GAIN: f64 = 3.0;
/// Bound on a correction, as a fraction of the tail beyond the level, outward and inward.
const BOUND: f64 = 0.8;
/// Lead that is always added, as a fraction of the tail: the next change of regime comes
/// unannounced, and a day of forecasts will have missed it.
const LEAD: f64 = 0.25;

/// Coverage of the levels of the grid at one distance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Coverage {
    /// Discounted sum of level minus coverage, by level; `count` is the discounted number of
    /// outcomes.
    missing: [f64; GRID.len()],
    count: f64,
}

impl Coverage {
    /// Takes in the outcome `y` of a forecast with quantiles `given`.
    pub fn learn(&mut self, y: f64, given: &[f64; GRID.len()]) {
        for ((missing, level), given) in self.missing.iter_mut().zip(GRID).zip(given) {
            // In expectation this is 0 for a quantile that covers as often as its level says.
            *missing += if y <= *given { level - 1.0 } else { level };
        }
        self.count += 1.0;
    }

    /// Discounts the evidence by one step of `day` steps in a day.
    pub fn pass(&mut self, day: f64) {
        // To first order this is `0.5^(1 / steps)`, which is enough for half-lives of many steps.
        let keep = 1.0 - std::f64::consts::LN_2 / (HALF_LIFE_DAYS * day).max(1.0);
        self.count *= keep;
        self.missing.iter_mut().for_each(|missing| *missing *= keep);
    }
}

/// Corrections of the levels of the grid at one distance.
pub(crate) struct Correction([f64; GRID.len()]);

impl Correction {
    /// Correction that leaves every level as it is.
    pub const NONE: Self = Self([0.0; GRID.len()]);

    /// Correction of the missing coverage, with `day` steps in a day.
    pub fn new(coverage: &Coverage, day: f64) -> Self {
        let weight = GAIN / (coverage.count + PRIOR_DAYS * day);
        Self(std::array::from_fn(|index| {
            let level = GRID[index];
            // The median is the point forecast, which the control of coverage must not move.
            if level == 0.5 {
                return 0.0;
            }
            // Bounds are fractions of the tail, so that the level asked for stays between 0 and 1.
            let tail = level.min(1.0 - level);
            let lead = (LEAD * tail).copysign(level - 0.5);
            (weight * coverage.missing[index] + lead).clamp(-BOUND * tail, BOUND * tail)
        }))
    }

    /// Level to ask for in place of `level`: corrections are interpolated in the grid, and fade
    /// beyond it.
    pub fn asked(&self, level: f64) -> f64 {
        let Self(moved) = self;
        let last = GRID.len() - 1;
        let moved = match GRID.partition_point(|&grid| grid < level) {
            0 => moved[0] * level / GRID[0],
            above if above > last => moved[last] * (1.0 - level) / (1.0 - GRID[last]),
            above => {
                let part = (level - GRID[above - 1]) / (GRID[above] - GRID[above - 1]);
                moved[above - 1] + part * (moved[above] - moved[above - 1])
            }
        };
        level + moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(y: f64) -> Correction {
        let mut coverage = Coverage::default();
        let given = std::array::from_fn(|index| index as f64);
        for _ in 0..100 {
            coverage.learn(y, &given);
            coverage.pass(24.0);
        }
        Correction::new(&coverage, 24.0)
    }

    #[test]
    fn misses_ask_for_more_within_bounds_and_in_order() {
        let (high, low) = (after(99.0), after(-1.0));
        assert!((high.asked(0.9) - 0.98).abs() < 1e-12 && (high.asked(0.99) - 0.998).abs() < 1e-12);
        assert!((low.asked(0.9) - 0.82).abs() < 1e-12, "covered always: far inward");
        assert_eq!(high.asked(0.5), 0.5);
        for correction in [high, low] {
            let asked: Vec<f64> = (1..1000).map(|i| correction.asked(f64::from(i) / 1000.0)).collect();
            assert!(asked.is_sorted() && asked.iter().all(|level| (0.0..=1.0).contains(level)));
        }
    }

    #[test]
    fn nothing_known_asks_for_the_lead_alone() {
        let asked = Correction::new(&Coverage::default(), 24.0);
        assert!((asked.asked(0.9) - 0.925).abs() < 1e-12 && (asked.asked(0.1) - 0.075).abs() < 1e-12);
        assert_eq!(Correction::NONE.asked(0.9), 0.9);
    }
}
