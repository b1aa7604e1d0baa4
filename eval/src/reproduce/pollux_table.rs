//! Mean completion times of Tiresias, Optimus and Pollux on the artifact's workloads (Pollux,
//! OSDI'21, `results-jobload` and `results-inter` of the artifact).
//!
//! Measured profiles are taken as they are; where a placement was not measured the artifact
//! interpolates, and so does our own scheme, by another triangulation. `goodput sim --step-times`
//! takes the artifact's own values instead.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::{Catalog, import, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::scenario::{Preset, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use rayon::prelude::*;

use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of Pollux's table of completion times.
pub const TABLE: Reproduction = Reproduction {
    name: "pollux-table",
    about: "mean completion times of Tiresias, Optimus and Pollux, by workload, load and interference; 16 nodes of 4 GPUs",
    source: "Qiao et al., OSDI 2021; petuum/adaptdl, branch osdi21-artifact",
    files: &["data/pollux/traces", "data/pollux/workloads", "reference/pollux/published_jct.csv"],
    run,
};

/// Published configuration, our policy, interference, folder, workloads.
const RUNS: [(&str, &str, f64, &str, &[u32]); 8] = [
    ("tiresias-1.0", "tiresias", 0.0, "workloads", &[1, 2, 4, 6, 7]),
    ("optimus-1.0", "optimus", 0.0, "workloads", &[1, 2, 4, 6, 7]),
    ("pollux-1.0", "pollux", 0.0, "workloads", &[1, 2, 4, 6, 7]),
    ("tiresias-0.5", "tiresias", 0.0, "workloads-0.5", &[1, 2]),
    ("optimus-0.5", "optimus", 0.0, "workloads-0.5", &[1, 2]),
    ("pollux-0.5", "pollux", 0.0, "workloads-0.5", &[1, 2]),
    ("inter25", "pollux-noavoid", 0.25, "workloads", &[1, 6]),
    ("noavoid", "pollux-noavoid", 0.0, "workloads", &[1, 6]),
];

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let measured = import::pollux_profiles::catalog(&data.join("data/pollux/traces"), None)?;
    let published = published(&data.join("reference/pollux/published_jct.csv"))?;
    let cases: Vec<_> = RUNS
        .iter()
        .flat_map(|&(config, policy, inter, folder, numbers)| {
            numbers.iter().map(move |number| (config, policy, inter, folder, format!("workload-{number}")))
        })
        .collect();
    cases
        .into_par_iter()
        .map(|(config, policy, interference, folder, workload)| {
            let path = data.join("data/pollux").join(folder).join(format!("{workload}.csv"));
            let case = format!("{config} {workload}");
            let jobs = simulate(policy, &path, interference, &measured)?.jobs;
            let sum: f64 = jobs.iter().filter_map(|job| job.jct()).map(|jct| jct.as_secs_f64()).sum();
            let ours = sum / jobs.len() as f64;
            let theirs = published.get(&(config.to_string(), workload)).copied();
            Ok(ReproducedFigure { case, metric: "jct_mean_secs", theirs, ours })
        })
        .collect()
}

/// One policy on one workload over measured applications.
///
/// # Errors
/// Where the workload cannot be read or the run fails.
pub fn simulate(
    policy: &str,
    workload: &Path,
    interference: f64,
    catalog: &Catalog,
) -> Result<Outcome, ReproduceError> {
    let seed = 1;
    let jobs = read_workload(workload, catalog)?.workload;
    let mut made = compose::by_name(policy, seed).expect("policies of the table are in the list");
    let preset = Preset::PolluxOsdi21.options_for(&*made);
    let options = SimOptions { interference, ..preset };
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(16, 4)), Arc::new(jobs), options, seed);
    let case = || format!("{policy} {}", workload.display());
    Simulator::new(Arc::new(scenario)).run(&mut *made).map_err(|source| ReproduceError::Run { case: case(), source })
}

/// Mean published completion time by configuration and workload, seconds.
fn published(path: &Path) -> Result<BTreeMap<(String, String), f64>, ReproduceError> {
    let reference = |problem: String| ReproduceError::Reference { path: path.to_owned(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| reference(error.to_string()))?;
    let mut sums: BTreeMap<_, (f64, f64)> = BTreeMap::new();
    for (at, line) in text.lines().enumerate().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let jct: Option<f64> = fields.get(4).and_then(|field| field.parse().ok());
        let jct = jct.ok_or_else(|| reference(format!("line {}: expected exp,config,workload,job,jct_s", at + 1)))?;
        let sum = sums.entry((fields[1].to_string(), fields[2].to_string())).or_default();
        *sum = (sum.0 + jct, sum.1 + 1.0);
    }
    Ok(sums.into_iter().map(|(key, (sum, count))| (key, sum / count)).collect())
}
