//! Load of an inference service over time: days and weeks, wandering noise, bursts.
//!
//! Requests per second are the mean times a daily curve, a weekly curve, a burst factor and a noise
//! factor, each of mean 1 over time. Noise is the exponential of a first-order autoregressive
//! series, so what is above the curve now stays above it for a while, and no rate is negative.
//! Bursts are a two-state Markov chain. That inference load follows the day, and that clusters for
//! its peak stand idle for most of it, is what capacity loaning lives on (Lyra, EuroSys'23, section
//! 2; ServeGen's published rates show the same curve).

use goodput_env::seed::{Stream, keyed};
use goodput_env::service::RateSeries;
use goodput_env::time::SimTime;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diurnal::wave;
use super::{SynthError, check};

const HOUR_SECS: f64 = 3600.0;
const DAY_SECS: f64 = 24.0 * HOUR_SECS;

/// Settings of the load generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "snake_case", deny_unknown_fields)]
pub struct LoadSynth {
    /// Mean requests per second.
    pub mean_per_sec: f64,
    /// Length of the series, days.
    pub days: f64,
    /// Time between values, seconds.
    pub step_secs: f64,
    /// Swing of the rate over a day, 0 (constant) to 1 (nothing at the quietest moment).
    pub daily_swing: f64,
    /// Hour of the day with most requests, 0 to 24.
    pub peak_hour: f64,
    /// Rate on Saturdays and Sundays relative to other days.
    pub weekend: f64,
    /// Hour of the week at which the series starts, Monday 00:00 being 0.
    pub start_hour: f64,
    /// Standard deviation of the logarithm of the noise.
    pub noise: f64,
    /// Time in which the memory of the noise falls to 1/e, minutes.
    pub noise_minutes: f64,
    /// Rate in a burst relative to calm; 1 for no bursts.
    pub burst_factor: f64,
    /// Mean length of a burst, minutes.
    pub burst_minutes: f64,
    /// Share of time in a burst, 0 to less than 1.
    pub burst_share: f64,
}

impl Default for LoadSynth {
    fn default() -> Self {
        Self {
            mean_per_sec: 100.0,
            days: 7.0,
            step_secs: 60.0,
            daily_swing: 0.8,
            peak_hour: 14.0,
            weekend: 0.8,
            start_hour: 0.0,
            noise: 0.1,
            noise_minutes: 30.0,
            burst_factor: 1.5,
            burst_minutes: 10.0,
            burst_share: 0.02,
        }
    }
}

impl LoadSynth {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`SynthError`] naming the setting.
    pub fn check(&self) -> Result<(), SynthError> {
        check("mean_per_sec", self.mean_per_sec, 0.0..=1e5, "0 to 100000")?;
        check("days", self.days, 0.001..=3660.0, "0.001 to 3660")?;
        check("step_secs", self.step_secs, 1.0..=DAY_SECS, "1 to 86400")?;
        check("daily_swing", self.daily_swing, 0.0..=1.0, "0 to 1")?;
        check("peak_hour", self.peak_hour, 0.0..=24.0, "0 to 24")?;
        check("weekend", self.weekend, 0.0..=10.0, "0 to 10")?;
        check("start_hour", self.start_hour, 0.0..=168.0, "0 to 168")?;
        check("noise", self.noise, 0.0..=1.0, "0 to 1")?;
        check("noise_minutes", self.noise_minutes, 0.0..=1e5, "0 to 100000")?;
        check("burst_factor", self.burst_factor, 1.0..=20.0, "1 to 20")?;
        check("burst_minutes", self.burst_minutes, 0.01..=1e6, "0.01 to 1000000")?;
        check("burst_share", self.burst_share, 0.0..=0.99, "0 to 0.99")
    }

    /// Requests per second by step, of the service number `key` under `seed`; expects settings that
    /// [`Self::check`] accepts.
    pub fn values(&self, seed: u64, key: u64) -> Vec<f64> {
        let mut rng = keyed(seed, Stream::Load, key);
        let calm = 1.0 / (1.0 - self.burst_share + self.burst_share * self.burst_factor);
        let step_minutes = self.step_secs / 60.0;
        let leave = (step_minutes / self.burst_minutes).min(1.0);
        // In the long run as many steps enter a burst as leave one.
        let enter = (leave * self.burst_share / (1.0 - self.burst_share)).min(1.0);
        let memory = if self.noise_minutes > 0.0 { (-step_minutes / self.noise_minutes).exp() } else { 0.0 };
        // Both begin in their long-run distribution, so that the beginning is like the rest.
        let mut burst = rng.random::<f64>() < self.burst_share;
        let mut wander: f64 = StandardNormal.sample(&mut rng);
        let steps = (self.days * DAY_SECS / self.step_secs).ceil() as usize;
        let value = |step: usize| {
            let hour = self.start_hour + (step as f64 + 0.5) * self.step_secs / HOUR_SECS;
            // Half the variance is subtracted, so that the noise has mean 1 and the load stays.
            let noise = (self.noise * wander - 0.5 * self.noise * self.noise).exp();
            let bursts = if burst { calm * self.burst_factor } else { calm };
            // The next step's state; each draw is made whatever it is used for, so that settings do
            // not shift the stream.
            let (change, shock): (f64, f64) = (rng.random(), StandardNormal.sample(&mut rng));
            burst = if burst { change >= leave } else { change < enter };
            // This factor keeps the variance at 1 from step to step.
            wander = memory * wander + (1.0 - memory * memory).sqrt() * shock;
            self.mean_per_sec * self.shape(hour) * bursts * noise
        };
        (0..steps).map(value).collect()
    }

    /// Load as a series of rates of a service.
    ///
    /// # Errors
    /// [`SynthError`] where a setting is out of range.
    pub fn series(&self, seed: u64, key: u64) -> Result<RateSeries, SynthError> {
        self.check()?;
        let values: Vec<f64> = self.values(seed, key).into_iter().map(|value| value.min(RateSeries::MAX)).collect();
        let step = SimTime::from_secs_f64(self.step_secs);
        RateSeries::new(step, &values).map_err(|error| SynthError::Setting {
            setting: "step_secs",
            value: error.to_string(),
            expected: "settings that make rates",
        })
    }

    /// Rate relative to the mean at an hour of the week.
    fn shape(&self, hour: f64) -> f64 {
        let weekday = 7.0 / (5.0 + 2.0 * self.weekend);
        let day = if hour.rem_euclid(168.0) >= 120.0 { weekday * self.weekend } else { weekday };
        let after_peak = (hour - self.peak_hour).rem_euclid(24.0) / 24.0;
        day * (1.0 + self.daily_swing * wave(after_peak))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn every_factor_has_mean_one_and_days_repeat() {
        let settings = LoadSynth { days: 28.0, ..LoadSynth::default() };
        for seed in 0..5 {
            let values = settings.values(seed, 0);
            assert_eq!(values.len(), 28 * 1440);
            assert!((mean(&values) / settings.mean_per_sec - 1.0).abs() < 0.05, "{}", mean(&values));
            let centre = mean(&values);
            let product = |lag: usize| -> f64 {
                values.iter().zip(&values[lag..]).map(|(one, other)| (one - centre) * (other - centre)).sum()
            };
            let correlation = product(1440) / product(0);
            assert!(correlation > 0.7, "seed {seed}: {correlation}");
        }
        let week = LoadSynth::default().values(1, 0);
        assert_eq!(week, LoadSynth::default().values(1, 0));
        assert_ne!(week, LoadSynth::default().values(1, 1));
    }

    #[test]
    fn bursts_are_as_high_and_as_frequent_as_set() {
        let settings = LoadSynth {
            days: 60.0,
            daily_swing: 0.0,
            weekend: 1.0,
            noise: 0.0,
            burst_factor: 4.0,
            burst_share: 0.1,
            ..LoadSynth::default()
        };
        let values = settings.values(3, 0);
        let high = values.iter().copied().fold(0.0, f64::max);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((high / low - 4.0).abs() < 1e-9);
        let share = values.iter().filter(|&&value| value == high).count() as f64 / values.len() as f64;
        assert!((share - 0.1).abs() < 0.02, "{share}");
    }
}
