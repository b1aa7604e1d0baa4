//! Hand-worked values of `specs/algorithms.md` 1.1 to 1.4 and of the Pollux artifact's conventions.
#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions, not in their helpers

use goodput_env::model::switching::Switch;
use goodput_env::model::{
    BatchConfig, BatchLimits, BatchLimitsError, GoodputModel, GradientStats, SwitchCost, ThroughputParams, slowdown,
};
use serde_json::Value;

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance * expected.abs().max(1.0), "{value} is not {expected}");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn count(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn oracle_model(oracle: &Value) -> GoodputModel {
    let p = |name: &str| number(&oracle["params"][name]);
    let init = count(&oracle["M0"]);
    GoodputModel {
        params: ThroughputParams {
            alpha_c: p("ac"),
            beta_c: p("bc"),
            alpha_n: p("an"),
            beta_n: p("bn"),
            alpha_r: p("ar"),
            beta_r: p("br"),
            gamma: p("g"),
        },
        stats: GradientStats { sqr: 1.0, var: number(&oracle["phi"]) / f64::from(init) },
        limits: BatchLimits::new(init, 4096, 32, 256).unwrap(),
    }
}

#[test]
fn throughput_efficiency_and_goodput() {
    let oracle = &crate::model_data::shared_json("oracles/oracles.json")["pollux"];
    let model = oracle_model(oracle);
    near(model.stats.pgns(128), 512.0, 1e-12);
    for row in oracle["rows"].as_array().unwrap() {
        let (nodes, replicas) = (count(&row["N"]), count(&row["K"]));
        let batch = BatchConfig { atomic: count(&row["m"]), accumulation: count(&row["s"]) };
        assert_eq!(batch.total(replicas), row["M"].as_u64().unwrap());
        // The table has 0 where the artifact, and we, have 1e-8.
        near(model.params.iter_time(nodes, replicas, batch), number(&row["t_iter"]), 5e-7);
        near(model.params.throughput(nodes, replicas, batch), number(&row["thr"]), 5e-7);
        near(model.stats.efficiency(batch.total(replicas), 128), number(&row["eff"]), 1e-9);
        near(model.goodput(nodes, replicas, batch), number(&row["goodput"]), 5e-7);
    }
}

#[test]
fn best_batch_and_speedup() {
    let oracle = &crate::model_data::shared_json("oracles/oracles.json")["pollux"];
    let model = oracle_model(oracle);
    let base = model.best(1, 1).unwrap().goodput;
    let speedups = [("1x1", 1.0), ("1x2", 1.8606), ("1x4", 3.2656), ("2x8", 4.4788), ("4x16", 5.5339)];
    for (allocation, speedup) in speedups {
        let (nodes, replicas) =
            allocation.split_once('x').map(|(n, k)| (n.parse().unwrap(), k.parse().unwrap())).unwrap();
        let expected = &oracle["optimize"][allocation];
        let choice = model.best(nodes, replicas).unwrap();
        assert_eq!(choice.batch.atomic, count(&expected["atomic"]), "{allocation}");
        assert_eq!(choice.batch.accumulation, count(&expected["accum"]), "{allocation}");
        assert_eq!(choice.batch.total(replicas), expected["M"].as_u64().unwrap());
        near(choice.goodput, number(&expected["goodput"]), 5e-7);
        near(model.speedup(nodes, replicas, base), speedup, 5e-5);
    }
}

#[test]
fn adascale_gain() {
    let stats = GradientStats { sqr: 1.0, var: 4.0 };
    let oracle = crate::model_data::shared_json("oracles/oracles.json");
    for (scale, gain) in oracle["adascale"].as_object().unwrap() {
        near(stats.gain(scale.parse().unwrap()), number(gain), 5e-7);
        let rule = goodput_env::model::LearningRateRule::AdaScale;
        near(rule.factor(scale.parse().unwrap(), stats, 0.0), number(gain), 5e-7);
        near(rule.adam_factor(scale.parse().unwrap(), stats, 0.0), number(gain).sqrt(), 5e-7);
    }
    assert_eq!(GradientStats { sqr: 0.0, var: 0.0 }.gain(4.0), 1.0, "no statistics, no gain");
    assert_eq!(GradientStats { sqr: -1.0, var: 0.5 }.gain(4.0), 1.0, "a negative estimate is no statistics");
}

#[test]
fn overlap_is_safe_at_its_limits() {
    let params = ThroughputParams {
        alpha_c: 0.1,
        beta_c: 0.01,
        alpha_n: 0.2,
        beta_n: 0.02,
        alpha_r: 0.0,
        beta_r: 0.0,
        gamma: 1.0,
    };
    near(params.optim_time(2, 4, 10), 0.2 + 0.24, 1e-15);
    near(ThroughputParams { gamma: 1e6, ..params }.optim_time(2, 4, 10), 0.24, 1e-5);
    near(ThroughputParams { gamma: f64::INFINITY, ..params }.optim_time(2, 4, 10), 0.24, 1e-15);
    assert_eq!(ThroughputParams { gamma: 10.0, ..params }.optim_time(1, 4, 10), 0.2, "nothing to synchronise");
    let slow = ThroughputParams { alpha_c: 1e200, gamma: 10.0, ..params };
    near(slow.optim_time(1, 1, 1), 1e200, 1e-12);
}

#[test]
fn fixed_batches_split_as_in_the_artifact() {
    let split = |limits: BatchLimits, total, replicas| {
        let config = limits.split(total, replicas);
        (config.atomic, config.accumulation)
    };
    let cifar10 = BatchLimits::new(128, 4096, 32, 1024).unwrap();
    assert_eq!(split(cifar10, 128, 1), (128, 0));
    assert_eq!(split(cifar10, 256, 1), (128, 1), "one GPU above M0 accumulates");
    assert_eq!(split(cifar10, 2048, 6), (342, 0), "rounded up: 6 x 342 = 2052");
    assert_eq!(split(cifar10, 4096, 6), (682, 0), "ceil gives 683, the cap 4096 / 6 takes one away");
    assert_eq!(split(cifar10, 4096, 2), (1024, 1));
    let bert = BatchLimits::new(12, 384, 4, 12).unwrap();
    assert_eq!(split(bert, 384, 6), (10, 5), "64 a replica in six passes of 11 make 396: capped to 10");
}

#[test]
fn contradictory_limits_are_refused() {
    assert_eq!(BatchLimits::new(0, 10, 1, 2), Err(BatchLimitsError::Total { init: 0, max: 10 }));
    assert_eq!(BatchLimits::new(11, 10, 1, 2), Err(BatchLimitsError::Total { init: 11, max: 10 }));
    assert_eq!(BatchLimits::new(5, 10, 3, 2), Err(BatchLimitsError::Local { min_local: 3, max_local: 2 }));
    let from_config: Result<BatchLimits, _> = serde_json::from_str(r#"{"init":8,"max":4,"min_local":1,"max_local":2}"#);
    assert!(from_config.unwrap_err().to_string().contains("initial batch size 8"));
    let limits = BatchLimits::new(8, 512, 4, 8).unwrap();
    let text = serde_json::to_string(&limits).unwrap();
    assert_eq!(serde_json::from_str::<BatchLimits>(&text).unwrap(), limits);
}

#[test]
fn interference_needs_two_distributed_jobs_on_a_node() {
    assert_eq!(slowdown(&[1, 2], 0.25), 0.75);
    assert_eq!(slowdown(&[3, 3], 0.25), 0.75, "charged once");
    assert_eq!(slowdown(&[1, 1], 0.25), 1.0);
    assert_eq!(slowdown(&[2], 0.25), 1.0, "a job on one node does not use the network");
    assert_eq!(slowdown(&[], 0.25), 1.0);
}

#[test]
fn switching_costs_by_name() {
    let pollux = SwitchCost::by_name("pollux_const").unwrap();
    assert_eq!(pollux.cost_millis("bert", 0, 2), 30_000);
    assert_eq!(pollux.cost_millis("bert", 2, 4), 30_000);
    assert_eq!(pollux.cost_millis("bert", 2, 2), 30_000);
    let unchanged = Switch { application: "bert", from: 2, to: 2, moved: false, started: true };
    assert_eq!(pollux.components(&unchanged).total(), 0, "nothing changed");
    assert_eq!(pollux.cost_millis("bert", 2, 0), 0, "leaving is free");
    assert_eq!(SwitchCost::by_name("zero").unwrap().cost_millis("bert", 0, 2), 0);
    assert_eq!(SwitchCost::by_name("free"), None);
    assert_eq!(SwitchCost::by_name("600s").unwrap().cost_millis("bert", 1, 2), 600_000);
    assert_eq!(SwitchCost::by_name("-1s").or(SwitchCost::by_name("s")), None);
    assert!(SwitchCost::names().iter().all(|name| SwitchCost::by_name(name).is_some()));
}

/// Section 2.2 of the survey: the best number of replicas and the best batch size hang on each
/// other, and on how noisy gradients are.
#[test]
fn batches_and_replicas_grow_together() {
    let oracle = &crate::model_data::shared_json("oracles/oracles.json")["pollux"];
    let model = oracle_model(oracle);
    let best_replicas = |total: u32| {
        let throughput = |replicas: u32| {
            let batch = BatchConfig { atomic: total / replicas, accumulation: 0 };
            model.params.throughput(replicas.div_ceil(4), replicas, batch)
        };
        let counts = [1, 2, 4, 8, 16, 32, 64, 128];
        counts.into_iter().max_by(|&a, &b| throughput(a).total_cmp(&throughput(b))).unwrap()
    };
    assert!(best_replicas(512) < best_replicas(2048), "a larger batch scales further");

    let total =
        |model: &GoodputModel, replicas: u32| model.best(replicas.div_ceil(4), replicas).unwrap().batch.total(replicas);
    let by_replicas: Vec<u64> = [1, 2, 4, 8, 16, 32].map(|replicas| total(&model, replicas)).to_vec();
    assert!(by_replicas.is_sorted() && by_replicas[5] > by_replicas[0], "{by_replicas:?}");
    let noisy = |factor: f64| {
        let stats = GradientStats { var: model.stats.var * factor, ..model.stats };
        total(&GoodputModel { stats, ..model }, 16)
    };
    let by_noise: Vec<u64> = [0.25, 1.0, 4.0, 16.0].map(noisy).to_vec();
    assert!(by_noise.is_sorted() && by_noise[3] > by_noise[0], "{by_noise:?}");
}
