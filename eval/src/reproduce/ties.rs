//! Sensitivity of results to the order among jobs submitted at the same instant.
//!
//! "Theirs" is the order of the trace. "Ours" are the lowest and the highest result of the reversed
//! order and of ten drawn orders. The two workloads are Gavel's `medium_test`, in which all 20 jobs
//! arrive at once, and the first 4,000 jobs of Philly's busiest virtual cluster with their own
//! durations.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::{Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::tie_break::TieBreak;
use rayon::prelude::*;

use super::gavel::MEDIUM_TEST;
use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Spread of results over the order of equal jobs.
pub const TABLE: Reproduction = Reproduction {
    name: "ties",
    about: "mean completion time by the order among jobs submitted at once: trace order (theirs), lowest and highest of 11 others (ours)",
    source: "Gavel's medium_test; Microsoft Philly trace, Jeon et al., ATC 2019",
    files: &["data/gavel/medium_test.trace", "data/gavel/simulation_throughputs.json", "data/philly/philly.csv"],
    run,
};

const DRAWS: u64 = 10;
const PHILLY_JOBS: usize = 4000;
const LOAD: f64 = 0.9;
const PHILLY_POLICIES: [&str; 9] =
    ["fifo", "fifo-backfill", "smallest-first", "srtf", "srsf", "las", "tiresias-l", "gandiva", "drf"];

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let static_jobs = MEDIUM_TEST.workload(data)?;
    let rules: Vec<&str> = MEDIUM_TEST.policies.iter().map(|(_, replica)| rule(replica)).collect();
    let mut figures =
        sensitivity("medium_test", &static_jobs, &rules, |policy, jobs| MEDIUM_TEST.simulate(policy, jobs, 0))?;
    let philly = busiest(read_workload(&data.join("data/philly/philly.csv"), Catalog::shipped())?.workload);
    figures.append(&mut sensitivity("philly", &philly, &PHILLY_POLICIES, on_philly)?);
    Ok(figures)
}

fn rule(replica: &'static str) -> &'static str {
    replica.trim_end_matches("@replica")
}

fn sensitivity(
    name: &str,
    workload: &Workload,
    policies: &[&str],
    simulate: impl Fn(&str, &Arc<Workload>) -> Result<Outcome, ReproduceError> + Sync,
) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let arranged = |order: TieBreak, seed: u64| {
        let mut workload = workload.clone();
        order.arrange(&mut workload.jobs, seed);
        Arc::new(workload)
    };
    let others: Vec<Arc<Workload>> = std::iter::once(arranged(TieBreak::Reverse, 0))
        .chain((0..DRAWS).map(|seed| arranged(TieBreak::Random, seed)))
        .collect();
    let trace = arranged(TieBreak::Trace, 0);
    let figures = policies.par_iter().map(|policy| {
        let theirs = jct_mean_secs(&simulate(policy, &trace)?);
        let means = others.iter().map(|jobs| Ok(jct_mean_secs(&simulate(policy, jobs)?)));
        let means = means.collect::<Result<Vec<f64>, ReproduceError>>()?;
        let ends = [
            ("lowest_jct_mean_secs", means.iter().copied().fold(f64::INFINITY, f64::min)),
            ("highest_jct_mean_secs", means.iter().copied().fold(0.0, f64::max)),
        ];
        let case = format!("{name} {policy}");
        Ok(ends.map(|(metric, ours)| ReproducedFigure { case: case.clone(), metric, theirs: Some(theirs), ours }))
    });
    let figures: Result<Vec<_>, ReproduceError> = figures.collect();
    Ok(figures?.into_iter().flatten().collect())
}

fn jct_mean_secs(outcome: &Outcome) -> f64 {
    let times = outcome.jobs.iter().filter_map(|job| job.jct()).map(|jct| jct.as_secs_f64());
    times.sum::<f64>() / outcome.jobs.len() as f64
}

/// The first jobs of the tenant with most of them, from time zero on.
fn busiest(mut workload: Workload) -> Workload {
    let mut counts = std::collections::BTreeMap::new();
    for job in &workload.jobs {
        *counts.entry(job.request.tenant).or_insert(0_usize) += 1;
    }
    let busiest = counts.into_iter().max_by_key(|&(tenant, count)| (count, std::cmp::Reverse(tenant)));
    workload.jobs.retain(|job| Some(job.request.tenant) == busiest.map(|(tenant, _)| tenant));
    workload.jobs.truncate(PHILLY_JOBS);
    let start = workload.jobs.first().map_or_else(Default::default, |job| job.request.submit);
    workload.jobs.iter_mut().for_each(|job| job.request.submit -= start);
    workload
}

/// Nodes of 8 accelerators for an offered load of [`LOAD`], decisions on churn, free switches,
/// exact knowledge of durations.
fn on_philly(policy: &str, workload: &Arc<Workload>) -> Result<Outcome, ReproduceError> {
    let options =
        SimOptions { switch_cost: SwitchCost::Zero, information: Information::Oracle, ..SimOptions::standard() };
    let mut made = compose::by_name(policy, 0).expect("policies of the table are in the list");
    let cluster = Arc::new(Cluster::homogeneous(nodes(workload), 8));
    let scenario = Scenario::new(cluster, workload.clone(), options, 0);
    Simulator::new(Arc::new(scenario))
        .run(&mut *made)
        .map_err(|source| ReproduceError::Run { case: policy.into(), source })
}

fn nodes(workload: &Workload) -> u32 {
    let span = workload.jobs.last().map_or(1.0, |job| job.request.submit.as_secs_f64());
    let gpu_secs = workload.jobs.iter().map(|job| match job.work {
        Work::Fixed { duration } => duration.as_secs_f64() * f64::from(job.request.gpus),
        _ => 0.0,
    });
    let widest = workload.jobs.iter().map(|job| job.request.gpus).max().unwrap_or(1);
    // The widest job has to fit, whatever the load asks for.
    ((gpu_secs.sum::<f64>() / span / LOAD / 8.0).round() as u32).max(widest.div_ceil(8))
}
