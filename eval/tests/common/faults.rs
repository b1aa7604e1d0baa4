//! Clusters that break: what checkpoints and their intervals are worth. The tests say which way,
//! `cargo xtask bench faults` how much.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use goodput_agents::compose::by_name;
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::checkpoint::young;
use goodput_env::model::fault::{Causes, LogNormal};
use goodput_env::model::{Checkpointing, FaultModel, Interval, SwitchCost};
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_eval::metrics::{Measures, RunFacts, measure};
use rand::RngExt;

fn job(index: usize, submit: SimTime, gpus: u32, duration: SimTime) -> JobSpec {
    let request = JobRequest {
        name: format!("j{index}"),
        tenant: 0,
        submit,
        gpus,
        elasticity: Elasticity::Rigid,
        ..JobRequest::default()
    };
    JobSpec { request, work: Work::Fixed { duration } }
}

fn play(jobs: Vec<JobSpec>, faults: FaultModel, checkpoint: Checkpointing, seed: u64) -> Measures {
    let options = SimOptions {
        switch_cost: SwitchCost::POLLUX,
        batching: Batching::Requested,
        information: Information::Oracle,
        faults: Some(faults),
        checkpoint: Some(checkpoint),
        ..SimOptions::standard()
    };
    let cluster = Arc::new(Cluster::homogeneous(16, 8));
    let scenario = Arc::new(Scenario::new(cluster, Arc::new(Workload::new(Vec::new(), jobs)), options, seed));
    let outcome = Simulator::new(scenario.clone()).run(&mut *by_name("fifo-backfill", seed).unwrap()).unwrap();
    measure(&RunFacts::new(&scenario, &outcome))
}

/// Seconds of a write and between faults of [`gang`].
pub const WRITE_SECS: f64 = 5.0;
pub const MTBF_SECS: f64 = 10_800.0;

/// One gang of 128 accelerators for 20,000 hours, stopped every 3 hours, with checkpoints of 5 s
/// every `secs`. Nodes are back at once.
pub fn gang(secs: f64, seed: u64) -> Measures {
    let faults = FaultModel {
        mtbf_hours: 16.0 * MTBF_SECS / 3600.0,
        causes: Causes { accelerator: 0.0, node: 1.0, network: 0.0 },
        repair: LogNormal { median_secs: 1.0, sigma: 0.0 },
        ..FaultModel::default()
    };
    let interval = Interval::Fixed { secs };
    let checkpoint = Checkpointing { interval, other_millions: WRITE_SECS * 0.5e3 / 12.0, ..Checkpointing::default() };
    play(vec![job(0, SimTime::ZERO, 128, SimTime::from_secs(20_000 * 3600))], faults, checkpoint, seed)
}

/// Intervals around Young's, seconds, and the effective training time at each, mean of three seeds.
pub fn sweep() -> Vec<(f64, f64)> {
    let best = young(WRITE_SECS, MTBF_SECS);
    let at = |factor: f64| {
        let ettr: f64 = (0..3).map(|seed| gang(factor * best, seed).get("ettr").unwrap()).sum();
        (factor * best, ettr / 3.0)
    };
    [0.25, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0, 11.0].map(at).to_vec()
}

/// 300 gangs of 8 to 64 accelerators for 2 to 20 hours under published causes and repairs; mean of
/// five seeds of one metric.
pub fn busy(metric: &str, mtbf_hours: f64, interval: Interval) -> f64 {
    let run = |seed: u64| {
        let mut rng = rng(seed, Stream::Workload);
        let mut now = 0;
        let jobs = (0..300).map(|index| {
            now += rng.random_range(0..5000);
            let gpus = 8 << rng.random_range(0..4);
            job(index, SimTime::from_secs(now), gpus, SimTime::from_secs(rng.random_range(7_200..72_000)))
        });
        let faults = FaultModel { mtbf_hours, ..FaultModel::default() };
        play(jobs.collect(), faults, Checkpointing { interval, ..Checkpointing::default() }, seed).get(metric).unwrap()
    };
    (0..5).map(run).sum::<f64>() / 5.0
}

pub const HOURLY: Interval = Interval::Fixed { secs: 3600.0 };
