//! Closed-form NLinear on ETTh1: the standard 12/4/4-month split, z-scored by the training part,
//! all seven channels, every test window scored.
#![expect(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

use std::fs;

use goodput_forecast::LinearMap;

const TRAIN: usize = 12 * 30 * 24;
const MONTHS4: usize = 4 * 30 * 24;

fn channels() -> Vec<Vec<f64>> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/load/ETTh1.csv")).unwrap();
    let rows: Vec<Vec<f64>> =
        text.lines().skip(1).map(|line| line.split(',').skip(1).map(|cell| cell.parse().unwrap()).collect()).collect();
    let channel = |column: usize| {
        let y: Vec<f64> = rows.iter().map(|row| row[column]).collect();
        let mean = y[..TRAIN].iter().sum::<f64>() / TRAIN as f64;
        let variance = y[..TRAIN].iter().map(|y| (y - mean).powi(2)).sum::<f64>() / TRAIN as f64;
        y.iter().map(|y| (y - mean) / variance.sqrt()).collect()
    };
    (0..7).map(channel).collect()
}

/// Mean squared and absolute error over all windows with targets in `from..to`.
fn errors(
    map: &LinearMap,
    channels: &[Vec<f64>],
    lookback: usize,
    horizon: usize,
    from: usize,
    to: usize,
) -> (f64, f64) {
    let (mut squares, mut sizes, mut count) = (0.0, 0.0, 0.0);
    let mut out = vec![0.0; horizon];
    for y in channels {
        for origin in from..=to - horizon {
            map.apply(&y[origin - lookback..origin], &mut out);
            for (f, y) in out.iter().zip(&y[origin..]) {
                squares += (y - f).powi(2);
                sizes += (y - f).abs();
            }
            count += horizon as f64;
        }
    }
    (squares / count, sizes / count)
}

/// The penalty is chosen on the validation months and the map fitted on the training months.
fn check(lookback: usize, horizon: usize, mse: f64, mae: f64) {
    let channels = channels();
    let train: Vec<&[f64]> = channels.iter().map(|y| &y[..TRAIN]).collect();
    let maps = LinearMap::fit(&train, lookback, horizon, |_| vec![1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    let validation = |map: &&LinearMap| errors(map, &channels, lookback, horizon, TRAIN, TRAIN + MONTHS4).0;
    let best = maps.iter().min_by(|a, b| validation(a).total_cmp(&validation(b))).unwrap();
    let ours = errors(best, &channels, lookback, horizon, TRAIN + MONTHS4, TRAIN + 2 * MONTHS4);
    assert!((ours.0 - mse).abs() <= 1e-3 && (ours.1 - mae).abs() <= 1e-3, "L={lookback} H={horizon}: {ours:?}");
}

#[test]
fn a_day_ahead_from_four_days() {
    check(96, 96, 0.3831, 0.3920);
    check(96, 192, 0.4339, 0.4215);
}

#[test]
fn a_day_ahead_from_two_weeks() {
    check(336, 96, 0.3696, 0.3913);
    check(336, 192, 0.4029, 0.4110);
}

#[test]
#[ignore = "slow: the far horizons of the table"]
fn weeks_ahead() {
    check(96, 336, 0.4754, 0.4429);
    check(96, 720, 0.4694, 0.4618);
    check(336, 336, 0.4257, 0.4268);
    check(336, 720, 0.4299, 0.4497);
}
