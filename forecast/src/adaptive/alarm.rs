//! Alarm for changes of regime: Page's cumulative sums of standardised forecast errors.
//!
//! `S+ = max(0, S+ + z - k)` and `S- = max(0, S- - z - k)`; a sum above `h` is an alarm and resets
//! both (Page, "Continuous inspection schemes", Biometrika 41, 1954; `k = 0.5` finds a shift of one
//! standard deviation soonest). Forecast errors are autocorrelated, which would ring the alarm all
//! day, so `z` is the innovation of an error after the one before it: `(e - r e') / s`, with `r`
//! and `s` running estimates (Alwan and Roberts, "Time-series modeling for statistical process
//! control", JBES 6(1), 1988).

use serde::{Deserialize, Serialize};

const SLACK: f64 = 0.5;
const BOUND: f64 = 8.0;
/// Effective number of errors over which the running moments are taken.
const MEMORY: f64 = 500.0;
/// Number of errors before the chart may ring.
const LEARNING: f64 = 30.0;
/// Largest standardised error that counts: a single burst beyond it is no evidence of a regime.
const LARGEST: f64 = 4.0;

/// A direction of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shift {
    /// The load is above its forecast.
    Up,
    /// The load is below its forecast.
    Down,
}

/// Control chart of forecast errors, with the last alarm and the distance to the next one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    up: f64,
    down: f64,
    /// Discounted number of errors; then discounted sums of their squares and of products of
    /// neighbours.
    count: f64,
    squares: f64,
    products: f64,
    before: f64,
    last: Option<(usize, Shift)>,
    rung: usize,
}

impl Alarm {
    /// The step of the last alarm, counted from the first value of the series, and its direction.
    pub fn last(&self) -> Option<(usize, Shift)> {
        self.last
    }

    /// Number of alarms so far.
    pub fn alarms(&self) -> usize {
        self.rung
    }

    /// Larger of the two sums relative to the bound: 0 is calm, 1 is an alarm.
    pub fn level(&self) -> f64 {
        self.up.max(self.down) / BOUND
    }

    /// Takes in the forecast error of step `now`, in a unit that does not change.
    ///
    /// Returns the direction of the change if this error rings the alarm.
    pub(crate) fn observe(&mut self, now: usize, error: f64) -> Option<Shift> {
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        let follows = ratio(self.products, self.squares).clamp(0.0, 0.99);
        let size = ratio(self.squares, self.count).sqrt();
        // Standard deviation of the innovation of a first-order autoregression.
        let spread = size * (1.0 - follows * follows).sqrt();
        let z = ratio(error - follows * self.before, spread).clamp(-LARGEST, LARGEST);
        let ready = self.count >= LEARNING;
        // An error that rings the alarm must not inflate the moments, or the alarm would mute
        // itself.
        let bounded = if ready { error.clamp(-LARGEST * size, LARGEST * size) } else { error };
        let keep = 1.0 - 1.0 / MEMORY;
        self.count = keep * self.count + 1.0;
        self.squares = keep * self.squares + bounded * bounded;
        self.products = keep * self.products + bounded * self.before;
        self.before = bounded;
        if !ready {
            return None;
        }
        self.up = (self.up + z - SLACK).max(0.0);
        self.down = (self.down - z - SLACK).max(0.0);
        let shift = if self.up > BOUND {
            Shift::Up
        } else if self.down > BOUND {
            Shift::Down
        } else {
            return None;
        };
        (self.up, self.down) = (0.0, 0.0);
        self.last = Some((now, shift));
        self.rung += 1;
        Some(shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alarms on alternating errors of size 1, to which `shift` is added from step 400 on.
    fn rings(shift: f64) -> (Option<(usize, Shift)>, usize) {
        let mut alarm = Alarm::default();
        for step in 0..430 {
            let noise = if step % 2 == 0 { 1.0 } else { -1.0 };
            alarm.observe(step, noise + if step < 400 { 0.0 } else { shift });
        }
        (alarm.last(), alarm.alarms())
    }

    #[test]
    fn a_shift_of_two_deviations_rings_after_six_steps_and_noise_never() {
        assert_eq!(rings(0.0), (None, 0));
        // z = 3, 1, 3, 1, 3, ...: sums 2.5, 3.0, 5.5, 6.0, 8.5: above 8 at the fifth.
        assert_eq!(rings(2.0).0.map(|_| ()), Some(()));
        let mut alarm = Alarm::default();
        let first = (0..430).find_map(|step| {
            let noise = if step % 2 == 0 { 1.0 } else { -1.0 };
            let shift = if step < 400 { 0.0 } else { 2.0 };
            alarm.observe(step, noise + shift).map(|shift| (step, shift))
        });
        assert_eq!(first, Some((404, Shift::Up)));
        assert_eq!(rings(-2.0).0.map(|(_, shift)| shift), Some(Shift::Down));
    }

    #[test]
    fn errors_that_follow_each_other_are_no_change() {
        let (mut alarm, mut state, mut error) = (Alarm::default(), 7_u64, 0.0);
        for step in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            error = 0.9 * error + (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
            alarm.observe(step, error);
        }
        assert!(alarm.alarms() <= 5, "{}", alarm.alarms());
    }

    #[test]
    fn nothing_rings_on_errors_that_are_none() {
        let mut alarm = Alarm::default();
        assert!((0..100).all(|step| alarm.observe(step, 0.0).is_none()));
        assert_eq!((alarm.level(), alarm.last()), (0.0, None));
    }
}
