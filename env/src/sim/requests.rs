//! Requests come, are answered, and leave a warm instance behind; jobs take the accelerators of
//! free instances.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{InstanceUsage, RequestRecord, Served, SimError, Simulator, Status};
use crate::cluster::NodeId;
use crate::plan::Plan;
use crate::request::{Assign, InstanceId, RequestId, Target};
use crate::scenario::Scenario;
use crate::state::{ClusterState, Instance, InstanceEnd, InstanceState, InstanceTable, Trigger};
use crate::time::SimTime;

/// Requests of a run, as far as the state does not tell, and the ends of the states of instances.
#[derive(Clone, Debug, Default)]
pub(super) struct RunRequests {
    /// Requests that have come are those below.
    pub arrived: usize,
    /// A request came, or something became free while one waits.
    pub due: bool,
    /// The decision at hand is about requests alone.
    pub alone: bool,
    /// Models of free instances that jobs took the accelerators of at the last round, as long as they are known.
    evicted: Vec<u16>,
    /// Ends of the states of instances; those of states that have been left are void.
    ends: BinaryHeap<Reverse<InstanceEnd>>,
    pub records: Vec<RequestRecord>,
    pub usage: Vec<InstanceUsage>,
    /// Accelerator time of instances that run, cold starts included, milliseconds.
    pub run_millis: i64,
    /// Accelerator time of instances that start, milliseconds.
    pub cold_millis: i64,
    /// Accelerator time of instances that are protected, milliseconds.
    pub protect_millis: i64,
}

impl RunRequests {
    pub fn new(scenario: &Scenario) -> Self {
        let records = scenario.workload.requests.iter().map(|request| RequestRecord::new(request.submit)).collect();
        Self { records, ..Self::default() }
    }

    /// Adds `millis` to the accelerator time of instances.
    pub fn advance(&mut self, instances: &InstanceTable, millis: i64) {
        self.run_millis += i64::from(instances.running()) * millis;
        self.protect_millis += i64::from(instances.protected()) * millis;
    }

    /// Moment at which the next instance changes its state.
    fn next_end(&mut self, instances: &InstanceTable) -> SimTime {
        while let Some(Reverse(end)) = self.ends.peek() {
            if instances.is_current(end) {
                return end.at;
            }
            self.ends.pop();
        }
        SimTime::NEVER
    }

    /// Moment at which the next request comes.
    pub fn next(&self, scenario: &Scenario) -> SimTime {
        let next = scenario.workload.requests.get(self.arrived);
        next.map_or(SimTime::NEVER, |request| request.submit)
    }

    /// Moment at which the next instance changes its state, unless no work is left for any.
    pub fn next_lifecycle(&mut self, state: &ClusterState, request: SimTime, arrival: SimTime) -> SimTime {
        let idle = state.waiting.is_empty() && state.instances.running() == 0;
        let over = request == SimTime::NEVER && idle;
        if over && arrival == SimTime::NEVER && state.jobs.is_empty() {
            return SimTime::NEVER;
        }
        self.next_end(&state.instances)
    }

    /// Makes a decision about requests due, because accelerators became free while some wait.
    pub fn wake(&mut self, state: &ClusterState) {
        self.due |= !state.waiting.is_empty();
    }

    /// An accelerator that an instance gave up is there for jobs too.
    fn wake_for_jobs(&mut self, state: &ClusterState) {
        self.due |= state.scenario.options.rounds.on_churn && !state.jobs.is_empty();
    }

    /// Something happens, after which no instance is known that has lost its accelerator.
    pub fn forget_evicted(&mut self) {
        self.evicted.clear();
    }

    /// Reasons for the decision at hand. News of jobs wait for a decision about jobs.
    pub fn trigger(&self, state: &ClusterState) -> Trigger {
        let of_jobs = if self.alone { Trigger::default() } else { state.trigger };
        Trigger { request: self.due, ..of_jobs }
    }

    /// The last decision is over.
    pub fn forget_trigger(&mut self, state: &mut ClusterState) {
        if !std::mem::take(&mut self.alone) {
            state.trigger = Trigger::default();
        }
        self.due = false;
    }

    /// Logs how many instances run and are protected, where the run logs allocations.
    fn log(&mut self, state: &ClusterState) {
        if state.scenario.options.log_allocations {
            let (running, protected) = (state.instances.running(), state.instances.protected());
            let usage = InstanceUsage { at: state.now, running, protected };
            match self.usage.last_mut().filter(|last| last.at == usage.at) {
                Some(last) => *last = usage,
                None => self.usage.push(usage),
            }
        }
    }

    /// Changes the state of an instance and queues its end.
    fn set(&mut self, state: &mut ClusterState, id: InstanceId, to: InstanceState, hits: u32) {
        let end = state.instances.set(id, to, hits, state.now);
        self.ends.extend(end.map(Reverse));
    }

    /// Nothing happens any more and requests still wait.
    pub fn unserved(&self, state: &ClusterState) -> Option<SimError> {
        let first = *state.waiting.first()?;
        let model = state.scenario.workload.requests[first.index()].model;
        let model = state.scenario.workload.served[model as usize].name.to_string();
        Some(SimError::Unserved { at: state.now, waiting: state.waiting.len(), model })
    }
}

impl Simulator {
    pub(super) fn request_arrives(&mut self) {
        let id = RequestId(self.requests.arrived as u32);
        self.requests.arrived += 1;
        self.state.waiting.push(id);
        self.requests.due = true;
        self.records.events += 1;
    }

    /// The policy is asked about requests.
    pub(super) fn request_decision(&mut self) -> Status {
        self.state.refresh_open();
        self.records.decisions += 1;
        self.requests.alone = true;
        Status::Decision
    }

    /// An instance has answered, or its protection is over.
    pub(super) fn instance_due(&mut self) -> Result<(), SimError> {
        self.records.events += 1;
        let (now, options) = (self.state.now, self.state.scenario.options.instances);
        let Some(Reverse(InstanceEnd { id, .. })) = self.requests.ends.pop() else { return Ok(()) };
        let Some(&Instance { node, state, hits, .. }) = self.state.instances.get(id) else { return Ok(()) };
        match state {
            InstanceState::Run { request, .. } => {
                self.requests.forget_evicted();
                self.requests.records[request.index()].finish = Some(now);
                self.choose_batches_at_event()?;
                let until = now + options.protection(hits);
                if !options.keep {
                    self.state.instances.remove(id);
                    self.add_free(node, 1);
                    self.requests.wake_for_jobs(&self.state);
                } else if until > now {
                    self.requests.set(&mut self.state, id, InstanceState::Protect { until }, hits);
                } else {
                    self.set_free(id, node);
                }
            }
            InstanceState::Protect { .. } => self.set_free(id, node),
            InstanceState::Free { .. } => {}
        }
        self.requests.wake(&self.state);
        self.requests.log(&self.state);
        Ok(())
    }

    fn set_free(&mut self, id: InstanceId, node: NodeId) {
        let now = self.state.now;
        self.requests.set(&mut self.state, id, InstanceState::Free { since: now }, 0);
        self.add_free(node, 1);
        self.requests.wake_for_jobs(&self.state);
    }

    /// Carries out assignments that the guard has let pass, after jobs have left what they are to
    /// leave.
    pub(super) fn assign(&mut self, assign: &[Assign]) {
        for &Assign { request, target } in assign {
            let now = self.state.now;
            let spec = self.state.scenario.workload.requests[request.index()];
            if let Ok(at) = self.state.waiting.binary_search(&request) {
                self.state.waiting.remove(at);
            }
            let (cold, served) = match target {
                Target::Instance(id) => {
                    let Some(&Instance { node, state, hits, .. }) = self.state.instances.get(id) else { continue };
                    let free = matches!(state, InstanceState::Free { .. });
                    let hits = if free { 0 } else { hits + 1 };
                    let until = now + spec.duration;
                    self.requests.set(&mut self.state, id, InstanceState::Run { request, until }, hits);
                    // A protected instance has kept its accelerator, so only a free one takes it
                    // again.
                    self.take_free(node, u32::from(free));
                    (SimTime::ZERO, if free { Served::Reused } else { Served::Hit })
                }
                Target::Node(node) => {
                    let model = &self.state.scenario.workload.served[spec.model as usize];
                    let cold_start = self.state.scenario.options.instances.cold_start;
                    let known = self.requests.evicted.iter().position(|&evicted| evicted == spec.model);
                    let cold = match known {
                        Some(at) => {
                            self.requests.evicted.swap_remove(at);
                            SimTime::ZERO
                        }
                        None => SimTime::from_millis(cold_start.cost_millis(&model.application, 0, 1)),
                    };
                    let until = now + cold + spec.duration;
                    let state = InstanceState::Run { request, until };
                    let end = self.state.instances.start(spec.model, node, state, now);
                    self.requests.ends.extend(end.map(Reverse));
                    self.take_free(node, 1);
                    (cold, if known.is_some() { Served::Reused } else { Served::Cold })
                }
            };
            self.requests.cold_millis += cold.as_millis();
            let record = &mut self.requests.records[request.index()];
            (record.start, record.served) = (Some(now), Some(served));
        }
    }

    /// Ends free instances on accelerators that the plan has given away.
    pub(super) fn evict_instances(&mut self, plan: &Plan) {
        if self.state.scenario.workload.requests.is_empty() {
            return;
        }
        let jobs = plan.changes.iter().flat_map(|change| change.placement.slices().iter().map(|slice| slice.node));
        let started = plan.assign.iter().filter_map(|assign| match assign.target {
            Target::Node(node) => Some(node),
            Target::Instance(_) => None,
        });
        let round = self.state.trigger.round && !self.requests.alone;
        if !round {
            self.requests.evicted.clear();
        }
        let known = round && self.state.scenario.options.instances.evicted_answer;
        let (state, requests) = (&mut self.state, &mut self.requests);
        for node in jobs.chain(started).chain(plan.scale.iter().map(|scale| scale.node)) {
            state.trim_instances(node, |model| requests.evicted.extend(known.then_some(model)));
        }
        if !plan.assign.is_empty() {
            self.requests.log(&self.state);
        }
    }
}
