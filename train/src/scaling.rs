//! Returns of order one: rewards are divided by the running standard deviation of the discounted
//! return (as in OpenAI Baselines' `VecNormalize`, with discounting per time).

use serde::{Deserialize, Serialize};

/// Running moments of the discounted return.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReturnScale {
    count: f64,
    mean: f64,
    squares: f64,
    /// Discounted return so far, by environment.
    running: Vec<f64>,
}

impl ReturnScale {
    /// For `envs` environments; the factor is 1 until there is experience.
    pub fn new(envs: usize) -> Self {
        Self { count: 0.0, mean: 0.0, squares: 0.0, running: vec![0.0; envs] }
    }

    /// Factor by which rewards are divided.
    pub fn factor(&self) -> f32 {
        let deviation = (self.squares / self.count.max(1.0)).sqrt();
        if self.count > 1.0 && deviation > 1e-6 { deviation as f32 } else { 1.0 }
    }

    /// Learns from raw rewards `[steps, count]` of the environments `first..first + count`.
    pub fn learn(
        &mut self,
        beta: f64,
        first: usize,
        count: usize,
        rewards: impl Iterator<Item = f32>,
        dt: &[f32],
        ended: impl Iterator<Item = u8>,
    ) {
        for (row, ((reward, &dt), ended)) in rewards.zip(dt).zip(ended).enumerate() {
            let running = &mut self.running[first + row % count];
            *running = *running * (-beta * f64::from(dt)).exp() + f64::from(reward);
            let value = *running;
            if ended != 0 {
                *running = 0.0;
            }
            self.count += 1.0;
            let delta = value - self.mean;
            self.mean += delta / self.count;
            self.squares += delta * (value - self.mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_is_the_deviation_of_discounted_returns() {
        let mut scale = ReturnScale::new(1);
        let rewards = [1.0f32, 3.0, -2.0, 5.0];
        scale.learn(f64::INFINITY, 0, 1, rewards.into_iter(), &[1.0; 4], [0; 4].into_iter());
        // With infinite discounting every return is the reward itself: mean 1.75, variance 6.6875.
        assert!((scale.factor() - 6.6875f32.sqrt()).abs() < 1e-6);
    }
}
