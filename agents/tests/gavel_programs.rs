//! Gavel's programs against the objectives of the public implementation on five instances,
//! hand-worked cases, and brute force on small instances.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::heuristic::allox::assign;
use goodput_agents::heuristic::gavel::artifact;
use goodput_agents::heuristic::gavel::instance::{CombinationRow, GavelInstance, GavelJob, TimeShares};
use goodput_agents::heuristic::gavel::isolated::{isolated, isolated_rate};
use goodput_agents::heuristic::gavel::objectives::*;
use goodput_agents::heuristic::gavel::water_filling::{Entity, Inside, water_filling};
use proptest::prelude::*;
use serde_json::Value;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference/gavel/lp_golden.json");
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// An instance of the golden set; the order of types is that of the file.
fn instance(value: &Value, order: &[&str]) -> GavelInstance {
    let counts = order.iter().map(|kind| value["cluster"][kind].as_u64().unwrap() as u32).collect();
    let rows = value["jobs"].as_array().unwrap();
    let jobs = rows.iter().map(|row| GavelJob {
        weight: number(&row["priority_weight"]),
        age_secs: number(&row["time_since_start"]),
        ..GavelJob::new(row["scale_factor"].as_u64().unwrap() as u32, number(&row["steps_remaining"]))
    });
    let rate = |row: &Value, kind: &str| Some(number(&row["throughput"][kind])).filter(|&rate| rate > 0.0);
    let rates = rows.iter().map(|row| order.iter().map(|kind| rate(row, kind)).collect()).collect();
    GavelInstance::new(counts, jobs.collect(), rates)
}

fn smallest(instance: &GavelInstance, value: impl Fn(usize) -> f64) -> f64 {
    (0..instance.jobs.len()).map(value).fold(f64::INFINITY, f64::min)
}

fn fairness(instance: &GavelInstance, allocation: &TimeShares) -> f64 {
    smallest(instance, |job| allocation.rate(instance, job) * fair_scale(instance, job))
}

fn unfairness(instance: &GavelInstance, allocation: &TimeShares) -> f64 {
    -smallest(instance, |job| -finish_time_ratio(instance, allocation, job))
}

fn throughput(instance: &GavelInstance, allocation: &TimeShares) -> f64 {
    (0..instance.jobs.len()).map(|job| allocation.rate(instance, job)).sum()
}

fn total_time(instance: &GavelInstance, allocation: &TimeShares) -> f64 {
    instance.jobs.iter().enumerate().map(|(job, spec)| spec.steps_left / allocation.rate(instance, job)).sum()
}

#[track_caller]
fn close(ours: f64, theirs: f64, tolerance: f64, what: &str) {
    assert!((ours / theirs - 1.0).abs() < tolerance, "{what}: {ours}, expected {theirs}");
}

#[test]
fn golden_objectives() {
    let golden = golden();
    let order: Vec<&str> =
        golden["worker_order"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect();
    let instances = golden["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 5);
    for (at, case) in instances.iter().enumerate() {
        let instance = instance(case, &order);
        let unaware = instance.unaware(|_| 1.0);
        let check = |policy: &str, allocation: TimeShares, value: &dyn Fn(&TimeShares) -> f64| {
            assert!(allocation.violation(&instance) < 1e-6, "{policy} {at}: {}", allocation.violation(&instance));
            let theirs = number(&case["policies"][policy]["CLARABEL"]["objective"]);
            close(value(&allocation), theirs, 1e-4, &format!("{policy} {at}"));
        };
        check("isolated", isolated(&instance), &|x| smallest(&instance, |job| x.rate(&instance, job)));
        check("max_min_fairness", max_min(&unaware).unwrap(), &|x| fairness(&unaware, x));
        check("max_min_fairness_perf", max_min(&instance).unwrap(), &|x| fairness(&instance, x));
        check("finish_time_fairness_perf", finish_time_fairness(&instance).unwrap(), &|x| unfairness(&instance, x));
        check("max_sum_throughput_perf", max_throughput(&instance).unwrap(), &|x| throughput(&instance, x));
        check("min_total_duration_perf", artifact::makespan(&instance).unwrap(), &|x| makespan_secs(&instance, x));
        // One program gives the optimum, at most 5 % below what bisection stops at.
        let (exact, bisected) = (makespan(&instance).unwrap(), artifact::makespan(&instance).unwrap());
        assert!(exact.violation(&instance) < 1e-6);
        let ratio = makespan_secs(&instance, &bisected) / makespan_secs(&instance, &exact);
        assert!((1.0 - 1e-6..1.05).contains(&ratio), "{at}: {ratio}");
    }
}

fn whole(counts: &[u32], rates: &[&[f64]]) -> GavelInstance {
    let jobs = vec![GavelJob::new(1, 1000.0); rates.len()];
    let rates = rates.iter().map(|row| row.iter().map(|&rate| Some(rate).filter(|&rate| rate > 0.0)).collect());
    GavelInstance::new(counts.to_vec(), jobs, rates.collect())
}

#[test]
fn max_min_on_a_fast_and_a_slow_accelerator() {
    let instance = whole(&[1, 1], &[&[4.0, 1.0], &[3.0, 1.0], &[2.0, 1.0]]);
    let proportional: Vec<f64> = (0..3).map(|job| instance.proportional_rate(job)).collect();
    assert_eq!(proportional, [2.5, 2.0, 1.5]);
    let allocation = max_min(&instance).unwrap();
    close(fairness(&instance, &allocation), 0.727_273, 1e-6, "fairness");
    assert!(allocation.violation(&instance) < 1e-6);
    let expected = [[0.4545, 0.0], [0.4545, 0.0909], [0.0909, 0.9091]];
    for (job, expected) in expected.iter().enumerate() {
        for (share, expected) in allocation.row(job).iter().zip(expected) {
            assert!((share - expected).abs() < 1e-3, "job {job}: {:?}", allocation.row(job));
        }
    }
}

#[test]
fn max_min_on_measured_gpus_and_a_tpu() {
    // ResNet-50, BERT and Mask R-CNN on V100, A100 and TPUv4: MLPerf v0.7, per chip.
    let instance = whole(&[1, 1, 1], &[&[1385.0, 2751.0, 3296.0], &[1.0, 3.39, 3.65], &[1.0, 1.87, 1.49]]);
    let allocation = max_min(&instance).unwrap();
    close(fairness(&instance, &allocation), 1.059_349, 1e-6, "fairness");
    assert!(allocation.violation(&instance) < 1e-6);
    // Relative speeds differ between jobs, so some gain over an equal share and none loses.
    assert!(fairness(&instance, &isolated(&instance)) <= fairness(&instance, &allocation));
}

#[test]
fn a_job_waits_for_no_type_that_it_cannot_use() {
    let instance = whole(&[1, 1], &[&[4.0, 0.0], &[3.0, 1.0]]);
    for allocation in [max_min(&instance), makespan(&instance), finish_time_fairness(&instance), min_jct(&instance)] {
        let allocation = allocation.unwrap();
        assert_eq!(allocation.row(0)[1], 0.0);
        assert!(allocation.rate(&instance, 0) > 1.0);
    }
}

#[test]
fn cost_prefers_the_cheaper_type_unless_a_deadline_forbids_it() {
    // Ten times the price for four times the speed.
    let instance = whole(&[1, 1], &[&[4.0, 1.0]]);
    let prices = [1.0, 0.1];
    let thrifty = max_throughput_per_cost(&instance, &prices, &[]).unwrap();
    close(thrifty.row(0)[1], 1.0, 1e-5, "all on the cheap type");
    let hurried = max_throughput_per_cost(&instance, &prices, &[(0, 500.0)]).unwrap();
    close(hurried.rate(&instance, 0), 2.0, 1e-5, "1000 steps in 500 s");
    let hopeless = max_throughput_per_cost(&instance, &prices, &[(0, 100.0)]).unwrap();
    close(hopeless.row(0)[1], 1.0, 1e-5, "deadlines that cannot be met are dropped");
}

/// One accelerator of 300 W and one of 100 W. The second job does 1 step while the first does 100, and gains the more on
/// the frugal type: 0.4 / 100 W against 1 / 300 W, where the first gains 36 / 100 W against 100 / 300 W. By the sum of
/// steps per watt the first job has the frugal type; by efficiency relative to a job's own best, the second has it.
#[test]
fn relative_efficiency_asks_which_job_gains_and_not_whose_steps_are_short() {
    let instance = whole(&[1, 1], &[&[100.0, 36.0], &[1.0, 0.4]]);
    let watts = [300.0, 100.0];
    let summed = max_throughput_per_cost(&instance, &watts, &[]).unwrap();
    let relative = relative_efficiency(&instance, &watts).unwrap();
    assert!(summed.row(0)[1] > 0.99 && summed.row(1)[0] > 0.99, "{summed:?}");
    assert!(relative.row(1)[1] > 0.99 && relative.row(0)[0] > 0.99, "{relative:?}");
    let of = |shares: &TimeShares, job: usize| (0..2).map(|kind| shares.row(job)[kind] * watts[kind]).sum::<f64>();
    // Energy of each job's steps, in multiples of those of its best type: 1 + 1.2 against 1.08 + 1.
    let excess = |shares: &TimeShares| -> f64 {
        let best = [0.36, 0.004];
        (0..2).map(|job| of(shares, job) / (shares.rate(&instance, job) / best[job])).sum()
    };
    close(excess(&summed), 2.2, 1e-2, "by the sum");
    close(excess(&relative), 2.08, 1e-2, "by relative efficiency");
}

#[test]
fn sharing_lifts_fairness_where_two_jobs_hardly_disturb_each_other() {
    let mut instance = whole(&[1], &[&[2.0], &[2.0]]);
    close(fairness(&instance, &max_min(&instance).unwrap()), 0.5, 1e-6, "by turns");
    instance.rows.push(CombinationRow { first: 0, second: Some(1), rates: vec![Some([1.6, 1.8])] });
    let shared = max_min(&instance).unwrap();
    close(fairness(&instance, &shared), 0.85, 0.05, "together");
    assert!(shared.violation(&instance) < 1e-6);
    close(shared.row(2)[0] + shared.row(0)[0] + shared.row(1)[0], 1.0, 1e-5, "the accelerator counts once");
}

#[test]
fn water_filling_goes_on_above_the_minimum() {
    // The first job is stuck at the slow accelerator; max-min fairness asks no more of the others
    // than its level.
    let instance = whole(&[1, 2], &[&[0.0, 1.0], &[8.0, 1.0], &[8.0, 1.0]]);
    let (plain, filled) = (max_min(&instance).unwrap(), water_filling(&instance, &[]).unwrap());
    close(fairness(&instance, &filled), fairness(&instance, &plain), 1e-3, "the minimum");
    assert!(filled.violation(&instance) < 1e-5);
    close(filled.rate(&instance, 1), 4.5, 1e-3, "half of the fast one each, and the slow one for the rest");
    close(filled.rate(&instance, 2), 4.5, 1e-3, "the same");
}

#[test]
fn entities_share_by_weight_and_jobs_inside_by_rule() {
    let instance = whole(&[2], &[&[1.0][..]; 8]);
    let entity = |weight, inside, jobs: std::ops::Range<usize>| Entity { weight, inside, jobs: jobs.collect() };
    let fair = [entity(1.0, Inside::Fair, 0..2), entity(2.0, Inside::Fair, 2..8)];
    let shares: Vec<f64> = {
        let allocation = water_filling(&instance, &fair).unwrap();
        (0..8).map(|job| allocation.rate(&instance, job)).collect()
    };
    close(shares[..2].iter().sum(), 2.0 / 3.0, 1e-3, "one part of three");
    close(shares[2..].iter().sum(), 4.0 / 3.0, 1e-3, "two parts of three");
    close(shares[2], shares[7], 1e-3, "alike inside");
    let fifo = [entity(1.0, Inside::Fifo, 0..4), entity(1.0, Inside::Fifo, 4..8)];
    let allocation = water_filling(&instance, &fifo).unwrap();
    for (job, expected) in [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0].into_iter().enumerate() {
        let rate = allocation.rate(&instance, job);
        assert!((rate - expected).abs() < 1e-3, "job {job}: {rate}");
    }
}

/// Up to 5 jobs of 1 to 4 accelerators on 2 or 3 types, every job fitting somewhere.
fn instances() -> impl Strategy<Value = GavelInstance> {
    (2..=3_usize, 1..=5_usize).prop_flat_map(|(kinds, jobs)| {
        let rate = prop_oneof![5 => (0.1..50.0_f64).prop_map(Some), 1 => Just(None)];
        let row = (prop::collection::vec(rate, kinds), 1..=4_u32, 1.0..1e5_f64, 0.0..1e4_f64, 0.5..4.0_f64);
        (prop::collection::vec(4..9_u32, kinds), prop::collection::vec(row, jobs)).prop_map(|(counts, rows)| {
            let job = |row: &(Vec<Option<f64>>, u32, f64, f64, f64)| GavelJob {
                age_secs: row.3,
                weight: row.4,
                ..GavelJob::new(row.1, row.2)
            };
            let jobs = rows.iter().map(job).collect();
            let rates = rows.into_iter().map(|(mut rates, ..)| {
                rates[0] = rates[0].or(Some(1.0));
                rates
            });
            GavelInstance::new(counts, jobs, rates.collect())
        })
    })
}

/// Steps towards random feasible allocations never improve an optimum.
fn blends(instance: &GavelInstance, best: &TimeShares, draws: &[f64]) -> Vec<TimeShares> {
    let mut draws = draws.iter().cycle().copied();
    (0..40)
        .map(|turn| {
            let mut other = TimeShares::zero(instance);
            for (at, row) in instance.rows.iter().enumerate() {
                for (share, rates) in other.row_mut(at).iter_mut().zip(&row.rates) {
                    *share = rates.map_or(0.0, |_| draws.next().unwrap());
                }
            }
            // Into the constraints, then part of the way from the optimum.
            let excess = 1.0 + other.violation(instance).max(0.0) * 4.0;
            let part = [1.0, 0.3, 0.05, 0.005][turn % 4];
            for at in 0..instance.rows.len() {
                for (share, best) in other.row_mut(at).iter_mut().zip(best.row(at)) {
                    *share = part * *share / excess + (1.0 - part) * best;
                }
            }
            other
        })
        .filter(|other| other.violation(instance) < 1e-9)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_feasible_is_better(instance in instances(), draws in prop::collection::vec(0.0..1.0_f64, 37)) {
        type Value = fn(&GavelInstance, &TimeShares) -> f64;
        let cases: [(&str, Option<TimeShares>, Value); 5] = [
            ("max-min", max_min(&instance), fairness),
            ("finish time", finish_time_fairness(&instance), |i, x| -unfairness(i, x)),
            ("makespan", makespan(&instance), |i, x| -makespan_secs(i, x)),
            ("min jct", min_jct(&instance), |i, x| -total_time(i, x)),
            ("throughput", max_throughput(&instance), throughput),
        ];
        for (name, allocation, value) in cases {
            let allocation = allocation.unwrap();
            prop_assert!(allocation.violation(&instance) < 1e-5, "{name}: {}", allocation.violation(&instance));
            let best = value(&instance, &allocation);
            for other in blends(&instance, &allocation, &draws) {
                let other = value(&instance, &other);
                prop_assert!(other <= best + 1e-5 * best.abs(), "{name}: {other} is above {best}");
            }
        }
    }

    #[test]
    fn bisection_agrees_with_the_one_program(instance in instances()) {
        let exact = makespan_secs(&instance, &makespan(&instance).unwrap());
        let feasible = |secs: f64| within(&instance, secs).is_some_and(|x| x.violation(&instance) < 1e-5);
        prop_assert!(feasible(exact * 1.001) && !feasible(exact * 0.99));
    }

    #[test]
    fn water_filling_keeps_the_minimum_and_the_rules(instance in instances()) {
        let (plain, filled) = (max_min(&instance).unwrap(), water_filling(&instance, &[]).unwrap());
        prop_assert!(filled.violation(&instance) < 1e-5);
        let (low, same) = (fairness(&instance, &plain), fairness(&instance, &filled));
        prop_assert!((same / low - 1.0).abs() < 1e-3, "{same} instead of {low}");
        let total = |x: &TimeShares| (0..instance.jobs.len()).map(|job| x.rate(&instance, job) / isolated_rate(&instance, job)).sum::<f64>();
        prop_assert!(total(&filled) > 0.0);
    }

    #[test]
    fn matching_is_the_best_schedule(times in prop::collection::vec(prop::collection::vec(1..1000_i64, 2), 1..6), free in prop::collection::vec(1..3_usize, 2)) {
        let known: Vec<Vec<Option<i64>>> = times.iter().map(|row| row.iter().map(|&time| Some(time)).collect()).collect();
        let heads = assign(&known, &free);
        // All ways to put the jobs on accelerators, each queue shortest first: the least sum, and
        // which heads have it.
        let machines: Vec<usize> = free.iter().enumerate().flat_map(|(kind, &count)| vec![kind; count]).collect();
        let mut best = (i64::MAX, Vec::new());
        for code in 0..machines.len().pow(times.len() as u32) {
            let of = |job: usize| code / machines.len().pow(job as u32) % machines.len();
            let (mut sum, mut starts) = (0, Vec::new());
            for (machine, &kind) in machines.iter().enumerate() {
                let mut queue: Vec<(i64, usize)> = (0..times.len()).filter(|&job| of(job) == machine).map(|job| (times[job][kind], job)).collect();
                queue.sort_unstable();
                let mut end = 0;
                for (time, _) in &queue {
                    end += time;
                    sum += end;
                }
                starts.extend(queue.first().map(|(_, job)| (*job, kind)));
            }
            starts.sort_unstable();
            match sum.cmp(&best.0) {
                std::cmp::Ordering::Less => best = (sum, vec![starts]),
                std::cmp::Ordering::Equal => best.1.push(starts),
                std::cmp::Ordering::Greater => {}
            }
        }
        let lengths = |starts: &[(usize, usize)]| {
            let mut lengths: Vec<(usize, i64)> = starts.iter().map(|&(job, kind)| (kind, times[job][kind])).collect();
            lengths.sort_unstable();
            lengths
        };
        prop_assert!(best.1.iter().any(|starts| lengths(starts) == lengths(&heads)), "{heads:?}, best {best:?}");
    }
}
