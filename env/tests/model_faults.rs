//! Intervals between checkpoints against worked values, and fault processes against their distributions.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::{fixed, scenario};
use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::model::FaultModel;
use goodput_env::model::checkpoint::{daly, waste, young};
use goodput_env::model::fault::{Bugs, Cause, Lemons, PUBLISHED_MTBF_HOURS, Seen};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::SimOptions;
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

#[test]
fn intervals_of_young_and_daly() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/oracles/oracles.json");
    let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = all["young_daly"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let [c, m, r] = ["C", "M", "R"].map(|key| row[key].as_f64().unwrap());
        for (key, value) in [("young", young(c, m)), ("daly", daly(c, m)), ("waste", waste(young(c, m), c, m, r))] {
            assert!((value - row[key].as_f64().unwrap()).abs() < 1e-9, "{key} {value} {row}");
        }
    }
    let rounded = |secs: f64| (secs * 10.0).round() / 10.0;
    assert_eq!([rounded(young(5.0, 10_800.0)), rounded(daly(5.0, 10_800.0))], [328.6, 325.3]);
}

/// Starts what fits.
struct FirstFit;

impl Policy for FirstFit {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let (mut plan, mut free) = (Plan::keep(), view.free().to_vec());
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            if let Some(placement) =
                goodput_env::placement::pack(view.cluster(), &mut free, TypeId(0), job.request().gpus)
            {
                plan.set(job.id(), placement);
            }
        }
        plan
    }
}

#[test]
fn a_million_node_hours_have_as_many_faults_as_a_poisson_process() {
    let hours = 1000;
    for (cluster, accelerators) in [("1000x8", 8.0), ("2000x4", 4.0)] {
        let options = SimOptions {
            faults: Some(FaultModel::default()),
            horizon: Some(SimTime::from_secs(hours * 3600)),
            ..SimOptions::standard()
        };
        let jobs = vec![fixed("long", 0, 1, 2 * hours * 3600)];
        let outcome = Simulator::new(scenario(cluster, jobs, options)).run(&mut FirstFit).unwrap();
        let count = f64::from(outcome.hardware.accelerators + outcome.hardware.nodes + outcome.hardware.networks);
        let nodes = 8000.0 / accelerators;
        let expected = nodes * hours as f64 * accelerators / 8.0 / PUBLISHED_MTBF_HOURS;
        assert!((count - expected).abs() < 3.0 * expected.sqrt(), "{cluster}: {count}, expected {expected}");
    }
}

#[test]
fn gaps_causes_and_repairs_follow_their_laws() {
    let model = FaultModel::default();
    let count = 20_000;
    let strikes: Vec<_> =
        (0..count).map(|number| model.strike(7, NodeId(number % 50), number / 50, 8).unwrap()).collect();
    let mean = strikes.iter().map(|strike| strike.gap.as_secs_f64()).sum::<f64>() / f64::from(count) / 3600.0;
    assert!((mean / PUBLISHED_MTBF_HOURS - 1.0).abs() < 3.0 / f64::from(count).sqrt(), "{mean}");
    let of = |cause| strikes.iter().filter(|strike| strike.cause == cause).count() as f64 / f64::from(count);
    for (cause, weight) in [(Cause::Accelerator, 256.0), (Cause::Node, 128.0), (Cause::Network, 35.0)] {
        let share: f64 = weight / 419.0;
        assert!((of(cause) - share).abs() < 3.0 * (share / f64::from(count)).sqrt(), "{cause:?} {}", of(cause));
    }
    let mut repairs: Vec<_> =
        strikes.iter().filter(|strike| strike.cause != Cause::Network).map(|strike| strike.lasts).collect();
    repairs.sort_unstable();
    assert!((repairs[repairs.len() / 2].as_secs_f64() / 3600.0 - 1.0).abs() < 0.05);
    let bad = strikes.iter().filter(|strike| strike.cause == Cause::Network).map(|strike| strike.lasts.as_secs_f64());
    assert!(bad.clone().all(|secs| (300.0..=1800.0).contains(&secs)) && bad.fold(0.0, f64::max) > 1700.0);
}

#[test]
fn a_draw_depends_on_its_own_key_only() {
    let model = FaultModel::default();
    let lemons =
        FaultModel { lemons: Some(Lemons { share: 0.2, factor: 10.0 }), bugs: Some(Bugs::default()), ..model.clone() };
    let (mut often, mut buggy) = (0, 0);
    for node in NodeId::first(1000) {
        let (plain, frail) = (model.strike(1, node, 5, 8).unwrap(), lemons.strike(1, node, 5, 8).unwrap());
        assert_eq!((plain.cause, plain.lasts), (frail.cause, frail.lasts));
        often += u32::from(frail.gap < plain.gap);
        buggy += u32::from(lemons.is_buggy(1, JobId(node.0), 0));
        assert_ne!(plain.gap, model.strike(2, node, 5, 8).unwrap().gap);
    }
    assert!((160..240).contains(&often), "{often}");
    assert!((136..208).contains(&buggy), "{buggy}");
    let attempts: Vec<_> = (0..4).map(|attempt| lemons.fails_after(1, JobId(3), attempt)).collect();
    assert!(attempts.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_larger_job_is_stopped_more_often_and_experience_counts() {
    let model = FaultModel::default();
    let alone = model.job_mtbf_secs(&Placement::on(NodeId(0), 8), |_| 8);
    let gang = model.job_mtbf_secs(&Placement::from_iter(NodeId::first(16).map(|node| (node, 8))), |_| 8);
    assert!((alone / gang - 16.0).abs() < 1e-9);
    // 384 of 419 faults stop a job that holds all of a node.
    assert!((alone / 3600.0 - 6000.0 * 419.0 / 384.0).abs() < 1e-6);
    assert!(model.job_mtbf_secs(&Placement::on(NodeId(0), 1), |_| 8) > 2.0 * alone);
    assert_eq!(FaultModel::scripted(Vec::new()).job_mtbf_secs(&Placement::on(NodeId(0), 1), |_| 8), f64::INFINITY);

    let (elapsed, cluster) = (SimTime::from_secs(1000 * 3600), (100, 800));
    assert!((Seen::default().job_mtbf_secs(SimTime::ZERO, cluster, (1, 8)) - alone).abs() < 1e-6);
    // Ten node faults and twenty accelerator faults in 100,000 node-hours.
    let seen = Seen { accelerators: 20, nodes: 10 }.job_mtbf_secs(elapsed, cluster, (1, 8));
    assert!((seen / 3600.0 / (100_000.0 / 30.0) - 1.0).abs() < 0.1, "{}", seen / 3600.0);
}
