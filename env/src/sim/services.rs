//! Services in a run: replicas come and go, rates change, requests are counted.
//!
//! Between its own events (a change of its rate, a replica ready or gone) a service is in one
//! state, so it is settled then and only then, whatever else happens in the cluster.

use super::Simulator;
use super::events::{Event, EventKind, EventQueue};
use crate::cluster::NodeId;
use crate::plan::Scale;
use crate::state::{ClusterState, Replica, ReplicaPhase, ServiceRecord, ServiceState};
use crate::time::SimTime;

/// A change of what replicas hold on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServingChange {
    /// Moment of the change.
    pub at: SimTime,
    /// Index of the node.
    pub node: NodeId,
    /// Accelerators that replicas hold there from now on.
    pub gpus: u32,
}

/// Services of a run, as far as their states do not tell.
#[derive(Clone, Debug, Default)]
pub(super) struct RunServices {
    /// Services that still expect requests.
    pub live: usize,
    /// Changes of what replicas hold in order of time, where the run logs them.
    pub log: Option<Vec<ServingChange>>,
}

impl RunServices {
    /// All services of `state` before their first request; their first changes of rate are queued.
    pub fn new(state: &ClusterState, queue: &mut EventQueue) -> Self {
        let log = state.scenario.options.log_allocations.then(Vec::new);
        let mut all = Self { live: state.services.len(), log };
        (0..state.services.len()).for_each(|index| all.queue_rate(state, queue, index));
        all
    }

    fn queue_rate(&mut self, state: &ClusterState, queue: &mut EventQueue, index: usize) {
        match state.services[index].next_rate {
            SimTime::NEVER => self.live -= 1,
            at => queue.push(Event::of(at, EventKind::Rate, index as u32)),
        }
    }

    fn note(&mut self, state: &ClusterState, node: NodeId) {
        if let Some(log) = &mut self.log {
            log.push(ServingChange { at: state.now, node, gpus: state.served[node.index()] });
        }
    }
}

impl Simulator {
    /// Requests that missed their objective so far, micro-requests: up to now, though services are
    /// settled at their own events only.
    pub fn violated_micros(&self) -> u64 {
        let violated = |state: &ServiceState| {
            state.record.violated
                + state.since_settled(&self.state.scenario, self.state.now).map_or(0, |(_, counted)| counted.violated)
        };
        self.state.services.iter().map(violated).sum()
    }

    pub(super) fn rate_due(&mut self, index: usize) {
        let rates = &self.state.scenario.workload.services[index].rates;
        let state = &mut self.state.services[index];
        state.settle(&self.state.scenario, self.state.now);
        state.rate_milli = rates.at(self.state.now);
        state.next_rate = rates.next_change(self.state.now);
        self.state.trigger.load = true;
        self.services.queue_rate(&self.state, &mut self.queue, index);
    }

    pub(super) fn replicas_due(&mut self, index: usize) {
        let (now, scenario) = (self.state.now, self.state.scenario.clone());
        let gpus = scenario.workload.services[index].gpus_per_replica;
        self.state.services[index].settle(&scenario, now);
        // From the back, because a replica that is gone shortens the list.
        for at in (0..self.state.services[index].replicas.len()).rev() {
            let state = &mut self.state.services[index];
            let replica = state.replicas[at];
            match replica.phase {
                ReplicaPhase::Starting { until } if until <= now => {
                    state.replicas[at].phase = ReplicaPhase::Ready;
                    state.add_ready(&scenario, replica.node);
                    self.state.trigger.load = true;
                }
                ReplicaPhase::Draining { until } if until <= now => {
                    self.drop_replica(index, at, gpus);
                    self.state.trigger.load = true;
                }
                _ => {}
            }
        }
    }

    /// A replica's accelerators are free.
    pub(super) fn drop_replica(&mut self, service: usize, at: usize, gpus: u32) {
        let state = &mut self.state.services[service];
        let node = state.replicas.remove(at).node;
        let on = state.node_at(node);
        state.held[on] -= gpus;
        self.state.served[node.index()] -= gpus;
        self.services.note(&self.state, node);
        self.add_free(node, gpus);
    }

    /// Lets go of replicas that are too many, before anything new takes accelerators.
    pub(super) fn scale_in(&mut self, scale: &Scale) {
        let (now, scenario) = (self.state.now, self.state.scenario.clone());
        let service = &scenario.workload.services[scale.service.index()];
        let state = &mut self.state.services[scale.service.index()];
        let mut surplus = state.replicas_on(scale.node).saturating_sub(scale.replicas);
        if surplus == 0 {
            return;
        }
        state.settle(&scenario, now);
        // The newest replicas go first; walking back also keeps the indices of the others right.
        for at in (0..state.replicas.len()).rev() {
            let state = &mut self.state.services[scale.service.index()];
            let replica = state.replicas[at];
            let draining = matches!(replica.phase, ReplicaPhase::Draining { .. });
            if surplus == 0 || replica.node != scale.node || draining {
                continue;
            }
            surplus -= 1;
            let ready = replica.phase == ReplicaPhase::Ready;
            if ready {
                state.remove_ready(&scenario, replica.node);
            }
            if ready && service.drain > SimTime::ZERO {
                let until = now.saturating_add(service.drain);
                state.replicas[at].phase = ReplicaPhase::Draining { until };
                self.queue.push(Event::of(until, EventKind::Replica, scale.service.0));
            } else {
                self.drop_replica(scale.service.index(), at, service.gpus_per_replica);
            }
        }
    }

    /// Starts the replicas that are missing.
    pub(super) fn scale_out(&mut self, scale: &Scale) {
        let (now, scenario) = (self.state.now, self.state.scenario.clone());
        let service = &scenario.workload.services[scale.service.index()];
        // Training that leaves the node may still be ending its iterations there.
        let there = self.jobs.drained.get(scale.node.index()).map_or(now, |&left| left.max(now));
        let state = &mut self.state.services[scale.service.index()];
        let missing = scale.replicas.saturating_sub(state.replicas_on(scale.node));
        if missing == 0 {
            return;
        }
        state.settle(&scenario, now);
        let until = there.saturating_add(service.cold_start);
        let on = state.node_at(scale.node);
        state.held[on] += missing * service.gpus_per_replica;
        state.record.starts += u64::from(missing);
        for _ in 0..missing {
            let phase = if until > now { ReplicaPhase::Starting { until } } else { ReplicaPhase::Ready };
            state.replicas.push(Replica { node: scale.node, phase });
            if until <= now {
                state.add_ready(&scenario, scale.node);
            }
        }
        self.state.served[scale.node.index()] += missing * service.gpus_per_replica;
        self.services.note(&self.state, scale.node);
        self.take_free(scale.node, missing * service.gpus_per_replica);
        if until > now {
            self.queue.push(Event::of(until, EventKind::Replica, scale.service.0));
        }
    }

    /// Totals of services so far.
    pub fn service_records(&mut self) -> Vec<ServiceRecord> {
        let (now, scenario) = (self.state.now, self.state.scenario.clone());
        let record = |state: &mut ServiceState| {
            state.settle(&scenario, now);
            ServiceRecord { waiting: state.backlog, ..state.record.clone() }
        };
        self.state.services.iter_mut().map(record).collect()
    }
}
