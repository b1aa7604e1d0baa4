//! The cluster as the training scheduler of a shared cluster sees it: after what others decided in
//! the same plan, and without the servers it may not use.
//!
//! Schedulers that decide one after the other (services, then loans, then training) each need to
//! see what the one before did, though the plan is carried out as a whole. A server that training
//! may not use looks like one without accelerators, so a scheduler that was published for a cluster
//! of its own respects pools without knowing of them.

use super::ClusterView;
use crate::cluster::{Cluster, Node, NodeId, Pool};
use crate::plan::Plan;
use crate::state::{FreeNodes, JobTable, Loan, Loans, Phase};

/// Buffers of [`ClusterView::for_training`], kept across decisions.
#[derive(Clone, Debug, Default)]
pub struct TrainingViewBuffers {
    /// The machines with only what training may use.
    cluster: Option<Cluster>,
    table: JobTable,
    idle: Vec<u32>,
    free: FreeNodes,
    loans: Loans,
}

impl<'a> ClusterView<'a> {
    /// This view after `plan`, as training sees it. A cluster without pools and services stays as it is.
    pub fn for_training<'b>(&self, plan: &Plan, after: &'b mut TrainingViewBuffers) -> ClusterView<'b>
    where
        'a: 'b,
    {
        if !self.has_pools() && self.services.is_empty() {
            return *self;
        }
        let moves = !plan.lend.is_empty() || !plan.reclaim.is_empty() || !plan.changes.is_empty();
        if moves {
            after.carry_out(self, plan);
        }
        let loans: &'b Loans = if moves { &after.loans } else { self.loans };
        let changed = !plan.changes.is_empty();
        after.idle.clear();
        after.idle.extend_from_slice(self.idle);
        for change in &plan.changes {
            // What two jobs share is given up once.
            let job = self.job(change.job).filter(|job| job.state.counts());
            // A card that is shared may be held by others still, so it is not counted as given up.
            let job = job.filter(|job| job.state.placement.share().is_none());
            let held = job.map(|job| job.state.placement.slices()).unwrap_or_default();
            held.iter().for_each(|slice| after.idle[slice.node.index()] += slice.gpus);
        }
        // What two jobs are to share is taken once.
        let taken = plan.changes.iter().filter(|change| change.counts());
        for slice in taken.flat_map(|change| change.placement.slices()) {
            let idle = &mut after.idle[slice.node.index()];
            *idle = idle.saturating_sub(slice.gpus);
        }
        // It is kept for its buffers only, because another run may have other machines.
        let known = after.cluster.take().filter(|known| known.types == self.cluster().types);
        let mut cluster = known.unwrap_or_else(|| Cluster { types: self.cluster().types.clone(), nodes: Vec::new() });
        cluster.nodes.clear();
        if !after.free.is_of(self.cluster()) {
            after.free = FreeNodes::new(self.cluster(), &vec![0; self.cluster().nodes.len()]);
        }
        for (now, node) in self.cluster().nodes.iter().zip(self.cluster().node_ids()) {
            let (of_services, left) = self.promised(plan, node);
            let open = loans.may_train(self.cluster(), node);
            let gpus = if open { now.gpus.saturating_sub(of_services) } else { 0 };
            cluster.nodes.push(Node { gpus, ..*now });
            after.free.set(node, if open { after.idle[node.index()].saturating_sub(left) } else { 0 });
        }
        let cluster: &'b Cluster = after.cluster.insert(cluster);
        let table: &'b JobTable = if changed { &after.table } else { self.table };
        ClusterView { cluster, table, free: &after.free, idle: &after.idle, loans, ..*self }
    }

    /// Accelerators of a shared node that replicas hold after `plan`, and those among them that it
    /// gives them.
    fn promised(&self, plan: &Plan, node: NodeId) -> (u32, u32) {
        let before = self.served_on(node);
        if self.pool(node) != Pool::Shared {
            return (before, 0);
        }
        let new = plan.scale.iter().filter(|scale| scale.node == node).map(|scale| {
            let service = self.service(scale.service);
            let more = |service: super::ServiceView<'_>| {
                scale.replicas.saturating_sub(service.state.replicas_on(node)) * service.gpus_per_replica()
            };
            service.map_or(0, more)
        });
        let new: u32 = new.sum();
        (before + new, new)
    }
}

impl TrainingViewBuffers {
    fn carry_out(&mut self, view: &ClusterView<'_>, plan: &Plan) {
        self.loans.clone_from(view.loans);
        for &node in &plan.lend {
            self.loans.by_node[node.index()] = Loan::Lent { since: view.now };
        }
        for reclaim in &plan.reclaim {
            if let Loan::Lent { since } = view.loan(reclaim.node) {
                let (called, deadline) = (view.now, reclaim.deadline);
                self.loans.by_node[reclaim.node.index()] = Loan::Returning { since, called, deadline };
            }
        }
        if plan.changes.is_empty() {
            return;
        }
        self.table.clone_from(view.table);
        for change in plan.changes.iter().filter(|change| view.job(change.job).is_some()) {
            let state = self.table.state_mut(change.job);
            state.settle(view.now);
            state.partner = change.partner;
            if change.placement.is_empty() {
                state.phase = Phase::Pending;
            }
            self.table.place(change.job, change.placement.clone());
        }
    }
}
