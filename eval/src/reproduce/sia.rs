//! Mean completion times under Sia and its rivals on a cluster of three accelerator types (Sia,
//! SOSP'23), by the artifact's own profiles, conventions and cluster: 6 nodes of 4 T4, 2 of 8 A100,
//! 3 of 8 RTX 2080 Ti.
//!
//! Many of the artifact's choices are ties after rounding, and each solver breaks them in its own
//! way: runs of the artifact itself with two solvers differ by 4 %. So a figure of `sia-19` is to
//! be read against both of them.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_agents::heuristic::sia::Sia;
use goodput_agents::heuristic::sia::deviations::Deviations;
use goodput_datasets::Catalog;
use goodput_datasets::import::{sia_profiles, sia_workloads};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Preset, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;
use rayon::prelude::*;
use serde::Deserialize;

use super::{ReproduceError, ReproducedFigure, Reproduction};

/// The small run with per-job results of the artifact.
pub const SMALL: Reproduction = Reproduction {
    name: "sia-19",
    about: "completion times, restarts and makespan of 19 jobs under Sia; 64 GPUs of three types",
    source: "Jayaram Subramanya et al., SOSP 2023; siasosp23/artifacts, run with two solvers",
    files: &["data/sia", "reference/sia/summary.json", "reference/sia/philly1-19noimg.csv"],
    run: run_small,
};

/// The published comparison.
pub const PHILLY: Reproduction = Reproduction {
    name: "sia-philly",
    about: "mean completion times of Sia and others on four workloads of 160 Philly-like jobs; 64 GPUs of three types",
    source: "Jayaram Subramanya et al., SOSP 2023; siasosp23/artifacts",
    files: &["data/sia"],
    run: run_philly,
};

/// Effect of each departure of the artifact from the paper.
pub const DEVIATIONS: Reproduction = Reproduction {
    name: "sia-deviations",
    about: "mean completion time on the four workloads, with each departure of the artifact from the paper alone",
    source: "Jayaram Subramanya et al., SOSP 2023; siasosp23/artifacts",
    files: &["data/sia"],
    run: run_deviations,
};

/// Policies of the comparison; those that are not in the list of policies are left out. Pollux is
/// no rival here: it uses one type of accelerator only.
const RIVALS: [&str; 7] = ["sia", "sia@replica", "gavel-max-min", "gavel-max-throughput", "srtf", "tiresias", "fifo"];
const SEED: u64 = 1;
/// Policy that the artifact runs as Gavel (`max_sum_throughput_perf`).
const GAVEL_OF_ARTIFACT: &str = "gavel-max-throughput";

/// Facts of a run of the artifact.
#[derive(Debug, Deserialize)]
struct SiaReference {
    workload: String,
    policy: String,
    solver: String,
    avg_jct: Option<f64>,
    makespan: Option<f64>,
    restarts: Option<f64>,
}

/// One workload under one policy by the artifact's conventions.
///
/// # Errors
/// Where there is no such policy, the workload cannot be read or the run fails.
pub fn run(policy: &str, workload: &Path, catalog: &Catalog) -> Result<Outcome, ReproduceError> {
    let unknown = || ReproduceError::Reference { path: workload.to_owned(), problem: format!("no policy {policy}") };
    let built = compose::by_name(policy, SEED).ok_or_else(unknown)?;
    let options = Preset::SiaSosp23.options_for(&*built);
    simulate(built, options, workload, catalog)
}

fn simulate(
    mut policy: Box<dyn Policy>,
    options: SimOptions,
    workload: &Path,
    catalog: &Catalog,
) -> Result<Outcome, ReproduceError> {
    let jobs = sia_workloads::read(workload, catalog)?;
    let scenario = Scenario::new(Arc::new(sia_profiles::cluster()), Arc::new(jobs), options, SEED);
    let case = || workload.display().to_string();
    Simulator::new(Arc::new(scenario)).run(&mut *policy).map_err(|source| ReproduceError::Run { case: case(), source })
}

/// Mean completion time, makespan and restarts of a job.
fn facts(outcome: &Outcome) -> [(&'static str, f64); 3] {
    let count = outcome.jobs.len().max(1) as f64;
    let jct: f64 = outcome.jobs.iter().filter_map(|job| job.jct()).map(|jct| jct.as_secs_f64()).sum();
    let end = outcome.jobs.iter().filter_map(|job| job.finish).max().unwrap_or(SimTime::ZERO);
    let restarts: f64 = outcome.jobs.iter().map(|job| f64::from(job.restarts)).sum();
    [("jct_mean_secs", jct / count), ("makespan_secs", end.as_secs_f64()), ("restarts_per_job", restarts / count)]
}

fn run_small(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let catalog = sia_profiles::catalog(&data.join("data/sia"))?;
    let path = data.join("reference/sia/summary.json");
    let problem = |problem: String| ReproduceError::Reference { path: path.clone(), problem };
    let text = std::fs::read_to_string(&path).map_err(|error| problem(error.to_string()))?;
    let references: Vec<SiaReference> = serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    let workload = data.join("reference/sia/philly1-19noimg.csv");
    let mut figures = Vec::new();
    let of_run = |run: &&SiaReference| run.workload == "philly1-19noimg";
    for (policy, published) in [("sia@replica", "sia"), ("sia", "sia"), (GAVEL_OF_ARTIFACT, "gavel")] {
        if compose::by_name(policy, SEED).is_none() {
            continue;
        }
        let outcome = run(policy, &workload, &catalog)?;
        for reference in references.iter().filter(of_run).filter(|run| run.policy == published) {
            let theirs = [reference.avg_jct, reference.makespan, reference.restarts];
            let case = format!("{policy} against {}", reference.solver);
            let rows = facts(&outcome).into_iter().zip(theirs);
            figures.extend(rows.map(|((metric, ours), theirs)| ReproducedFigure {
                case: case.clone(),
                metric,
                theirs,
                ours,
            }));
        }
    }
    Ok(figures)
}

fn run_philly(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let catalog = sia_profiles::catalog(&data.join("data/sia"))?;
    let known = RIVALS.into_iter().filter(|name| compose::by_name(name, 1).is_some());
    let cases: Vec<_> = known.flat_map(|name| (1..=4).map(move |number| (name, number))).collect();
    let figures: Result<Vec<_>, ReproduceError> = cases
        .into_par_iter()
        .map(|(policy, number)| {
            let workload = data.join(format!("data/sia/workloads-philly/workload-{number}.csv"));
            let case = format!("{policy} workload-{number}");
            let outcome = run(policy, &workload, &catalog)?;
            let figure = |(metric, ours)| ReproducedFigure { case: case.clone(), metric, theirs: None, ours };
            Ok(facts(&outcome).map(figure))
        })
        .collect();
    Ok(figures?.into_iter().flatten().collect())
}

/// The mean over the four workloads; `theirs` is the paper's rule, so that the difference is what
/// the departure changes.
fn run_deviations(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let catalog = sia_profiles::catalog(&data.join("data/sia"))?;
    let policy = Sia::default();
    let usual = Preset::SiaSosp23.options_for(&policy);
    let charged = SimOptions { free_moves: false, ..usual.clone() };
    let mut cases = vec![("paper", Deviations::default(), usual.clone())];
    cases.extend(Deviations::each().map(|(name, alone)| (name, alone, usual.clone())));
    cases.push(("artifact", Deviations::ARTIFACT, usual));
    cases.push(("paper, moves charged", Deviations::default(), charged.clone()));
    cases.push(("artifact, moves charged", Deviations::ARTIFACT, charged));
    let runs: Vec<_> = cases.iter().flat_map(|case| (1..=4).map(move |number| (case, number))).collect();
    let means: Result<Vec<f64>, ReproduceError> = runs
        .into_par_iter()
        .map(|((_, deviations, options), number)| {
            let workload = data.join(format!("data/sia/workloads-philly/workload-{number}.csv"));
            let outcome = simulate(Box::new(Sia::new(*deviations)), options.clone(), &workload, &catalog)?;
            Ok(facts(&outcome)[0].1)
        })
        .collect();
    let means: Vec<f64> = means?.chunks(4).map(|of_case| of_case.iter().sum::<f64>() / 4.0).collect();
    let figure = |((name, ..), ours): (&(&str, Deviations, SimOptions), &f64)| ReproducedFigure {
        case: (*name).to_owned(),
        metric: "jct_mean_secs",
        theirs: means.first().copied(),
        ours: *ours,
    };
    Ok(cases.iter().zip(&means).map(figure).collect())
}
