//! Small workloads and policies for tests.
#![allow(dead_code, missing_docs, clippy::unwrap_used, reason = "shared by tests that each use a part of it")]

pub mod llm;
pub mod llm_pools;
pub mod llm_steps;
pub mod soak;
pub mod toy;

pub use toy::application;

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::cluster::{Cluster, TypeId};
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::placement::pack;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use rand::RngExt;

pub fn fixed(name: &str, submit: i64, gpus: u32, secs: i64) -> JobSpec {
    let request = JobRequest {
        name: name.into(),
        tenant: 0,
        submit: SimTime::from_secs(submit),
        gpus,
        batch_size: None,
        elasticity: Elasticity::Rigid,
        ..JobRequest::default()
    };
    JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(secs) } }
}

pub fn elastic(name: &str, submit: i64, max: u32) -> JobSpec {
    let request = JobRequest {
        name: name.into(),
        tenant: 0,
        submit: SimTime::from_secs(submit),
        gpus: 1,
        batch_size: None,
        elasticity: Elasticity::Elastic { min: 1, max },
        ..JobRequest::default()
    };
    JobSpec { request, work: Work::application(0) }
}

pub fn scenario(cluster: &str, jobs: Vec<JobSpec>, options: SimOptions) -> Arc<Scenario> {
    let workload = Workload::new(vec![application()], jobs);
    Arc::new(Scenario::new(Arc::new(Cluster::parse(cluster).unwrap()), Arc::new(workload), options, 0))
}

/// `count` jobs, half of them rigid, arriving one every `gap` seconds or so.
pub fn mixed_jobs(seed: u64, count: usize, gap: i64) -> Vec<JobSpec> {
    let mut rng = rng(seed, Stream::Workload);
    let mut now = 0;
    (0..count)
        .map(|index| {
            now += rng.random_range(0..2 * gap);
            match index % 2 {
                0 => fixed(&format!("rigid-{index}"), now, 1 << rng.random_range(0..4), rng.random_range(10..3000)),
                _ => elastic(&format!("elastic-{index}"), now, 16),
            }
        })
        .collect()
}

/// Requests at these rates, one step after the other; a replica answers 100 a second, one at a time.
pub fn service(name: &str, step: SimTime, per_sec: &[f64], gpus: u32) -> Arc<Service> {
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.01 }]).unwrap();
    Arc::new(Service {
        name: name.into(),
        tenant: 0,
        rates: RateSeries::new(step, per_sec).unwrap(),
        arrival_cv2: 1.0,
        work_cv2: 1.0,
        profiles: BTreeMap::from([("gpu".to_string(), profile)]),
        reference: "gpu".into(),
        gpus_per_replica: gpus,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
        cold_start: SimTime::from_secs(6),
        drain: SimTime::from_secs(2),
        min_replicas: 0,
        max_replicas: 8,
    })
}

/// Any feasible plan: each job is left alone, stopped, or given a random size that fits.
pub struct Chaos(pub rand_chacha::ChaCha8Rng);

impl Chaos {
    pub fn new(seed: u64) -> Self {
        Self(rng(seed, Stream::Policy))
    }
}

impl Policy for Chaos {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        for job in view.jobs() {
            if job.gpus() > 0 && self.0.random_bool(0.7) {
                continue;
            }
            for slice in job.state.placement.slices() {
                free[slice.node.index()] += slice.gpus;
            }
            let gpus = self.0.random_range(job.min_gpus()..=job.max_gpus());
            plan.set(job.id(), pack(view.cluster(), &mut free, TypeId(0), gpus).unwrap_or_default());
        }
        plan
    }
}
