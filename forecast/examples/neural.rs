//! Neural forecasters on the six series of the measured bar:
//! `cargo run --release --workspace --example neural`, with the names of some and settings that
//! differ, as in `lstm rate=0.001`, or with `choose NET KEY=VALUE...` for losses on the newest
//! fifth of what is known before the first origin, by which settings were chosen.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints tables of reference data")]

#[path = "../tests/bench/protocol.rs"]
mod protocol;

use std::collections::BTreeMap;

use goodput_forecast::neural::{Architecture, Centre, Dlinear, Lstm, Neural, Nhits, PatchTst, Spec, Training};
use goodput_forecast::{Backtest, Fit, Horizon, Refit, Series};
use protocol::{Issue, SERIES, Score, Split, conformal, published, score};

fn main() {
    let splits: Vec<Split> = SERIES.iter().map(|name| Split::load(name)).collect();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (changes, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|word| word.contains('='));
    let changes: BTreeMap<&str, &str> = changes.iter().map(|change| change.split_once('=').unwrap()).collect();
    let names = match names.as_slice() {
        ["choose", name] => return choose(&splits, name, &changes),
        [] => vec!["dlinear", "lstm", "nhits", "patchtst"],
        names => names.to_vec(),
    };
    let mut rows = vec![];
    for &name in &names {
        for split in &splits {
            let start = cpu_secs();
            let net = settings(name, split.season, &changes).fit(&series(split, split.cal_start)).unwrap();
            let fit_secs = cpu_secs() - start;
            let start = cpu_secs();
            let issues = issues(split, net.net());
            let predict_millis = 1e3 * (cpu_secs() - start) / issues.len() as f64;
            eprint(&format!("{name} {}: fit {fit_secs:.1} s, predict {predict_millis:.2} ms", split.name));
            let points: Vec<Issue> = issues.iter().map(|issue| Issue { quantiles: None, ..issue.clone() }).collect();
            let (own, conformal) = (issues, conformal(split, &points));
            rows.push((name, split, own, conformal, fit_secs, predict_millis, net.net().weights().len()));
        }
    }
    type Of = (&'static str, usize, fn(&Score) -> f64, Option<(&'static str, usize)>, bool);
    let tables: [Of; 8] = [
        ("MASE, 24 h", 24, |score| score.mase, Some(("24h", 1)), false),
        ("MASE, first hour", 1, |score| score.mase, Some(("1h", 1)), false),
        ("CRPS, 24 h, the bench's conformal layer", 24, |score| score.crps, Some(("24h", 14)), false),
        ("CRPS, first hour, the bench's conformal layer", 1, |score| score.crps, Some(("1h", 14)), false),
        ("CRPS, 24 h, quantile heads alone", 24, |score| score.crps, None, true),
        ("wQL4, 24 h, quantile heads alone", 24, |score| score.wql4, None, true),
        ("coverage of 0.9, 24 h, quantile heads alone", 24, |score| score.levels[2].2, None, true),
        ("coverage of 0.99, 24 h, quantile heads alone", 24, |score| score.levels[3].2, None, true),
    ];
    for (title, hours, of, theirs, own) in tables {
        println!("\n### {title}\n\n| method | {} | mean |\n|---|{}---|", SERIES.join(" | "), "---|".repeat(6));
        let naive: Vec<f64> = splits
            .iter()
            .map(|split| of(&score(split, &self::conformal(split, &split.repeat(split.season)), split.hours(hours))))
            .collect();
        for &name in &names {
            let ours = rows.iter().filter(|row| row.0 == name);
            let cells: Vec<f64> =
                ours.map(|row| of(&score(row.1, if own { &row.2 } else { &row.3 }, row.1.hours(hours)))).collect();
            line(&format!("ours: {name}"), &cells, &naive, title.starts_with("coverage"));
        }
        if let Some((band, column)) = theirs {
            for method in ["dlinear", "lstm", "nhits", "lgbm", "snaive_day"] {
                let cell = |name: &&str| published(name, method, band).map_or(f64::NAN, |row| row[column]);
                line(method, &SERIES.iter().map(cell).collect::<Vec<_>>(), &naive, false);
            }
        }
    }
    println!("\n### Cost, processor time\n\n| net | series | parameters | fit s | predict ms |\n|---|---|---|---|---|");
    for (name, split, _, _, fit, predict, parameters) in &rows {
        println!("| {name} | {} | {parameters} | {fit:.1} | {predict:.2} |", split.name);
    }
}

/// The settings of the tables: two days in, one day out, 400 steps of 64 windows (DLinear a fifth
/// as large).
fn settings(name: &str, season: usize, changes: &BTreeMap<&str, &str>) -> Neural {
    let architecture = match name {
        "dlinear" => Architecture::Dlinear(Dlinear::default()),
        "lstm" => Architecture::Lstm(Lstm { chunk: season / 24, ..Lstm::default() }),
        "nhits" => Architecture::Nhits(Nhits::default()),
        _ => Architecture::PatchTst(PatchTst::daily(season)),
    };
    let training = match architecture {
        // All weights of a linear map move the same way at once; the recurrence takes larger steps.
        Architecture::Dlinear(_) => Training { learning_rate: 2e-4, ..Training::default() },
        Architecture::Lstm(_) => Training { learning_rate: 5e-3, ..Training::default() },
        _ => Training::default(),
    };
    let mut neural = Neural { spec: Spec::daily(architecture, season), training, validation_share: 0.0, seed: 1 };
    for (key, value) in changes {
        change(&mut neural, key, value);
    }
    neural
}

fn series(split: &Split, end: usize) -> Series {
    Series::new(0, split.step_minutes * 60_000, split.masked()[..end].to_vec().into()).unwrap()
}

fn issues(split: &Split, net: &goodput_forecast::neural::NeuralNet) -> Vec<Issue> {
    let backtest = Backtest {
        initial_steps: split.cal_start,
        stride_steps: split.stride,
        horizon: Horizon::steps(split.horizon),
        refit: Refit::Never,
        levels: protocol::levels(),
        scale_season_steps: split.season,
    };
    let report = backtest.run(net, &series(split, split.y.len())).unwrap();
    let issue = |origin: &goodput_forecast::OriginReport| Issue {
        origin: origin.origin,
        point: origin.forecast.point().iter().map(|y| y.max(0.0)).collect(),
        quantiles: Some(
            origin
                .forecast
                .quantiles()
                .rows()
                .into_iter()
                .map(|row| row.iter().map(|y| y.max(0.0)).collect())
                .collect(),
        ),
    };
    report.origins.iter().map(issue).collect()
}

/// Losses on the newest fifth of what is known before the first origin, under the settings of the
/// tables with some changed: `choose lstm rate=0.003 centre=mean on=taxi`.
fn choose(splits: &[Split], name: &str, changes: &BTreeMap<&str, &str>) {
    let start = cpu_secs();
    let loss = |split: &Split| {
        if changes.get("on").is_some_and(|on| !on.split(',').any(|name| name == split.name)) {
            return "-".into();
        }
        let mut neural = settings(name, split.season, changes);
        neural.training.validate_every = 10_000;
        neural.validation_share = 0.2;
        let mut trainer = neural.trainer(&series(split, split.cal_start)).unwrap();
        trainer.run().unwrap();
        format!("{:.4}", trainer.validate().unwrap())
    };
    let cells: Vec<String> = splits[..5].iter().map(loss).collect();
    let changed: Vec<String> = changes.iter().map(|(key, value)| format!("{key}={value}")).collect();
    println!("| {name} {} | {} | {:.0} s |", changed.join(" "), cells.join(" | "), cpu_secs() - start);
}

fn change(neural: &mut Neural, key: &str, value: &str) {
    let (spec, training) = (&mut neural.spec, &mut neural.training);
    match (key, &mut spec.architecture) {
        ("steps", _) => training.steps = value.parse().unwrap(),
        ("rate", _) => training.learning_rate = value.parse().unwrap(),
        ("decay", _) => training.weight_decay = value.parse().unwrap(),
        ("centre", _) => {
            spec.centre = match value {
                "last" => Centre::Last,
                "mean" => Centre::Mean,
                _ => Centre::Series,
            }
        }
        ("hidden", Architecture::Lstm(net)) => net.hidden = value.parse().unwrap(),
        ("chunk", Architecture::Lstm(net)) => net.chunk = value.parse().unwrap(),
        ("width", Architecture::PatchTst(net)) => {
            (net.width, net.hidden) = (value.parse().unwrap(), 2 * value.parse::<usize>().unwrap())
        }
        ("stride", Architecture::PatchTst(net)) if value == "patch" => net.stride = net.patch,
        ("layers", Architecture::PatchTst(net)) => net.layers = value.parse().unwrap(),
        ("dropout", Architecture::PatchTst(net)) => net.dropout = value.parse().unwrap(),
        ("on", _) => {}
        _ => panic!("no setting {key} of this net"),
    }
}

fn line(name: &str, row: &[f64], base: &[f64], is_share: bool) {
    let cells: Vec<String> = row.iter().map(|x| if x.is_nan() { "-".into() } else { format!("{x:.3}") }).collect();
    let logs = row.iter().zip(base).take(5).map(|(x, base)| (x / base).ln());
    let known: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
    let mean = (known.iter().sum::<f64>() / known.len().max(1) as f64).exp();
    let mean = if is_share {
        String::new()
    } else if known.len() < 5 {
        format!("({mean:.3})")
    } else {
        format!("{mean:.3}")
    };
    println!("| {name} | {} | {mean} |", cells.join(" | "));
}

#[allow(clippy::print_stderr, reason = "progress")]
fn eprint(text: &str) {
    eprintln!("{text}");
}

/// Processor time of this process so far, seconds; 0 where the system does not tell.
fn cpu_secs() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
