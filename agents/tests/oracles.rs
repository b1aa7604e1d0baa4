//! Hand-worked examples of the published policies, through the real simulator.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use crate::support::{fixed, jcts, oracle};
use goodput_agents::heuristic::fifo::Fifo;
use goodput_agents::heuristic::optimus;
use goodput_agents::heuristic::pollux::objective::ObjectiveParameters;
use goodput_agents::heuristic::srtf::{Shortest, Srtf};
use goodput_agents::heuristic::tiresias::{ServiceMeasure, Tiresias, TiresiasConfig};
use goodput_agents::placement::{Free, Packer};
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::JobSpec;
use goodput_env::policy::Policy;
use serde_json::Value;

fn numbers(value: &Value) -> BTreeMap<String, f64> {
    let object = value.as_object().unwrap();
    object.iter().map(|(name, number)| (name.clone(), number.as_f64().unwrap())).collect()
}

fn jobs(value: &Value) -> Vec<JobSpec> {
    let rows = value.as_array().unwrap().iter();
    rows.map(|row| {
        let number = |at: usize| row[at].as_i64().unwrap();
        fixed(row[0].as_str().unwrap(), number(1) as u32, number(2), number(3))
    })
    .collect()
}

fn tiresias(limit: u32, service: ServiceMeasure, starvation_knob: f64) -> Tiresias {
    Tiresias::new(TiresiasConfig { starvation_knob, ..TiresiasConfig::queues(&[limit], service) })
}

#[test]
fn tiresias_in_one_and_two_dimensions() {
    let expected = oracle("tiresias_2dlas");
    let jobs = jobs(&expected["jobs"]);
    assert_eq!(jcts(&mut tiresias(3200, ServiceMeasure::GpuTime, 0.0), 4, jobs.clone()), numbers(&expected["jct"]));
    assert_eq!(jcts(&mut tiresias(3200, ServiceMeasure::Time, 0.0), 4, jobs), numbers(&oracle("tiresias_1d")));
}

#[test]
fn tiresias_promotes_the_starving() {
    let expected = oracle("tiresias_starve");
    let jobs = jobs(&expected["jobs"]);
    let with_knob = |knob: f64| jcts(&mut tiresias(2000, ServiceMeasure::GpuTime, knob), 2, jobs.clone());
    assert_eq!(with_knob(0.0), numbers(&expected["nokn"]));
    assert_eq!(with_knob(2.0), numbers(&expected["knob2"]));
    assert_eq!(with_knob(8.0)["L"], 24_000.0);
}

#[test]
fn smallest_first_and_shortest_remaining_time_and_service() {
    let first = [("J1", 2, 2), ("J2", 1, 8), ("J3", 2, 6)];
    let second = [("J1", 4, 3), ("J2", 1, 4), ("J3", 1, 5), ("J4", 2, 4)];
    for (key, gpus, jobs) in [("tiresias_example", 2, &first[..]), ("tiresias_example2", 4, &second[..])] {
        let jobs: Vec<JobSpec> = jobs.iter().map(|&(name, gpus, secs)| fixed(name, gpus, secs, 0)).collect();
        let expected = oracle(key);
        for (name, shortest) in [("SF", Shortest::Size), ("SRTF", Shortest::Time), ("SRSF", Shortest::Service)] {
            let found = jcts(&mut Srtf::new(shortest), gpus, jobs.clone());
            assert_eq!(found, numbers(&expected[name]["jct"]), "{key} {name}");
        }
    }
}

#[test]
fn fifo_blocks_at_the_head_unless_it_backfills() {
    let jobs = vec![fixed("a", 3, 100, 0), fixed("b", 4, 10, 1), fixed("c", 1, 50, 2)];
    let found = |policy: &mut dyn Policy| jcts(policy, 4, jobs.clone()).into_values().collect::<Vec<_>>();
    assert_eq!(found(&mut Fifo::strict()), [100.0, 109.0, 158.0]);
    assert_eq!(found(&mut Fifo::backfill()), [100.0, 109.0, 50.0]);
}

#[test]
fn optimus_counts() {
    let secs = [[10.0, 5.5, 4.2, 3.6, 3.3], [8.0, 4.8, 3.7, 3.2, 3.0], [2.0, 1.3, 1.2, 1.19, 1.19]];
    let remaining = [100.0, 60.0, 300.0];
    let gain = |job: usize, count: u32| {
        let at = count as usize;
        if at < 5 { (secs[job][at - 1] - secs[job][at]) * remaining[job] } else { 0.0 }
    };
    for (gpus, expected) in oracle("optimus").as_object().unwrap() {
        let mut counts = Vec::new();
        optimus::allocate(3, gpus.parse().unwrap(), |_| 1, gain, &mut counts);
        let expected = ["A", "B", "C"].map(|name| expected[0][name].as_u64().unwrap() as u32);
        assert_eq!(counts, expected, "{gpus} GPUs");
    }
}

#[test]
fn optimus_ties_go_to_the_first_job_and_minima_come_first() {
    let mut counts = Vec::new();
    optimus::allocate(3, 5, |_| 1, |_, count| f64::from(10 - count), &mut counts);
    assert_eq!(counts, [2, 2, 1]);
    optimus::allocate(3, 5, |job| [4, 3, 1][job], |_, _| 1.0, &mut counts);
    assert_eq!(counts, [4, 0, 1]);
}

#[test]
fn pollux_fitness() {
    let cases: [&[(f64, f64, u32, bool)]; 3] = [
        &[(2.0, 600.0, 1, false), (1.0, 600.0, 1, false)],
        &[(1.5, 600.0, 1, true), (1.5, 600.0, 1, true)],
        &[(1.5, 60.0, 0, true), (1.5, 60.0, 0, true)],
    ];
    let objective = ObjectiveParameters::default();
    // Two nodes of four: a share is an eighth, and a node's worth counts 1.
    for (case, expected) in cases.iter().zip(oracle("pollux_fitness").as_array().unwrap()) {
        let scaled: Vec<f64> = case
            .iter()
            .map(|&(speedup, age, restarts, moved)| {
                speedup / 8.0 * 2.0 * if moved { objective.restart_factor(age, restarts) } else { 1.0 }
            })
            .collect();
        let expected = expected.as_f64().unwrap();
        let found = objective.fitness(&scaled);
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }
}

#[test]
fn packers() {
    for (key, packer) in [("placement_bestfit", Packer::FewestNodes), ("placement_mostfree", Packer::MostFreeFirst)] {
        let expected = oracle(key);
        let mut free = Free::listed(&Cluster::homogeneous(3, 4), &[1, 2, 4]);
        for (name, gpus) in [("j1", 1), ("j2", 2), ("j4", 4)] {
            let placement = packer.place(&Cluster::homogeneous(3, 4), &mut free, gpus).unwrap();
            let nodes = placement.slices().iter().flat_map(|slice| vec![slice.node; slice.gpus as usize]);
            let expected = expected[name].as_array().unwrap().iter().map(|node| NodeId(node.as_u64().unwrap() as u32));
            assert_eq!(nodes.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{key} {name}");
        }
    }
}
