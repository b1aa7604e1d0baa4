//! Scaling of the learning rate with the batch size.
//!
//! A scheduler that changes the batch size of a job changes the optimum learning rate too.
//! PolluxAgent scales the learning rate by one of four rules (AdaptDL, `scaling_rules.py`). Each
//! rule takes the scale, which is the total batch over the initial batch, and returns the factor on
//! the initial learning rate.

use serde::{Deserialize, Serialize};

use super::efficiency::GradientStats;

/// Smallest variance that the rule accepts (AdaptDL): with a smaller variance no scale would seem
/// to help.
const LEAST_VARIANCE: f64 = 1e-6;

/// Rule that sets the learning rate for a batch size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LearningRateRule {
    /// In proportion to the gain of a step (AdaScale, Johnson et al. 2020); follows the measured
    /// gradient noise.
    AdaScale,
    /// In proportion to the square root of the scale (Krizhevsky 2014).
    SquareRoot,
    /// In proportion to the scale (Goyal et al. 2017).
    Linear,
    /// In proportion to the square root of the scale after a warm-up over a fixed number of epochs
    /// times the scale (LEGW, You et al. 2019).
    Legw {
        /// Steps of warm-up at the initial batch size: epochs times samples over the initial batch.
        warmup_steps: f64,
    },
}

impl LearningRateRule {
    /// Factor on the initial learning rate of plain SGD at `scale >= 1` times the initial batch.
    ///
    /// `stats` are measured at the initial batch and only AdaScale uses them. `progress` is the
    /// number of scale-invariant steps so far and only LEGW uses it.
    #[must_use]
    pub fn factor(self, scale: f64, stats: GradientStats, progress: f64) -> f64 {
        match self {
            Self::AdaScale => {
                let believed = GradientStats { sqr: stats.sqr.max(0.0), var: stats.var.max(LEAST_VARIANCE) };
                believed.gain(scale)
            }
            Self::SquareRoot => scale.sqrt(),
            Self::Linear => scale,
            Self::Legw { warmup_steps } => {
                let steps = warmup_steps * scale;
                let warm = if progress < steps { progress / steps } else { 1.0 };
                scale.sqrt() * warm
            }
        }
    }

    /// Factor for optimisers that normalise by the size of the gradient, such as Adam: the square
    /// root of [`Self::factor`].
    #[must_use]
    pub fn adam_factor(self, scale: f64, stats: GradientStats, progress: f64) -> f64 {
        self.factor(scale, stats, progress).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: GradientStats = GradientStats { sqr: 1.0, var: 4.0 };

    #[test]
    fn adascale_lies_between_one_and_the_scale() {
        for (scale, factor) in [(1.0, 1.0), (2.0, 5.0 / 3.0), (4.0, 2.5), (8.0, 10.0 / 3.0)] {
            let found = LearningRateRule::AdaScale.factor(scale, STATS, 0.0);
            assert!((found - factor).abs() < 1e-12, "{scale}: {found}");
            assert!((LearningRateRule::AdaScale.adam_factor(scale, STATS, 0.0) - factor.sqrt()).abs() < 1e-12);
        }
        let noise_only = GradientStats { sqr: -3.0, var: 2.0 };
        assert_eq!(LearningRateRule::AdaScale.factor(4.0, noise_only, 0.0), 4.0, "all noise: every sample counts");
        let no_noise = GradientStats { sqr: 1.0, var: 0.0 };
        assert!(
            (LearningRateRule::AdaScale.factor(4.0, no_noise, 0.0) - 1.0).abs() < 1e-5,
            "no noise: a larger batch is idle"
        );
    }

    #[test]
    fn fixed_rules() {
        assert_eq!(LearningRateRule::SquareRoot.factor(16.0, STATS, 0.0), 4.0);
        assert_eq!(LearningRateRule::Linear.factor(16.0, STATS, 0.0), 16.0);
        assert_eq!(LearningRateRule::Linear.adam_factor(16.0, STATS, 0.0), 4.0);
    }

    #[test]
    fn legw_warms_up_longer_at_a_larger_scale() {
        let rule = LearningRateRule::Legw { warmup_steps: 100.0 };
        assert_eq!(rule.factor(4.0, STATS, 0.0), 0.0);
        assert_eq!(rule.factor(4.0, STATS, 200.0), 1.0, "half of 400 steps, half of 2");
        assert_eq!(rule.factor(4.0, STATS, 400.0), 2.0);
        assert_eq!(rule.factor(1.0, STATS, 100.0), 1.0);
        assert_eq!(LearningRateRule::Legw { warmup_steps: 0.0 }.factor(4.0, STATS, 0.0), 2.0, "no warm-up");
    }
}
