//! A small world for tests: two applications, a seeded workload and three plain policies.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub mod faults;

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::{Elasticity, JobId, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::{BatchLimits, ThroughputParams};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};
use goodput_eval::{Comparison, NamedScenario, PolicyEntry};
use rand::RngExt;

/// In order of submission, each on the GPUs it asked for; the first that does not fit blocks the
/// rest.
pub struct Fifo;

/// The shortest remaining job first, preempting others; needs estimates.
pub struct Shortest;

/// Policy that gives every job one number of GPUs, as far as they go, up to a limit.
pub struct Equal(pub u32);

fn take(free: &mut [u32], gpus: u32) -> Option<Placement> {
    if free.iter().sum::<u32>() < gpus {
        return None;
    }
    let mut order: Vec<usize> = (0..free.len()).collect();
    order.sort_by_key(|&node| (std::cmp::Reverse(free[node]), node));
    let mut left = gpus;
    let mut placement = Placement::none();
    for node in order {
        let here = free[node].min(left);
        free[node] -= here;
        left -= here;
        placement.push(NodeId::at(node), here);
    }
    Some(placement)
}

fn capacity(view: &ClusterView<'_>) -> Vec<u32> {
    view.cluster().nodes.iter().map(|node| node.gpus).collect()
}

fn requested(job: &JobView<'_>) -> u32 {
    job.request().gpus.clamp(job.min_gpus(), job.max_gpus().max(job.min_gpus()))
}

/// Places `wanted` in order; a job that keeps its size keeps its place.
fn place(view: &ClusterView<'_>, wanted: &[(JobId, u32)]) -> Plan {
    let mut free = capacity(view);
    let mut plan = Plan::keep();
    let kept = |id: JobId, gpus: u32| view.job(id).filter(|job| job.gpus() == gpus);
    for job in wanted.iter().filter_map(|&(id, gpus)| kept(id, gpus)) {
        for slice in job.state.placement.slices() {
            free[slice.node.index()] -= slice.gpus;
        }
    }
    for job in view.jobs() {
        let gpus = wanted.iter().find(|(id, _)| *id == job.id()).map_or(0, |(_, gpus)| *gpus);
        if gpus != job.gpus() {
            plan.set(job.id(), take(&mut free, gpus).unwrap_or_default());
        }
    }
    plan
}

impl Policy for Fifo {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut free = view.free().to_vec();
        let mut plan = Plan::keep();
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            match take(&mut free, requested(&job)) {
                Some(placement) => plan.set(job.id(), placement),
                None => break,
            }
        }
        plan
    }
}

impl Policy for Shortest {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut jobs: Vec<(i64, JobId, u32)> = view
            .jobs()
            .map(|job| {
                let gpus = requested(&job);
                let left = job.remaining_secs(gpus).unwrap_or(0.0);
                ((left * 1000.0) as i64, job.id(), gpus)
            })
            .collect();
        jobs.sort_unstable();
        let mut left = view.cluster().total_gpus();
        let mut wanted = Vec::new();
        for (_, id, gpus) in jobs {
            if gpus <= left {
                left -= gpus;
                wanted.push((id, gpus));
            }
        }
        place(view, &wanted)
    }

    fn information(&self) -> Information {
        Information::Estimate { sigma: 0.5 }
    }

    fn needs(&self) -> Information {
        self.information()
    }
}

impl Policy for Equal {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut left = view.cluster().total_gpus();
        let mut wanted: Vec<(JobId, u32, u32)> = Vec::new();
        for job in view.jobs() {
            let min = job.min_gpus();
            if min <= left {
                left -= min;
                wanted.push((job.id(), min, job.max_gpus().min(self.0)));
            }
        }
        while left > 0 {
            let Some(least) =
                wanted.iter_mut().filter(|(_, gpus, max)| gpus < max).min_by_key(|(id, gpus, _)| (*gpus, *id))
            else {
                break;
            };
            least.1 += 1;
            left -= 1;
        }
        let wanted: Vec<_> = wanted.into_iter().map(|(id, gpus, _)| (id, gpus)).collect();
        place(view, &wanted)
    }
}

pub fn application(name: &str, secs_per_iter: f64, iterations: f64, epochs: usize) -> Arc<Application> {
    let limits = BatchLimits::new(128, 4096, 32, 1024).unwrap();
    let sizes = vec![128.0, 4096.0];
    let grow = |from: f64, to: f64| -> Vec<f64> {
        (0..epochs).flat_map(|e| [from + (to - from) * e as f64 / epochs as f64; 2]).collect()
    };
    let params = ThroughputParams {
        alpha_c: 0.2 * secs_per_iter,
        beta_c: 0.8 * secs_per_iter / 128.0,
        alpha_n: 0.08 * secs_per_iter,
        beta_n: 0.002 * secs_per_iter,
        alpha_r: 0.04 * secs_per_iter,
        beta_r: 0.001 * secs_per_iter,
        gamma: 1.6,
    };
    Arc::new(Application {
        name: name.into(),
        limits,
        max_replicas: 16,
        fixed_batch: None,
        tensors: None,
        epochs: (1..=epochs).map(|e| iterations * e as f64 / epochs as f64).collect(),
        gradients: GradientTable {
            sqr: EpochTable::new(sizes.clone(), grow(1.0, 1.0)).unwrap(),
            var: EpochTable::new(sizes, grow(2.0, 12.0)).unwrap(),
        },
        iterations: None,
        reference: "gpu".into(),
        local_limits: Default::default(),
        params: BTreeMap::from([("gpu".to_owned(), params)]),
        measured: Default::default(),
    })
}

pub fn workload(seed: u64, jobs: usize, span_secs: f64) -> Arc<Workload> {
    let applications = vec![
        application("cifar10", 0.1, 9_000.0, 10),
        application("bert", 0.5, 9_000.0, 4),
        application("ncf", 0.04, 6_000.0, 5),
        application("imagenet", 0.9, 26_000.0, 12),
    ];
    let mut rng = rng(seed, Stream::Workload);
    let mut at = 0.0;
    let specs = (0..jobs)
        .map(|id| {
            at += -(1.0 - rng.random::<f64>()).ln() * span_secs / jobs as f64;
            let index = [0, 0, 0, 2, 2, 1, 1, 3][rng.random_range(0..8)];
            let gpus = [1, 1, 2, 4, 4, 8][rng.random_range(0..6)];
            JobSpec {
                request: JobRequest {
                    name: format!("{}-{id}", applications[index].name),
                    tenant: (id % 3) as u32,
                    submit: SimTime::from_secs(at as i64),
                    gpus,
                    batch_size: None,
                    elasticity: Elasticity::Elastic { min: 1, max: 16 },
                    ..JobRequest::default()
                },
                work: Work::application(index as u16),
            }
        })
        .collect();
    Arc::new(Workload::new(applications, specs))
}

pub fn scenarios(name: &str, seeds: std::ops::Range<u64>, jobs: usize, span_secs: f64) -> Vec<NamedScenario> {
    let cluster = Arc::new(Cluster::homogeneous(4, 4));
    let base = Scenario::new(cluster, workload(seeds.start, jobs, span_secs), SimOptions::standard(), seeds.start);
    seeds
        .map(|seed| NamedScenario {
            name: name.into(),
            seed,
            scenario: Arc::new(base.with_jobs(workload(seed, jobs, span_secs), seed)),
        })
        .collect()
}

pub fn policies() -> Vec<PolicyEntry> {
    vec![
        PolicyEntry::new("fifo", |_| Box::new(Fifo)),
        PolicyEntry::new("shortest", |_| Box::new(Shortest)),
        PolicyEntry::new("equal", |_| Box::new(Equal(16))),
    ]
}

pub fn many_policies() -> Vec<PolicyEntry> {
    let capped = |name: &str, limit: u32| PolicyEntry::new(name, move |_| Box::new(Equal(limit)));
    let mut all = policies();
    all.extend([capped("equal-2", 2), capped("equal-3", 3), capped("equal-8", 8), capped("equal-6", 6)]);
    all
}

pub fn comparison(seeds: u64, jobs: usize) -> Comparison {
    let mut all = scenarios("steady", 0..seeds, jobs, jobs as f64 * 300.0);
    all.extend(scenarios("burst", 100..100 + seeds, jobs, jobs as f64 * 60.0));
    Comparison::new(policies(), all)
}
