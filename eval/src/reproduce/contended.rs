//! Contended workloads of 160 elastic jobs on 16 nodes of 4 accelerators, for statements that were
//! made of private traces: the five Pollux workloads as they are and with twice the load, and the
//! busiest virtual clusters of the Philly trace, each with the applications of the shipped catalog.
//!
//! A Philly job keeps its submission and size and becomes the application of its class of GPU time,
//! as in the Pollux artifact's sampling (`simulator/workload.py`), at the application's initial
//! batch size times its accelerators; applications of one class alternate. Its own duration is not
//! used. Submissions are then stretched in time so that work at the requested size is
//! [`PHILLY_LOAD`] times what 64 accelerators can do until the last submission.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_agents::heuristic::themis::{Themis, ThemisConfig};
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobSpec, Work, Workload};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Resize, Rounds, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;
use rayon::prelude::*;

use super::ReproduceError;
use crate::metrics::{IsolatedReference, RunFacts};

/// Public files the workloads are made of.
pub const FILES: &[&str] = &["data/pollux/workloads", "data/philly/philly.csv"];

/// Offered load of the Philly workloads.
const PHILLY_LOAD: f64 = 1.0;
const JOBS: usize = 160;
/// Virtual clusters by number of jobs.
const VIRTUAL_CLUSTERS: usize = 4;
/// GPU-seconds at which the next class begins, and the applications of each.
const CLASS_LIMITS: [f64; 3] = [3_600.0, 36_000.0, 360_000.0];
const CLASSES: [&[&str]; 4] = [&["cifar10", "ncf"], &["deepspeech2", "bert"], &["yolov3"], &["imagenet"]];

/// A workload by name.
pub struct Contended {
    /// Name, for example `pollux-1 x2`.
    pub name: String,
    workload: Arc<Workload>,
}

/// One policy on one workload.
pub struct ContendedRun {
    /// Mean completion time, seconds.
    pub jct_mean_secs: f64,
    /// Largest finish-time fairness of a job.
    pub worst_rho: f64,
    /// Restarts of all jobs.
    pub restarts: u32,
    /// Accelerator time held without use while jobs restarted or grew, of all that was held,
    /// percent.
    pub idle_percent: f64,
}

/// A policy by the name users type, or `themis lease=SECONDS`, and how changes of size are carried
/// out under it.
pub type Contestant = (&'static str, Resize);

/// Reads the contended workloads.
pub fn workloads(data: &Path) -> Result<Vec<Contended>, ReproduceError> {
    let catalog = Catalog::shipped();
    let mut all = Vec::new();
    for number in [1, 2, 4, 6, 7] {
        let path = data.join(format!("data/pollux/workloads/workload-{number}.csv"));
        let jobs = read_workload(&path, catalog)?.workload.jobs;
        for (suffix, factor) in [("", 1.0), (" x2", 0.5)] {
            let workload = Arc::new(stretched(jobs.clone(), factor));
            all.push(Contended { name: format!("pollux-{number}{suffix}"), workload });
        }
    }
    let trace = read_workload(&data.join("data/philly/philly.csv"), catalog)?;
    let mut clusters: Vec<(u32, Vec<&JobSpec>)> = Vec::new();
    for job in &trace.workload.jobs {
        let tenant = job.request.tenant;
        match clusters.iter_mut().find(|(other, _)| *other == tenant) {
            Some((_, jobs)) => jobs.push(job),
            None => clusters.push((tenant, vec![job])),
        }
    }
    clusters.sort_by_key(|(tenant, jobs)| (std::cmp::Reverse(jobs.len()), *tenant));
    for (at, (_, jobs)) in clusters.into_iter().take(VIRTUAL_CLUSTERS).enumerate() {
        all.push(Contended { name: format!("philly-{}", at + 1), workload: Arc::new(virtual_cluster(&jobs, catalog)) });
    }
    Ok(all)
}

/// Runs every contestant on every workload, workload by workload, at one information level, with
/// the requested batch size and restarts of 30 s.
pub fn run_all(workloads: &[Contended], contestants: &[Contestant]) -> Result<Vec<Vec<ContendedRun>>, ReproduceError> {
    let pairs: Vec<(usize, usize)> =
        (0..workloads.len()).flat_map(|at| (0..contestants.len()).map(move |policy| (at, policy))).collect();
    let runs: Result<Vec<ContendedRun>, ReproduceError> =
        pairs.into_par_iter().map(|(at, policy)| run_one(&workloads[at], contestants[policy])).collect();
    let mut runs = runs?.into_iter();
    Ok(workloads.iter().map(|_| runs.by_ref().take(contestants.len()).collect()).collect())
}

fn run_one(on: &Contended, (name, resize): Contestant) -> Result<ContendedRun, ReproduceError> {
    let mut policy = policy(name);
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        resize,
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(16, 4)), on.workload.clone(), options, 1);
    let outcome: Outcome = Simulator::new(Arc::new(scenario.clone()))
        .run(&mut *policy)
        .map_err(|source| ReproduceError::Run { case: format!("{name} {}", on.name), source })?;
    let facts = RunFacts::new(&scenario, &outcome);
    let held: i64 = outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum();
    Ok(ContendedRun {
        jct_mean_secs: facts.jct_secs.iter().sum::<f64>() / facts.jct_secs.len() as f64,
        worst_rho: facts.rho.iter().copied().fold(0.0, f64::max),
        restarts: outcome.jobs.iter().map(|job| job.restarts).sum(),
        idle_percent: 100.0 * outcome.idle_gpu_millis as f64 / held as f64,
    })
}

fn policy(name: &str) -> Box<dyn Policy> {
    let lease = name.strip_prefix("themis lease=").and_then(|secs| secs.parse().ok());
    match lease {
        Some(secs) => {
            Box::new(Themis::new(ThemisConfig { lease: SimTime::from_secs(secs), ..ThemisConfig::default() }))
        }
        None => compose::by_name(name, 1).expect("policies of the table are in the list"),
    }
}

fn virtual_cluster(jobs: &[&JobSpec], catalog: &Catalog) -> Workload {
    let mut turns = [0_usize; 4];
    let elastic = jobs.iter().filter_map(|job| {
        let Work::Fixed { duration } = job.work else { return None };
        let gpu_secs = duration.as_secs_f64() * f64::from(job.request.gpus);
        let class = CLASS_LIMITS.partition_point(|&limit| limit <= gpu_secs);
        turns[class] += 1;
        let name = CLASSES[class][turns[class] % CLASSES[class].len()];
        let index = catalog.index(name)?;
        let app = &catalog.applications[usize::from(index)];
        let gpus = job.request.gpus.min(app.max_replicas);
        let mut job = (*job).clone();
        job.work = Work::application(index);
        job.request.gpus = gpus;
        job.request.batch_size = Some((app.limits.init * gpus).min(app.limits.max));
        job.request.elasticity = match app.max_replicas {
            1 => Elasticity::Rigid,
            max => Elasticity::Elastic { min: 1, max },
        };
        Some(job)
    });
    let jobs: Vec<JobSpec> = elastic.take(JOBS).collect();
    let options = SimOptions::standard();
    let cluster = Cluster::homogeneous(16, 4);
    let capacity = f64::from(cluster.total_gpus());
    let workload = Arc::new(Workload::new(catalog.applications.clone(), jobs.clone()));
    let reference = IsolatedReference::new(&Scenario::new(Arc::new(cluster), workload, options, 0));
    let work = jobs.iter().filter_map(|job| match job.work {
        Work::Application { index, .. } => {
            Some(reference.run_secs(index, job.request.gpus)? * f64::from(job.request.gpus))
        }
        Work::Fixed { .. } | Work::Steps { .. } => None,
    });
    let needed_secs = work.sum::<f64>() / capacity / PHILLY_LOAD;
    let first = jobs.iter().map(|job| job.request.submit).min().unwrap_or(SimTime::ZERO);
    let last = jobs.iter().map(|job| job.request.submit).max().unwrap_or(SimTime::ZERO);
    let span_secs = (last - first).as_secs_f64().max(1.0);
    // Stretching scales times from zero on, so the first submission has to be there.
    let moved = jobs.into_iter().map(|mut job| {
        job.request.submit -= first;
        job
    });
    stretched(moved.collect(), needed_secs / span_secs)
}

/// The jobs over `factor` times the time, with the shipped catalog's applications.
fn stretched(mut jobs: Vec<JobSpec>, factor: f64) -> Workload {
    for job in &mut jobs {
        job.request.submit = SimTime::from_secs_f64(job.request.submit.as_secs_f64() * factor);
    }
    Workload::new(Catalog::shipped().applications.clone(), jobs)
}
