//! Free accelerators that the widest waiting job cannot use: by hand, over time, with pools.
//! `support::soak` counts them anew at every decision.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{elastic, fixed};
use goodput_env::cluster::{Cluster, NodeId, Pool, TypeId};
use goodput_env::job::{JobSpec, Workload};
use goodput_env::placement::{Placement, pack};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::sim::{FragmentChange, Outcome, Simulator};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

/// The first jobs on a node each, each later one when a whole share of it is free: elastic ones take a node.
struct InOrder {
    first: u32,
}

impl Policy for InOrder {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            let gpus = job.request().max_gpus().min(8);
            if job.id().0 < self.first {
                plan.set(job.id(), Placement::on(NodeId(job.id().0), gpus));
            } else if free.iter().any(|&free| free >= gpus.min(4)) {
                plan.set(job.id(), pack(view.cluster(), &mut free, TypeId(0), gpus).unwrap_or_default());
            }
        }
        plan
    }
}

fn run(cluster: Cluster, first: u32, jobs: Vec<JobSpec>, log_allocations: bool) -> Outcome {
    let options = SimOptions { log_allocations, horizon: Some(SimTime::from_secs(400)), ..SimOptions::standard() };
    let options = SimOptions { switch_cost: goodput_env::model::SwitchCost::Zero, ..options };
    let workload = Workload::new(vec![crate::support::application()], jobs);
    let scenario = Scenario::new(Arc::new(cluster), Arc::new(workload), options, 0);
    Simulator::new(Arc::new(scenario)).run(&mut InOrder { first }).unwrap()
}

fn changes(outcome: &Outcome) -> Vec<(i64, u32)> {
    outcome.fragments.iter().map(|&FragmentChange { at, gpus }| (at.as_millis() / 1000, gpus)).collect()
}

#[test]
fn a_table_worked_by_hand() {
    // Two nodes of 4. `a` leaves one free on node 0 until 100 s, `b` one on node 1 until 60 s.
    let jobs = vec![
        fixed("a", 0, 3, 100),
        fixed("b", 0, 3, 60),
        // Waits until node 1 is whole: 1 + 1 are of no use to it.
        fixed("c", 10, 4, 20),
        // 60 to 80 s: node 1 is full, and the one on node 0 is too few.
        fixed("d", 65, 2, 10),
        // From 80 to 90 s, `d` is on node 1 and leaves 2: with the one on node 0 they are of no use
        // to a job that needs whole nodes. Then node 1 is whole, and only the one on node 0 is a
        // fragment until `a` leaves.
        fixed("e", 85, 8, 50),
        // Fewer than free: nothing is in its way, it starts.
        fixed("f", 150, 1, 10),
    ];
    let outcome = run(Cluster::homogeneous(2, 4), 2, jobs.clone(), true);
    assert!(!outcome.truncated);
    assert_eq!(changes(&outcome), [(10, 2), (60, 0), (65, 1), (80, 0), (85, 3), (90, 1), (100, 0)]);
    assert_eq!(outcome.fragmented_gpu_millis, 1000 * (2 * 50 + 15 + 3 * 5 + 10));
    let unlogged = run(Cluster::homogeneous(2, 4), 2, jobs, false);
    assert_eq!((unlogged.fragmented_gpu_millis, unlogged.fragments), (outcome.fragmented_gpu_millis, vec![]));
}

#[test]
fn what_training_may_not_use_is_no_fragment_and_elastic_jobs_need_their_fewest() {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 1, 4);
    cluster.add_to(Pool::Inference, "gpu", 3, 4);
    // The elastic job would like 4 and starts on 1: the one that is free is no fragment for it, but
    // is for `b`. The inference pool is free, and no business of theirs.
    let jobs = vec![fixed("a", 0, 3, 100), elastic("e", 10, 4), fixed("b", 20, 2, 50)];
    let outcome = run(cluster, 1, jobs, true);
    assert_eq!(changes(&outcome), [(20, 1), (100, 0)]);
}
