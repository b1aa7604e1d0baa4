//! Windows of the past at this time of the day: scenarios that ask no forecaster.
//!
//! A forecaster follows a load that breaks off, and its errors are small while the load is gone. What the load did at
//! this time of the days before says that it may come back.

use serde::{Deserialize, Serialize};

use super::Scenarios;
use super::steps::MeasuredSteps;

/// Days of windows that are kept, and half-life of their weight in days.
const KEEP_DAYS: usize = 28;
const HALF_LIFE_DAYS: f64 = 3.0;
/// Width in hours of the weight by the time of the day, and hours beyond which a window has none.
const CLOCK_HOURS: f64 = 1.0;
const CLOCK_REACH: f64 = 3.0;
/// Windows of a day from which scenarios are made, at most.
const WINDOWS_A_DAY: usize = 288;

/// Loads of the past days.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PastWindows {
    /// Steps of a window, at least 1, and of a day.
    width: usize,
    day: usize,
    /// Loads up to the step before the present one.
    loads: MeasuredSteps,
}

impl PastWindows {
    /// No window yet: windows of `width` steps, with `day` steps a day.
    pub fn new(width: usize, day: usize) -> Self {
        Self { width: width.max(1), day: day.max(1), loads: MeasuredSteps::default() }
    }

    /// Takes in the load of the present step, `None` for a gap, and goes to the next step.
    pub fn learn(&mut self, load: Option<f64>) {
        let (loads, most) = (&mut self.loads.0, KEEP_DAYS * self.day + self.width);
        loads.push(load.unwrap_or(f64::NAN));
        // Old loads go many at a time, because each time moves all others.
        if loads.len() > most + self.day {
            loads.drain(..loads.len() - most);
        }
    }

    /// Loads of the window that began `age` steps ago, NaN for gaps; empty where it is not complete or not kept.
    pub fn window(&self, age: usize) -> Vec<f64> {
        self.kept(age).unwrap_or_default().to_vec()
    }

    fn kept(&self, age: usize) -> Option<&[f64]> {
        let start = self.loads.0.len().checked_sub(age)?;
        self.loads.0.get(start..start + self.width)
    }

    /// Complete windows that began near this time of a day, with weights; `None` where there is none.
    pub fn scenarios(&self) -> Option<Scenarios> {
        let stride = (self.day / WINDOWS_A_DAY).max(1);
        let (mut loads, mut weights) = (Vec::new(), Vec::new());
        for age in (self.width..=KEEP_DAYS * self.day + self.width).filter(|age| age.is_multiple_of(stride)) {
            let apart = (age % self.day).min(self.day - age % self.day) as f64 * 24.0 / self.day as f64;
            if apart > CLOCK_REACH {
                continue;
            }
            if let Some(window) = self.kept(age) {
                let newer = 0.5_f64.powf(age as f64 / (HALF_LIFE_DAYS * self.day as f64));
                weights.push(newer * (-0.5 * (apart / CLOCK_HOURS).powi(2)).exp());
                loads.extend(window);
            }
        }
        (!weights.is_empty()).then(|| Scenarios::new(self.width, loads, weights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Statistic;

    #[test]
    fn windows_are_those_of_this_hour_of_the_days_before() {
        let mut past = PastWindows::new(2, 24);
        (0..72).for_each(|step| past.learn(Some(f64::from(step % 24))));
        assert_eq!(past.window(24), [0.0, 1.0]);
        assert!(past.window(1).is_empty() && past.window(73).is_empty());
        // It is midnight. The largest load of two hours was 1 in windows that began at midnight, and at most 4 or 23 in
        // those that began three hours later or earlier.
        let largest = past.scenarios().unwrap().distribution(&(0..2), Statistic::Largest).unwrap();
        let inner = [0.9, 0.65].map(|tail| largest.exceeded_with(tail));
        assert!(inner.iter().all(|load| (1.0..=2.0).contains(load)), "{inner:?}");
        assert!(PastWindows::new(2, 24).scenarios().is_none());
    }
}
