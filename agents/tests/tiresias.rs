//! Tiresias, its Gittins index and its placement: hand-worked values, optimal stopping, work
//! conservation.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{fixed, frictionless, jcts, oracle, run};
use goodput_agents::compose::by_name;
use goodput_agents::heuristic::gittins::{ArtifactTable, GittinsHorizon, GittinsSample, LengthSample};
use goodput_agents::heuristic::tiresias::{QueueOrder, ServiceMeasure, Tiresias, TiresiasConfig, TiresiasPlacement};
use goodput_agents::placement::{Consolidation, Packer, Skew, TENSORS};
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobSpec, Workload};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use proptest::prelude::*;
use rand::RngExt;

fn fraction(text: &str) -> f64 {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap()
}

/// One length in two is 1, one in four 4, one in four 16.
fn example() -> GittinsSample {
    GittinsSample::new([1.0, 1.0, 4.0, 16.0])
}

#[test]
fn the_gittins_table_of_the_example() {
    let sample = example();
    for (attained, row) in oracle("gittins")["table"].as_object().unwrap() {
        let attained: f64 = attained.parse().unwrap();
        for (horizon, expected) in row.as_object().unwrap().iter().filter(|(horizon, _)| *horizon != "sup_float") {
            let expected = fraction(expected.as_str().unwrap());
            let horizon = horizon.parse().map_or(GittinsHorizon::Supremum, GittinsHorizon::Quantum);
            let found = sample.index(attained, horizon);
            assert!((found - expected).abs() < 1e-12, "at {attained}, {horizon:?}: {found} is not {expected}");
        }
    }
    assert_eq!(sample.index(16.0, GittinsHorizon::Supremum), 0.0);
    assert_eq!(sample.index(99.0, GittinsHorizon::Quantum(4.0)), 0.0);
    assert_eq!(GittinsSample::default().index(0.0, GittinsHorizon::Supremum), 0.0);
}

#[test]
fn what_is_left_on_average() {
    let sample = example();
    let expected = [(0.0, 5.5), (1.0, 9.0), (2.0, 8.0), (4.0, 12.0), (15.0, 1.0), (16.0, 0.0)];
    for (attained, remaining) in expected {
        assert_eq!(sample.mean_remaining(attained), remaining, "at {attained}");
    }
    assert_eq!(GittinsSample::default().mean_remaining(0.0), 0.0);
}

/// By the definition of the artifact's table, worked out by hand for lengths 2, 4, 8, 100 and
/// quantum 4.
#[test]
fn the_table_of_the_artifact() {
    let table = ArtifactTable::new([8.0, 2.0, 100.0, 4.0], 4);
    // At one second short of 2: 2 and 4 within reach of 1 + 4, mean (2 + 4 + 4 + 4) / 4 cut to 3.
    assert_eq!(table.index(0), 166_666.666_7);
    assert_eq!(table.index(1), 166_666.666_7);
    // One short of 4: three are longer, only 4 is within 3 + 4, mean (4 + 4 + 4) / 3.
    assert_eq!(table.index(2), 83_332.5);
    // One short of 8: 8 is within 7 + 4, mean (8 + 4) / 2.
    assert_eq!(table.index(7), 83_333.333_3);
    // The longest is never within reach.
    assert_eq!(table.index(8), 0.0);
    assert_eq!(table.index(100), 0.0);
    assert_eq!(table.mean_length_above(0), 4.67);
    assert_eq!(table.mean_length_above(8), 100.0);
}

/// The largest charge per unit of service at which it still pays to go on, by dynamic programming
/// over when to stop.
fn by_optimal_stopping(counts: &[u32], attained: usize) -> f64 {
    let left = |from: usize| f64::from(counts[from..].iter().sum::<u32>());
    let going_on = |charge: f64| {
        let mut value = 0.0_f64;
        for at in (attained..counts.len()).rev() {
            let alive = left(at);
            let hazard = if alive > 0.0 { f64::from(counts[at]) / alive } else { 0.0 };
            let next = -charge + hazard + (1.0 - hazard) * value;
            value = if at == attained { next } else { next.max(0.0) };
        }
        value
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if going_on(middle) >= 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// `counts[k]` jobs have length k + 1.
    #[test]
    fn the_index_is_what_optimal_stopping_pays(counts in prop::collection::vec(0_u32..6, 1..25), quantum in 1_usize..30) {
        let lengths = counts.iter().enumerate().flat_map(|(at, &count)| vec![at as f64 + 1.0; count as usize]);
        let sample = GittinsSample::new(lengths);
        for attained in 0..counts.len() {
            let alive: u32 = counts[attained..].iter().sum();
            if alive == 0 {
                prop_assert_eq!(sample.index(attained as f64, GittinsHorizon::Supremum), 0.0);
                continue;
            }
            let (found, expected) = (sample.index(attained as f64, GittinsHorizon::Supremum), by_optimal_stopping(&counts, attained));
            prop_assert!((found - expected).abs() < 1e-9, "{:?} at {}: {} is not {}", counts, attained, found, expected);
            let (mut within, mut spent) = (0.0, 0.0);
            for (at, &count) in counts.iter().enumerate().skip(attained) {
                let more = at + 1 - attained;
                within += if more <= quantum { f64::from(count) } else { 0.0 };
                spent += f64::from(count) * more.min(quantum) as f64;
            }
            let found = sample.index(attained as f64, GittinsHorizon::Quantum(quantum as f64));
            prop_assert!((found - within / spent).abs() < 1e-12);
        }
    }
}

/// Between the samples too, and with ties: no quantum beats the supremum and one reaches it.
/// Halves, so that sums are exact.
#[test]
fn the_supremum_is_over_all_quanta() {
    let mut rng = rng(3, Stream::Workload);
    for _ in 0..200 {
        let lengths: Vec<f64> = (0..rng.random_range(1..40)).map(|_| f64::from(rng.random_range(1..300))).collect();
        let sample = GittinsSample::new(lengths.iter().copied());
        let attained = f64::from(rng.random_range(0..600)) / 2.0;
        let supremum = sample.index(attained, GittinsHorizon::Supremum);
        let best = lengths.iter().filter(|length| **length > attained);
        let best =
            best.map(|length| sample.index(attained, GittinsHorizon::Quantum(length - attained))).fold(0.0, f64::max);
        assert!((supremum - best).abs() <= 1e-12 * supremum.max(1e-12), "{supremum} {best}");
    }
}

#[test]
fn experience_is_looked_at_again_when_it_has_grown() {
    let mut experience = LengthSample::default();
    assert!(experience.learn(5.0));
    assert_eq!(experience.sample().mean_remaining(0.0), 5.0);
    let rebuilt = (0..1000).filter(|_| experience.learn(7.0)).count();
    assert!((30..150).contains(&rebuilt), "{rebuilt} times for 1000 jobs");
    let mut closed = LengthSample::closed(vec![3.0]);
    assert!(!closed.learn(9.0));
    assert_eq!(closed.sample().count(), 1.0);
}

/// With that sample a job that has run 1 s will probably run long, and gives way to a new one;
/// without a sample no job gives way.
#[test]
fn the_job_with_the_better_index_goes_first() {
    let lengths = vec![1.0, 1.0, 4.0, 16.0];
    let jobs = vec![fixed("a", 1, 16, 0), fixed("b", 1, 1, 1), fixed("c", 1, 4, 3)];
    let mut gittins = Tiresias::new(TiresiasConfig::gittins(LengthSample::closed(lengths), GittinsHorizon::Supremum));
    let found = jcts(&mut gittins, 1, jobs.clone());
    // c preempts a at 3, when a's index is 1/4 (2 s had) and c's 1/2.
    assert_eq!(found.into_values().collect::<Vec<_>>(), [21.0, 1.0, 4.0]);
    let mut unknowing = by_name("tiresias-g", 0).unwrap();
    assert_eq!(jcts(&mut *unknowing, 1, jobs).into_values().collect::<Vec<_>>(), [16.0, 16.0, 18.0]);
}

/// With falling hazard rates the Gittins order is least attained service; where they fall at every
/// second, the examples of LAS follow.
#[test]
fn least_attained_service_is_the_index_of_falling_hazard_rates() {
    let lengths = (1..60).flat_map(|length| vec![f64::from(length); 200_000 / (length * (length + 1)) as usize]);
    let lengths: Vec<f64> = lengths.collect();
    let every_second =
        || SimOptions { rounds: Rounds { period: Some(SimTime::from_secs(1)), on_churn: true }, ..frictionless() };
    let first = [("J1", 2, 2), ("J2", 1, 8), ("J3", 2, 6)];
    let second = [("J1", 4, 3), ("J2", 1, 4), ("J3", 1, 5), ("J4", 2, 4)];
    for (key, gpus, jobs) in [("tiresias_example", 2, &first[..]), ("tiresias_example2", 4, &second[..])] {
        for (name, service) in [("LAS", ServiceMeasure::Time), ("LAS2D", ServiceMeasure::GpuTime)] {
            let order = QueueOrder::Gittins(LengthSample::closed(lengths.clone()), GittinsHorizon::Supremum);
            let mut policy = Tiresias::new(TiresiasConfig { order, ..TiresiasConfig::queues(&[], service) });
            let specs: Vec<JobSpec> = jobs.iter().map(|&(name, gpus, secs)| fixed(name, gpus, secs, 0)).collect();
            let workload = Workload::new(Vec::new(), specs);
            let outcome = run(&mut policy, Cluster::homogeneous(1, gpus), workload, every_second());
            for (job, record) in jobs.iter().zip(&outcome.jobs) {
                let expected = oracle(key)[name]["jct"][job.0].as_f64().unwrap();
                assert_eq!(record.jct().unwrap().as_secs_f64(), expected, "{key} {name} {}", job.0);
            }
        }
    }
}

/// After each decision no waiting job fits into what is free, for policies that are
/// work-conserving.
#[test]
fn nothing_that_fits_waits() {
    let names =
        ["fifo-backfill", "smallest-first", "srtf", "srsf", "serpt", "tiresias", "tiresias-l", "tiresias-g", "las"];
    let replicas = ["srtf@replica", "srsf@replica", "tiresias-l@replica"];
    for seed in 0..20 {
        let mut rng = rng(seed, Stream::Workload);
        let job = |at| {
            fixed(&format!("j{at}"), rng.random_range(1..9), rng.random_range(1..9000), rng.random_range(0..20_000))
        };
        let workload = Arc::new(Workload::new(Vec::new(), (0..60).map(job).collect()));
        for name in names.into_iter().chain(replicas) {
            let mut policy = by_name(name, 0).unwrap();
            let scenario = Scenario::new(Arc::new(Cluster::homogeneous(3, 4)), workload.clone(), frictionless(), seed);
            let mut simulator = Simulator::new(Arc::new(scenario));
            while simulator.run_until_decision().unwrap() == Status::Decision {
                let plan = policy.decide(&simulator.view());
                simulator.apply(&plan).unwrap();
                simulator.wake_at(policy.wake_at());
                let view = simulator.view();
                let fits = |gpus: u32| gpus <= view.total_free();
                let waits = view.jobs().find(|job| !job.state.is_allocated() && fits(job.request().gpus));
                assert!(waits.is_none(), "{name}: {:?} waits at {}", waits.map(|job| job.id()), view.now);
            }
            assert!(simulator.outcome().jobs.iter().all(|job| job.finish.is_some()), "{name}");
        }
    }
}

/// Free accelerators on nodes 0 and 1 are two each; a model with one large tensor waits for a whole
/// node, another one does not.
#[test]
fn the_model_decides_where_a_job_may_run() {
    let start = |model: &str| {
        let jobs = vec![fixed("a", 2, 100, 0), fixed("b", 2, 100, 0), fixed("c", 4, 10, 1), fixed("d", 2, 10, 2)];
        let models = [("a", "vgg16"), ("b", "vgg16"), ("c", model)].map(|(job, model)| (job.to_string(), model.into()));
        let workload = Workload { models: models.into(), ..Workload::new(Vec::new(), jobs) };
        // Nodes of 4 with 2 free each: best fit would put a and b together, so fill one node first
        // by a blocker on each.
        let spread = TiresiasConfig {
            placing: TiresiasPlacement::Packer(Packer::MostFreeFirst),
            ..TiresiasConfig::simulator(ServiceMeasure::GpuTime)
        };
        let mut scattered = Tiresias::new(spread);
        let mut skew = by_name("tiresias-l", 0).unwrap();
        let scenario = Scenario::new(Arc::new(Cluster::homogeneous(2, 4)), Arc::new(workload), frictionless(), 0);
        let mut simulator = Simulator::new(Arc::new(scenario));
        let mut first = true;
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let spread = scattered.decide(&simulator.view());
            let skewed = skew.decide(&simulator.view());
            simulator.apply(if first { &spread } else { &skewed }).unwrap();
            first = false;
        }
        simulator.outcome().jobs.iter().map(|job| job.start.unwrap().as_secs_f64()).collect::<Vec<_>>()
    };
    assert_eq!(start("resnet50"), [0.0, 0.0, 1.0, 11.0]);
    assert_eq!(start("vgg16"), [0.0, 0.0, 100.0, 2.0]);
}

/// Tensors of weights in 32-bit floats above 1 MiB, from the published layer shapes.
#[test]
fn tensor_sizes_follow_from_the_architectures() {
    let dense = [25_088 * 4096, 4096 * 4096, 4096 * 1000];
    let vgg = |blocks: [u64; 5]| {
        let widths = [64, 128, 256, 512, 512];
        let layers = widths.into_iter().zip(blocks).flat_map(|(width, count)| (0..count).map(move |_| width));
        let layers: Vec<u64> = layers.collect();
        let inputs = std::iter::once(3).chain(layers.iter().copied());
        inputs.zip(&layers).map(|(input, output)| 9 * input * output).chain(dense).collect::<Vec<u64>>()
    };
    let resnet = |blocks: [u64; 4]| {
        let mut tensors = vec![49 * 3 * 64];
        let mut input = 64;
        for (at, count) in blocks.into_iter().enumerate() {
            let width = 64 << at;
            for block in 0..count {
                tensors.extend([input * width, 9 * width * width, width * 4 * width]);
                if block == 0 {
                    tensors.push(input * 4 * width);
                }
                input = 4 * width;
            }
        }
        tensors.push(2048 * 1000);
        tensors
    };
    let alexnet = [121 * 3 * 64, 25 * 64 * 192, 9 * 192 * 384, 9 * 384 * 384, 9 * 384 * 256, 9216 * 4096];
    let computed = [
        ("vgg19", vgg([2, 2, 4, 4, 4])),
        ("vgg16", vgg([2, 2, 3, 3, 3])),
        ("vgg11", vgg([1, 1, 2, 2, 2])),
        ("alexnet", alexnet.into_iter().chain([4096 * 4096, 4096 * 1000]).collect()),
        ("resnet152", resnet([3, 8, 36, 3])),
        ("resnet101", resnet([3, 4, 23, 3])),
        ("resnet50", resnet([3, 4, 6, 3])),
    ];
    for (name, weights) in computed {
        let listed = TENSORS.iter().find(|model| model.name == name).unwrap();
        let mib: Vec<f64> = weights.iter().map(|&weights| weights as f64 * 4.0 / 1_048_576.0).collect();
        let large: Vec<f64> = mib.iter().copied().filter(|mib| *mib > 1.0).collect();
        let (largest, total) = (large.iter().copied().fold(0.0, f64::max), large.iter().sum::<f64>());
        assert_eq!(largest, listed.sizes.largest_mib, "{name}");
        assert!(
            (total / listed.sizes.total_mib - 1.0).abs() < 0.013,
            "{name}: {total} MiB, listed {}",
            listed.sizes.total_mib
        );
        let whole = largest / mib.iter().sum::<f64>();
        assert_eq!(whole > 0.5, listed.sizes.skew() > 0.5, "{name}: counting small tensors changes the side it is on");
    }
    let kept_together = |name: &str| Skew::default().of_model(name, None) == Consolidation::Required;
    let sensitive: Vec<&str> = TENSORS.iter().map(|model| model.name).filter(|name| kept_together(name)).collect();
    assert_eq!(sensitive, ["vgg19", "vgg16", "vgg11", "alexnet"]);
    assert!((TENSORS[0].sizes.skew() - 0.717).abs() < 5e-4);
}
