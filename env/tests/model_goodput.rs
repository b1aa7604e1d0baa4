//! Invariants of throughput, efficiency, the best batch and the fixed split, over random models.
#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions, not in their helpers

use goodput_env::model::{BatchConfig, BatchLimits, Choice, GoodputModel, GradientStats, ThroughputParams};
use proptest::prelude::*;

fn any_params() -> impl Strategy<Value = ThroughputParams> {
    let log = |low: f64, high: f64| (low..high).prop_map(f64::exp);
    let gamma = prop_oneof![Just(1.0), Just(2.0), 1.0..10.0];
    (log(-8.0, 0.0), log(-12.0, -2.0), log(-8.0, 1.0), log(-18.0, -3.0), log(-8.0, 0.0), log(-18.0, -3.0), gamma)
        .prop_map(|(alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma)| ThroughputParams {
            alpha_c,
            beta_c,
            alpha_n,
            beta_n,
            alpha_r,
            beta_r,
            gamma,
        })
}

fn any_stats() -> impl Strategy<Value = GradientStats> {
    (1e-9..1e3, 1e-9..1e6).prop_map(|(sqr, var)| GradientStats { sqr, var })
}

fn any_limits() -> impl Strategy<Value = BatchLimits> {
    (1u32..300, 1u32..200, 1u32..64, 1u32..40).prop_map(|(init, growth, min_local, range)| {
        BatchLimits::new(init, init * growth, min_local, min_local * range).unwrap()
    })
}

fn any_model() -> impl Strategy<Value = GoodputModel> {
    (any_params(), any_stats(), any_limits()).prop_map(|(params, stats, limits)| GoodputModel { params, stats, limits })
}

fn any_allocation() -> impl Strategy<Value = (u32, u32)> {
    (1u32..17, 1u32..5, 0u32..4)
        .prop_map(|(nodes, each, spare)| (nodes, (nodes * each).saturating_sub(spare).max(nodes)))
}

/// The published search, evaluated in full: `numpy.geomspace` by its definition, then the first
/// largest goodput.
fn full_search(model: &GoodputModel, nodes: u32, replicas: u32) -> Option<Choice> {
    let limits = model.limits;
    let start = f64::from(limits.init.max(limits.min_local * replicas));
    let end = f64::from(limits.max);
    if start > end {
        return None;
    }
    let step = (end.log10() - start.log10()) / 49.0;
    let mut best: Option<Choice> = None;
    for index in 0..50 {
        let total = match index {
            0 => start,
            49 => end,
            _ => 10f64.powf(f64::from(index) * step + start.log10()),
        };
        let local = total / f64::from(replicas);
        let mut accumulation = (local / f64::from(limits.max_local) - 1e-8).ceil() - 1.0;
        if replicas == 1 && local > f64::from(limits.init) + 1e-8 {
            accumulation = accumulation.max(1.0);
        }
        let atomic = (local / (accumulation + 1.0) - 1e-8).ceil() as u32;
        if !(limits.min_local..=limits.max_local).contains(&atomic) {
            continue;
        }
        let batch = BatchConfig { atomic, accumulation: accumulation as u32 };
        let goodput = model.goodput(nodes, replicas, batch);
        if best.is_none_or(|best| goodput > best.goodput) {
            best = Some(Choice { batch, goodput });
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn best_is_the_full_search(model in any_model(), (nodes, replicas) in any_allocation()) {
        prop_assert_eq!(model.best(nodes, replicas), full_search(&model, nodes, replicas));
    }

    #[test]
    fn capped_best_respects_the_maximum(model in any_model(), (nodes, replicas) in any_allocation()) {
        if let Some(choice) = model.best_capped(nodes, replicas) {
            prop_assert!(choice.batch.total(replicas) <= u64::from(model.limits.max));
            prop_assert_eq!(choice.goodput, model.goodput(nodes, replicas, choice.batch));
        }
    }

    #[test]
    fn efficiency_falls_from_one(stats in any_stats(), init in 1u32..1000, total in 1u64..100_000) {
        let total = total.max(u64::from(init));
        let (here, above) = (stats.efficiency(total, init), stats.efficiency(total + 1, init));
        prop_assert!(here > 0.0 && here <= 1.0 + 1e-12);
        prop_assert!(above <= here * (1.0 + 1e-12));
        let (pgns, scale) = (stats.pgns(init), total as f64 / f64::from(init));
        let paper = (pgns + f64::from(init)) / (pgns + total as f64);
        prop_assert!((here - paper).abs() <= 1e-9 * paper, "both forms of statistical efficiency at scale {}", scale);
        prop_assert!(stats.gain(scale) <= scale * (1.0 + 1e-12) && stats.gain(scale) >= 1.0 - 1e-12);
    }

    #[test]
    fn replicas_on_a_node_add_throughput_when_retrogression_is_free(
        params in any_params(), replicas in 2u32..64, atomic in 1u32..500, accumulation in 0u32..4,
    ) {
        let params = ThroughputParams { beta_n: 0.0, beta_r: 0.0, ..params };
        let batch = BatchConfig { atomic, accumulation };
        prop_assert!(params.throughput(1, replicas + 1, batch) > params.throughput(1, replicas, batch));
        prop_assert!(params.throughput(2, replicas + 1, batch) > params.throughput(2, replicas, batch));
    }

    #[test]
    fn a_step_is_at_least_its_longer_part_and_at_most_the_sum(
        params in any_params(), (nodes, replicas) in any_allocation(), atomic in 1u32..500,
    ) {
        let (pass, sync) = (params.grad_time(atomic), params.sync_time(nodes, replicas));
        let step = params.optim_time(nodes, replicas, atomic);
        prop_assert!(step >= pass.max(sync) * (1.0 - 1e-12) && step <= (pass + sync) * (1.0 + 1e-12));
    }

    #[test]
    fn a_fixed_batch_splits_within_limits(limits in any_limits(), total in 1u32..60_000, replicas in 1u32..65) {
        let total = total.clamp(limits.init, limits.max);
        let config = limits.split(total, replicas);
        prop_assert!(config.atomic >= 1 && config.atomic <= limits.max_local);
        prop_assert!(config.total(replicas) <= u64::from(limits.max).max(u64::from(replicas)));
        if replicas == 1 && total > limits.init {
            prop_assert!(config.accumulation >= 1);
        }
        // Nothing but the cap may process fewer samples than asked for.
        let capped = config.total(replicas) + u64::from(replicas) * u64::from(config.accumulation + 1) > u64::from(limits.max);
        prop_assert!(capped || config.total(replicas) >= u64::from(total));
    }
}

#[test]
fn nothing_fits_when_the_smallest_batches_exceed_the_maximum() {
    let params = ThroughputParams {
        alpha_c: 0.1,
        beta_c: 0.01,
        alpha_n: 0.2,
        beta_n: 0.0,
        alpha_r: 0.1,
        beta_r: 0.0,
        gamma: 1.5,
    };
    let limits = BatchLimits::new(128, 1024, 64, 128).unwrap();
    let model = GoodputModel { params, stats: GradientStats { sqr: 1.0, var: 4.0 }, limits };
    assert_eq!(limits.most_replicas(), 16);
    assert!(model.best(4, 16).is_some());
    assert_eq!(model.best(5, 17), None);
    assert_eq!(model.speedup(5, 17, 1.0), 0.0);
}
