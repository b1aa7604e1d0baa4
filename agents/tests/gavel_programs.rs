//! Gavel's programs: the objectives of its own implementation on five instances, hand-worked cases, and brute force on small ones.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::heuristic::gavel::instance::{Allocation, Instance, Job};
use goodput_agents::heuristic::gavel::isolated::{isolated, isolated_rate};
use goodput_agents::heuristic::gavel::objectives::*;
use goodput_agents::heuristic::gavel::water_filling::{Entity, Inside, water_filling};
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
fn instance(value: &Value, order: &[&str]) -> Instance {
    let counts = order.iter().map(|kind| value["cluster"][kind].as_u64().unwrap() as u32).collect();
    let rows = value["jobs"].as_array().unwrap();
    let jobs = rows.iter().map(|row| Job {
        weight: number(&row["priority_weight"]),
        age_secs: number(&row["time_since_start"]),
        ..Job::new(row["scale_factor"].as_u64().unwrap() as u32, number(&row["steps_remaining"]))
    });
    let rate = |row: &Value, kind: &str| Some(number(&row["throughput"][kind])).filter(|&rate| rate > 0.0);
    let rates = rows.iter().map(|row| order.iter().map(|kind| rate(row, kind)).collect()).collect();
    Instance::new(counts, jobs.collect(), rates)
}

fn smallest(instance: &Instance, value: impl Fn(usize) -> f64) -> f64 {
    (0..instance.jobs.len()).map(value).fold(f64::INFINITY, f64::min)
}

fn fairness(instance: &Instance, allocation: &Allocation) -> f64 {
    smallest(instance, |job| allocation.rate(instance, job) * fair_scale(instance, job))
}

#[test]
fn golden_objectives() {
    let golden = golden();
    let order: Vec<&str> = golden["worker_order"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect();
    for (at, case) in golden["instances"].as_array().unwrap().iter().enumerate() {
        let instance = instance(case, &order);
        let blind = instance.blind(|_| 1.0);
        let ours = [
            ("isolated", isolated(&instance)),
            ("max_min_fairness", max_min(&blind).unwrap()),
            ("max_min_fairness_perf", max_min(&instance).unwrap()),
            ("finish_time_fairness_perf", finish_time_fairness(&instance).unwrap()),
            ("min_total_duration_perf", makespan(&instance).unwrap()),
            ("max_sum_throughput_perf", max_throughput(&instance).unwrap()),
        ];
        for (policy, allocation) in ours {
            assert!(allocation.violation(&instance) < 1e-6, "{policy} {at}: {}", allocation.violation(&instance));
            let rates = (0..instance.jobs.len()).map(|job| allocation.rate(&instance, job));
            let value = match policy {
                "isolated" => smallest(&instance, |job| allocation.rate(&instance, job)),
                "max_min_fairness" => fairness(&blind, &allocation),
                "max_min_fairness_perf" => fairness(&instance, &allocation),
                "finish_time_fairness_perf" => -smallest(&instance, |job| -finish_time_ratio(&instance, &allocation, job)),
                "min_total_duration_perf" => makespan_secs(&instance, &allocation),
                _ => rates.sum(),
            };
            println!("{at} {policy} {value} {}", case["policies"][policy]["CLARABEL"]["objective"]);
        }
    }
    panic!();
}
