//! The measured bar's split protocol: series, masks, origins, denominators, the conformal layer and
//! the metrics.
#![allow(dead_code, clippy::unwrap_used, reason = "shared by the tests and the bench")]

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

pub const SERIES: [&str; 6] = ["sg_client5", "sg_small", "sg_large", "twitter", "taxi", "dlrm_gpu"];

/// The 21 levels of the bench.
pub fn levels() -> Vec<f64> {
    std::iter::once(0.01).chain((1..=19).map(|i| f64::from(i) * 5.0 / 100.0)).chain([0.99]).collect()
}

pub fn shared(path: &str) -> String {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{} is needed: {error}", path.display()))
}

pub fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

/// One series with its split.
#[derive(Clone)]
pub struct Split {
    pub name: String,
    pub y: Vec<f64>,
    pub observed: Vec<bool>,
    pub filled: Vec<f64>,
    pub season: usize,
    pub week: usize,
    pub horizon: usize,
    pub stride: usize,
    pub cal_start: usize,
    pub test_start: usize,
    pub scale: f64,
    pub step_minutes: i64,
}

impl Split {
    pub fn load(name: &str) -> Self {
        let splits: Value = serde_json::from_str(&shared("reference/forecast/splits.json")).unwrap();
        let split = &splits[name];
        let steps = |key: &str| split[key].as_u64().unwrap() as usize;
        let text = shared(&format!("reference/forecast/{name}.csv"));
        let rows: Vec<Vec<&str>> = rows(&text).collect();
        Self {
            name: name.into(),
            y: rows.iter().map(|row| row[1].parse().unwrap()).collect(),
            observed: rows.iter().map(|row| row[2] == "1").collect(),
            filled: rows.iter().map(|row| row[3].parse().unwrap()).collect(),
            season: steps("season"),
            week: steps("week"),
            horizon: steps("horizon"),
            stride: steps("stride"),
            cal_start: steps("cal_start"),
            test_start: steps("test_start"),
            scale: split["mase_denominator"].as_f64().unwrap(),
            step_minutes: split["step_minutes"].as_i64().unwrap(),
        }
    }

    /// Values with gaps as NaN.
    pub fn masked(&self) -> Vec<f64> {
        self.y.iter().zip(&self.observed).map(|(&y, &seen)| if seen { y } else { f64::NAN }).collect()
    }

    /// Steps in so many hours.
    pub fn hours(&self, hours: usize) -> usize {
        hours * self.season / 24
    }

    /// Forecasts that repeat the last `period` steps, at each origin.
    pub fn repeat(&self, period: usize) -> Vec<Issue> {
        let path = |origin: usize| (0..self.horizon).map(|step| self.filled[origin - period + step % period]).collect();
        self.origins().into_iter().map(|origin| Issue { origin, point: path(origin), quantiles: None }).collect()
    }

    pub fn origins(&self) -> Vec<usize> {
        (self.cal_start..=self.y.len() - self.horizon).step_by(self.stride).collect()
    }
}

/// Forecast of a method at one origin.
#[derive(Clone)]
pub struct Issue {
    pub origin: usize,
    pub point: Vec<f64>,
    /// Quantiles `[step][level]`, where the method has its own.
    pub quantiles: Option<Vec<Vec<f64>>>,
}

#[derive(Debug, Clone, Default)]
pub struct Score {
    pub origins: usize,
    pub mae: f64,
    pub mase: f64,
    pub wape: f64,
    pub rmse: f64,
    pub crps: f64,
    pub wql4: f64,
    /// Triples `(level, pinball x 2 / sum y, coverage)` of the levels .1 .5 .9 .99.
    pub levels: Vec<(f64, f64, f64)>,
}

/// The protocol's conformal layer: offsets by blocks of 7 steps from the residuals of the earlier
/// origins of the last 7 days.
pub fn conformal(split: &Split, issues: &[Issue]) -> Vec<Issue> {
    let levels = levels();
    let blocks = split.horizon.div_ceil(7);
    issues
        .iter()
        .map(|issue| {
            let o = issue.origin;
            let mut pools: Vec<Vec<f64>> = vec![vec![]; blocks];
            for earlier in issues.iter().filter(|e| e.origin < o && e.origin + split.week >= o) {
                for step in 0..split.horizon {
                    let target = earlier.origin + step;
                    if target < o && split.observed[target] {
                        pools[step / 7].push(split.y[target] - earlier.point[step]);
                    }
                }
            }
            let pools: Vec<Vec<f64>> = (0..blocks)
                .map(|block| {
                    let mut pool = pools[block].clone();
                    if pool.len() < 20 {
                        pool = pools[..=block].concat();
                    }
                    pool.sort_by(f64::total_cmp);
                    pool
                })
                .collect();
            let quantiles = (0..split.horizon)
                .map(|step| {
                    levels.iter().map(|&q| (issue.point[step] + quantile(&pools[step / 7], q)).max(0.0)).collect()
                })
                .collect();
            Issue { quantiles: Some(quantiles), ..issue.clone() }
        })
        .collect()
}

pub fn quantile(ascending: &[f64], level: f64) -> f64 {
    if ascending.is_empty() {
        return 0.0;
    }
    let position = level * (ascending.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(ascending.len() - 1);
    ascending[below] + (position - below as f64) * (ascending[above] - ascending[below])
}

/// Scores over the first `steps` steps of the test origins.
pub fn score(split: &Split, issues: &[Issue], steps: usize) -> Score {
    let all = levels();
    let mut s = Score::default();
    let (mut n, mut sum_y) = (0.0, 0.0);
    let mut pinball = vec![0.0; all.len()];
    let mut covered = vec![0.0; all.len()];
    for issue in issues.iter().filter(|issue| issue.origin >= split.test_start) {
        s.origins += 1;
        for step in 0..steps {
            let target = issue.origin + step;
            if !split.observed[target] {
                continue;
            }
            let y = split.y[target];
            let e = y - issue.point[step];
            n += 1.0;
            sum_y += y;
            s.mae += e.abs();
            s.rmse += e * e;
            if let Some(quantiles) = &issue.quantiles {
                for (level, &tau) in all.iter().enumerate() {
                    let q = quantiles[step][level];
                    pinball[level] += (tau * (y - q)).max((tau - 1.0) * (y - q));
                    covered[level] += f64::from(u8::from(y <= q));
                }
            }
        }
    }
    s.wape = s.mae / sum_y;
    s.mae /= n;
    s.mase = s.mae / split.scale;
    s.rmse = (s.rmse / n).sqrt();
    let loss = |level: usize| 2.0 * pinball[level] / sum_y;
    s.crps = (0..all.len()).map(loss).sum::<f64>() / all.len() as f64;
    let four = [0.1, 0.5, 0.9, 0.99].map(|tau| all.iter().position(|&level| level == tau).unwrap());
    s.wql4 = four.iter().map(|&level| loss(level)).sum::<f64>() / 4.0;
    s.levels = four.iter().map(|&level| (all[level], loss(level), covered[level] / n)).collect();
    s
}

/// A published row: `(series, method, subset, band)`.
pub fn published(series: &str, method: &str, band: &str) -> Option<Vec<f64>> {
    let text = shared("reference/forecast/results.csv");
    rows(&text)
        .find(|row| row[..4] == [series, method, "all", band])
        .map(|row| row[5..20].iter().map(|cell| cell.parse().unwrap_or(f64::NAN)).collect())
}
