//! Workloads and runs that the tests of heuristics share.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub mod program;

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::{BatchLimits, GoodputModel, GradientStats, SwitchCost, ThroughputParams};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// Entry of the shared oracles; a missing file is a failure, never a skipped test.
pub fn oracle(key: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/oracles/oracles.json");
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let all: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    all.get(key).unwrap_or_else(|| panic!("{path} has no {key}")).clone()
}

/// Job of fixed length: name, accelerators, seconds, submission.
pub fn fixed(name: &str, gpus: u32, secs: i64, submit: i64) -> JobSpec {
    JobSpec {
        request: JobRequest {
            name: name.into(),
            tenant: 0,
            submit: SimTime::from_secs(submit),
            gpus,
            batch_size: None,
            elasticity: Elasticity::Rigid,
            ..JobRequest::default()
        },
        work: Work::Fixed { duration: SimTime::from_secs(secs) },
    }
}

/// Jobs of a batch queue of eight accelerators: sizes, run times and arrivals by `seed`.
pub fn random_jobs(seed: u64, count: usize) -> Vec<JobSpec> {
    let mut rng = rng(seed, Stream::Workload);
    let mut submit = 0;
    let job = |at: usize| {
        submit += rng.random_range(0..40);
        fixed(&format!("j{at}"), rng.random_range(1..=8), rng.random_range(1..400), submit)
    };
    (0..count).map(job).collect()
}

/// Environment with decisions on churn only and without any overhead.
pub fn frictionless() -> SimOptions {
    SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    }
}

pub fn run(policy: &mut dyn Policy, cluster: Cluster, workload: Workload, options: SimOptions) -> Outcome {
    let scenario = Scenario::new(Arc::new(cluster), Arc::new(workload), options, 7);
    Simulator::new(Arc::new(scenario)).run(policy).unwrap()
}

/// Completion times in seconds, by name, of jobs of fixed length on one node.
pub fn jcts(policy: &mut dyn Policy, gpus: u32, jobs: Vec<JobSpec>) -> BTreeMap<String, f64> {
    let workload = Workload::new(Vec::new(), jobs);
    let names: Vec<String> = workload.jobs.iter().map(|job| job.request.name.clone()).collect();
    let outcome = run(policy, Cluster::homogeneous(1, gpus), workload, frictionless());
    names.into_iter().zip(&outcome.jobs).map(|(name, job)| (name, job.jct().unwrap().as_secs_f64())).collect()
}

/// Plausible model: compute from 10 to 300 ms a pass without samples, networks from fast to very
/// slow.
pub fn random_model(rng: &mut ChaCha8Rng) -> GoodputModel {
    let mut log = |low: f64, high: f64| (low.ln() + (high / low).ln() * rng.random::<f64>()).exp();
    let alpha_r = log(0.005, 0.3);
    let beta_r = log(1e-4, 2e-2);
    let params = ThroughputParams {
        alpha_c: log(0.01, 0.3),
        beta_c: log(5e-4, 5e-2),
        alpha_n: alpha_r * log(1.1, 8.0),
        beta_n: beta_r * log(1.1, 3.0),
        alpha_r,
        beta_r,
        gamma: log(1.0, 4.0),
    };
    let stats = GradientStats { sqr: 1.0, var: log(0.1, 100.0) };
    let init = log(8.0, 256.0) as u32;
    let limits = BatchLimits::new(init, init * 32, (init / 4).max(1), init * 2).unwrap();
    GoodputModel { params, stats, limits }
}

/// Two applications described by their parameters alone.
pub fn applications(rng: &mut ChaCha8Rng) -> Vec<Arc<Application>> {
    let table = |values: Vec<f64>| EpochTable::new(vec![1.0], values).unwrap();
    let app = |name: &str, rng: &mut ChaCha8Rng| {
        let model = random_model(rng);
        Arc::new(Application {
            name: name.into(),
            limits: model.limits,
            max_replicas: model.limits.most_replicas().min(64),
            fixed_batch: None,
            tensors: None,
            epochs: vec![500.0, 900.0, 2000.0],
            gradients: GradientTable {
                sqr: table(vec![1.0; 3]),
                var: table([0.5, 1.0, 3.0].map(|scale| scale * model.stats.var).into()),
            },
            iterations: None,
            reference: "gpu".into(),
            local_limits: Default::default(),
            params: BTreeMap::from([("gpu".into(), model.params)]),
            measured: Default::default(),
        })
    };
    vec![app("one", rng), app("two", rng)]
}

/// `count` jobs within an hour or two: fixed and rigid, elastic, and rigid with a model.
pub fn random_workload(rng: &mut ChaCha8Rng, count: usize, most_gpus: u32) -> Workload {
    let applications = applications(rng);
    let jobs = (0..count).map(|at| {
        let gpus = rng.random_range(1..=most_gpus.min(8));
        let submit = rng.random_range(0..5000);
        let mut job = fixed(&format!("j{at}"), gpus, rng.random_range(1..4000), submit);
        let kind = rng.random_range(0..3);
        if kind > 0 {
            let index = rng.random_range(0..2);
            let app: &Application = &applications[usize::from(index)];
            job.work = Work::application(index);
            job.request.batch_size = Some(app.limits.init * rng.random_range(1..=8));
            job.request.gpus = gpus.min(app.max_replicas);
            if kind == 2 {
                job.request.elasticity = Elasticity::Elastic { min: 1, max: most_gpus.min(app.max_replicas).max(gpus) };
            }
        }
        job
    });
    let jobs = jobs.collect();
    Workload::new(applications, jobs)
}

/// The workload on accelerators called `slow` and `fast`; the latter compute three times as fast
/// and communicate no faster.
pub fn on_slow_and_fast(mut workload: Workload) -> Workload {
    for application in &mut workload.applications {
        let application = Arc::make_mut(application);
        let slow = application.params["gpu"];
        let fast = ThroughputParams { alpha_c: slow.alpha_c / 3.0, beta_c: slow.beta_c / 3.0, ..slow };
        application.params = [("slow".to_owned(), slow), ("fast".to_owned(), fast)].into();
    }
    workload
}
