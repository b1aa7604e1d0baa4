//! Largest value of a quantity over a window of time that ends now.

use std::collections::VecDeque;

use goodput_env::time::SimTime;

/// Values of the window that may still become its largest: descending, each with the time at which it was last seen.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentPeak {
    values: VecDeque<(u64, SimTime)>,
}

impl RecentPeak {
    /// A quantity that had this value until `now`.
    pub(super) fn from(value: u64, now: SimTime) -> Self {
        Self { values: VecDeque::from([(value, now)]) }
    }

    /// The quantity has this value from `now` on. A value counts for `window` after it was last held.
    pub(super) fn observe(&mut self, value: u64, now: SimTime, window: SimTime) -> u64 {
        // The value before held until now.
        if let Some(last) = self.values.back_mut() {
            last.1 = now;
        }
        while self.values.back().is_some_and(|(smaller, _)| *smaller <= value) {
            self.values.pop_back();
        }
        self.values.push_back((value, now));
        while self.values.len() > 1 && self.values.front().is_some_and(|(_, held)| *held + window <= now) {
            self.values.pop_front();
        }
        self.values.front().map_or(value, |(largest, _)| *largest)
    }

    /// Time at which the largest value leaves the window, unless the quantity changes before that; `None` where the
    /// present value is the largest.
    pub(super) fn falls_at(&self, window: SimTime) -> Option<SimTime> {
        let (_, held) = self.values.front().filter(|_| self.values.len() > 1)?;
        Some(*held + window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::seed::{Stream, rng};
    use rand::RngExt;

    #[test]
    fn the_peak_is_the_largest_value_of_the_window() {
        let mut draws = rng(1, Stream::Workload);
        let window = SimTime::from_secs(20);
        let (mut peak, mut steps) = (RecentPeak::from(5, SimTime::ZERO), vec![(0, 5)]);
        let mut now = 0;
        for _ in 0..2000 {
            now += draws.random_range(1..12);
            let value = draws.random_range(0..10);
            let found = peak.observe(value, SimTime::from_secs(now), window);
            steps.push((now, value));
            // A step holds until the next one begins.
            let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([i64::MAX]);
            let within = steps.iter().zip(ends).filter(|(_, end)| *end > now - 20);
            assert_eq!(Some(found), within.map(|((_, value), _)| *value).max());
            assert_eq!(peak.falls_at(window).is_none(), found == value);
        }
    }
}
