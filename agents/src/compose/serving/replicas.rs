//! Placement of replicas: packed on few servers, the lowest ids first, so that whole servers stay
//! empty and can be lent.

use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::plan::Plan;
use goodput_env::state::{Replica, ReplicaPhase};
use goodput_env::view::{ClusterView, ServiceView};

/// Free room for replicas, spent while a plan is made.
#[derive(Clone, Debug, Default)]
pub struct Replicas {
    free: Vec<u32>,
}

impl Replicas {
    /// Starts from what is free now and after `plan`'s loans: nothing on servers it lends, all of
    /// those in `home`, which it calls back and empties.
    pub fn reset(&mut self, view: &ClusterView<'_>, plan: &Plan, home: &[NodeId]) {
        let nodes = view.cluster().node_ids();
        self.free.clear();
        self.free.extend(nodes.map(|node| view.free_for_service(node)));
        plan.lend.iter().for_each(|&node| self.free[node.index()] = 0);
        home.iter().for_each(|&node| self.free[node.index()] = view.idle_on(node) + view.trained_on(node));
    }

    /// Accelerators of `node` that are free.
    pub fn free_on(&self, node: NodeId) -> u32 {
        self.free[node.index()]
    }

    /// Takes `service` to `target` replicas, or as near as there is room: on accelerators of type `kind`, where it is
    /// given. Replicas on other types go when as many as that answer on the type.
    pub fn scale(
        &mut self,
        view: &ClusterView<'_>,
        service: &ServiceView<'_>,
        target: u32,
        kind: Option<TypeId>,
        plan: &mut Plan,
    ) {
        let here = |node: NodeId| kind.is_none_or(|kind| view.cluster().type_of(node) == kind);
        let elsewhere = service.state.lasting().filter(|replica| !here(replica.node)).count() as u32;
        let (_, most) = service.replica_limits();
        let target = target.min(most.saturating_sub(elsewhere));
        let answers = |replica: &&Replica| here(replica.node) && replica.phase == ReplicaPhase::Ready;
        if elsewhere > 0 && target > 0 && service.state.lasting().filter(answers).count() as u32 >= target {
            let mut left: Vec<NodeId> = service.state.lasting().map(|on| on.node).filter(|&node| !here(node)).collect();
            left.sort_unstable();
            left.dedup();
            left.into_iter().for_each(|node| plan.scale(service.id(), node, 0));
        }
        let mut by_node: Vec<(NodeId, u32)> = Vec::new();
        for replica in service.state.lasting().filter(|replica| here(replica.node)) {
            match by_node.iter_mut().find(|(node, _)| *node == replica.node) {
                Some((_, count)) => *count += 1,
                None => by_node.push((replica.node, 1)),
            }
        }
        let now: u32 = by_node.iter().map(|(_, count)| count).sum();
        if target < now {
            shrink(view, service, &mut by_node, now - target, plan);
        } else if target > now {
            self.grow(view, service, &by_node, target - now, kind, plan);
        }
    }

    fn grow(
        &mut self,
        view: &ClusterView<'_>,
        service: &ServiceView<'_>,
        by_node: &[(NodeId, u32)],
        more: u32,
        kind: Option<TypeId>,
        plan: &mut Plan,
    ) {
        let gpus = service.gpus_per_replica().max(1);
        let nodes = &view.cluster().nodes;
        let mut left = more;
        while left > 0 {
            // Started servers before empty ones, the fullest first, then the lowest id.
            let fits = (0..nodes.len()).filter(|&node| self.free[node] >= gpus);
            let fits = fits.filter(|&node| kind.is_none_or(|kind| nodes[node].accelerator == kind));
            let fits = fits.filter(|&node| service.profile(nodes[node].accelerator).is_some());
            let Some(node) = fits.min_by_key(|&node| (self.free[node] == nodes[node].gpus, self.free[node], node))
            else {
                return;
            };
            let count = (self.free[node] / gpus).min(left);
            self.free[node] -= count * gpus;
            left -= count;
            let before = by_node.iter().find(|(known, _)| *known == NodeId::at(node)).map_or(0, |(_, count)| *count);
            plan.scale(service.id(), NodeId::at(node), before + count);
        }
    }
}

/// Takes replicas off the servers with the least on them, of those the highest id first.
fn shrink(
    view: &ClusterView<'_>,
    service: &ServiceView<'_>,
    by_node: &mut [(NodeId, u32)],
    fewer: u32,
    plan: &mut Plan,
) {
    // The emptiest servers go first because they are the soonest empty, and can then be lent.
    by_node.sort_by_key(|&(node, _)| (view.served_on(node), std::cmp::Reverse(node)));
    let mut left = fewer;
    for &mut (node, count) in by_node {
        let gone = count.min(left);
        left -= gone;
        if gone > 0 {
            plan.scale(service.id(), node, count - gone);
        }
    }
}
