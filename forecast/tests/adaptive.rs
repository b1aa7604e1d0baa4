//! Invariants of the default forecaster on any series: no panic, no crossing, no leak, and a
//! snapshot that continues as the forecaster would have.
#![expect(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

use goodput_forecast::{Adaptive, Backtest, Fit, FittedAdaptive, Horizon, Model, Predict, Refit, Series, Shift};
use proptest::prelude::*;

const LEVELS: [f64; 7] = [0.001, 0.1, 0.3, 0.5, 0.77, 0.9, 0.999];
const DAY: usize = 12;

fn series(values: &[f64]) -> Series {
    Series::new(0, 60_000, values.to_vec().into()).unwrap()
}

fn small() -> Adaptive {
    Adaptive { week_steps: 3 * DAY, ..Adaptive::daily(DAY) }.with_window(1, 4)
}

/// A number in [0, 1) that depends on nothing but its arguments.
fn noise(seed: u64, index: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index.wrapping_mul(0xd134_2543_de82_ef95);
    x ^= x >> 31;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 29;
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

/// One of many ways in which a series can be bad.
fn malformed(seed: u64) -> Vec<f64> {
    let len = (noise(seed, 0) * 70.0) as usize;
    let kind = (noise(seed, 1) * 9.0) as u32;
    let value = |index: usize| {
        let u = noise(seed, 10 + index as u64);
        match kind {
            0 => 0.0,
            1 => 7.0,
            2 => f64::NAN,
            3 if u < 0.7 => f64::NAN,
            4 if u < 0.05 => 1e300,
            5 => (u - 0.5) * 1e-300,
            6 => -u * 1e6,
            7 if index % DAY < 6 => 0.0,
            8 => 10.0_f64.powf(40.0 * (u - 0.5)),
            _ => 100.0 * u,
        }
    };
    (0..len).map(value).collect()
}

fn check_forecast(fitted: &FittedAdaptive, what: &str) {
    let forecast = fitted.predict(Horizon::steps(DAY + 5), &LEVELS);
    for row in forecast.quantiles().rows() {
        assert!(row.iter().is_sorted_by(|a, b| a <= b), "{what}: {row}");
        assert!(row.iter().all(|q| q.is_finite()), "{what}: {row}");
    }
    let peak = fitted.peak(0, &LEVELS).unwrap();
    assert!(peak.is_sorted_by(|a, b| a <= b), "{what}: {peak:?}");
    assert_eq!(fitted.peak(1, &LEVELS), None);
}

#[test]
fn ten_thousand_malformed_series_do_no_harm() {
    let model = small();
    for seed in 0..10_000 {
        let values = malformed(seed);
        let (known, coming) = values.split_at(values.len() * 4 / 5);
        match model.fit(&series(known)) {
            Err(_) => assert!(known.iter().all(|value| value.is_nan()), "seed {seed}"),
            Ok(mut fitted) => {
                fitted.update(coming);
                fitted.update(&[f64::INFINITY, f64::NAN]);
                fitted.refresh();
                check_forecast(&fitted, &format!("seed {seed}"));
            }
        }
    }
}

/// A load with a shape, a wander and gaps.
fn load(seed: u64, len: usize) -> Vec<f64> {
    let mut level = 50.0;
    let value = |index: usize| {
        level += 4.0 * (noise(seed, 2 * index as u64) - 0.5);
        let shape = 20.0 * (std::f64::consts::TAU * index as f64 / DAY as f64).sin();
        if noise(seed, 2 * index as u64 + 1) < 0.05 { f64::NAN } else { (level + shape).max(0.0) }
    };
    (0..len).map(value).collect()
}

#[test]
fn each_model_alone_works() {
    for model in Model::ALL {
        let one = Adaptive { models: vec![model], ..small() };
        let mut fitted = one.fit(&series(&load(3, 150))).unwrap();
        fitted.update(&load(4, 30));
        check_forecast(&fitted, model.name());
    }
    check_forecast(&Adaptive { models: vec![], ..small() }.fit(&series(&load(3, 150))).unwrap(), "no model");
}

#[test]
fn a_constant_load_stays_what_it_is() {
    let fitted = small().fit(&series(&[5.0; 200])).unwrap();
    for q in fitted.predict(Horizon::steps(DAY), &LEVELS).quantiles() {
        assert!((q - 5.0).abs() < 1e-6, "{q}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_known_decides_alone(seed in 0..1000_u64, len in 40..160_usize) {
        let values = load(seed, len);
        let mut fitted = small().fit(&series(&values)).unwrap();
        let before = fitted.predict(Horizon::steps(DAY), &LEVELS);
        prop_assert_eq!(&before, &small().fit(&series(&values)).unwrap().predict(Horizon::steps(DAY), &LEVELS));
        // What comes after changes later forecasts alone.
        fitted.update(&[1e6; 3]);
        prop_assert_ne!(&before, &fitted.predict(Horizon::steps(DAY), &LEVELS));
    }

    #[test]
    fn a_backtest_does_not_see_the_future(seed in 0..1000_u64, cut in 100..150_usize) {
        let values = load(seed, 160);
        let mut changed = values.clone();
        for (index, value) in changed.iter_mut().enumerate().skip(cut) {
            *value = 1e5 * noise(seed, index as u64);
        }
        let backtest = Backtest {
            initial_steps: 90,
            stride_steps: 5,
            horizon: Horizon::steps(DAY),
            refit: Refit::RefreshEvery(std::num::NonZeroUsize::MIN),
            levels: LEVELS.to_vec(),
            scale_season_steps: DAY,
        };
        let [before, after] = [values, changed].map(|values| backtest.run(&small(), &series(&values)).unwrap());
        for (before, after) in before.origins.iter().zip(&after.origins).filter(|(origin, _)| origin.origin <= cut) {
            prop_assert_eq!(&before.forecast, &after.forecast, "origin {}", before.origin);
        }
    }

    #[test]
    fn a_snapshot_goes_on_to_the_same_bits(seed in 0..1000_u64) {
        let mut fitted = small().fit(&series(&load(seed, 150))).unwrap();
        let text = serde_json::to_string(&fitted).unwrap();
        let mut restored: FittedAdaptive = serde_json::from_str(&text).unwrap();
        for fitted in [&mut fitted, &mut restored] {
            fitted.update(&load(seed + 1, 40));
            fitted.refresh();
        }
        prop_assert_eq!(fitted.predict(Horizon::steps(DAY), &LEVELS), restored.predict(Horizon::steps(DAY), &LEVELS));
    }

    #[test]
    fn the_rest_of_a_gap_does_not_matter(seed in 0..1000_u64) {
        // Whatever stands in a gap, NaN or infinity, is a gap.
        let values = load(seed, 150);
        let mut a = small().fit(&series(&values[..120])).unwrap();
        let mut b = a.clone();
        a.update(&values[120..]);
        let infinite: Vec<f64> = values[120..].iter().map(|v| if v.is_nan() { f64::INFINITY } else { *v }).collect();
        b.update(&infinite);
        prop_assert_eq!(a.predict(Horizon::steps(DAY), &LEVELS), b.predict(Horizon::steps(DAY), &LEVELS));
    }

    #[test]
    fn updating_step_by_step_is_updating_at_once(seed in 0..1000_u64) {
        let values = load(seed, 160);
        let mut a = small().fit(&series(&values[..120])).unwrap();
        let mut b = a.clone();
        a.update(&values[120..]);
        for value in &values[120..] {
            b.update(&[*value]);
        }
        prop_assert_eq!(a, b);
    }
}

#[test]
fn a_new_level_rings_the_alarm_and_a_quiet_load_does_not() {
    let load = |level: f64, len: u64| (0..len).map(|i| level + 4.0 * noise(9, i)).collect::<Vec<f64>>();
    let mut fitted = small().fit(&series(&load(50.0, 200))).unwrap();
    fitted.update(&load(50.0, 100));
    let before = fitted.alarm().alarms();
    fitted.update(&load(90.0, 12));
    let (step, shift) = fitted.alarm().last().unwrap();
    assert!(before <= 1 && fitted.alarm().alarms() > before, "{before} alarms before");
    assert!((300..312).contains(&step) && shift == Shift::Up, "{step} {shift:?}");
}
