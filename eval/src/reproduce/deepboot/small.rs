//! Results of the artifact itself on `small.csv`: 160 training jobs and 3,200 requests, DeepBoot
//! (`dp`) and Tiresias, both with ATS-I and AFE.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::import::pollux_profiles;
use goodput_datasets::{Catalog, read_workload};
use goodput_env::model::AgentFit;
use goodput_env::scenario::{Preset, SimOptions};
use goodput_env::sim::{Outcome, Served};
use goodput_env::time::SimTime;
use rayon::prelude::*;
use serde::Deserialize;

use super::{SEED, SHAPE, jct_mean_secs, mean_secs, simulate};
use crate::reproduce::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of the artifact's run on `small.csv`.
pub const SMALL: Reproduction = Reproduction {
    name: "deepboot-small",
    about: "DeepBoot and Tiresias beside inference requests in DeepBoot's simulator; 16 nodes of 4 GPUs",
    source: "Chen et al., TPDS 2023; czq693497091/DeepBoot, simulator",
    files: &["data/deepboot/small.csv", "data/pollux/traces", "reference/deepboot"],
    run,
};

/// Our policy, its name in the artifact.
const RUNS: [(&str, &str); 2] = [("deepboot@replica", "dp"), ("tiresias+ats-i", "tiresias")];

/// Reading of the artifact's conventions.
struct ArtifactReading {
    name: &'static str,
    /// Whether the simulator knows the made-up measurements.
    added: bool,
    change: fn(&mut SimOptions),
}

/// Conventions of the artifact that are in doubt. The mean of these is the more telling figure: a knapsack
/// that moves a job for the slightest reason makes every later schedule a different one.
const READINGS: [ArtifactReading; 4] = [
    ArtifactReading { name: "", added: true, change: |_| {} },
    ArtifactReading { name: ", protection to the second", added: true, change: to_the_second },
    ArtifactReading { name: ", measured placements only", added: false, change: |_| {} },
    ArtifactReading { name: ", both", added: false, change: to_the_second },
];

/// Defects of the artifact, each taken away alone.
const WITHOUT: [ArtifactReading; 3] = [
    ArtifactReading {
        name: ", fits to the minimum",
        added: true,
        change: |options| options.agent_fit = AgentFit::Converged,
    },
    ArtifactReading {
        name: ", no answers of evicted instances",
        added: true,
        change: |options| options.instances.evicted_answer = false,
    },
    ArtifactReading {
        name: ", batches chosen at decisions only",
        added: true,
        change: |options| options.batches_at_events = false,
    },
];

fn to_the_second(options: &mut SimOptions) {
    options.instances.protect_more = SimTime::ZERO;
}

#[derive(Deserialize)]
struct ArtifactSummary {
    train_jct: ArtifactMean,
    infer_wait: ArtifactMean,
    infer_cache_hits: f64,
    train_restarts_avg: f64,
    makespan_s: f64,
}

#[derive(Deserialize)]
struct ArtifactMean {
    avg: f64,
}

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let traces = data.join("data/pollux/traces");
    let catalogs = [pollux_profiles::catalog(&traces, None)?, pollux_profiles::deepboot_catalog(&traces)?];
    let mut figures = Vec::new();
    for (policy, artifact) in RUNS {
        let theirs =
            summary(&data.join(format!("reference/deepboot/deepboot_small_{artifact}-AISS_AFE.summary.json")))?;
        let readings: Vec<&ArtifactReading> = READINGS.iter().chain(&WITHOUT).collect();
        let runs: Result<Vec<_>, ReproduceError> = readings
            .into_par_iter()
            .map(|reading| {
                let catalog = &catalogs[usize::from(reading.added)];
                let file = data.join("data/deepboot/small.csv");
                Ok((artifact_run(policy, &file, catalog, reading.change)?, format!("{policy}{}", reading.name)))
            })
            .collect();
        let runs = runs?;
        let count = READINGS.len();
        let mean = runs[..count].iter().map(|(outcome, _)| jct_mean_secs(outcome)).sum::<f64>() / count as f64;
        for (at, (outcome, case)) in runs.iter().enumerate() {
            // All figures for the artifact's own conventions and without its defects, the first for the readings.
            let shown = if at == 0 || at >= count { 5 } else { 1 };
            figures.extend(ours(outcome, &theirs).into_iter().take(shown).map(|(metric, theirs, ours)| {
                ReproducedFigure { case: case.clone(), metric, theirs: Some(theirs), ours }
            }));
        }
        let case = format!("{policy}, mean of these");
        figures.push(ReproducedFigure {
            case,
            metric: "train_jct_mean_secs",
            theirs: Some(theirs.train_jct.avg),
            ours: mean,
        });
    }
    Ok(figures)
}

/// One policy under the conventions of the artifact, changed by `change`.
///
/// # Errors
/// Where the workload cannot be read or the run fails.
pub fn artifact_run(
    policy: &str,
    workload: &Path,
    catalog: &Catalog,
    change: impl FnOnce(&mut SimOptions),
) -> Result<Outcome, ReproduceError> {
    let workload = Arc::new(read_workload(workload, catalog)?.workload);
    let built = compose::by_name(policy, SEED).expect("policies of the table are in the list");
    let mut options = Preset::DeepbootTpds23.options_for(&*built);
    change(&mut options);
    simulate(policy, SHAPE.0, &workload, options, policy)
}

fn summary(path: &Path) -> Result<ArtifactSummary, ReproduceError> {
    let problem = |problem: String| ReproduceError::Reference { path: path.to_owned(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| problem(error.to_string()))
}

fn ours(outcome: &Outcome, theirs: &ArtifactSummary) -> [(&'static str, f64, f64); 5] {
    let restarts: u32 = outcome.jobs.iter().map(|job| job.restarts).sum();
    let warm = outcome.requests.iter().filter(|one| matches!(one.served, Some(Served::Hit | Served::Reused))).count();
    // The artifact's wait has the cold start in it.
    let cold_secs = outcome.instance_cold_millis as f64 / 1e3 / outcome.requests.len().max(1) as f64;
    let waits = outcome.requests.iter().filter_map(|one| Some(one.start? - one.submit));
    let end = outcome.jobs.iter().filter_map(|job| job.finish).max().unwrap_or_default();
    [
        ("train_jct_mean_secs", theirs.train_jct.avg, jct_mean_secs(outcome)),
        ("mean_request_wait_secs", theirs.infer_wait.avg, mean_secs(waits) + cold_secs),
        ("warm_requests", theirs.infer_cache_hits, warm as f64),
        ("restarts_per_job", theirs.train_restarts_avg, f64::from(restarts) / outcome.jobs.len().max(1) as f64),
        ("last_completion_secs", theirs.makespan_s, end.as_secs_f64()),
    ]
}
