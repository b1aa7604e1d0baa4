//! Members of the default forecaster on the benchmark: what a member brings, with intervals:
//! `cargo run --release --workspace --example members`; with bundles of `goodput train` behind it, of these in place of
//! the net that ships.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints tables of reference data")]

#[path = "../tests/bench/ours.rs"]
mod ours;
#[path = "../tests/bench/protocol.rs"]
mod protocol;

use goodput_forecast::neural::{NeuralNet, Spec};
use goodput_forecast::{Adaptive, Model, block_bootstrap};
use ours::{geometric_mean, issues};
use protocol::{Issue, SERIES, Score, Split, conformal, score};
use serde_json::Value;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../agents/zoo/load/forecaster.bundle");

/// Net of a bundle, which is a safetensors file: the length of a header in JSON, the header, and the numbers.
fn net(bytes: &[u8]) -> NeuralNet {
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (header, numbers) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let header: Value = serde_json::from_slice(header).unwrap();
    let manifest: Value = serde_json::from_str(header["__metadata__"]["goodput.forecaster"].as_str().unwrap()).unwrap();
    let spec: Spec = serde_json::from_value(manifest["spec"].clone()).unwrap();
    let tensor = |(name, _): (String, [usize; 2])| {
        let at = |end: usize| header[&name]["data_offsets"][end].as_u64().unwrap() as usize;
        let values = numbers[at(0)..at(1)].as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        values.collect::<Vec<f32>>()
    };
    let weights = NeuralNet::shapes(&spec).unwrap().into_iter().flat_map(tensor).collect();
    let number = |key: &str| manifest[key].as_f64().unwrap();
    NeuralNet::from_parts(spec, number("mean"), number("spread"), weights).unwrap()
}

fn main() {
    let splits: Vec<Split> = SERIES.iter().map(|name| Split::load(name)).collect();
    let nets: Vec<NeuralNet> = std::env::args()
        .skip(1)
        .chain(std::env::args().len().eq(&1).then(|| SHIPPED.to_owned()))
        .map(|path| net(&std::fs::read(path).unwrap()))
        .collect();
    let default = Model::DEFAULT.to_vec();
    let boosted = [default.clone(), vec![Model::Boosted]].concat();
    let mut settings: Vec<(String, Vec<Model>, Vec<NeuralNet>)> =
        vec![("default".into(), default.clone(), vec![]), ("default and boosted".into(), boosted.clone(), vec![])];
    for (at, net) in nets.iter().enumerate() {
        settings.push((format!("net {at} alone"), vec![], vec![net.clone()]));
        settings.push((format!("default and net {at}"), default.clone(), vec![net.clone()]));
        settings.push((format!("default, boosted and net {at}"), boosted.clone(), vec![net.clone()]));
    }
    if nets.len() > 1 {
        settings.push(("default and all nets".into(), default, nets.clone()));
        settings.push(("default, boosted and all nets".into(), boosted, nets));
    }
    let naive: Vec<Vec<Issue>> = splits.iter().map(|split| conformal(split, &split.repeat(split.season))).collect();
    let made: Vec<(String, Vec<Vec<Issue>>)> = settings
        .into_iter()
        .map(|(name, models, nets)| {
            let of = |split: &Split| {
                let nets = nets.iter().map(|net| net.clone().for_day(split.season).unwrap()).collect();
                issues(split, &Adaptive { models: models.clone(), nets, ..Adaptive::daily(split.season) })
            };
            (name, splits.iter().map(of).collect())
        })
        .collect();
    type Table = (&'static str, usize, fn(&Score) -> f64);
    let tables: [Table; 5] = [
        ("MASE, 24 h", 24, |score| score.mase),
        ("MASE, first hour", 1, |score| score.mase),
        ("CRPS, 24 h", 24, |score| score.crps),
        ("CRPS, first hour", 1, |score| score.crps),
        ("coverage of 0.9, 24 h", 24, |score| score.levels[2].2),
    ];
    for (title, hours, of) in tables {
        println!(
            "\n### {title}\n\n| | {} | mean relative to the daily naive (first five) |\n|---|---|---|---|---|---|---|---|",
            SERIES.join(" | ")
        );
        let row = |issues: &[Vec<Issue>]| -> Vec<f64> {
            splits.iter().zip(issues).map(|(split, issues)| of(&score(split, issues, split.hours(hours)))).collect()
        };
        let base = row(&naive);
        for (name, issues) in &made {
            let row = row(issues);
            let ratios: Vec<f64> = row.iter().zip(&base).take(5).map(|(value, base)| value / base).collect();
            let cells: Vec<String> = row.iter().map(|value| format!("{value:.3}")).collect();
            println!("| {name} | {} | {:.3} |", cells.join(" | "), geometric_mean(&ratios));
        }
    }
    for hours in [24, 1] {
        println!("\n### Mean absolute error against the default, first {hours} h, 95 % intervals\n");
        println!("| | {} |\n|---|---|---|---|---|---|---|", SERIES.join(" | "));
        for (name, issues) in &made[1..] {
            let cells = splits.iter().zip(&made[0].1).zip(issues);
            let cells = cells.map(|((split, default), issues)| difference(split, default, issues, split.hours(hours)));
            println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
}

/// Relative difference of the mean absolute error, with its interval by blocks of a day.
fn difference(split: &Split, default: &[Issue], other: &[Issue], steps: usize) -> String {
    let tested = |issues: &[Issue]| -> Vec<f64> {
        let errors = |issue: &Issue| {
            let measured = (0..steps).filter(|step| split.observed[issue.origin + step]);
            measured.map(|step| (split.y[issue.origin + step] - issue.point[step]).abs()).sum::<f64>()
        };
        issues.iter().filter(|issue| issue.origin >= split.test_start).map(errors).collect()
    };
    let (default, other) = (tested(default), tested(other));
    let base = default.iter().sum::<f64>() / default.len() as f64;
    let differences: Vec<f64> = other.iter().zip(&default).map(|(other, default)| (other - default) / base).collect();
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    let (low, high) = block_bootstrap(&differences, split.season / split.stride, 2_000, 0.95).unwrap();
    format!("{:+.1} ({:+.1} to {:+.1}) %", 100.0 * mean, 100.0 * low, 100.0 * high)
}
