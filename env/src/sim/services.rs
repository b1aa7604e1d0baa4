//! Services in a run: replicas come and go, rates change, requests are counted.
//!
//! Between its own events (a change of its rate, a replica ready or gone) a service is in one state, so it is settled then and only then,
//! whatever else happens in the cluster.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Simulator;
use crate::cluster::NodeId;
use crate::plan::Scale;
use crate::scenario::Scenario;
use crate::service::ServiceId;
use crate::state::{Replica, ReplicaPhase, ServiceRecord, ServiceState};
use crate::time::SimTime;

/// A change of what replicas hold on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServingChange {
    /// When.
    pub at: SimTime,
    /// Where.
    pub node: NodeId,
    /// Accelerators that replicas hold there from now on.
    pub gpus: u32,
}

/// The books of what replicas hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplicasHeld {
    /// By node; empty where there are no services.
    pub by_node: Vec<u32>,
    /// Changes in order of time, where the run logs them.
    pub log: Option<Vec<ServingChange>>,
}

impl ReplicasHeld {
    pub fn new(scenario: &Scenario) -> Self {
        let nodes = if scenario.workload.services.is_empty() { 0 } else { scenario.cluster.nodes.len() };
        Self { by_node: vec![0; nodes], log: scenario.options.log_allocations.then(Vec::new) }
    }

    fn enter(&mut self, at: SimTime, node: NodeId, gpus: u32) {
        self.by_node[node as usize] += gpus;
        self.note(at, node);
    }

    fn leave(&mut self, at: SimTime, node: NodeId, gpus: u32) {
        self.by_node[node as usize] -= gpus;
        self.note(at, node);
    }

    fn note(&mut self, at: SimTime, node: NodeId) {
        if let Some(log) = &mut self.log {
            log.push(ServingChange { at, node, gpus: self.by_node[node as usize] });
        }
    }
}

/// What happens to services and servers, in the order in which it happens at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServiceEventKind {
    /// Training has to be gone from a server.
    Deadline,
    /// Replicas of a service become ready or are gone.
    Replica,
    /// A service's rate changes.
    Rate,
}

/// A queued event of a service or server. Those that no longer mean anything are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceEvent {
    pub at: SimTime,
    pub kind: ServiceEventKind,
    /// Service or node.
    pub id: u32,
}

/// All services of a run and their events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Services {
    pub states: Vec<ServiceState>,
    /// Services that still expect requests.
    live: usize,
    queue: BinaryHeap<Reverse<ServiceEvent>>,
}

impl Services {
    pub fn new(scenario: &Scenario) -> Self {
        let services = scenario.workload.services.iter().enumerate();
        let states: Vec<_> =
            services.map(|(index, service)| ServiceState::new(ServiceId(index as u32), service)).collect();
        let mut all = Self { queue: BinaryHeap::with_capacity(4 * states.len()), live: states.len(), states };
        for index in 0..all.states.len() {
            all.queue_rate(index);
        }
        all
    }

    pub fn push(&mut self, event: ServiceEvent) {
        self.queue.push(Reverse(event));
    }

    pub fn peek(&self) -> Option<ServiceEvent> {
        self.queue.peek().map(|Reverse(event)| *event)
    }

    pub fn pop(&mut self) {
        self.queue.pop();
    }

    fn queue_rate(&mut self, index: usize) {
        match self.states[index].next_rate {
            SimTime::NEVER => self.live -= 1,
            at => self.push(ServiceEvent { at, kind: ServiceEventKind::Rate, id: index as u32 }),
        }
    }

    /// Whether a replica of the service changes its phase at `at`.
    pub fn is_due(&self, service: u32, at: SimTime) -> bool {
        self.states[service as usize].replicas.iter().any(|replica| match replica.phase {
            ReplicaPhase::Starting { until } | ReplicaPhase::Draining { until } => until == at,
            ReplicaPhase::Ready => false,
        })
    }

    /// Whether any service still expects requests.
    pub fn are_live(&self) -> bool {
        self.live > 0
    }
}

impl Simulator {
    /// Requests that missed their objective so far, micro-requests: up to now, though services are settled at their own events only.
    pub fn violated_micros(&self) -> u64 {
        let violated = |state: &ServiceState| {
            state.record.violated
                + state.since_settled(&self.scenario, self.now).map_or(0, |(_, counted)| counted.violated)
        };
        self.services.states.iter().map(violated).sum()
    }

    /// The next event of a service or a server that still means anything.
    pub(super) fn next_service_event(&mut self) -> Option<ServiceEvent> {
        while let Some(event) = self.services.peek() {
            let due = match event.kind {
                ServiceEventKind::Deadline => self.loans.is_due(event.id, event.at),
                ServiceEventKind::Replica => self.services.is_due(event.id, event.at),
                ServiceEventKind::Rate => true,
            };
            if due {
                return Some(event);
            }
            self.services.pop();
        }
        None
    }

    pub(super) fn service_event(&mut self, event: ServiceEvent) -> Result<(), super::SimError> {
        self.services.pop();
        self.events += 1;
        match event.kind {
            ServiceEventKind::Deadline => self.evict(event.id),
            ServiceEventKind::Replica => {
                self.replicas_due(event.id as usize);
                Ok(())
            }
            ServiceEventKind::Rate => {
                self.rate_due(event.id as usize);
                Ok(())
            }
        }
    }

    fn rate_due(&mut self, index: usize) {
        let rates = &self.scenario.workload.services[index].rates;
        let state = &mut self.services.states[index];
        state.settle(&self.scenario, self.now);
        state.rate_milli = rates.at(self.now);
        state.next_rate = rates.next_change(self.now);
        self.trigger.load = true;
        self.services.queue_rate(index);
    }

    fn replicas_due(&mut self, index: usize) {
        let (now, scenario) = (self.now, self.scenario.clone());
        let gpus = scenario.workload.services[index].gpus_per_replica;
        self.services.states[index].settle(&scenario, now);
        for at in (0..self.services.states[index].replicas.len()).rev() {
            let state = &mut self.services.states[index];
            let replica = state.replicas[at];
            match replica.phase {
                ReplicaPhase::Starting { until } if until <= now => {
                    state.replicas[at].phase = ReplicaPhase::Ready;
                    state.set_ready(&scenario, replica.node, true);
                    self.trigger.load = true;
                }
                ReplicaPhase::Draining { until } if until <= now => {
                    self.drop_replica(index, at, gpus);
                    self.trigger.load = true;
                }
                _ => {}
            }
        }
    }

    /// A replica's accelerators are free.
    pub(super) fn drop_replica(&mut self, service: usize, at: usize, gpus: u32) {
        let state = &mut self.services.states[service];
        let node = state.replicas.remove(at).node;
        let on = state.node_at(node);
        state.held[on] -= gpus;
        self.served.leave(self.now, node, gpus);
        self.add_free(node, gpus);
    }

    /// Lets go of replicas that are too many, before anything new takes accelerators.
    pub(super) fn scale_in(&mut self, scale: &Scale) {
        let (now, scenario) = (self.now, self.scenario.clone());
        let service = &scenario.workload.services[scale.service.index()];
        let state = &mut self.services.states[scale.service.index()];
        let mut surplus = state.replicas_on(scale.node).saturating_sub(scale.replicas);
        if surplus == 0 {
            return;
        }
        state.settle(&scenario, now);
        for at in (0..state.replicas.len()).rev() {
            let state = &mut self.services.states[scale.service.index()];
            let replica = state.replicas[at];
            let draining = matches!(replica.phase, ReplicaPhase::Draining { .. });
            if surplus == 0 || replica.node != scale.node || draining {
                continue;
            }
            surplus -= 1;
            let ready = replica.phase == ReplicaPhase::Ready;
            if ready {
                state.set_ready(&scenario, replica.node, false);
            }
            if ready && service.drain > SimTime::ZERO {
                let until = now.saturating_add(service.drain);
                state.replicas[at].phase = ReplicaPhase::Draining { until };
                let event = ServiceEvent { at: until, kind: ServiceEventKind::Replica, id: scale.service.0 };
                self.services.queue.push(Reverse(event));
            } else {
                self.drop_replica(scale.service.index(), at, service.gpus_per_replica);
            }
        }
    }

    /// Starts the replicas that are missing.
    pub(super) fn scale_out(&mut self, scale: &Scale) {
        let (now, scenario) = (self.now, self.scenario.clone());
        let service = &scenario.workload.services[scale.service.index()];
        let there = self.drained.get(scale.node as usize).map_or(now, |&left| left.max(now));
        let state = &mut self.services.states[scale.service.index()];
        let missing = scale.replicas.saturating_sub(state.replicas_on(scale.node));
        if missing == 0 {
            return;
        }
        state.settle(&scenario, now);
        let until = there.saturating_add(service.cold_start);
        let on = state.node_at(scale.node);
        state.held[on] += missing * service.gpus_per_replica;
        state.record.starts += u64::from(missing);
        self.served.enter(now, scale.node, missing * service.gpus_per_replica);
        for _ in 0..missing {
            let phase = if until > now { ReplicaPhase::Starting { until } } else { ReplicaPhase::Ready };
            state.replicas.push(Replica { node: scale.node, phase });
            if until <= now {
                state.set_ready(&scenario, scale.node, true);
            }
        }
        self.take_free(scale.node, missing * service.gpus_per_replica);
        if until > now {
            self.services.push(ServiceEvent { at: until, kind: ServiceEventKind::Replica, id: scale.service.0 });
        }
    }

    /// What services have done so far.
    pub fn service_records(&mut self) -> Vec<ServiceRecord> {
        let (now, scenario) = (self.now, self.scenario.clone());
        let record = |state: &mut ServiceState| {
            state.settle(&scenario, now);
            ServiceRecord { waiting: state.backlog, ..state.record.clone() }
        };
        self.services.states.iter_mut().map(record).collect()
    }
}
