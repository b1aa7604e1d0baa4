//! MSTL: seasons of a day and of a week by repeated STL, repeated naively; the rest by damped exponential smoothing.
//!
//! `y = S_day + S_week + T + R`; each season is found by STL in what the others leave, twice over, the shorter one first, smoothed over 11 and 15 cycles:
//! Bandara, Hyndman, Bergmeir, "MSTL: a seasonal-trend decomposition algorithm for time series with multiple seasonal patterns", arXiv:2107.13462, 2021.
//! The path is `S[T+h-m]` of each season plus that of `T + R`. `push` is O(1): the seasons stay as they were when they were last estimated.

mod damped;
mod loess;
mod stl;

use serde::{Deserialize, Serialize};

use self::damped::Damped;
use self::stl::Stl;
use super::Path;
use crate::history::History;

/// Weeks of values that are decomposed.
const WINDOW_WEEKS: usize = 4;
/// Times that each season is found in what the others leave.
const ROUNDS: usize = 2;
/// Cycles without which there is no season: a line through two is those two, noise included.
const MIN_CYCLES: usize = 3;
/// Cycles that the first season is smoothed over, and how many more each further one.
const CYCLES: (usize, usize) = (11, 4);

/// Seasons, trend and remainder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mstl {
    /// The last cycle of each season, by phase.
    seasons: Vec<Vec<f64>>,
    rest: Option<Damped>,
}

impl Mstl {
    pub fn new() -> Self {
        Self { seasons: vec![], rest: None }
    }

    fn season(&self, index: usize) -> f64 {
        self.seasons.iter().map(|season| season[index % season.len()]).sum()
    }
}

impl Path for Mstl {
    fn refit(&mut self, past: &History) {
        let y = past.values();
        let y = &y[y.len().saturating_sub(WINDOW_WEEKS * past.week())..];
        let mut periods = vec![past.season(), past.week()];
        periods.dedup();
        periods.retain(|&period| period > 1 && y.len() >= MIN_CYCLES * period);
        if y.is_empty() {
            return;
        }
        let parts = decompose(y, &periods);
        let mut rest = y.to_vec();
        for part in &parts {
            for (rest, season) in rest.iter_mut().zip(part) {
                *rest -= season;
            }
        }
        let first = past.len() - y.len();
        let last_cycle = |(part, &period): (&Vec<f64>, &usize)| {
            let mut cycle = vec![0.0; period];
            for (index, &value) in part.iter().enumerate().skip(y.len() - period) {
                cycle[(first + index) % period] = value;
            }
            cycle
        };
        self.seasons = parts.iter().zip(&periods).map(last_cycle).collect();
        self.rest = Some(Damped::fit(&rest));
    }

    fn push(&mut self, past: &History) {
        let value = past.lag(1) - self.season(past.len().saturating_sub(1));
        if let Some(rest) = &mut self.rest {
            rest.step(value);
        }
    }

    fn path(&self, past: &History, out: &mut [f64]) {
        let Some(rest) = &self.rest else { return out.fill(past.lag(1)) };
        for (step, out) in out.iter_mut().enumerate() {
            *out = self.season(past.len() + step);
        }
        rest.add_path(out);
    }
}

/// The season of each of `periods`, ascending, in `y`.
fn decompose(y: &[f64], periods: &[usize]) -> Vec<Vec<f64>> {
    let mut parts = vec![vec![0.0; y.len()]; periods.len()];
    let mut rest = y.to_vec();
    let mut trend = vec![0.0; y.len()];
    for _ in 0..if periods.len() > 1 { ROUNDS } else { 1 } {
        for (index, (part, &period)) in parts.iter_mut().zip(periods).enumerate() {
            for (rest, season) in rest.iter_mut().zip(&*part) {
                *rest += season;
            }
            trend.fill(0.0);
            Stl::new(period, CYCLES.0 + index * CYCLES.1).decompose(&rest, part, &mut trend);
            for (rest, season) in rest.iter_mut().zip(&*part) {
                *rest -= season;
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    fn wave(index: usize, period: usize) -> f64 {
        (TAU * index as f64 / period as f64).sin()
    }

    #[test]
    fn two_seasons_are_told_apart_and_go_on() {
        let at = |index: usize| 100.0 + 10.0 * wave(index, 12) + 4.0 * wave(index, 84);
        let mut past = History::new(12, 84, 2_000);
        for index in 0..400 {
            past.push(at(index));
        }
        let mut model = Mstl::new();
        model.refit(&past);
        for index in 400..430 {
            past.push(at(index));
            model.push(&past);
        }
        let mut out = vec![0.0; 24];
        model.path(&past, &mut out);
        for (step, out) in out.iter().enumerate() {
            assert!((out - at(430 + step)).abs() < 0.5, "{step}: {out} {}", at(430 + step));
        }
    }
}
