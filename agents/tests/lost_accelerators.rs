//! Nodes that have lost accelerators which a job still holds, as a live cluster may show them.
#![allow(clippy::unwrap_used, reason = "a failure is the test's")]

use std::sync::Arc;

use goodput_agents::placement::{Free, Packer};
use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::job::{JobId, Workload};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::Scenario;
use goodput_env::sim::{Simulator, Status};
use goodput_env::state::ClusterState;
use goodput_env::time::SimTime;

use crate::support::{fixed, frictionless};

const FIRST: NodeId = NodeId(0);

/// The accelerators of the first of three nodes that are in service, and of the others.
const LEFT: [u32; 3] = [2, 4, 4];

/// A cluster of three nodes on which a job holds the eight accelerators that the first node once had.
fn shrunken() -> ClusterState {
    let workload = Workload::new(Vec::new(), vec![fixed("a", 8, 600, 0)]);
    let cluster = Arc::new(Cluster::homogeneous(3, 8));
    let mut run = Simulator::new(Arc::new(Scenario::new(cluster, Arc::new(workload), frictionless(), 0)));
    assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::on(FIRST, 8));
    run.apply(&plan).unwrap();
    run.wake_at(Some(SimTime::from_secs(1)));
    assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
    let mut seen = run.observed();
    seen.cluster.nodes.iter_mut().zip(LEFT).for_each(|(node, left)| node.gpus = left);
    seen.idle = vec![0, LEFT[1], LEFT[2]];
    ClusterState::observed(run.scenario().clone(), &seen, 1).unwrap()
}

#[test]
fn what_a_job_gives_back_is_found_where_its_node_has_lost_accelerators() {
    let (state, held) = (shrunken(), Placement::on(FIRST, 8));
    let mut free = Free::default();
    free.reset(&state.view());
    free.release(&held);
    assert_eq!(free.pack(TypeId(0), 8), Some(held));
}

#[test]
fn a_packer_that_finds_too_few_takes_nothing() {
    let state = shrunken();
    let cluster = state.view().cluster();
    for packer in [Packer::FewestNodes, Packer::MostFreeFirst] {
        let mut free = Free::listed(cluster, &[0, LEFT[1], LEFT[2]]);
        // More than any node of this list is known to have, so no search finds them.
        free.release(&Placement::on(FIRST, 8));
        assert_eq!(packer.place(cluster, &mut free, 9), None, "{packer:?}");
        assert_eq!([0, 1, 2].map(|node| free.on(NodeId(node))), [8, 4, 4], "{packer:?}");
    }
}
