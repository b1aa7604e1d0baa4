//! Services in a run: replicas come and go, rates change, requests are counted.
//!
//! Between its own events (a change of its rate, a replica ready or gone) a service is in one state, so it is settled then and only then,
//! whatever else happens in the cluster.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smallvec::SmallVec;

use super::{Scenario, Simulator};
use crate::cluster::NodeId;
use crate::model::serving::{Demand, Fleet, Interval};
use crate::plan::Scale;
use crate::service::{Service, ServiceId};
use crate::time::SimTime;

/// What a replica is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaPhase {
    /// It loads; requests do not reach it yet.
    Starting {
        /// When it is ready.
        until: SimTime,
    },
    /// It answers.
    Ready,
    /// It finishes what it works on and takes nothing new.
    Draining {
        /// When its accelerators are free.
        until: SimTime,
    },
}

/// One replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Where it is.
    pub node: NodeId,
    /// What it is doing.
    pub phase: ReplicaPhase,
}

/// What a service has done on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceOnNode {
    /// The service.
    pub service: ServiceId,
    /// The node.
    pub node: NodeId,
    /// Accelerator time its replicas held, GPU-milliseconds.
    pub gpu_millis: i64,
    /// Requests that fell to its replicas, micro-requests; those that came while no replica was ready are on no node.
    pub requests: u64,
    /// Of these, requests that took longer than the objective allows, micro-requests.
    pub violated: u64,
}

/// Latencies by multiples of the objective, quarter octaves from 1/64 to 64 times; requests in micro-requests.
pub type LatencyCounts = [u64; crate::model::serving::BINS];

/// What a service has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// The service.
    pub service: ServiceId,
    /// Requests, micro-requests.
    pub requests: u64,
    /// Requests that took longer than the objective allows, micro-requests.
    pub violated: u64,
    /// Requests that were still waiting at the end, micro-requests.
    pub waiting: u64,
    /// Accelerator time its replicas held, GPU-milliseconds.
    pub gpu_millis: i64,
    /// Requests by how long they took.
    pub latencies: LatencyCounts,
    /// Replicas started.
    pub starts: u64,
    /// The same by node, ascending.
    pub nodes: Vec<ServiceOnNode>,
}

/// A service at a moment.
#[derive(Clone, Debug)]
pub struct ServiceState {
    /// The service.
    pub id: ServiceId,
    /// Requests per second now, in thousandths.
    pub rate_milli: u32,
    /// Its replicas, oldest first.
    pub replicas: Vec<Replica>,
    /// Requests that wait because there are more than its replicas can answer, micro-requests.
    pub backlog: u64,
    /// Ready replicas by accelerator type.
    ready: SmallVec<[(u16, u32); 2]>,
    since: SimTime,
    next_rate: SimTime,
    record: ServiceRecord,
    /// Held accelerators by node, in the order of `record.nodes`.
    held: Vec<u32>,
    /// Ready replicas by node, likewise.
    serving: Vec<u32>,
}

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

impl ServiceState {
    fn new(id: ServiceId, service: &Service) -> Self {
        let record = ServiceRecord {
            service: id,
            requests: 0,
            violated: 0,
            waiting: 0,
            gpu_millis: 0,
            latencies: [0; crate::model::serving::BINS],
            starts: 0,
            nodes: Vec::new(),
        };
        Self {
            id,
            rate_milli: service.rates.at(SimTime::ZERO),
            replicas: Vec::new(),
            backlog: 0,
            ready: SmallVec::new(),
            since: SimTime::ZERO,
            next_rate: service.rates.next_change(SimTime::ZERO),
            record,
            held: Vec::new(),
            serving: Vec::new(),
        }
    }

    /// Replicas on `node` that are there to stay: starting or ready.
    pub fn replicas_on(&self, node: NodeId) -> u32 {
        self.lasting().filter(|replica| replica.node == node).count() as u32
    }

    /// Replicas that are starting or ready.
    pub fn lasting(&self) -> impl DoubleEndedIterator<Item = &Replica> {
        self.replicas.iter().filter(|replica| !matches!(replica.phase, ReplicaPhase::Draining { .. }))
    }

    /// Replicas that answer.
    pub fn ready(&self) -> u32 {
        self.ready.iter().map(|&(_, count)| count).sum()
    }

    fn node_at(&mut self, node: NodeId) -> usize {
        match self.record.nodes.binary_search_by_key(&node, |on| on.node) {
            Ok(at) => at,
            Err(at) => {
                let service = self.id;
                let blank = ServiceOnNode { service, node, gpu_millis: 0, requests: 0, violated: 0 };
                self.record.nodes.insert(at, blank);
                self.held.insert(at, 0);
                self.serving.insert(at, 0);
                at
            }
        }
    }

    /// Requests that came since the last time, micro-requests, and what became of them; `None` where there were none and none waits.
    fn since_settled(&self, scenario: &Scenario, now: SimTime) -> Option<(u64, Interval)> {
        let millis = (now - self.since).as_millis().max(0);
        let requests = u64::from(self.rate_milli) * millis as u64;
        if millis == 0 || requests == 0 && self.backlog == 0 {
            return None;
        }
        let demand = Demand::of(&scenario.workload.services[self.id.index()], self.rate_milli);
        let counted = self.fleet(scenario).interval(&demand, self.backlog, requests, millis as f64 / 1e3);
        Some((requests, counted))
    }

    /// Counts what happened since the last time.
    pub(super) fn settle(&mut self, scenario: &Scenario, now: SimTime) {
        let millis = (now - self.since).as_millis();
        if millis <= 0 {
            return;
        }
        let counted = self.since_settled(scenario, now);
        self.since = now;
        for (on, &held) in self.record.nodes.iter_mut().zip(&self.held) {
            let gpu_millis = i64::from(held) * millis;
            on.gpu_millis += gpu_millis;
            self.record.gpu_millis += gpu_millis;
        }
        let Some((requests, counted)) = counted else { return };
        self.backlog = counted.waiting;
        self.record.requests += requests;
        self.record.violated += counted.violated;
        for (count, latency) in self.record.latencies.iter_mut().zip(counted.latencies) {
            *count += latency;
        }
        self.divide(requests, counted.violated);
    }

    /// Divides requests among the nodes by ready replicas, in whole numbers that add up exactly.
    fn divide(&mut self, requests: u64, violated: u64) {
        let all: u64 = self.serving.iter().map(|&count| u64::from(count)).sum();
        if all == 0 {
            return;
        }
        let share = |total: u64, part: u64| (u128::from(total) * u128::from(part) / u128::from(all)) as u64;
        let mut before = 0;
        for (on, &count) in self.record.nodes.iter_mut().zip(&self.serving) {
            let upto = before + u64::from(count);
            on.requests += share(requests, upto) - share(requests, before);
            on.violated += share(violated, upto) - share(violated, before);
            before = upto;
        }
    }

    /// Its ready replicas as a queueing system.
    pub(crate) fn fleet<'a>(&self, scenario: &'a Scenario) -> Fleet<'a> {
        let groups = self.ready.iter().filter_map(|&(kind, count)| Some((scenario.profile(self.id, kind)?, count)));
        Fleet(groups.collect())
    }

    pub(super) fn set_ready(&mut self, scenario: &Scenario, node: NodeId, up: bool) {
        let at = self.node_at(node);
        let kind = scenario.cluster.nodes[node as usize].accelerator;
        let change = |count: &mut u32| if up { *count += 1 } else { *count -= 1 };
        change(&mut self.serving[at]);
        match self.ready.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => change(count),
            None => self.ready.push((kind, 1)),
        }
        self.ready.sort_unstable_by_key(|&(kind, _)| kind);
    }
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
