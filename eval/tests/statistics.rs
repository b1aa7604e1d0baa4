//! The statistics against rliable and scipy, and their invariants.
//!
//! The numbers were made once with rliable 1.2.0, scipy 1.17.1, numpy 2.4.6 (`pip install rliable
//! scipy 'pandas<3'`) on the matrices below (seeds x tasks):
//!
//! ```python
//! metrics.aggregate_mean(x); metrics.aggregate_iqm(x); metrics.probability_of_improvement(x, y)
//! library.get_interval_estimates({'x': x}, lambda a: np.array([mean(a), iqm(a)]), reps=50000)
//! library.get_interval_estimates({'d': x - y}, ...)                        # paired: one resampling of the differences
//! library.get_interval_estimates({'xy': [x, y]}, poi, reps=20000)
//! library.create_performance_profile({'x': x}, [0.9, 1.0, 1.2], reps=20000)
//! scipy.stats.wilcoxon(d, alternative=..., method='exact' | 'approx')
//! ```
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_eval::stats::*;
use ndarray::{Array2, array};
use proptest::prelude::*;

fn x() -> Array2<f64> {
    array![
        [0.82, 1.31, 1.05],
        [0.91, 1.12, 0.98],
        [1.10, 1.55, 1.21],
        [0.77, 1.02, 1.00],
        [0.95, 1.47, 1.13],
        [1.02, 1.20, 0.90]
    ]
}

fn y() -> Array2<f64> {
    array![
        [0.80, 1.00, 1.07],
        [0.93, 1.12, 0.91],
        [1.00, 1.30, 1.10],
        [0.79, 1.05, 0.99],
        [0.90, 1.20, 1.05],
        [0.96, 1.25, 0.93]
    ]
}

fn bootstrap() -> Bootstrap {
    Bootstrap::stratified(6, 3, 20_000, 0.95, 7)
}

#[track_caller]
fn close(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "{got} is not within {tolerance} of {want}");
}

#[track_caller]
fn interval(estimate: Estimate, value: f64, low: f64, high: f64, tolerance: f64) {
    close(estimate.value, value, 1e-8);
    let ci = estimate.ci.unwrap();
    close(ci.low, low, tolerance);
    close(ci.high, high, tolerance);
}

/// A p-value of 0.05 is where an interval of 95 % ends at 0.
#[test]
fn a_bootstrap_p_value_agrees_with_the_interval() {
    let differences = (&x() - &y()).into_shape_with_order((18, 1)).unwrap();
    let boot = Bootstrap::of_seeds(18, 20_000, 0.95, 1);
    let mean = |draw: Resample<'_>, less: f64| mean_of_tasks(draw.of(differences.view()).view()) - less;
    let ci = boot.estimate(0.0, |draw| mean(draw, 0.0)).ci.unwrap();
    for end in [ci.low, ci.high] {
        let p = boot.p_value(|draw| mean(draw, end));
        assert!((p - 0.05).abs() < 0.002, "{p} at {end}");
    }
    let all = mean_of_tasks(differences.view());
    assert!(boot.p_value(|draw| mean(draw, all)) > 0.9, "no difference at all");
    // No draw is on the far side of 0, and the p-value is as small as 20,000 draws can tell.
    assert_eq!(boot.p_value(|draw| mean(draw, 10.0)), 2.0 / 20_001.0);
    assert_eq!(Bootstrap::of_seeds(1, 20_000, 0.95, 1).p_value(|_| 1.0), 1.0, "one seed says nothing");
}

#[test]
fn aggregates_agree_with_rliable() {
    close(mean_of_tasks(x().view()), 1.083_888_888_888_889, 1e-12);
    close(interquartile_mean(x().view()), 1.057, 1e-12);
}

#[test]
fn intervals_agree_with_rliable_up_to_resampling_noise() {
    let (x, y, boot) = (x(), y(), bootstrap());
    let mean = boot.estimate(mean_of_tasks(x.view()), |draw| mean_of_tasks(draw.of(x.view()).view()));
    interval(mean, 1.083_888_89, 1.021_111_11, 1.148_333_33, 0.003);
    let iqm = boot.estimate(interquartile_mean(x.view()), |draw| interquartile_mean(draw.of(x.view()).view()));
    interval(iqm, 1.057, 0.997, 1.122, 0.004);
    interval(difference(&boot, x.view(), y.view()), 0.064_444_44, 0.02, 0.108_888_89, 0.003);
    let improvement = probability_of_improvement(&boot, &boot.independent(7), x.view(), y.view());
    interval(improvement, 0.615_740_74, 0.416_666_67, 0.796_296_30, 0.01);
    let profile = performance_profile(&boot, x.view(), &[0.9, 1.0, 1.2]);
    interval(profile[0], 0.833_333_33, 0.666_666_67, 1.0, 1e-6);
    interval(profile[1], 0.611_111_11, 0.444_444_44, 0.777_777_78, 1e-6);
    interval(profile[2], 0.222_222_22, 0.055_555_56, 0.388_888_89, 1e-6);
}

#[test]
fn a_task_that_repeats_another_adds_no_certainty() {
    let once = x().slice(ndarray::s![.., ..1]).to_owned();
    let twice = ndarray::concatenate![ndarray::Axis(1), once, once];
    let width = |boot: &Bootstrap, scores: &Array2<f64>| {
        let ci = boot.estimate(0.0, |draw| mean_of_tasks(draw.of(scores.view()).view())).ci.unwrap();
        ci.high - ci.low
    };
    let by_seed = Bootstrap::of_seeds(6, 20_000, 0.95, 7);
    assert_eq!(width(&by_seed, &twice), width(&by_seed, &once));
    assert!(width(&Bootstrap::stratified(6, 2, 20_000, 0.95, 7), &twice) < 0.8 * width(&by_seed, &once));
}

#[test]
fn wilcoxon_agrees_with_scipy() {
    let plain = [6.2, -1.1, 3.4, 2.5, -0.7, 4.8, 5.1, 1.9];
    let ties = [1.0, -1.0, 2.0, 2.0, -2.0, 3.0, 0.0, 4.0, 5.0, 5.0];
    let table = [
        (Tail::TwoSided, 0.0390625, 0.035_691_900_116_804_41, 0.042_901_206_011_401_34),
        (Tail::Less, 0.98828125, 0.982_154_049_941_597_8, 0.978_549_396_994_299_3),
        (Tail::Greater, 0.01953125, 0.017_845_950_058_402_206, 0.021_450_603_005_700_67),
    ];
    for (tail, exact, asymptotic, tied) in table {
        close(wilcoxon(&plain, tail).unwrap(), exact, 1e-15);
        close(wilcoxon_asymptotic(&plain, tail).unwrap(), asymptotic, 1e-12);
        close(wilcoxon(&ties, tail).unwrap(), tied, 1e-12);
    }
    let forty = [
        -0.117, 0.244, -1.836, 1.94, -1.493, -0.542, 0.803, -0.945, -0.758, -0.609, 0.851, 2.592, 0.342, -0.818, 0.839,
        -0.296, 0.281, 1.475, -0.448, 0.309, -0.578, 0.144, 0.557, -0.689, -0.039, 0.064, -0.338, -0.888, -1.121,
        0.147, 0.031, 2.531, -2.135, 0.413, 0.67, 1.66, 0.802, -0.544, 0.301, 0.842,
    ];
    close(wilcoxon(&forty, Tail::TwoSided).unwrap(), 0.754_694_082_605_055_9, 1e-12);
    assert_eq!(wilcoxon(&[0.0, 0.0], Tail::Less), Err(WilcoxonError::NoDifference));
    assert_eq!(wilcoxon(&[1.0, f64::NAN], Tail::Less), Err(WilcoxonError::NotANumber));
}

#[test]
fn holm_steps_down() {
    // 0.01 * 4, 0.02 * 3, then 0.03 * 2 and 0.04 * 1 kept from falling.
    assert_eq!(holm(&[0.04, 0.01, 0.03, 0.02]), vec![0.06, 0.04, 0.06, 0.06]);
    assert_eq!(holm(&[0.9, 0.8]), vec![1.0, 1.0]);
    assert_eq!(holm(&[]), Vec::<f64>::new());
}

#[test]
fn the_same_seed_gives_the_same_interval_and_another_does_not() {
    let x = x();
    let ci = |master| {
        let boot = Bootstrap::stratified(6, 3, 500, 0.95, master);
        boot.estimate(0.0, |draw| mean_of_tasks(draw.of(x.view()).view())).ci
    };
    assert_eq!(ci(1), ci(1));
    assert_ne!(ci(1), ci(2));
}

#[test]
fn a_policy_equals_itself() {
    let (x, boot) = (x(), bootstrap());
    assert_eq!(difference(&boot, x.view(), x.view()).ci, Some(Interval { low: 0.0, high: 0.0 }));
    assert_eq!(ratio_of_means(&boot, x.view(), x.view()).ci, Some(Interval { low: 1.0, high: 1.0 }));
    assert_eq!(win_rate(x.view(), x.view()), 0.5);
}

fn matrices() -> impl Strategy<Value = (Array2<f64>, Array2<f64>)> {
    (2..8_usize, 1..4_usize).prop_flat_map(|(seeds, tasks)| {
        let matrix = move || {
            prop::collection::vec(0.1..1000.0, seeds * tasks)
                .prop_map(move |v| Array2::from_shape_vec((seeds, tasks), v).unwrap())
        };
        (matrix(), matrix())
    })
}

proptest! {
    #[test]
    fn an_interval_contains_the_mean((x, _) in matrices()) {
        let boot = Bootstrap::stratified(x.nrows(), x.ncols(), 400, 0.95, 3);
        let mean = mean_of_tasks(x.view());
        let ci = boot.estimate(mean, |draw| mean_of_tasks(draw.of(x.view()).view())).ci.unwrap();
        prop_assert!(ci.low <= mean + 1e-9 && mean <= ci.high + 1e-9);
    }

    #[test]
    fn improvement_and_its_reverse_add_up_to_one((x, y) in matrices()) {
        let boot = Bootstrap::stratified(x.nrows(), x.ncols(), 10, 0.95, 3);
        let of = |a: &Array2<f64>, b: &Array2<f64>| probability_of_improvement(&boot, &boot, a.view(), b.view()).value;
        prop_assert!((of(&x, &y) + of(&y, &x) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn jain_is_a_share(values in prop::collection::vec(0.0..1e300, 1..50)) {
        let index = goodput_eval::metrics::jain_index(&values);
        prop_assert!(index > 0.0 && index <= 1.0);
        prop_assert!(index >= 1.0 / values.len() as f64 - 1e-12);
    }

    #[test]
    fn a_quantile_lies_between_the_extremes_and_grows(mut values in prop::collection::vec(-1e6..1e6, 1..60), a in 0.0..1.0, b in 0.0..1.0) {
        values.sort_by(f64::total_cmp);
        let (low, high) = (f64::min(a, b), f64::max(a, b));
        let (at_low, at_high) = (quantile(&values, low).unwrap(), quantile(&values, high).unwrap());
        prop_assert!(at_low <= at_high + 1e-9);
        prop_assert!(values[0] <= at_low && at_high <= values[values.len() - 1] + 1e-9);
    }

    #[test]
    fn a_profile_falls_from_all_to_none((x, _) in matrices()) {
        let boot = Bootstrap::stratified(x.nrows(), x.ncols(), 10, 0.95, 3);
        let profile = performance_profile(&boot, x.view(), &[0.0, 200.0, 500.0, 2000.0]);
        prop_assert_eq!(profile[0].value, 1.0);
        prop_assert_eq!(profile[3].value, 0.0);
        prop_assert!(profile.windows(2).all(|pair| pair[0].value >= pair[1].value));
    }

    #[test]
    fn p_values_are_probabilities_and_the_tails_agree(differences in prop::collection::vec(-100.0..100.0, 1..70)) {
        let p = |tail| wilcoxon(&differences, tail).unwrap();
        for tail in [Tail::TwoSided, Tail::Less, Tail::Greater] {
            prop_assert!((0.0..=1.0).contains(&p(tail)));
        }
        prop_assert!((p(Tail::TwoSided) - (2.0 * p(Tail::Less).min(p(Tail::Greater))).min(1.0)).abs() < 1e-9);
    }
}
