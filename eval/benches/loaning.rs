//! Fifteen days of 50,000 jobs on 5,120 accelerators, half of them for inference, with and without
//! loans: what it does to training, and how long one run takes on one core. Run with `cargo xtask
//! bench loaning`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use goodput_agents::compose;
use goodput_agents::compose::loaning::{Sharing, complete};
use goodput_datasets::Catalog;
use goodput_datasets::synth::{DiurnalSynth, Lengths, SynthConfig};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::job::Workload;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;

fn main() {
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let default = ["aryl+none", "aryl+reactive", "aryl+forecast", "aryl+oracle", "fifo+forecast", "srtf+forecast"];
    let names = if names.is_empty() { default.map(String::from).to_vec() } else { names };
    println!(
        "{:<20}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}{:>10}{:>10}{:>10}",
        "policy", "queue s", "p95 s", "JCT s", "p95 s", "usage %", "SLO %", "evicted", "restarts", "wall s"
    );
    for name in names {
        let scenario = scenario();
        let policy = compose::by_name(&name, 1).expect("a policy of the list");
        let mut policy = complete(policy, &scenario, &Sharing::default());
        let start = Instant::now();
        let outcome = Simulator::new(scenario.clone()).run(&mut *policy).expect("it runs to its end");
        line(&name, &outcome, start.elapsed().as_secs_f64());
    }
}

fn line(name: &str, outcome: &Outcome, secs: f64) {
    let sorted = |of: &dyn Fn(&goodput_env::sim::JobRecord) -> Option<SimTime>| {
        let mut all: Vec<f64> = outcome.jobs.iter().filter_map(|job| Some(of(job)?.as_secs_f64())).collect();
        all.sort_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        (mean, all.get(all.len() * 95 / 100).copied().unwrap_or(0.0))
    };
    let (queue, queue_95) = sorted(&|job| Some(job.start? - job.submit));
    let (jct, jct_95) = sorted(&|job| job.jct());
    let days = SimTime::from_secs(15 * 86_400).as_millis() as f64;
    let held: i64 = outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum::<i64>()
        + outcome.services.iter().map(|service| service.gpu_millis).sum::<i64>();
    let requests: u64 = outcome.services.iter().map(|service| service.requests).sum();
    let violated: u64 = outcome.services.iter().map(|service| service.violated).sum();
    let slo = 100.0 * (1.0 - violated as f64 / requests.max(1) as f64);
    let usage = 100.0 * held as f64 / (5120.0 * days);
    let restarts: u64 = outcome.jobs.iter().map(|job| u64::from(job.restarts)).sum();
    println!(
        "{name:<20}{queue:>10.0}{queue_95:>10.0}{jct:>10.0}{jct_95:>10.0}{usage:>8.1}{slo:>8.2}{:>10}{restarts:>10}{secs:>10.2}",
        outcome.loans.evictions
    );
    println!(
        "    {} events, {} decisions, {} lent, ended after {:.2} days",
        outcome.events,
        outcome.decisions,
        outcome.loans.lent,
        outcome.end.as_secs_f64() / 86_400.0
    );
}

fn scenario() -> Arc<Scenario> {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 320, 8);
    cluster.add_to(Pool::Inference, "gpu", 320, 8);
    let jobs = DiurnalSynth {
        jobs: 50_000,
        jobs_per_hour: 50_000.0 / 360.0,
        daily_swing: 0.5,
        start_hour: Some(0.0),
        burst_factor: 3.0,
        lengths: Some(Lengths { median_secs: 2200.0, ..Lengths::default() }),
        ..DiurnalSynth::default()
    };
    let jobs = SynthConfig::Diurnal(jobs).generate(Catalog::shipped(), 1).expect("settings in range");
    let services = (0..4).map(|at| Arc::new(service(at))).collect();
    let workload = Workload { services, ..jobs };
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        batching: Batching::Catalog,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 1))
}

/// A quarter of the load; 100 requests a second and replica.
fn service(at: usize) -> Service {
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.01 }]).expect("one point");
    let rate = |step: usize| {
        let hour = step as f64 * 5.0 / 60.0;
        let day = (std::f64::consts::TAU * (hour - 14.0 + at as f64 * 0.5) / 24.0).cos();
        let weekend = if hour.rem_euclid(168.0) >= 120.0 { 0.8 } else { 1.08 };
        let noise = 1.0 + 0.05 * ((step * 7919 + at * 104_729) % 1000) as f64 / 1000.0;
        17_000.0 * weekend * (1.0 + 0.8 * day) * noise
    };
    let rates: Vec<f64> = (0..15 * 288).map(rate).collect();
    Service {
        name: format!("service-{at}"),
        tenant: 0,
        rates: RateSeries::new(SimTime::from_secs(300), &rates).expect("rates in range"),
        arrival_cv2: 1.0,
        work_cv2: 0.5,
        profiles: BTreeMap::from([("gpu".to_string(), profile)]),
        reference: "gpu".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
        cold_start: SimTime::from_secs(30),
        drain: SimTime::from_secs(5),
        min_replicas: 1,
        max_replicas: 640,
    }
}
