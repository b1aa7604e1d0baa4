//! Tables of the benchmark, our forecasters beside the measured packages:
//! `cargo run --release --workspace --example bench`; with `default` behind it, of the default
//! forecaster alone, and with `lending` of the lenders alone.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints tables of reference data")]

#[path = "../tests/bench/ours.rs"]
mod ours;
#[path = "../tests/bench/protocol.rs"]
mod protocol;

use goodput_forecast::decide::Objective;
use goodput_forecast::lending::{LeaseTerms, LendingFleet, LendingScore};
use goodput_forecast::{Adaptive, Fit, Horizon, Lender, Model, Predict, Series};
use ours::{geometric_mean, issues};
use protocol::{Issue, SERIES, Score, Split, conformal, published, score};

/// Reference methods beside ours.
const THEIRS: [&str; 12] = [
    "ens_median",
    "ens_online",
    "lgbm",
    "ens_cheap4",
    "nlinear_ridge",
    "snaive_week",
    "ar_direct_ridge",
    "hw_damped",
    "nhits",
    "fourier_ar",
    "rust_augurs_mstl",
    "rust_anofox_mfles",
];

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    let default_alone = what == "default";
    let splits: Vec<Split> = SERIES.iter().map(|name| Split::load(name)).collect();
    if what == "lending" {
        return lending(&splits);
    }
    let naive: Vec<Vec<Issue>> = splits.iter().map(|split| conformal(split, &split.repeat(split.season))).collect();
    let methods: Vec<(String, Option<Adaptive>)> = std::iter::once(("default".into(), None))
        .chain(Model::ALL.map(|model| (model.name().to_string(), Some(Adaptive::single(model, 1)))))
        .take(if default_alone { 1 } else { usize::MAX })
        .collect();
    let ours: Vec<(String, Vec<Vec<Issue>>)> = methods
        .into_iter()
        .map(|(name, single)| {
            let of = |split: &Split| {
                let all = Adaptive::daily(split.season);
                let model =
                    single.as_ref().map_or(all.clone(), |single| Adaptive { models: single.models.clone(), ..all });
                issues(split, &model)
            };
            (name, splits.iter().map(of).collect())
        })
        .collect();
    type Of = (&'static str, &'static str, usize, fn(&Score) -> f64, usize);
    let tables: [Of; 5] = [
        ("MASE, 24 h", "24h", 24, |score| score.mase, 1),
        ("MASE, first hour", "1h", 1, |score| score.mase, 1),
        ("CRPS, 24 h", "24h", 24, |score| score.crps, 14),
        ("CRPS, first hour", "1h", 1, |score| score.crps, 14),
        ("coverage of 0.9, 24 h", "24h", 24, |score| score.levels[2].2, 10),
    ];
    for (title, band, hours, of, column) in tables {
        println!(
            "\n### {title}\n\n| method | {} | geometric mean |\n|---|{}---|",
            SERIES.join(" | "),
            "---|".repeat(6)
        );
        let base: Vec<f64> = splits.iter().zip(&naive).map(|(s, i)| of(&score(s, i, s.hours(hours)))).collect();
        for (name, issues) in &ours {
            let row: Vec<f64> = splits.iter().zip(issues).map(|(s, i)| of(&score(s, i, s.hours(hours)))).collect();
            line(&format!("ours: {name}"), &row, &base, column == 10);
        }
        for method in THEIRS {
            let cell = |name: &&str| published(name, method, band).map_or(f64::NAN, |row| row[column]);
            line(method, &SERIES.iter().map(cell).collect::<Vec<_>>(), &base, column == 10);
        }
    }
    calibration(&splits, &ours[0].1);
    by_day(&splits[..3], &ours[0].1);
    significance(&splits, &ours[0].1, &naive);
    if !default_alone {
        println!(
            "\n### Cost, processor time\n\n| series | model | fit s | refresh s | update us | predict ms |\n|---|---|---|---|---|---|"
        );
        splits.iter().for_each(costs);
    }
    lending(&splits);
}

/// Shares that the default lender lends, that the best of its levels and the best reactive headroom lend in hindsight,
/// and that the oracle lends.
fn lending(splits: &[Split]) {
    println!(
        "\n### Lending, at most 1 % of the steps violated\n\n| series | lease | lent | violated | level, best in hindsight | reactive, best in hindsight | oracle |\n|---|---|---|---|---|---|---|"
    );
    for split in &splits[..4] {
        for hours in [1, 6, 12] {
            let of = |lender: Lender| lend(split, lender, hours);
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            let ours = of(Lender::DEFAULT);
            let best = |lenders: &mut dyn Iterator<Item = Lender>| {
                let kept = lenders.map(of).filter(|score| score.violated <= 0.01);
                kept.map(|score| score.lent).fold(0.0, f64::max)
            };
            // From a tenth to ten times the share of the default.
            let levels = (0..=12).map(|step| 1e-3 * 100.0_f64.powf(f64::from(step) / 12.0));
            let level = best(&mut levels.map(|share| Lender::Decided(Objective::Steps(share))));
            let reactive = best(&mut (0..=80).map(|step| Lender::Reactive { headroom: f64::from(step) / 20.0 }));
            println!(
                "| {} | {hours} h | {} | {} | {} | {} | {} |",
                split.name,
                percent(ours.lent),
                percent(ours.violated),
                percent(level),
                percent(reactive),
                percent(of(Lender::Oracle).lent)
            );
        }
    }
}

/// The default's quantiles against those of the same points without calibration: normal around the
/// point with the errors' own standard deviation, and the plain pool.
fn calibration(splits: &[Split], ours: &[Vec<Issue>]) {
    println!(
        "\n### Calibration of 0.9, 24 h\n\n| series | coverage: ours | normal | pool | loss: ours | normal | pool | CRPS: ours | normal | pool |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for (split, issues) in splits.iter().zip(ours) {
        let of = |issues: &[Issue]| score(split, issues, split.horizon);
        let scores = [of(issues), of(&normal(split, issues)), of(&conformal(split, issues))];
        let cells = |figure: fn(&Score) -> f64| {
            scores.iter().map(figure).map(|x| format!("{x:.4}")).collect::<Vec<_>>().join(" | ")
        };
        println!(
            "| {} | {} | {} | {} |",
            split.name,
            cells(|s| s.levels[2].2),
            cells(|s| s.levels[2].1),
            cells(|s| s.crps)
        );
    }
}

/// Coverage by the day in which the forecasts were made, which shows where it is lost.
fn by_day(splits: &[Split], ours: &[Vec<Issue>]) {
    println!("\n### Coverage of 0.9, 24 h, by day of the forecast\n\n| series | days of the test part |\n|---|---|");
    for (split, issues) in splits.iter().zip(ours) {
        let of_day = |issue: &Issue| issue.origin.checked_sub(split.test_start).map(|step| step / split.season);
        let days = (0..).map_while(|day| {
            let of: Vec<Issue> = issues.iter().filter(|issue| of_day(issue) == Some(day)).cloned().collect();
            (!of.is_empty()).then(|| format!("{:.3}", score(split, &of, split.horizon).levels[2].2))
        });
        println!("| {} | {} |", split.name, days.collect::<Vec<_>>().join(" | "));
    }
}

/// Normal quantiles around the point: the standard deviation of errors of the calibration days at
/// the same step, as a fit that is never calibrated has it.
fn normal(split: &Split, issues: &[Issue]) -> Vec<Issue> {
    let mut squares = vec![(0.0, 0.0); split.horizon];
    for issue in issues.iter().filter(|issue| issue.origin < split.test_start) {
        for (step, (sum, count)) in squares.iter_mut().enumerate() {
            let target = issue.origin + step;
            if target < split.test_start && split.observed[target] {
                *sum += (split.y[target] - issue.point[step]).powi(2);
                *count += 1.0;
            }
        }
    }
    // Far steps of late origins have not come before the test: the nearest step with errors.
    let mut sd = 0.0;
    let spread: Vec<f64> = squares
        .iter()
        .map(|&(sum, count)| {
            if count > 0.0 {
                sd = f64::sqrt(sum / count);
            }
            sd
        })
        .collect();
    let z: Vec<f64> = protocol::levels().into_iter().map(normal_quantile).collect();
    let row = |point: f64, sd: f64| z.iter().map(|z| (point + z * sd).max(0.0)).collect();
    issues
        .iter()
        .map(|issue| Issue {
            quantiles: Some(issue.point.iter().zip(&spread).map(|(&p, &sd)| row(p, sd)).collect()),
            ..issue.clone()
        })
        .collect()
}

/// The standard normal quantile, by bisection of an integral by Simpson's rule.
fn normal_quantile(level: f64) -> f64 {
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let cumulative = |z: f64| {
        let h = z / 200.0;
        0.5 + (0..200)
            .map(|i| f64::from(i) * h)
            .map(|x| h / 6.0 * (density(x) + 4.0 * density(x + 0.5 * h) + density(x + h)))
            .sum::<f64>()
    };
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if cumulative(middle) < level { low = middle } else { high = middle }
    }
    low
}

/// Relative differences of the default's absolute error to other points we have, origin by origin,
/// with intervals by blocks of a day.
fn significance(splits: &[Split], ours: &[Vec<Issue>], naive: &[Vec<Issue>]) {
    println!(
        "\n### Mean absolute error relative to the daily seasonal naive, 95 % intervals\n\n| series | 24 h | interval | 1 h | interval |\n|---|---|---|---|---|"
    );
    for ((split, ours), naive) in splits.iter().zip(ours).zip(naive) {
        let cells = [split.hours(24), split.hours(1)].map(|steps| {
            let errors = |issue: &Issue| {
                (0..steps)
                    .filter(|step| split.observed[issue.origin + step])
                    .map(|step| (split.y[issue.origin + step] - issue.point[step]).abs())
                    .sum::<f64>()
            };
            let tested = |issues: &[Issue]| {
                issues.iter().filter(|issue| issue.origin >= split.test_start).map(errors).collect::<Vec<f64>>()
            };
            let (ours, naive) = (tested(ours), tested(naive));
            let base = naive.iter().sum::<f64>() / naive.len() as f64;
            let differences: Vec<f64> = ours.iter().zip(&naive).map(|(a, b)| (a - b) / base).collect();
            let mean = differences.iter().sum::<f64>() / differences.len() as f64;
            let (low, high) =
                goodput_forecast::block_bootstrap(&differences, split.season / split.stride, 2_000, 0.95).unwrap();
            format!("{:+.1} % | {:+.1} to {:+.1} %", 100.0 * mean, 100.0 * low, 100.0 * high)
        });
        println!("| {} | {} |", split.name, cells.join(" | "));
    }
}

/// Processor time of this thread so far, seconds; 0 where the system does not tell.
fn cpu_secs() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Processor time of one fit, refresh, update and prediction of 24 h at 21 levels.
fn costs(split: &Split) {
    let timed = |work: &mut dyn FnMut()| {
        let start = cpu_secs();
        work();
        cpu_secs() - start
    };
    let series = Series::new(0, split.step_minutes * 60_000, split.masked().into()).unwrap();
    let known = series.slice(0..split.cal_start).unwrap();
    let rest = split.masked()[split.cal_start..].to_vec();
    for (name, model) in std::iter::once(("default", Adaptive::daily(split.season)))
        .chain(Model::ALL.map(|model| (model.name(), Adaptive::single(model, split.season))))
    {
        let mut fitted = model.fit(&known).unwrap();
        let fit = timed(&mut || fitted = model.fit(&known).unwrap());
        let update = timed(&mut || fitted.update(&rest)) / rest.len() as f64;
        let refresh = timed(&mut || fitted.refresh());
        let predict = timed(&mut || {
            for _ in 0..20 {
                std::hint::black_box(fitted.predict(Horizon::steps(split.horizon), &protocol::levels()));
            }
        }) / 20.0;
        println!("| {} | {name} | {fit:.4} | {refresh:.4} | {:.1} | {:.3} |", split.name, update * 1e6, predict * 1e3);
    }
}

fn line(name: &str, row: &[f64], base: &[f64], is_share: bool) {
    let cells: Vec<String> = row.iter().map(|x| if x.is_nan() { "-".into() } else { format!("{x:.3}") }).collect();
    let ratios: Vec<f64> = row.iter().zip(base).take(5).map(|(x, base)| x / base).collect();
    let mean = if is_share { String::new() } else { format!("{:.3}", geometric_mean(&ratios)) };
    println!("| {name} | {} | {mean} |", cells.join(" | "));
}

fn lend(split: &Split, lender: Lender, hours: usize) -> LendingScore {
    let series = Series::new(0, split.step_minutes * 60_000, split.masked().into()).unwrap();
    let peak = split.y.iter().copied().fold(0.0, f64::max);
    let fleet = LendingFleet { accelerators: 200, load_per_accelerator: peak / 200.0 };
    let lease = LeaseTerms { lead: 1, steps: split.hours(hours) };
    let loans = lender.run(&Adaptive::daily(split.season), &series, &fleet, &lease, split.cal_start).unwrap();
    let last = split.y.len() - split.horizon;
    let tested: Vec<_> = loans.into_iter().filter(|loan| (split.test_start..=last).contains(&loan.origin)).collect();
    LendingScore::of(&fleet, &tested)
}
