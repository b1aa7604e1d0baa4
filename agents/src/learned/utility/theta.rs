//! The numbers of a utility, by name.

use sha2::{Digest, Sha256};

use super::features::FEATURES;

/// Parameters that are no weight of a feature: name, Pollux's value, and the first step of a search.
const SHAPE: [(&str, f64, f64); 9] = [
    // Exponent of the speed, and how it moves with the load.
    ("exponent", -1.0, 0.5),
    ("exponent_by_pressure", 0.0, 0.3),
    // Logarithm of what is added to the speed, so that a job without accelerators is worth something.
    ("log_floor", -3.0, 1.0),
    // Logarithm of the horizon over which a restart pays, seconds; by age and by the time the job may have left.
    ("log_horizon", 0.0, 1.0),
    ("horizon_by_age", 1.0, 0.3),
    ("horizon_by_remaining", 0.0, 0.3),
    // What is left of a job by its own progress alone: so many times what it did, and so many accelerator seconds at first.
    ("log_more", 0.0, 0.5),
    ("log_first_secs", 6.0, 1.0),
    // Completed jobs of the same model that count as much as the job's own progress.
    ("log_doubt", 0.0, 1.0),
];

/// Number of parameters.
pub const PARAMETERS: usize = FEATURES.len() + SHAPE.len();

/// The parameters: weights of the features, then the shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Theta {
    values: [f64; PARAMETERS],
}

impl Theta {
    /// From numbers in the order of [`Self::names`]; `None` where there are not [`PARAMETERS`] finite ones.
    pub fn new(values: &[f64]) -> Option<Self> {
        let values: [f64; PARAMETERS] = values.try_into().ok()?;
        values.iter().all(|value| value.is_finite()).then_some(Self { values })
    }

    /// The objective of Pollux: where searches start.
    pub fn pollux() -> Self {
        let weight = |name: &&str| if **name == *"log_speedup_at_fair_share" { 1.0 } else { 0.0 };
        let mut values = [0.0; PARAMETERS];
        let all = FEATURES.iter().map(weight).chain(SHAPE.iter().map(|shape| shape.1));
        values.iter_mut().zip(all).for_each(|(value, start)| *value = start);
        Self { values }
    }

    /// Names, in order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FEATURES.iter().copied().chain(SHAPE.iter().map(|shape| shape.0))
    }

    /// How far a search first looks in each direction.
    pub fn scales() -> Vec<f64> {
        FEATURES.iter().map(|_| 0.3).chain(SHAPE.iter().map(|shape| shape.2)).collect()
    }

    /// The numbers.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// SHA-256, in hexadecimal, of all that gives meaning to the numbers.
    pub fn schema_hash() -> String {
        let text = format!("utility 1;{}", Self::names().collect::<Vec<_>>().join(","));
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Weights of the features.
    pub(super) fn weights(&self) -> &[f64] {
        &self.values[..FEATURES.len()]
    }

    fn shape(&self, at: usize) -> f64 {
        self.values[FEATURES.len() + at]
    }

    /// Exponent of the speed under `pressure`; never quite 0, where the power has no inverse.
    pub(super) fn exponent(&self, pressure: f64) -> f64 {
        let exponent = (self.shape(0) + self.shape(1) * pressure).clamp(-3.0, 1.0);
        if exponent.abs() < 1e-3 { 1e-3 } else { exponent }
    }

    pub(super) fn floor(&self) -> f64 {
        self.shape(2).clamp(-9.0, 3.0).exp()
    }

    /// Seconds over which a restart pays for a job of this age that may have `remaining` seconds left at its present speed.
    pub(super) fn horizon_secs(&self, age: f64, remaining: f64) -> f64 {
        let log = self.shape(3) + self.shape(4) * (age + 1.0).ln() + self.shape(5) * (remaining + 1.0).ln();
        log.clamp(-20.0, 20.0).exp()
    }

    pub(super) fn more(&self) -> f64 {
        self.shape(6).clamp(-5.0, 5.0).exp()
    }

    pub(super) fn first_secs(&self) -> f64 {
        self.shape(7).clamp(0.0, 15.0).exp()
    }

    pub(super) fn doubt(&self) -> f64 {
        self.shape(8).clamp(-5.0, 5.0).exp()
    }
}
