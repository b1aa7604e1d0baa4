//! ARIMA of automatic order.
//!
//! The number of differences is the least at which the KPSS test keeps stationarity at 5 % (Kwiatkowski, Phillips,
//! Schmidt, Shin, Journal of Econometrics 54, 1992). The orders up to 5 are searched stepwise by Akaike's criterion
//! (Hyndman and Khandakar, "Automatic time series forecasting", Journal of Statistical Software 27(3), 2008, section
//! 3.2). Coefficients are those of two regressions (Hannan and Rissanen, "Recursive estimation of mixed
//! autoregressive-moving average order", Biometrika 69(1), 1982): a long autoregression gives the errors, and a second
//! regression is on past values and past errors. Orders at which the errors of the model run away are refused.

use crate::linalg::{dot, solve_spd};

/// Values on which the model is estimated, at most: the newest.
const NEWEST: usize = 2_000;
const MOST_DIFFERENCES: usize = 2;
const MOST_ORDER: usize = 5;
/// Critical value of the KPSS statistic at 5 %.
const CRITICAL: f64 = 0.463;
/// Order of the long autoregression.
const LONG: usize = 20;

/// Estimated model with its state.
#[derive(Debug, Clone)]
pub(in crate::worth) struct Arima {
    differences: usize,
    mean: f64,
    /// Coefficients of past values and of past errors.
    ar: Vec<f64>,
    ma: Vec<f64>,
    /// Newest load, then its differences of each order below that of the model.
    lasts: Vec<f64>,
    /// Newest centred differences and errors, newest first.
    values: Vec<f64>,
    errors: Vec<f64>,
}

impl Arima {
    /// Model of the newest of `values`.
    pub fn fit(values: &[f64]) -> Self {
        let values = &values[values.len().saturating_sub(NEWEST)..];
        let mut series = values.to_vec();
        let mut differences = 0;
        while differences < MOST_DIFFERENCES && series.len() > 10 && kpss(&series) > CRITICAL {
            series = series.windows(2).map(|pair| pair[1] - pair[0]).collect();
            differences += 1;
        }
        // A constant beside two differences would be a trend of the trend.
        let mean =
            if differences < 2 && !series.is_empty() { series.iter().sum::<f64>() / series.len() as f64 } else { 0.0 };
        series.iter_mut().for_each(|value| *value -= mean);
        let (ar, ma) = search(&series);
        let mut model = Self {
            differences,
            mean,
            values: vec![0.0; ar.len()],
            errors: vec![0.0; ma.len()],
            ar,
            ma,
            lasts: Vec::new(),
        };
        values.iter().for_each(|&value| _ = model.next(value));
        model
    }

    /// Takes in a value, and returns what the next one is expected to be.
    pub fn next(&mut self, value: f64) -> f64 {
        let mut rest = value;
        if self.lasts.len() < self.differences {
            // The first values only begin the differences.
            for last in &mut self.lasts {
                (*last, rest) = (rest, rest - *last);
            }
            self.lasts.push(rest);
            return value;
        }
        for last in &mut self.lasts {
            (*last, rest) = (rest, rest - *last);
        }
        let centred = rest - self.mean;
        let error = centred - self.centred();
        push(&mut self.values, centred);
        push(&mut self.errors, error);
        self.lasts.iter().sum::<f64>() + self.mean + self.centred()
    }

    /// Next centred difference, as expected.
    fn centred(&self) -> f64 {
        dot(&self.ar, &self.values) + dot(&self.ma, &self.errors)
    }
}

fn push(newest: &mut [f64], value: f64) {
    if let Some(last) = newest.last_mut() {
        *last = value;
        newest.rotate_right(1);
    }
}

/// KPSS statistic for a level, with `3 sqrt(n) / 13` lags of Bartlett's window.
fn kpss(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let rest: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let lags = (3.0 * n.sqrt() / 13.0) as usize;
    let covariance = |lag: usize| rest.iter().zip(&rest[lag..]).map(|(a, b)| a * b).sum::<f64>() / n;
    let weighted = (1..=lags).map(|lag| 2.0 * (1.0 - lag as f64 / (lags as f64 + 1.0)) * covariance(lag));
    let long_run = covariance(0) + weighted.sum::<f64>();
    let mut sum = 0.0;
    let squares: f64 = rest
        .iter()
        .map(|value| {
            sum += value;
            sum * sum
        })
        .sum();
    if long_run > 0.0 { squares / (n * n * long_run) } else { 0.0 }
}

/// Coefficients of the best orders by a stepwise search.
fn search(centred: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let errors = long_errors(centred);
    let mut tried: Vec<((usize, usize), f64, Vec<f64>)> = Vec::new();
    let mut best = 0;
    let mut round = vec![(2, 2), (0, 0), (1, 0), (0, 1)];
    loop {
        let before = tried.len();
        for (p, q) in round {
            let known = tried.iter().any(|(orders, ..)| *orders == (p, q));
            if !known && p <= MOST_ORDER && q <= MOST_ORDER && centred.len() > 3 * LONG {
                let (criterion, coefficients) = estimate(centred, &errors, p, q);
                tried.push(((p, q), criterion, coefficients));
            }
        }
        let least = (0..tried.len()).min_by(|&a, &b| tried[a].1.total_cmp(&tried[b].1));
        let Some(least) = least else { return (Vec::new(), Vec::new()) };
        if before > 0 && (least == best || tried.len() == before) {
            let ((p, _), _, mut ar) = tried.swap_remove(least);
            let ma = ar.split_off(p);
            return (ar, ma);
        }
        best = least;
        let (p, q) = tried[best].0;
        let (fewer_p, fewer_q) = (p.saturating_sub(1), q.saturating_sub(1));
        round = vec![(p + 1, q), (fewer_p, q), (p, q + 1), (p, fewer_q), (p + 1, q + 1), (fewer_p, fewer_q)];
    }
}

/// Errors of the long autoregression; 0 for the values that only begin it.
fn long_errors(centred: &[f64]) -> Vec<f64> {
    let rows = lagged(centred, LONG, &[], 0, LONG);
    let coefficients = regress(&rows, &centred[LONG.min(centred.len())..], LONG);
    let errors = rows.chunks_exact(LONG).zip(&centred[LONG.min(centred.len())..]);
    std::iter::repeat_n(0.0, LONG.min(centred.len()))
        .chain(errors.map(|(row, value)| value - dot(row, &coefficients)))
        .collect()
}

/// Rows `[p past values, q past errors]` of every step from `from` on, newest first.
fn lagged(values: &[f64], p: usize, errors: &[f64], q: usize, from: usize) -> Vec<f64> {
    let row = |step: usize| {
        let past = (1..=p).map(move |lag| values[step - lag]);
        past.chain((1..=q).map(move |lag| errors[step - lag]))
    };
    (from..values.len()).flat_map(row).collect()
}

/// Least squares of `targets` on rows of `width`.
fn regress(rows: &[f64], targets: &[f64], width: usize) -> Vec<f64> {
    let (mut gram, mut sides) = (vec![0.0; width * width], vec![0.0; width]);
    for (row, target) in rows.chunks_exact(width.max(1)).zip(targets) {
        for i in 0..width {
            for j in 0..=i {
                gram[i * width + j] += row[i] * row[j];
            }
            sides[i] += row[i] * target;
        }
    }
    solve_spd(&mut gram, width, &mut sides, 1);
    sides
}

/// Akaike's criterion and the coefficients of the orders `(p, q)`. The criterion is infinite where the errors of the
/// model run away.
fn estimate(centred: &[f64], long: &[f64], p: usize, q: usize) -> (f64, Vec<f64>) {
    let from = LONG + MOST_ORDER;
    let coefficients = regress(&lagged(centred, p, long, q, from), &centred[from..], p + q);
    let (ar, ma) = coefficients.split_at(p);
    let mut errors = vec![0.0; centred.len()];
    for step in from..centred.len() {
        let past: f64 = ar.iter().enumerate().map(|(lag, factor)| factor * centred[step - lag - 1]).sum();
        let noise: f64 = ma.iter().enumerate().map(|(lag, factor)| factor * errors[step - lag - 1]).sum();
        errors[step] = centred[step] - past - noise;
    }
    let n = (centred.len() - from) as f64;
    let variance = errors.iter().map(|error| error * error).sum::<f64>() / n;
    let spread = centred.iter().map(|value| value * value).sum::<f64>() / centred.len() as f64;
    // A model with errors that run away explains less than nothing.
    let criterion = n * variance.max(f64::MIN_POSITIVE).ln() + 2.0 * (p + q + 2) as f64;
    let runs_away = !(variance <= 4.0 * spread || spread == 0.0);
    (if runs_away { f64::INFINITY } else { criterion }, coefficients)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(index: u64) -> f64 {
        let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64 - 0.5
    }

    #[test]
    fn an_autoregression_is_found_again() {
        let mut values = vec![0.0];
        for step in 1..2_000 {
            values.push(0.8 * values[step - 1] + noise(step as u64));
        }
        let series: Vec<f64> = values.iter().map(|value| 10.0 + value).collect();
        let (_, coefficients) = estimate(&values, &long_errors(&values), 1, 0);
        assert!((coefficients[0] - 0.8).abs() < 0.03, "{coefficients:?}");
        let mut model = Arima::fit(&series);
        assert_eq!(model.differences, 0);
        let last = series[1_999];
        let next = model.next(last);
        assert!((next - (10.0 + 0.8 * (last - 10.0))).abs() < 0.15, "{next}");
    }

    #[test]
    fn a_walk_is_differenced_a_line_continued_and_a_moving_average_found_again() {
        let line: Vec<f64> = (0..300).map(|step| 2.0 * f64::from(step)).collect();
        let mut model = Arima::fit(&line);
        assert_eq!(model.differences, 1);
        assert!((model.next(600.0) - 602.0).abs() < 1e-9);
        let mut sum = 0.0;
        let moving: Vec<f64> = (1..3_000).map(|step| noise(step) + 0.5 * noise(step - 1)).collect();
        let (_, coefficients) = estimate(&moving, &long_errors(&moving), 0, 1);
        assert!((coefficients[0] - 0.5).abs() < 0.06, "{coefficients:?}");
        let walk: Vec<f64> = (0..500)
            .map(|step| {
                sum += noise(step);
                sum
            })
            .collect();
        assert_eq!(Arima::fit(&walk).differences, 1);
    }
}
