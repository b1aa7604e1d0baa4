//! Effects of faults on inference: replicas and instances on what broke are gone, and requests that
//! were being answered wait again.

use super::Simulator;
use crate::cluster::NodeId;
use crate::request::InstanceId;
use crate::state::{ClusterState, InstanceState, ReplicaPhase};

impl ClusterState {
    /// Free instances are on accelerators that count as free; those in excess of what is left end,
    /// the longest free first.
    pub(super) fn trim_instances(&mut self, node: NodeId, mut ended: impl FnMut(u16)) {
        while self.instances.sleeping_on(node) > self.idle.on(node)
            && let Some(id) = self.instances.longest_free(node)
        {
            self.instances.get(id).into_iter().for_each(|instance| ended(instance.model));
            self.instances.remove(id);
        }
    }
}

impl Simulator {
    /// All inference on `node` is gone.
    pub(super) fn lose_inference(&mut self, node: NodeId) {
        while self.lose_holder(node, 0) {}
    }

    /// Ends the replica or instance that holds the accelerator of `node` with this index, if
    /// replicas are counted first, service by service, then instances that run or are protected.
    /// False where none does.
    pub(super) fn lose_holder(&mut self, node: NodeId, index: u32) -> bool {
        let mut below = 0;
        for service in 0..self.state.services.len() {
            let gpus = self.state.scenario.workload.services[service].gpus_per_replica;
            for at in 0..self.state.services[service].replicas.len() {
                if self.state.services[service].replicas[at].node == node {
                    below += gpus;
                    if index < below {
                        self.lose_replica(service, at, gpus);
                        return true;
                    }
                }
            }
        }
        // No replica was meant, so the rest of the index counts instances.
        let busy = self.state.instances.busy_on(node).nth((index - below) as usize);
        busy.map(|id| self.lose_instance(id, node)).is_some()
    }

    fn lose_replica(&mut self, service: usize, at: usize, gpus: u32) {
        let scenario = self.state.scenario.clone();
        let state = &mut self.state.services[service];
        state.settle(&scenario, self.state.now);
        let replica = state.replicas[at];
        if replica.phase == ReplicaPhase::Ready {
            state.remove_ready(&scenario, replica.node);
        }
        self.drop_replica(service, at, gpus);
        self.state.trigger.load = true;
    }

    fn lose_instance(&mut self, id: InstanceId, node: NodeId) {
        if let Some(InstanceState::Run { request, .. }) = self.state.instances.get(id).map(|instance| instance.state) {
            let record = &mut self.requests.records[request.index()];
            (record.start, record.served) = (None, None);
            // The request waits again in its old place, as if it had never started.
            let at = self.state.waiting.partition_point(|&other| other < request);
            self.state.waiting.insert(at, request);
            self.requests.due = true;
        }
        self.state.instances.remove(id);
        self.add_free(node, 1);
    }
}
