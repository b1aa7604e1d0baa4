//! Services at a moment: their replicas, and what became of their requests.
//!
//! Between its own events (a change of its rate, a replica ready or gone) a service is in one
//! state, so it is settled then and only then, whatever else happens in the cluster.

use smallvec::SmallVec;

use crate::cluster::{NodeId, TypeId};
use crate::model::serving::{Demand, Fleet, Interval, LateTokens};
use crate::scenario::Scenario;
use crate::service::{Service, ServiceId};
use crate::time::SimTime;

/// Phase of a replica: loading, answering, or finishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaPhase {
    /// Loads; requests do not reach the replica yet.
    Starting {
        /// Moment at which the replica is ready.
        until: SimTime,
    },
    /// The replica answers requests.
    Ready,
    /// Finishes the requests at work and takes no new ones.
    Draining {
        /// Moment at which its accelerators are free.
        until: SimTime,
    },
}

/// Replica of a service on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Node that the replica is on.
    pub node: NodeId,
    /// Phase of the replica.
    pub phase: ReplicaPhase,
}

/// Totals of a service on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceOnNode {
    /// Id of the service.
    pub service: ServiceId,
    /// Index of the node.
    pub node: NodeId,
    /// Accelerator time its replicas held, GPU-milliseconds.
    pub gpu_millis: i64,
    /// Requests that fell to its replicas, micro-requests; those that came while no replica was
    /// ready are on no node.
    pub requests: u64,
    /// Of these, requests that took longer than the objective allows, micro-requests.
    pub violated: u64,
}

/// Latencies by multiples of the objective, quarter octaves from 1/64 to 64 times; requests in
/// micro-requests.
pub type LatencyCounts = [u64; crate::model::serving::BINS];

/// Totals of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Id of the service.
    pub service: ServiceId,
    /// Requests that came, micro-requests.
    pub requests: u64,
    /// Requests that took longer than the objective allows, micro-requests.
    pub violated: u64,
    /// Requests that missed one of the objectives of a language model; `None` for services of whole answers.
    pub late: Option<LateTokens>,
    /// Requests that were still waiting at the end, micro-requests.
    pub waiting: u64,
    /// Accelerator time its replicas held, GPU-milliseconds.
    pub gpu_millis: i64,
    /// Requests by how long they took.
    pub latencies: LatencyCounts,
    /// Number of replicas that were started.
    pub starts: u64,
    /// Totals by node, ascending.
    pub nodes: Vec<ServiceOnNode>,
}

/// A service at a moment.
#[derive(Clone, Debug)]
pub struct ServiceState {
    /// Id of the service.
    pub id: ServiceId,
    /// Requests per second now, in thousandths.
    pub rate_milli: u32,
    /// Replicas of the service, oldest first.
    pub replicas: Vec<Replica>,
    /// Requests that wait because there are more than its replicas can answer, micro-requests.
    pub backlog: u64,
    /// Ready replicas by accelerator type.
    ready: SmallVec<[(TypeId, u32); 2]>,
    pub(crate) since: SimTime,
    pub(crate) next_rate: SimTime,
    pub(crate) record: ServiceRecord,
    /// Held accelerators by node, in the order of `record.nodes`.
    pub(crate) held: Vec<u32>,
    /// Ready replicas by node, likewise.
    pub(crate) serving: Vec<u32>,
}

impl ServiceState {
    pub(crate) fn new(id: ServiceId, service: &Service) -> Self {
        let record = ServiceRecord {
            service: id,
            requests: 0,
            violated: 0,
            late: service.runs_tokens().then(LateTokens::default),
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

    /// Whether a replica changes its phase at `at`.
    pub(crate) fn is_due(&self, at: SimTime) -> bool {
        self.replicas.iter().any(|replica| match replica.phase {
            ReplicaPhase::Starting { until } | ReplicaPhase::Draining { until } => until == at,
            ReplicaPhase::Ready => false,
        })
    }

    /// Replicas that are starting or ready.
    pub fn lasting(&self) -> impl DoubleEndedIterator<Item = &Replica> {
        self.replicas.iter().filter(|replica| !matches!(replica.phase, ReplicaPhase::Draining { .. }))
    }

    /// Replicas that answer.
    pub fn ready(&self) -> u32 {
        self.ready.iter().map(|&(_, count)| count).sum()
    }

    pub(crate) fn node_at(&mut self, node: NodeId) -> usize {
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

    /// Requests that came since the last time, micro-requests, and what became of them; `None`
    /// where there were none and none waits.
    pub(crate) fn since_settled(&self, scenario: &Scenario, now: SimTime) -> Option<(u64, Interval)> {
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
    pub(crate) fn settle(&mut self, scenario: &Scenario, now: SimTime) {
        let millis = (now - self.since).as_millis();
        if millis <= 0 {
            return;
        }
        // Requests are counted before `since` moves, because the span to count ends now.
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
        if let Some(late) = &mut self.record.late {
            late.ttft += counted.late.ttft;
            late.tpot += counted.late.tpot;
        }
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
        // Differences of running sums that are rounded down add up to the total, whatever the
        // parts.
        let share = |total: u64, part: u64| (u128::from(total) * u128::from(part) / u128::from(all)) as u64;
        let mut before = 0;
        for (on, &count) in self.record.nodes.iter_mut().zip(&self.serving) {
            let upto = before + u64::from(count);
            on.requests += share(requests, upto) - share(requests, before);
            on.violated += share(violated, upto) - share(violated, before);
            before = upto;
        }
    }

    /// Ready replicas as a queueing system.
    pub(crate) fn fleet<'a>(&self, scenario: &'a Scenario) -> Fleet<'a> {
        let groups = self.ready.iter().filter_map(|&(kind, count)| Some((scenario.profile(self.id, kind)?, count)));
        Fleet(groups.collect())
    }

    /// Counts one more ready replica on `node`.
    pub(crate) fn add_ready(&mut self, scenario: &Scenario, node: NodeId) {
        let at = self.node_at(node);
        self.serving[at] += 1;
        let kind = scenario.cluster.type_of(node);
        match self.ready.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.ready.push((kind, 1)),
        }
        self.ready.sort_unstable_by_key(|&(kind, _)| kind);
    }

    /// Counts one ready replica less on `node`.
    pub(crate) fn remove_ready(&mut self, scenario: &Scenario, node: NodeId) {
        let at = self.node_at(node);
        self.serving[at] -= 1;
        let kind = scenario.cluster.type_of(node);
        if let Some((_, count)) = self.ready.iter_mut().find(|(known, _)| *known == kind) {
            *count -= 1;
        }
    }
}
