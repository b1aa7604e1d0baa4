//! Cost of a month of 50 services with a rate per minute on one core: replicas follow the load each
//! hour, and requests are counted at each change. Run with `cargo xtask bench services`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "clock/mod.rs"]
mod clock;

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::cluster::{Cluster, NodeId, Pool, TypeId};
use goodput_env::job::Workload;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

/// Policy that gives each service a node of its own and follows its load each hour.
struct Hourly;

impl Policy for Hourly {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        for service in view.services() {
            let recent = service.history().iter().rev().take(60).copied().max().unwrap_or(0);
            let wanted = service.replicas_for(TypeId(0), 1.2 * f64::from(recent) / 1e3).unwrap_or(0);
            plan.scale(service.id(), NodeId(service.id().0), wanted.min(32));
        }
        plan
    }
}

fn main() {
    println!("{:>6} {:>9} {:>12} {:>9} {:>12}", "days", "services", "events", "seconds", "events/s");
    for (days, services) in [(3, 50), (30, 50), (30, 100)] {
        let minutes = days * 1440;
        let service = |index: usize| {
            let mut state = index as u64;
            let rates: Vec<f64> = (0..minutes)
                .map(|minute| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let hour = (minute as f64 / 60.0 + index as f64) % 24.0;
                    200.0
                        + 150.0 * (1.0 - (hour - 12.0).abs() / 6.0)
                        + (state >> 33) as f64 / (1_u64 << 31) as f64 * 40.0
                })
                .collect();
            let points = [(1, 0.010), (8, 0.024)];
            let points = points.map(|(concurrency, latency_secs)| ServingPoint { concurrency, latency_secs });
            let profile = ServingProfile::new(points.into()).expect("a profile");
            Arc::new(Service {
                name: index.to_string(),
                tenant: 0,
                rates: RateSeries::new(SimTime::from_secs(60), &rates).expect("rates"),
                arrival_cv2: 1.0,
                work_cv2: 0.25,
                profiles: BTreeMap::from([("gpu".to_string(), profile)]),
                reference: "gpu".into(),
                gpus_per_replica: 1,
                slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
                cold_start: SimTime::from_secs(30),
                drain: SimTime::from_secs(1),
                min_replicas: 0,
                max_replicas: 32,
            })
        };
        let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
        cluster.add_to(Pool::Inference, "gpu", services as u32, 32);
        let workload = Workload { services: (0..services).map(service).collect(), ..Workload::default() };
        let rounds = Rounds { period: Some(SimTime::from_secs(3600)), on_churn: false };
        let options = SimOptions { rounds, ..SimOptions::standard() };
        let scenario = Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 0));
        let start = clock::cpu_secs();
        let outcome = Simulator::new(scenario).run(&mut Hourly).expect("a run");
        let secs = clock::cpu_secs() - start;
        let late: u64 = outcome.services.iter().map(|service| service.violated).sum();
        let all: u64 = outcome.services.iter().map(|service| service.requests).sum();
        println!(
            "{days:>6} {services:>9} {:>12} {secs:>9.2} {:>12.0}   attainment {:.4}",
            outcome.events,
            outcome.events as f64 / secs,
            1.0 - late as f64 / all as f64
        );
    }
}
