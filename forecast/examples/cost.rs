//! Cost of fits, updates and predictions, beside the packages of the benchmark:
//! `cargo run --release -p goodput-forecast --example cost`.
//!
//! Processor time of this thread over loops that are long enough: fits for half a second, at least
//! 10,000 updates, 1,000 predictions of 24 h at 21 levels. Names of series behind it leave out the
//! others. Then the cost of a decision, and the parts of a snapshot.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints tables of reference data")]
#![allow(dead_code, reason = "the protocol has more than costs need")]

#[path = "../tests/bench/protocol.rs"]
mod protocol;

use goodput_forecast::decide::{Decider, Objective};
use goodput_forecast::{Adaptive, Fit, Horizon, Model, Predict, Series};
use protocol::{SERIES, Split};

/// Processor seconds of the packages' fits by series, from the benchmark's table of costs.
///
/// The table has the total of all daily refits of the direct ridge (7, 7, 7, 9, 67 and 9), so that
/// row is divided.
const THEIRS: [(Model, [f64; 6]); 4] = [
    (Model::HoltWinters, [0.050, 0.055, 0.027, 0.028, 0.106, 0.052]),
    (Model::DirectRidge, [0.947 / 7.0, 0.775 / 7.0, 0.801 / 7.0, 1.624 / 9.0, 7.246 / 67.0, 2.126 / 9.0]),
    (Model::FourierAr, [0.213, 0.213, 0.131, 0.161, 0.353, 0.161]),
    (Model::Nlinear, [0.138, 0.134, 0.106, 0.173, 0.821, 0.263]),
];

/// Forecasters refreshed after the same day.
const COPIES: usize = 30;

/// Processor seconds of this thread so far; 0 where the system does not tell.
fn cpu_secs() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Seconds of one of `times` calls.
fn each(times: usize, mut work: impl FnMut()) -> f64 {
    let start = cpu_secs();
    (0..times).for_each(|_| work());
    (cpu_secs() - start) / times as f64
}

fn main() {
    println!(
        "| series | model | fit and a week of replay, ms | refresh after a day, ms | packages' fit, ms | cheaper | update, us | predict, ms |\n|---|---|---|---|---|---|---|---|"
    );
    let only: Vec<String> = std::env::args().skip(1).collect();
    for (index, name) in
        SERIES.into_iter().enumerate().filter(|(_, name)| only.is_empty() || only.iter().any(|only| only == name))
    {
        let split = Split::load(name);
        let series = Series::new(0, split.step_minutes * 60_000, split.masked().into()).unwrap();
        let known = series.slice(0..split.cal_start).unwrap();
        let rest = split.masked()[split.cal_start..].to_vec();
        let day = split.season;
        let singles = THEIRS.map(|(model, theirs)| (model.name(), Adaptive::single(model, day), theirs[index]));
        for (name, model, theirs) in [("default", Adaptive::daily(day), 0.0)].into_iter().chain(singles) {
            let mut fitted = model.fit(&known).unwrap();
            let once = each(1, || fitted = model.fit(&known).unwrap());
            let times = ((0.5 / once.max(1e-9)) as usize).clamp(1, 500);
            let fit = each(times, || fitted = model.fit(&known).unwrap());
            // The counter of a running thread moves in steps of 4 ms: many copies are refreshed
            // after the same day.
            let (mut refresh, days) = (0.0, rest.chunks_exact(day).take(7));
            let count = days.len();
            for values in days {
                fitted.update(values);
                let mut copies = vec![fitted.clone(); COPIES].into_iter();
                refresh += each(COPIES, || copies.next().unwrap().refresh()) / count as f64;
            }
            let mut fitted = model.fit(&known).unwrap();
            let rounds = 10_000_usize.div_ceil(rest.len());
            let update = each(rounds, || fitted.update(&rest)) / rest.len() as f64;
            let levels = protocol::levels();
            let predict = each(1_000, || {
                std::hint::black_box(fitted.predict(Horizon::steps(split.horizon), &levels));
            });
            let beside = if theirs > 0.0 {
                format!("{:.0} | {:.1} to {:.0}", theirs * 1e3, theirs / fit, theirs / refresh)
            } else {
                "- | -".into()
            };
            println!(
                "| {} | {name} | {:.2} | {:.2} | {beside} | {:.2} | {:.3} |",
                split.name,
                fit * 1e3,
                refresh * 1e3,
                update * 1e6,
                predict * 1e3
            );
        }
    }
    kept_and_decided(&only);
}

/// A decision for the next hour: the update with the load of a step, the daily refresh, and the capacity. A snapshot:
/// the JSON of the default forecaster, and its parts.
fn kept_and_decided(only: &[String]) {
    println!(
        "\n| series | steps a day | a decision, ms | snapshot, kB | sums of regressions | map of nlinear | logarithms | load | errors | open forecasts |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for name in SERIES.into_iter().filter(|name| only.is_empty() || only.iter().any(|only| only == name)) {
        let split = Split::load(name);
        let series = Series::new(0, split.step_minutes * 60_000, split.masked().into()).unwrap();
        let known = series.slice(0..split.cal_start).unwrap();
        let rest = &split.masked()[split.cal_start..];
        let model = Adaptive::daily(split.season);
        let window = 1..1 + (60 / split.step_minutes as usize).max(1);
        let mut decider = Decider::new(&model, &known, window, Objective::Steps(0.01), 0.2).unwrap();
        let mut loads = rest.iter().cycle();
        let decision = each(rest.len().max(1_000), || {
            decider.update(*loads.next().unwrap());
            std::hint::black_box(decider.capacity());
        });
        let kept = serde_json::to_value(model.fit(&known).unwrap()).unwrap();
        let kb = |value: &serde_json::Value| value.to_string().len() as f64 / 1e3;
        let members = || kept["members"].as_array().unwrap().iter().flat_map(|member| member.as_object().unwrap());
        let inner = |member: &serde_json::Value| member.get("inner").unwrap_or(member).clone();
        let of = |field: &str| members().map(|(_, member)| inner(member).get(field).map_or(0.0, kb)).sum::<f64>();
        let logs = members().filter_map(|(_, member)| member.get("logs")).map(kb).sum::<f64>();
        println!(
            "| {} | {} | {:.3} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            split.name,
            split.season,
            decision * 1e3,
            kb(&kept),
            of("gram") + of("moment") + of("coefficients"),
            of("map"),
            logs,
            kb(&kept["past"]),
            kb(&kept["conformal"]),
            kb(&kept["pending"]),
        );
    }
}
