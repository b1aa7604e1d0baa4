//! Resilience: key jobs meet their deadlines when nodes are lost, bad nodes are avoided, and one
//! tenant's crashes do not reach another.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::fixed;
use goodput_agents::compose::by_name;
use goodput_agents::compose::resilience::{BackOff, BackOffTerms, Quarantine, QuarantineTerms, Reserve, ReserveTerms};
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::{JobSpec, Workload};
use goodput_env::model::fault::{Bugs, Cause, Causes, Lemons, LogNormal, Scripted};
use goodput_env::model::{Checkpointing, FaultModel, Interval, SwitchCost};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::sim::{JobRecord, Outcome, Simulator};

const KEY: u32 = 1;

fn of_tenant(tenant: u32, mut job: JobSpec) -> JobSpec {
    job.request.tenant = tenant;
    job.request.priority = tenant as i32;
    job
}

/// Restarts of half a minute, checkpoints every minute.
fn options(faults: Option<FaultModel>) -> SimOptions {
    SimOptions {
        switch_cost: SwitchCost::Constant { millis: 30_000 },
        information: Information::Oracle,
        faults,
        checkpoint: Some(Checkpointing { interval: Interval::Fixed { secs: 60.0 }, ..Checkpointing::default() }),
        ..SimOptions::standard()
    }
}

fn run(policy: &mut dyn Policy, nodes: u32, jobs: Vec<JobSpec>, options: SimOptions, seed: u64) -> Outcome {
    let cluster = Arc::new(Cluster::homogeneous(nodes, 8));
    let scenario = Scenario::new(cluster, Arc::new(Workload::new(Vec::new(), jobs)), options, seed);
    Simulator::new(Arc::new(scenario)).run(policy).unwrap()
}

fn fifo() -> Box<dyn Policy> {
    by_name("fifo", 0).unwrap()
}

fn reserve(gpus: u32) -> Reserve {
    Reserve::new(fifo(), by_name("srtf", 0).unwrap(), ReserveTerms { gpus, tenants: Vec::new(), priority: Some(1) })
}

fn backed_off() -> BackOff {
    BackOff::new(Box::new(reserve(16)), &BackOffTerms::default())
}

/// A key job of eight accelerators for ten minutes every half hour, among more other work than the
/// cluster can take.
fn crowded() -> Vec<JobSpec> {
    let key = (0..40).map(|at| of_tenant(KEY, fixed(&format!("key-{at}"), 8, 600, 1800 * at)));
    let rest = (0..400).map(|at| fixed(&format!("rest-{at}"), 1 + (at % 12) as u32, 7200, 150 * at));
    key.chain(rest).collect()
}

/// Ten per cent of the nodes are lost for the whole run, one of them reserved.
fn tenth_of_20_lost() -> FaultModel {
    let lost = |at_secs, node| Scripted { at_secs, cause: Cause::Node, node, lasts_secs: None };
    FaultModel::scripted(vec![lost(4000.0, NodeId(0)), lost(10_000.0, NodeId(7))])
}

fn jcts(jobs: &[JobSpec], outcome: &Outcome, tenant: u32) -> Vec<f64> {
    let of = |record: &&JobRecord| jobs[record.job.index()].request.tenant == tenant;
    outcome.jobs.iter().filter(of).filter_map(|record| Some(record.jct()?.as_secs_f64())).collect()
}

/// Completion within 1.5 times the run time.
fn slo_met(jcts: &[f64]) -> f64 {
    jcts.iter().filter(|&&jct| jct <= 900.0).count() as f64 / jcts.len() as f64
}

#[test]
fn key_jobs_keep_their_slo_when_a_tenth_of_the_nodes_is_lost() {
    let mut jobs = crowded();
    jobs.sort_by_key(|job| job.request.submit);
    let with = run(&mut reserve(16), 20, jobs.clone(), options(Some(tenth_of_20_lost())), 5);
    let without = run(&mut *fifo(), 20, jobs.clone(), options(Some(tenth_of_20_lost())), 5);
    let (kept, lost) = (jcts(&jobs, &with, KEY), jcts(&jobs, &without, KEY));
    assert_eq!((kept.len(), slo_met(&kept)), (40, 1.0), "{kept:?}");
    assert!(slo_met(&lost) < 0.5, "{lost:?}");
    assert!(with.jobs.iter().all(|job| job.finish.is_some()));
}

#[test]
fn nodes_that_fail_again_and_again_are_left_alone() {
    let lemons = FaultModel {
        mtbf_hours: 3000.0,
        causes: Causes { accelerator: 0.0, node: 1.0, network: 0.0 },
        lemons: Some(Lemons { share: 0.08, factor: 300.0 }),
        repair: LogNormal { median_secs: 600.0, sigma: 0.5 },
        ..FaultModel::default()
    };
    let jobs: Vec<JobSpec> = (0..120).map(|at| fixed(&format!("j{at}"), 16, 40_000, 3000 * at)).collect();
    let hits = |policy: &mut dyn Policy, seed: u64| {
        let outcome = run(policy, 24, jobs.clone(), options(Some(lemons.clone())), seed);
        assert!(!outcome.truncated);
        outcome.jobs.iter().map(|job| job.faults.hits).sum::<u32>()
    };
    let plain: u32 = (0..8).map(|seed| hits(&mut *fifo(), seed)).sum();
    let spared: u32 = (0..8).map(|seed| hits(&mut Quarantine::new(fifo(), QuarantineTerms::default()), seed)).sum();
    assert!(plain > 40);
    assert!(3 * plain > 5 * spared, "{plain} without, {spared} with quarantine");
}

#[test]
fn a_crash_loop_and_a_flood_do_not_reach_the_honest_tenant() {
    // Long enough to be measured, few enough to fit into the reserve.
    let honest = || (0..30).map(|at| of_tenant(KEY, fixed(&format!("b{at}"), 8, 3000, 2000 * at)));
    let attack = || (0..3000).map(|at| of_tenant(0, fixed(&format!("a{at}"), 4, 4000, 10 * at)));
    let bugs = Bugs { share: 1.0, tenant: Some(0), retries: 3, after: LogNormal { median_secs: 30.0, sigma: 1.0 } };
    let crash = FaultModel { bugs: Some(bugs), ..FaultModel::scripted(Vec::new()) };
    let mean = |policy: &mut dyn Policy, mut jobs: Vec<JobSpec>| {
        jobs.sort_by_key(|job| job.request.submit);
        let outcome = run(policy, 8, jobs.clone(), options(Some(crash.clone())), 5);
        let honest = jcts(&jobs, &outcome, KEY);
        assert_eq!(honest.len(), 30);
        honest.iter().sum::<f64>() / 30.0
    };
    let alone = mean(&mut backed_off(), honest().collect());
    let attacked = mean(&mut backed_off(), honest().chain(attack()).collect());
    let index = attacked / alone;
    assert!(index <= 1.02, "isolation index {index}");
    let unprotected = mean(&mut *fifo(), honest().chain(attack()).collect()) / mean(&mut *fifo(), honest().collect());
    assert!(unprotected > 1.02, "{unprotected}");
}
