//! Gavel's `medium_test` trace under each policy of its simulator that runs to the end: mean
//! completion time and makespan.
//!
//! 20 jobs of one accelerator, all there from the start, on 2 + 4 + 6 accelerators of three types.
//! The reference was made with the artifact at seed 0 and rounds of 360 s. Our policies run as its
//! replicas: same rounds, same draws.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::DataError;
use goodput_datasets::import::{gavel, gavel_throughputs};
use goodput_env::cluster::{AcceleratorType, Cluster, Node, TypeId};
use goodput_env::job::Workload;
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Batching, Information, Release, Rounds, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use rayon::prelude::*;

use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of Gavel's medium test.
pub const TABLE: Reproduction = Reproduction {
    name: "gavel-medium",
    about: "mean completion time and makespan of Gavel's policies on its medium_test trace; 2 V100, 4 P100, 6 K80",
    source: "Narayanan et al., OSDI 2020; stanford-futuredata/gavel, commit c4fa400",
    files: &["data/gavel/medium_test.trace", "data/gavel/simulation_throughputs.json", "reference/gavel"],
    run,
};

/// The artifact's name of a policy, and ours.
pub const POLICIES: [(&str, &str); 12] = [
    ("fifo", "gavel-fifo@replica"),
    ("fifo_perf", "gavel-fifo-perf@replica"),
    ("max_min_fairness", "gavel-max-min-agnostic@replica"),
    ("max_min_fairness_perf", "gavel-max-min@replica"),
    ("finish_time_fairness", "gavel-ftf-agnostic@replica"),
    ("finish_time_fairness_perf", "gavel-ftf@replica"),
    ("min_total_duration", "gavel-makespan-agnostic@replica"),
    ("min_total_duration_perf", "gavel-makespan@replica"),
    ("max_sum_throughput_perf", "gavel-max-throughput@replica"),
    ("isolated", "gavel-isolated@replica"),
    ("gandiva", "gavel-gandiva@replica"),
    ("max_min_fairness_water_filling_perf", "gavel-water-filling@replica"),
];

/// The trace over the classes of the throughput file.
///
/// # Errors
/// Where a file cannot be read or a row cannot be used.
pub fn workload(data: &Path) -> Result<Workload, DataError> {
    let read = |path: &Path| std::fs::read(path).map_err(|source| DataError::Read { path: path.to_owned(), source });
    let speeds = data.join("data/gavel/simulation_throughputs.json");
    let classes = gavel_throughputs::parse(&speeds, &read(&speeds)?)?;
    let path = data.join("data/gavel/medium_test.trace");
    let trace = gavel::parse(&path, &read(&path)?, &classes)?;
    match trace.report.refused.examples.into_iter().next() {
        Some((line, problem)) => Err(DataError::Row { path, line, problem }),
        None => Ok(trace.workload),
    }
}

/// Single-accelerator servers: 2 V100, 4 P100, 6 K80, in the order in which the artifact fills
/// types.
pub fn cluster() -> Cluster {
    let kinds = [("v100", 2), ("p100", 4), ("k80", 6)];
    let types =
        kinds.map(|(name, _)| AcceleratorType { name: name.into(), kind: Default::default(), memory_mib: None });
    let of_kind = |(at, (_, count)): (usize, (&str, usize))| vec![Node::new(TypeId::at(at), 1); count];
    Cluster { types: types.into(), nodes: kinds.into_iter().enumerate().flat_map(of_kind).collect() }
}

/// The conventions of the artifact's simulator: the policy keeps its own rounds, and switching
/// costs nothing.
pub fn options() -> SimOptions {
    SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        release: Release::Immediately,
        switch_cost: SwitchCost::Zero,
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    }
}

/// One policy, by our name, on the trace.
///
/// # Errors
/// Where the run fails.
pub fn simulate(policy: &str, workload: &Arc<Workload>, seed: u64) -> Result<Outcome, ReproduceError> {
    let mut made = compose::by_name(policy, seed).expect("policies of the table are in the list");
    let scenario = Scenario::new(Arc::new(cluster()), workload.clone(), options(), seed);
    Simulator::new(Arc::new(scenario))
        .run(&mut *made)
        .map_err(|source| ReproduceError::Run { case: policy.into(), source })
}

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let workload = Arc::new(workload(data)?);
    let figures = POLICIES.into_par_iter().map(|(theirs, ours)| {
        let published = published(data, theirs)?;
        let outcome = simulate(ours, &workload, 0)?;
        let jcts: Vec<f64> = outcome.jobs.iter().filter_map(|job| job.jct()).map(|jct| jct.as_secs_f64()).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let latest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        Ok([
            ReproducedFigure {
                case: theirs.into(),
                metric: "jct_mean_secs",
                theirs: Some(mean(&published)),
                ours: mean(&jcts),
            },
            ReproducedFigure {
                case: theirs.into(),
                metric: "makespan_secs",
                theirs: Some(latest(&published)),
                ours: latest(&jcts),
            },
        ])
    });
    let figures: Result<Vec<_>, ReproduceError> = figures.collect();
    Ok(figures?.into_iter().flatten().collect())
}

/// Completion times of the artifact's run, seconds, by position in the trace.
///
/// # Errors
/// Where the reference is absent or not what it should be.
pub fn published(data: &Path, policy: &str) -> Result<Vec<f64>, ReproduceError> {
    let path = data.join(format!("reference/gavel/medium_test-2_4_6-{policy}.jct.json"));
    let wrong = |problem: String| ReproduceError::Reference { path: path.clone(), problem };
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let by_job: std::collections::BTreeMap<String, f64> =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let of_job = |job: usize| by_job.get(&job.to_string()).copied();
    let times: Option<Vec<f64>> = (0..by_job.len()).map(of_job).collect();
    times.ok_or_else(|| wrong("jobs are not numbered from 0".into()))
}
