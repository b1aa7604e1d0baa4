//! Accelerators allocated after the openb trace by the policies of the simulator (Weng et al., ATC'23, figure 7).
//!
//! The protocol is that of [`super::fgd`], through the path of every policy. Each pod arrives as a job, one a second,
//! and holds its accelerators until the end. A pod that fits nowhere waits, and never fits, because nothing leaves. Two
//! things differ from the artifact. Processors of nodes are not simulated, so pods on processors only do not arrive,
//! and no node is out of processors. And `fgd` goes by the pods that have arrived, not by a list that is known before
//! the start.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::heuristic::card_sharing;
use goodput_agents::placement::fractional::{MILLI, Node, Request};
use goodput_env::cluster::{Cluster, Node as Machine, TypeId};
use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::placement::ShareRequest;
use goodput_env::scenario::{Information, Rounds, Scenario, SimOptions};
use goodput_env::seed::{self, Stream};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::fgd::{FILES, Openb, PUBLISHED, SEEDS, STRATEGIES, published};
use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of FGD's table of allocated accelerators by policies of the simulator.
pub const POLICIES: Reproduction = Reproduction {
    name: "fgd-policies",
    about: "accelerators allocated by the seven policies of the simulator that share cards; default pods, 10 seeds",
    source: "Weng et al., ATC 2023, without processors; HAMi has no published figure",
    files: FILES,
    run: |data| table(data, SEEDS),
};

/// Time that a job would run: longer than any run.
const FOR_EVER: SimTime = SimTime::from_secs(1_000_000_000);

/// Each policy on the default list, means over `seeds`.
///
/// # Errors
/// Where a file is unusable, or a run cannot go on.
pub fn table(data: &Path, seeds: u64) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let published = published(&data.join(PUBLISHED))?;
    let trace = Openb::read(data, "default")?;
    // Pods of one tenant need no order of tenants.
    let placements = card_sharing::LISTED.iter().filter(|policy| policy.name != card_sharing::FAIR);
    placements
        .map(|policy| {
            let runs = (0..seeds).into_par_iter().map(|seed| allocated_percent(&trace, policy.name, seed));
            let percents = runs.collect::<Result<Vec<f64>, ReproduceError>>()?;
            let theirs = STRATEGIES.iter().find(|(ours, _)| *ours == policy.name);
            let theirs = theirs.and_then(|(_, theirs)| published["openb_pod_list_default"].get(*theirs));
            Ok(ReproducedFigure {
                case: policy.name.to_owned(),
                metric: "allocated_percent",
                theirs: theirs.map(|&(percent, _, _)| percent),
                ours: percents.iter().sum::<f64>() / seeds as f64,
            })
        })
        .collect()
}

/// Accelerators allocated by a policy after all arrivals of a seed, percent.
///
/// # Errors
/// Where the run cannot go on.
pub fn allocated_percent(trace: &Openb, policy: &str, seed: u64) -> Result<f64, ReproduceError> {
    let pods: Vec<Request> = trace.arrivals(seed).into_iter().filter(|pod| pod.accelerators > 0).collect();
    let jobs = pods.iter().zip(0..).map(|(pod, index)| job(pod, index)).collect();
    let last = SimTime::from_secs(pods.len() as i64);
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        information: Information::Profiled,
        horizon: Some(last),
        ..SimOptions::standard()
    };
    let cluster = Arc::new(cluster(&shuffled(&trace.nodes, seed)));
    let scenario = Scenario::new(cluster, Arc::new(Workload::new(Vec::new(), jobs)), options, seed);
    let listed = card_sharing::LISTED.iter().find(|listed| listed.name == policy);
    let mut policy = listed.map(|listed| listed.build(seed)).expect("a listed policy");
    let run = |source| ReproduceError::Run {
        case: format!("{} seed {seed}", listed.map_or("", |listed| listed.name)),
        source,
    };
    let outcome = Simulator::new(Arc::new(scenario)).run(&mut *policy).map_err(run)?;
    let placed = pods.iter().zip(&outcome.jobs).filter(|(_, job)| job.start.is_some());
    let milli: u64 = placed.map(|(pod, _)| u64::from(pod.total_milli())).sum();
    Ok(milli as f64 * 100.0 / trace.total_milli as f64)
}

fn job(pod: &Request, index: i64) -> JobSpec {
    let share = (pod.accelerators == 1 && pod.milli < MILLI)
        .then(|| ShareRequest { compute_percent: pod.milli.div_ceil(10), memory_mib: 0 });
    let (name, submit) = (format!("pod-{index}"), SimTime::from_secs(index));
    let request = JobRequest { name, submit, gpus: pod.accelerators, share, ..JobRequest::default() };
    JobSpec { request, work: Work::Fixed { duration: FOR_EVER } }
}

/// The machines in an order that is drawn, because the lowest node wins ties.
pub fn shuffled(nodes: &[Node], seed: u64) -> Vec<Node> {
    let mut nodes = nodes.to_vec();
    nodes.shuffle(&mut seed::rng(seed, Stream::Policy));
    nodes
}

fn cluster(nodes: &[Node]) -> Cluster {
    let mut cluster = Cluster::homogeneous(1, 1);
    cluster.nodes = nodes.iter().map(|node| Machine::new(TypeId(0), node.idle.len() as u32)).collect();
    cluster
}
