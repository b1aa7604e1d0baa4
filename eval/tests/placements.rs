//! Nodes over which policies spread jobs, on the public workloads of the Pollux artifact, and what that costs.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_agents::compose::by_name;
use goodput_agents::heuristic::tiresias::{ServiceMeasure, Tiresias, TiresiasConfig};
use goodput_datasets::{Catalog, import, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

const PER_NODE: u32 = 4;

fn shared(path: &str) -> PathBuf {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path);
    assert!(path.exists(), "{} is absent: these tests need the public data in it", path.display());
    path
}

/// Policy that has its placements counted.
struct Watched {
    policy: Box<dyn Policy>,
    placements: u32,
    /// Nodes beyond the fewest that each placement needed.
    spare_nodes: u32,
}

impl Watched {
    fn new(policy: Box<dyn Policy>) -> Self {
        Self { policy, placements: 0, spare_nodes: 0 }
    }
}

impl Policy for Watched {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let plan = self.policy.decide(view);
        for placement in plan.changes.iter().map(|change| &change.placement).filter(|placement| !placement.is_empty()) {
            self.placements += 1;
            self.spare_nodes += placement.nodes() - placement.gpus().div_ceil(PER_NODE);
        }
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.policy.wake_at()
    }

    fn batching(&self) -> Batching {
        self.policy.batching()
    }

    fn information(&self) -> Information {
        self.policy.information()
    }

    fn needs(&self) -> Information {
        self.policy.needs()
    }
}

fn run(policy: &mut dyn Policy, nodes: u32, workload: Arc<Workload>) -> Outcome {
    let options = SimOptions {
        batching: Batching::Requested,
        information: Information::Estimate { sigma: 0.0 },
        ..SimOptions::standard()
    };
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(nodes, PER_NODE)), workload, options, 0);
    Simulator::new(Arc::new(scenario)).run(policy).unwrap()
}

fn jct_secs(outcome: &Outcome, job: usize) -> f64 {
    outcome.jobs[job].jct().unwrap().as_secs_f64()
}

/// A job of one accelerator and, a minute later, one of four, on two nodes of four: the second job has a whole
/// node for itself.
#[test]
fn queues_of_tiresias_leave_no_whole_node_idle() {
    let catalog = import::pollux_profiles::catalog(&shared("data/pollux/traces"), None).unwrap();
    for name in ["bert", "cifar10", "deepspeech2", "yolov3"] {
        let index = catalog.index(name).unwrap();
        let job = |gpus: u32, secs: i64| JobSpec {
            request: JobRequest {
                name: format!("{name}-{gpus}"),
                gpus,
                submit: SimTime::from_secs(secs),
                batch_size: Some(catalog.applications[usize::from(index)].limits.init * gpus),
                ..JobRequest::default()
            },
            work: Work::application(index),
        };
        let workload = Arc::new(Workload::new(catalog.applications.clone(), vec![job(1, 0), job(4, 60)]));
        let wide = |policy: &str| {
            let mut watched = Watched::new(by_name(policy, 0).unwrap());
            let outcome = run(&mut watched, 2, workload.clone());
            assert_eq!(watched.spare_nodes, 0, "{policy} spreads {name} although a whole node is idle");
            jct_secs(&outcome, 1)
        };
        let whole = wide("tiresias");
        for policy in ["tiresias-l", "tiresias-g", "las"] {
            assert_eq!(wide(policy), whole, "{policy}, {name}");
        }
    }
}

fn workloads() -> Vec<Arc<Workload>> {
    let read = |number: u32| {
        let path = shared(&format!("data/pollux/workloads/workload-{number}.csv"));
        Arc::new(read_workload(&path, Catalog::shipped()).unwrap().workload)
    };
    [1, 2, 4, 6, 7].map(read).into()
}

/// Nodes beyond the fewest a placement, and mean completion time, over the five workloads.
fn spread(policy: impl Fn() -> Box<dyn Policy>, workloads: &[Arc<Workload>]) -> (f64, f64) {
    let (mut placements, mut spare, mut secs, mut jobs) = (0, 0, 0.0, 0);
    for workload in workloads {
        let mut watched = Watched::new(policy());
        let outcome = run(&mut watched, 16, workload.clone());
        (placements, spare) = (placements + watched.placements, spare + watched.spare_nodes);
        secs += (0..outcome.jobs.len()).map(|job| jct_secs(&outcome, job)).sum::<f64>();
        jobs += outcome.jobs.len();
    }
    (f64::from(spare) / f64::from(placements), secs / jobs as f64)
}

#[test]
fn placements_hardly_span_more_nodes_than_they_need() {
    let workloads = workloads();
    let bounds =
        [("tiresias-l", 0.5), ("tiresias-g", 0.5), ("las", 0.5), ("afs-l", 0.5), ("afs-p", 0.5), ("themis", 0.5)];
    for (name, most) in bounds {
        let (spare, secs) = spread(|| by_name(name, 0).unwrap(), &workloads);
        println!("{name:12} {spare:.3} nodes too many a placement, mean completion {secs:.0} s");
        assert!(spare < most, "{name}: {spare} nodes too many a placement");
    }
}

/// The rule by tensor sizes changes what happens to the catalogued applications: without their sizes they would
/// be placed otherwise.
#[test]
fn tensor_sizes_of_the_catalog_matter() {
    let policy = || -> Box<dyn Policy> { Box::new(Tiresias::new(TiresiasConfig::simulator(ServiceMeasure::GpuTime))) };
    let known = workloads();
    let unknown: Vec<Arc<Workload>> = known
        .iter()
        .map(|workload| {
            let mut workload = Workload::clone(workload);
            for application in &mut workload.applications {
                Arc::make_mut(application).tensors = None;
            }
            Arc::new(workload)
        })
        .collect();
    let (by_size, by_nodes) = (spread(policy, &known), spread(policy, &unknown));
    println!("by tensor sizes {by_size:?}, on the fewest nodes {by_nodes:?}");
    assert_ne!(by_size, by_nodes);
    assert!(by_size.0 >= by_nodes.0, "balanced models fill fragments, others do not");
}
