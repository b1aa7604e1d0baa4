//! The measured bar: our default forecaster on the fixed splits on which published packages were
//! measured.
#![expect(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod lend;
mod ours;
mod protocol;

use self::ours::{geometric_mean, issues};
use self::protocol::{SERIES, Split, conformal, published, score};
use goodput_forecast::{Adaptive, Model};

#[test]
fn the_protocol_gives_the_published_figures_of_the_naive_methods() {
    for name in SERIES {
        let split = Split::load(name);
        let methods = [("naive", 1), ("snaive_day", split.season), ("snaive_week", split.week)];
        for (method, period) in methods {
            let issues = conformal(&split, &split.repeat(period));
            for (band, steps) in [("1h", split.hours(1)), ("6h", split.hours(6)), ("24h", split.hours(24))] {
                let ours = score(&split, &issues, steps);
                let theirs = published(name, method, band).unwrap();
                let figures = [
                    ("MAE", ours.mae, theirs[0]),
                    ("MASE", ours.mase, theirs[1]),
                    ("WAPE", ours.wape, theirs[2]),
                    ("RMSE", ours.rmse, theirs[4]),
                    ("loss .9", ours.levels[2].1, theirs[9]),
                    ("coverage .9", ours.levels[2].2, theirs[10]),
                    ("wQL4", ours.wql4, theirs[13]),
                    ("CRPS", ours.crps, theirs[14]),
                ];
                for (what, ours, theirs) in figures {
                    let close = (ours - theirs).abs() <= 2e-4 * theirs.abs();
                    assert!(close, "{name} {method} {band} {what}: {ours} is not the published {theirs}");
                }
            }
        }
    }
}

#[test]
fn the_default_forecaster_is_ahead_of_every_package_measured() {
    let (mut ratios, mut coverages) = ([const { vec![] }; 4], vec![]);
    for name in SERIES {
        let split = Split::load(name);
        let ours = issues(&split, &Adaptive::daily(split.season));
        let naive = conformal(&split, &split.repeat(split.season));
        let (day, day_naive) = (score(&split, &ours, split.horizon), score(&split, &naive, split.horizon));
        let (hour, hour_naive) = (score(&split, &ours, split.hours(1)), score(&split, &naive, split.hours(1)));
        coverages.push((name, day.levels[2].2));
        if name == "dlrm_gpu" {
            // No cycle: the bar is the last value, 0.703.
            assert!(day.mase <= 1.03 * 0.703, "{name}: {}", day.mase);
            continue;
        }
        ratios[0].push(day.mase / day_naive.mase);
        ratios[1].push(hour.mase / hour_naive.mase);
        ratios[2].push(day.crps / day_naive.crps);
        ratios[3].push(hour.crps / hour_naive.crps);
    }
    for (ratios, (what, bar)) in
        ratios.iter().zip([("24 h MASE", 0.76), ("1 h MASE", 0.42), ("24 h CRPS", 0.74), ("1 h CRPS", 0.42)])
    {
        let mean = geometric_mean(ratios);
        assert!(mean <= bar, "{what}: {mean} of seasonal naive, the bar is {bar}; {ratios:?}");
    }
    // The bar is 0.85 to 0.95; where a regime changes we are below it (docs, forecasting), and no
    // package measured is above 0.79 on sg_client5.
    for (name, coverage) in coverages {
        assert!((0.77..=0.965).contains(&coverage), "{name}: 0.9 covers {coverage}");
    }
}

#[test]
fn a_model_alone_has_quantiles_too() {
    let split = Split::load("twitter");
    let ours = score(&split, &issues(&split, &Adaptive::single(Model::Profile, split.season)), split.horizon);
    // LightGBM, the best package on this series, has 0.793 and 0.1709.
    assert!(ours.mase < 0.79 && ours.crps < 0.171, "{ours:?}");
}
