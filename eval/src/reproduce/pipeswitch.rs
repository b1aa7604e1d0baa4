//! PipeSwitch: two models take turns on one accelerator, and what a switch costs decides whether
//! anything is answered at all.
//!
//! The published log gives the latency of a request that interrupts another task; less that of a
//! ready model it is the cost of a switch. A new process takes longer than five seconds, so with a
//! switch every five seconds or less it never answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use goodput_datasets::ServingCatalog;
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::Workload;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServiceId, Slo};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of PipeSwitch's table of switching times.
pub const TABLE: Reproduction = Reproduction {
    name: "pipeswitch",
    about: "requests a second of ResNet-152 on one V100 that switches every 1 to 30 s, by how it switches",
    source: "Bai et al., OSDI 2020; artifact log",
    files: &[],
    run,
};

/// Seconds between switches.
const EVERY: [i64; 5] = [1, 2, 5, 10, 30];

/// Ways of switching: the name, the latency of a request that interrupts in milliseconds, and the
/// requests a second as published, by seconds between switches. Of PipeSwitch the range was
/// published, 26.2 to 27.1; of a ready model 26.1 to 27.1: their middles. The published rate under
/// MPS, 2.3 to 3.5, is not that of its switches: both tasks go on side by side and slow each other
/// down, which no cost of switching says, so it is left out.
const WAYS: [(&str, i64, [Option<f64>; 5]); 4] = [
    ("ready", 37, [Some(26.6); 5]),
    ("pipeswitch", 44, [Some(26.65); 5]),
    ("stop-next", 225, [None; 5]),
    ("kill-restart", 5678, [Some(0.0), Some(0.0), Some(0.0), Some(11.4), Some(20.8)]),
];

/// Latency of a ready model, milliseconds.
const READY: i64 = 37;

/// Length of a measurement, seconds.
const SPAN_SECS: i64 = 120;

struct Turns;

impl Policy for Turns {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        if view.trigger.round {
            let first = view.service(ServiceId(0)).is_some_and(|service| service.state.lasting().count() > 0);
            plan.scale(ServiceId(0), NodeId(0), u32::from(!first));
            plan.scale(ServiceId(1), NodeId(0), u32::from(first));
        }
        plan
    }
}

fn run(_: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let mut figures = Vec::new();
    for (way, latency, published) in WAYS {
        for (every, theirs) in EVERY.into_iter().zip(published) {
            let case = format!("{way}, every {every} s");
            let ours = throughput(latency - READY, every)
                .map_err(|source| ReproduceError::Run { case: case.clone(), source })?;
            figures.push(ReproducedFigure { case, metric: "requests_per_sec", theirs, ours });
        }
    }
    Ok(figures)
}

/// Requests a second of two services that always have some waiting and take turns every `every`
/// seconds.
fn throughput(switch_millis: i64, every: i64) -> Result<f64, goodput_env::sim::SimError> {
    let model = ServingCatalog::shipped().model("resnet-152");
    let profiles: BTreeMap<_, _> = model.map(|model| model.by_type()).unwrap_or_default();
    let end = SimTime::from_secs(SPAN_SECS + every);
    let service = |name: &str| {
        Arc::new(Service {
            name: name.into(),
            tenant: 0,
            rates: RateSeries::new(end, &[100.0]).unwrap_or_default(),
            arrival_cv2: 1.0,
            work_cv2: 0.0,
            profiles: profiles.clone(),
            reference: "v100".into(),
            gpus_per_replica: 1,
            slo: Slo { class: "interactive".into(), latency: SimTime::from_secs(1), target: 0.99 },
            cold_start: SimTime::from_millis(switch_millis),
            drain: SimTime::ZERO,
            min_replicas: 0,
            max_replicas: 1,
        })
    };
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add("v100", 1, 1);
    let workload = Workload { services: vec![service("a"), service("b")], ..Workload::default() };
    let options = SimOptions {
        rounds: Rounds { period: Some(SimTime::from_secs(every)), on_churn: false },
        horizon: Some(end),
        ..SimOptions::standard()
    };
    let scenario = Scenario::new(Arc::new(cluster), Arc::new(workload), options, 0);
    let outcome = Simulator::new(Arc::new(scenario)).run(&mut Turns)?;
    let answered: u64 = outcome.services.iter().map(|service| service.requests - service.waiting).sum();
    Ok(answered as f64 / 1e6 / SPAN_SECS as f64)
}
