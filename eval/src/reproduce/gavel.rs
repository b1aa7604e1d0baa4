//! Gavel's traces under each policy of its simulator that runs to the end: mean completion time and
//! makespan.
//!
//! `medium_test` has 20 jobs of one accelerator, all there from the start, on 2 + 4 + 6 accelerators of
//! three types. `max_min_fairness` has 96 jobs of one, two and four accelerators that arrive over 13
//! hours, on 8 + 16 + 24. The references were made with the artifact at seed 0, rounds of 360 s and servers
//! of one accelerator. Our policies run as its replicas under [`Preset::GavelOsdi20`]: same rounds, same draws.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::DataError;
use goodput_datasets::import::gavel;
use goodput_env::cluster::{AcceleratorType, Cluster, Node, TypeId};
use goodput_env::job::Workload;
use goodput_env::scenario::{Preset, Scenario};
use goodput_env::sim::{Outcome, Simulator};
use rayon::prelude::*;

use super::{ReproduceError, ReproducedFigure, Reproduction};

const SOURCE: &str = "Narayanan et al., OSDI 2020; stanford-futuredata/gavel, commit c4fa400";

/// Reproduction of Gavel's medium test.
pub const MEDIUM: Reproduction = Reproduction {
    name: "gavel-medium",
    about: "mean completion time and makespan of Gavel's policies on its medium_test trace; 2 V100, 4 P100, 6 K80",
    source: SOURCE,
    files: &["data/gavel/medium_test.trace", "data/gavel/simulation_throughputs.json", "reference/gavel"],
    run: |data| run(data, &MEDIUM_TEST),
};

/// Reproduction of Gavel's trace of jobs of several sizes.
pub const SIZES: Reproduction = Reproduction {
    name: "gavel-sizes",
    about: "mean completion time and makespan of Gavel's policies on its max_min_fairness trace; 8 V100, 16 P100, 24 K80",
    source: SOURCE,
    files: &["data/gavel/max_min_fairness.trace", "data/gavel/simulation_throughputs.json", "reference/gavel"],
    run: |data| run(data, &MAX_MIN_FAIRNESS),
};

/// Trace of the artifact with the cluster of its reference results.
#[derive(Clone, Copy, Debug)]
pub struct GavelCase {
    /// Name of the trace, and of its file without the extension.
    pub name: &'static str,
    /// Number of V100, P100 and K80.
    pub accelerators: [usize; 3],
    /// The artifact's name of each policy with a reference result, and ours.
    pub policies: &'static [(&'static str, &'static str)],
}

/// 20 jobs of one accelerator, all there from the start.
pub const MEDIUM_TEST: GavelCase = GavelCase {
    name: "medium_test",
    accelerators: [2, 4, 6],
    policies: &[
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
    ],
};

/// 96 jobs of one, two and four accelerators, arriving over 13 hours.
pub const MAX_MIN_FAIRNESS: GavelCase = GavelCase {
    name: "max_min_fairness",
    accelerators: [8, 16, 24],
    policies: &[
        ("fifo", "gavel-fifo@replica"),
        ("max_min_fairness", "gavel-max-min-agnostic@replica"),
        ("max_min_fairness_perf", "gavel-max-min@replica"),
        ("finish_time_fairness", "gavel-ftf-agnostic@replica"),
        ("finish_time_fairness_perf", "gavel-ftf@replica"),
        ("min_total_duration_perf", "gavel-makespan@replica"),
        ("max_sum_throughput_perf", "gavel-max-throughput@replica"),
        ("isolated", "gavel-isolated@replica"),
        ("gandiva", "gavel-gandiva@replica"),
    ],
};

impl GavelCase {
    /// The trace over the classes of the throughput file.
    ///
    /// # Errors
    /// Where a file cannot be read or a row cannot be used.
    pub fn workload(&self, data: &Path) -> Result<Workload, DataError> {
        let path = data.join("data/gavel").join(self.name).with_extension("trace");
        gavel::read(&path, &data.join("data/gavel/simulation_throughputs.json"))
    }

    /// Servers of one accelerator, in the order in which the artifact fills types.
    pub fn cluster(&self) -> Cluster {
        let names = ["v100", "p100", "k80"];
        let types = names.map(AcceleratorType::named);
        let of_kind = |(at, count)| vec![Node::new(TypeId::at(at), 1); count];
        Cluster { types: types.into(), nodes: self.accelerators.into_iter().enumerate().flat_map(of_kind).collect() }
    }

    /// One policy, by our name, on a workload of the trace.
    ///
    /// # Errors
    /// Where the run fails.
    pub fn simulate(&self, policy: &str, workload: &Arc<Workload>, seed: u64) -> Result<Outcome, ReproduceError> {
        let mut made = compose::by_name(policy, seed).expect("policies of the table are in the list");
        let options = Preset::GavelOsdi20.options_for(&*made);
        let scenario = Scenario::new(Arc::new(self.cluster()), workload.clone(), options, seed);
        let case = || format!("{policy} on {}", self.name);
        Simulator::new(Arc::new(scenario))
            .run(&mut *made)
            .map_err(|source| ReproduceError::Run { case: case(), source })
    }

    /// Completion times of the artifact's run, seconds, by position in the trace.
    ///
    /// # Errors
    /// Where the reference is absent or not what it should be.
    pub fn published(&self, data: &Path, policy: &str) -> Result<Vec<f64>, ReproduceError> {
        let [v100, p100, k80] = self.accelerators;
        let file = format!("reference/gavel/{}-{v100}_{p100}_{k80}-{policy}.jct.json", self.name);
        let path = data.join(file);
        let wrong = |problem: String| ReproduceError::Reference { path: path.clone(), problem };
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let by_job: std::collections::BTreeMap<String, f64> =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let of_job = |job: usize| by_job.get(&job.to_string()).copied();
        let times: Option<Vec<f64>> = (0..by_job.len()).map(of_job).collect();
        times.ok_or_else(|| wrong("jobs are not numbered from 0".into()))
    }
}

fn run(data: &Path, trace: &GavelCase) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let workload = Arc::new(trace.workload(data)?);
    let figures = trace.policies.par_iter().map(|&(artifact, ours)| {
        let published = trace.published(data, artifact)?;
        let outcome = trace.simulate(ours, &workload, 0)?;
        let jcts: Vec<f64> = outcome.jobs.iter().filter_map(|job| job.jct()).map(|jct| jct.as_secs_f64()).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        // The artifact stores completion times; ends follow from the submissions.
        let makespan = |jcts: &[f64]| {
            let ends = workload.jobs.iter().zip(jcts).map(|(job, jct)| job.request.submit.as_secs_f64() + jct);
            ends.fold(0.0, f64::max)
        };
        let figure =
            |metric, theirs, ours| ReproducedFigure { case: artifact.into(), metric, theirs: Some(theirs), ours };
        Ok([
            figure("jct_mean_secs", mean(&published), mean(&jcts)),
            figure("makespan_secs", makespan(&published), makespan(&jcts)),
        ])
    });
    let figures: Result<Vec<_>, ReproduceError> = figures.collect();
    Ok(figures?.into_iter().flatten().collect())
}
