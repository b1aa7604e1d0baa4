//! The least-squares fit of expert iteration, against lines that are known, numpy, and differences of its loss.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_env::seed::{Stream, rng};
use goodput_train::expert_iteration::utility::Products;
use rand::RngExt;

#[test]
fn an_exact_line_is_found_and_a_constant_feature_has_no_weight() {
    let mut random = rng(1, Stream::Exploration);
    let mut products = Products::new(3);
    for _ in 0..50 {
        let (one, other) = (random.random::<f64>(), 100.0 * random.random::<f64>());
        products.add(&[one, 7.0, other], 2.0 - 3.0 * one + 0.25 * other);
    }
    let fit = products.fit(0.0).unwrap();
    for (found, expected) in fit.weights.iter().zip([-3.0, 0.0, 0.25]) {
        assert!((found - expected).abs() < 1e-8, "{:?}", fit.weights);
    }
    assert!((fit.intercept - 2.0).abs() < 1e-7 && (fit.explained - 1.0).abs() < 1e-9, "{fit:?}");
}

/// Expected values: `numpy.linalg.lstsq` (2.4.6) of the standardised features, with a row of `sqrt(0.1 * 30)` each.
#[test]
fn the_fit_is_that_of_numpy() {
    let mut products = Products::new(3);
    for at in 0..30u32 {
        let features = [at, at * at % 7, (at % 4).pow(2)].map(f64::from);
        products.add(&features, f64::from(3 * at % 5) + 0.1 * f64::from(at));
    }
    let fit = products.fit(0.1).unwrap();
    let expected = [0.10285772476795108, -0.002098377181893046, 0.020077295371049148];
    for (found, expected) in fit.weights.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{:?}", fit.weights);
    }
    assert!((fit.intercept - 1.8962948327858442).abs() < 1e-12, "{fit:?}");
}

#[test]
fn the_gradient_of_the_penalised_loss_is_zero_at_the_fit() {
    let (mut random, ridge) = (rng(2, Stream::Exploration), 0.3);
    let samples: Vec<([f64; 2], f64)> = (0..40)
        .map(|_| {
            let x = [random.random::<f64>(), 5.0 * random.random::<f64>()];
            (x, x[0] - x[1] + random.random::<f64>())
        })
        .collect();
    let mut products = Products::new(2);
    samples.iter().for_each(|(x, y)| products.add(x, *y));
    let fit = products.fit(ridge).unwrap();
    let count = samples.len() as f64;
    let mean = |at: usize| samples.iter().map(|(x, _)| x[at]).sum::<f64>() / count;
    let variance = |at: usize| samples.iter().map(|(x, _)| (x[at] - mean(at)).powi(2)).sum::<f64>() / count;
    let penalty = [ridge * variance(0), ridge * variance(1)];
    let loss = |intercept: f64, weights: &[f64]| {
        let error = |(x, y): &([f64; 2], f64)| (intercept + weights[0] * x[0] + weights[1] * x[1] - y).powi(2);
        samples.iter().map(error).sum::<f64>() / count
            + weights.iter().zip(penalty).map(|(weight, by)| by * weight * weight).sum::<f64>()
    };
    let h = 1e-5;
    let slope = |up: f64, down: f64| (up - down) / (2.0 * h);
    assert!(slope(loss(fit.intercept + h, &fit.weights), loss(fit.intercept - h, &fit.weights)).abs() < 1e-8);
    for at in 0..2 {
        let moved = |by: f64| {
            let mut weights = fit.weights.clone();
            weights[at] += by;
            loss(fit.intercept, &weights)
        };
        assert!(slope(moved(h), moved(-h)).abs() < 1e-8, "weight {at}");
    }
}

#[test]
fn faded_samples_count_less_and_no_samples_give_no_fit() {
    let mut products = Products::new(1);
    assert_eq!(products.fit(0.1), None);
    for at in 0..10 {
        products.add(&[f64::from(at)], 0.0);
    }
    assert_eq!(products.fit(0.1), None, "a target without variance");
    products.fade(1e-9);
    for at in 0..10 {
        products.add(&[f64::from(at)], f64::from(2 * at));
    }
    assert!((products.fit(0.0).unwrap().weights[0] - 2.0).abs() < 1e-6);
}

#[test]
fn the_spread_of_a_weighted_sum_is_its_standard_deviation() {
    let (mut products, weights) = (Products::new(2), [2.0, -0.5]);
    let samples = [[1.0, 4.0], [0.0, -3.0], [2.5, 1.0], [-1.0, 0.5]];
    samples.iter().for_each(|sample| products.add(sample, 1.0));
    let sums = samples.map(|[one, other]| weights[0] * one + weights[1] * other);
    let mean = sums.iter().sum::<f64>() / 4.0;
    let expected = (sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
    assert!((products.spread(&weights) - expected).abs() < 1e-12, "{} {expected}", products.spread(&weights));
}
