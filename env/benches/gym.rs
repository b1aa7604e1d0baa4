//! Decisions per second of the environment on one core, observation encoding included.
//! Run with `cargo xtask bench gym`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[path = "clock/mod.rs"]
mod clock;
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::cluster::{Cluster, Pool};
use goodput_env::gym::{ClusterEnv, EnvOptions, Environment, Observation, ResetOptions, ScenarioSource};
use goodput_env::job::Workload;
use goodput_env::model::{Checkpointing, FaultModel};
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::tenant::{Group, Quota, Tenants};
use goodput_env::time::SimTime;
use support::{application, elastic};

/// Scenarios with jobs alone on 16 nodes of 4; if `shared`, half of the nodes serve inference with
/// four services, two tenants with quotas, faults and checkpoints.
fn source(jobs: usize, gap: i64, shared: bool) -> ScenarioSource {
    let mut cluster = Cluster::parse("16x4").expect("a cluster");
    let mut options = SimOptions::standard();
    let (mut services, mut tenants) = (Vec::new(), Arc::default());
    if shared {
        cluster.nodes[8..].iter_mut().for_each(|node| node.pool = Pool::Inference);
        options.faults = Some(FaultModel::default());
        options.checkpoint = Some(Checkpointing::default());
        options.horizon = Some(SimTime::from_secs(24 * 3600));
        services = (0..4).map(service).collect();
        tenants = Arc::new(tenants_of_two());
    }
    let applications = vec![application()];
    let empty = Arc::new(Workload::new(applications.clone(), Vec::new()));
    let template = Scenario::new(Arc::new(cluster), empty, options, 0);
    Arc::new(move |seed| {
        let jobs = (0..jobs as i64).map(|job| {
            let mut spec = elastic(&format!("{job}"), job * gap + (seed as i64 % 7), 16);
            spec.request.tenant = (job % 2) as u32;
            spec
        });
        let workload = Workload {
            services: services.clone(),
            tenants: tenants.clone(),
            ..Workload::new(applications.clone(), jobs.collect())
        };
        match shared {
            false => Arc::new(template.with_jobs(Arc::new(workload), seed)),
            true => {
                let (cluster, options) = (template.cluster.clone(), template.options.clone());
                Arc::new(Scenario::new(cluster, Arc::new(workload), options, seed))
            }
        }
    })
}

/// Service with a day of load in steps of five minutes.
fn service(index: u64) -> Arc<Service> {
    let wave = |step: u64| 40.0 + 35.0 * ((step + 60 * index) as f64 * std::f64::consts::TAU / 288.0).sin();
    let rates: Vec<f64> = (0..288).map(wave).collect();
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.05 }]).expect("a profile");
    Arc::new(Service {
        name: format!("service-{index}"),
        tenant: 0,
        rates: RateSeries::new(SimTime::from_secs(300), &rates).expect("rates"),
        arrival_cv2: 1.0,
        work_cv2: 1.0,
        profiles: BTreeMap::from([("gpu".to_string(), profile)]),
        reference: "gpu".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(300), target: 0.99 },
        cold_start: SimTime::from_secs(6),
        drain: SimTime::from_secs(2),
        min_replicas: 0,
        max_replicas: 8,
    })
}

fn tenants_of_two() -> Tenants {
    let quota = Quota { nominal: 32, ..Quota::default() };
    let tenant = |name: &str| Group {
        cohort: Some("all".into()),
        quotas: BTreeMap::from([("gpu".to_string(), quota)]),
        ..Group::named(name)
    };
    let tenants = vec![tenant("a"), tenant("b")];
    Tenants::new(tenants, vec![Group::named("all")], Vec::new(), &["gpu"]).expect("tenants")
}

/// Allowed action at an index from a cheap hash; mostly grows, as a sensible policy does.
fn pick(mask: &[u8], hash: &mut u64) -> usize {
    *hash = hash.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let wait = mask.len() - 1;
    if mask[wait] == 1 && (*hash >> 33).is_multiple_of(3) {
        return wait;
    }
    let from = (*hash >> 20) as usize % mask.len();
    (from..mask.len()).chain(0..from).find(|&action| mask[action] == 1).unwrap_or(wait)
}

fn main() {
    println!("{:>8} {:>8} {:>12} {:>14} {:>12}", "jobs", "gap_s", "decisions", "decisions/s", "ns/decision");
    let all = EnvOptions { services: 4, pools: true, tenants: true, ..EnvOptions::default() };
    for (jobs, gap, shared) in
        [(200, 60, false), (200, 25, false), (400, 12, false), (200, 60, true), (200, 25, true), (400, 12, true)]
    {
        let options = if shared { all.clone() } else { EnvOptions::default() };
        let mut env = ClusterEnv::new(source(jobs, gap, shared), options);
        let mut observation = Observation::zeros(&env.layout());
        let (mut decisions, mut hash, mut sum, mut active) = (0u64, 1u64, 0.0f64, 0usize);
        let start = clock::cpu_secs();
        for episode in 0.. {
            env.reset(Some(episode), &ResetOptions::default(), observation.as_mut()).expect("a workload that runs");
            loop {
                let step =
                    env.step(pick(&observation.mask, &mut hash), observation.as_mut()).expect("an allowed action");
                decisions += 1;
                sum += f64::from(observation.features[8]);
                active += env.round().slots().len();
                if step.terminated || step.truncated {
                    break;
                }
            }
            if clock::cpu_secs() - start > 2.0 {
                break;
            }
        }
        let secs = clock::cpu_secs() - start;
        let (rate, nanos) = (decisions as f64 / secs, secs * 1e9 / decisions as f64);
        println!(
            "{jobs:>8} {gap:>8} {decisions:>12} {rate:>14.0} {nanos:>12.0}   {}, mean slots in use {:.1} ({})",
            if shared { "everything on" } else { "jobs alone" },
            active as f64 / decisions as f64,
            sum as u64 % 2
        );
    }
}
