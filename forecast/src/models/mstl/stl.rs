//! STL: a season and a trend by loess, each from what the other leaves.
//!
//! Cleveland, Cleveland, McRae, Terpenning, "STL: a seasonal-trend decomposition procedure based on loess", Journal of Official Statistics 6(1), 1990, section 2: the inner
//! loop, without the robustness weights of the outer one. Each phase of the season is smoothed over the cycles; what is slow in that (two moving averages of a
//! season, one of three, and a loess) is no season and is taken out; the trend is the loess of the rest.

use super::loess::Loess;

/// Widths of the three smoothers, and passes of the inner loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stl {
    pub period: usize,
    pub season: Loess,
    pub trend: Loess,
    pub low_pass: Loess,
    pub passes: usize,
}

impl Stl {
    /// The paper's widths for a season of `period` steps smoothed over `cycles` (odd): the trend over the next odd number from `1.5 period / (1 - 1.5 / cycles)` on.
    pub fn new(period: usize, cycles: usize) -> Self {
        let trend = (1.5 * period as f64 / (1.0 - 1.5 / cycles as f64)).ceil() as usize | 1;
        Self {
            period,
            season: Loess::jumping(cycles),
            trend: Loess::jumping(trend),
            low_pass: Loess::jumping((period + 1) | 1),
            passes: 2,
        }
    }

    /// Replaces `season` and `trend`, which it starts from, by those of `y`; all are as long, at least two periods.
    pub fn decompose(&self, y: &[f64], season: &mut [f64], trend: &mut [f64]) {
        let (n, m) = (y.len(), self.period);
        let mut cycles = vec![0.0; n + 2 * m];
        let (mut slow, mut scratch) = (vec![0.0; n + 2 * m], vec![0.0; n + 2 * m]);
        for _ in 0..self.passes {
            for ((rest, y), trend) in scratch.iter_mut().zip(y).zip(&*trend) {
                *rest = y - trend;
            }
            self.smooth_phases(&scratch[..n], &mut cycles);
            let len = moving_average(&cycles, m, &mut slow);
            let len = moving_average(&slow[..len], m, &mut scratch);
            let len = moving_average(&scratch[..len], 3, &mut slow);
            self.low_pass.smooth(&slow[..len], &mut scratch[..len]);
            for (i, season) in season.iter_mut().enumerate() {
                *season = cycles[m + i] - scratch[i];
                slow[i] = y[i] - *season;
            }
            self.trend.smooth(&slow[..n], trend);
        }
    }

    /// Each phase smoothed over the cycles, with one cycle more at either end.
    fn smooth_phases(&self, y: &[f64], out: &mut [f64]) {
        let m = self.period;
        let (mut values, mut smooth) = (Vec::new(), Vec::new());
        for phase in 0..m {
            values.clear();
            values.extend(y[phase..].iter().step_by(m));
            smooth.resize(values.len(), 0.0);
            self.season.smooth(&values, &mut smooth);
            let (before, after) = self.season.beyond(&values);
            out[phase] = before;
            for (cycle, &value) in smooth.iter().chain([&after]).enumerate() {
                out[(cycle + 1) * m + phase] = value;
            }
        }
    }
}

/// Means of `width` neighbours into `out`; gives how many there are.
fn moving_average(y: &[f64], width: usize, out: &mut [f64]) -> usize {
    let len = y.len() + 1 - width;
    let mut sum: f64 = y[..width].iter().sum();
    out[0] = sum / width as f64;
    for i in 1..len {
        sum += y[i + width - 1] - y[i - 1];
        out[i] = sum / width as f64;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/stl_reference.py` made the table with statsmodels 0.15.0: value, then season and trend without jumps, then with.
    #[test]
    fn season_and_trend_are_those_of_statsmodels() {
        let rows: Vec<Vec<f64>> = include_str!("stl_reference.csv")
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
            .collect();
        let column = |index: usize| rows.iter().map(|row| row[index]).collect::<Vec<f64>>();
        let every = |loess: Loess| Loess { jump: 1, ..loess };
        let jumping = Stl { passes: 5, ..Stl::new(12, 7) };
        let plain = Stl {
            season: every(jumping.season),
            trend: every(jumping.trend),
            low_pass: every(jumping.low_pass),
            ..jumping
        };
        for (stl, first) in [(plain, 1), (jumping, 3)] {
            let y = column(0);
            let (mut season, mut trend) = (vec![0.0; y.len()], vec![0.0; y.len()]);
            stl.decompose(&y, &mut season, &mut trend);
            for (ours, theirs) in [(season, column(first)), (trend, column(first + 1))] {
                let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(worst < 1e-6, "{worst} with columns from {first}");
            }
        }
    }
}
