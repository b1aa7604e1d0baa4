//! Cost of single inference requests: ten thousand to a million requests, one per second and model,
//! on 64 accelerators. Run with `cargo xtask bench requests`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "clock/mod.rs"]
mod clock;

use std::sync::Arc;

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::Workload;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::request::{Assign, InferenceRequest, ServedModel, Target};
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use rand::RngExt;

/// Policy that sends each request to the idle instance of its model with the lowest id, else to the
/// first free accelerator.
struct Warm;

impl Policy for Warm {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        let mut taken = Vec::new();
        for &request in view.waiting_requests() {
            let Some(asked) = view.request(request) else { continue };
            let idle = view.instances().of_model(asked.model);
            let warm = idle.into_iter().find(|(id, one)| one.is_idle() && !taken.contains(id));
            let target = match (warm, free.iter().position(|&gpus| gpus > 0)) {
                (Some((id, one)), _) => {
                    free[one.node.index()] -= u32::from(one.is_free());
                    taken.push(id);
                    Target::Instance(id)
                }
                (None, Some(node)) => {
                    free[node] -= 1;
                    Target::Node(NodeId::at(node))
                }
                (None, None) => break,
            };
            plan.assign.push(Assign { request, target });
        }
        plan
    }
}

fn main() {
    println!("{:>10} {:>12} {:>10} {:>12}", "requests", "events", "secs", "us/request");
    for count in [10_000_u64, 100_000, 1_000_000] {
        let mut random = rng(1, Stream::Workload);
        let requests = (0..count).map(|at| InferenceRequest {
            model: random.random_range(0..8),
            submit: SimTime::from_millis(at as i64 * 500),
            duration: SimTime::from_millis(random.random_range(500..5_000)),
        });
        let served =
            (0..8).map(|model| ServedModel { name: format!("infer-bert-{model}").into(), application: "bert".into() });
        let workload = Workload {
            requests: requests.collect(),
            served: served.collect(),
            ..Workload::new(Vec::new(), Vec::new())
        };
        let cluster = Arc::new(Cluster::homogeneous(16, 4));
        let scenario = Scenario::new(cluster, Arc::new(workload), SimOptions::standard(), 1);
        let start = clock::cpu_secs();
        let outcome = Simulator::new(Arc::new(scenario)).run(&mut Warm).expect("a run");
        let secs = clock::cpu_secs() - start;
        assert!(!outcome.truncated, "every request is answered");
        println!("{count:>10} {:>12} {secs:>10.3} {:>12.3}", outcome.events, secs * 1e6 / count as f64);
    }
}
