//! Requests come, are answered, and leave a warm instance behind; jobs take the accelerators of free instances.

use super::{InstanceUsage, RequestRecord, Served, SimError, Simulator, Status};
use crate::cluster::NodeId;
use crate::plan::Plan;
use crate::request::{Assign, InstanceId, RequestId, Target};
use crate::state::{Instance, InstanceState, InstanceTable, Trigger};
use crate::time::SimTime;

/// Requests and instances of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    pub instances: InstanceTable,
    /// Requests that have come are those below.
    pub arrived: usize,
    /// Those of them that nobody answers yet, in order.
    pub waiting: Vec<RequestId>,
    /// A request came, or something became free while one waits.
    pub due: bool,
    /// The decision at hand is about requests alone.
    pub alone: bool,
    pub records: Vec<RequestRecord>,
    pub usage: Vec<InstanceUsage>,
    /// Accelerator time of instances that run, cold starts included, that start, and that are protected; milliseconds.
    pub run_millis: i64,
    pub cold_millis: i64,
    pub protect_millis: i64,
}

impl Simulator {
    pub(super) fn next_request(&self) -> SimTime {
        let next = self.scenario.workload.requests.get(self.requests.arrived);
        next.map_or(SimTime::NEVER, |request| request.submit)
    }

    /// When an instance changes its state, unless nothing is left to do for any.
    pub(super) fn next_lifecycle(&mut self, request: SimTime, arrival: SimTime) -> SimTime {
        let requests = &mut self.requests;
        let over = request == SimTime::NEVER && requests.waiting.is_empty() && requests.instances.running() == 0;
        if over && arrival == SimTime::NEVER && self.table.active().is_empty() {
            return SimTime::NEVER;
        }
        requests.instances.next_end()
    }

    pub(super) fn request_arrives(&mut self) {
        let id = RequestId(self.requests.arrived as u32);
        self.requests.arrived += 1;
        self.requests.waiting.push(id);
        self.requests.due = true;
        self.events += 1;
    }

    /// Something became free; whoever waits may have it.
    pub(super) fn wake_requests(&mut self) {
        self.requests.due |= !self.requests.waiting.is_empty();
    }

    /// The policy is asked about requests.
    pub(super) fn request_decision(&mut self) -> Status {
        self.refresh_open();
        self.decisions += 1;
        self.requests.alone = true;
        Status::Decision
    }

    /// Why the policy is asked: what happened to jobs waits for a decision about jobs.
    pub(super) fn current_trigger(&self) -> Trigger {
        let of_jobs = if self.requests.alone { Trigger::default() } else { self.trigger };
        Trigger { request: self.requests.due, ..of_jobs }
    }

    /// The last decision is over.
    pub(super) fn forget_trigger(&mut self) {
        if !std::mem::take(&mut self.requests.alone) {
            self.trigger = Trigger::default();
        }
        self.requests.due = false;
    }

    /// An instance has answered, or its protection is over.
    pub(super) fn instance_due(&mut self) {
        self.events += 1;
        let (now, options) = (self.now, self.scenario.options.instances);
        let Some(id) = self.requests.instances.pop_end() else { return };
        let Some(&Instance { node, state, hits, .. }) = self.requests.instances.get(id) else { return };
        match state {
            InstanceState::Run { request, .. } => {
                self.requests.records[request.index()].finish = Some(now);
                let until = now + options.protection(hits);
                if !options.keep {
                    self.requests.instances.remove(id);
                    self.add_free(node, 1);
                    self.wake_jobs();
                } else if until > now {
                    self.requests.instances.set(id, InstanceState::Protect { until }, hits, now);
                } else {
                    self.set_free(id, node);
                }
            }
            InstanceState::Protect { .. } => self.set_free(id, node),
            InstanceState::Free { .. } => {}
        }
        self.wake_requests();
        self.log_instances();
    }

    fn set_free(&mut self, id: InstanceId, node: NodeId) {
        let now = self.now;
        self.requests.instances.set(id, InstanceState::Free { since: now }, 0, now);
        self.add_free(node, 1);
        self.wake_jobs();
    }

    /// An accelerator that an instance gave up is there for jobs too.
    fn wake_jobs(&mut self) {
        self.requests.due |= self.scenario.options.rounds.on_churn && !self.table.active().is_empty();
    }

    /// Carries out assignments that the guard has let pass, after jobs have left what they are to leave.
    pub(super) fn assign(&mut self, assign: &[Assign]) {
        for &Assign { request, target } in assign {
            let now = self.now;
            let spec = self.scenario.workload.requests[request.index()];
            let requests = &mut self.requests;
            if let Ok(at) = requests.waiting.binary_search(&request) {
                requests.waiting.remove(at);
            }
            let (cold, served) = match target {
                Target::Instance(id) => {
                    let Some(&Instance { node, state, hits, .. }) = requests.instances.get(id) else { continue };
                    let free = matches!(state, InstanceState::Free { .. });
                    let hits = if free { 0 } else { hits + 1 };
                    let until = now + spec.duration;
                    requests.instances.set(id, InstanceState::Run { request, until }, hits, now);
                    self.take_free(node, u32::from(free));
                    (SimTime::ZERO, if free { Served::Reused } else { Served::Hit })
                }
                Target::Node(node) => {
                    let model = &self.scenario.workload.served[spec.model as usize];
                    let cold_start = self.scenario.options.instances.cold_start;
                    let cold = SimTime::from_millis(cold_start.cost_millis(&model.application, 0, 1, true));
                    let until = now + cold + spec.duration;
                    requests.instances.start(spec.model, node, InstanceState::Run { request, until }, now);
                    self.take_free(node, 1);
                    (cold, Served::Cold)
                }
            };
            self.requests.cold_millis += cold.as_millis();
            let record = &mut self.requests.records[request.index()];
            (record.start, record.served) = (Some(now), Some(served));
        }
    }

    /// Ends free instances whose accelerators the plan has given away.
    pub(super) fn evict_instances(&mut self, plan: &Plan) {
        if self.scenario.workload.requests.is_empty() {
            return;
        }
        let jobs = plan.changes.iter().flat_map(|change| change.placement.slices().iter().map(|slice| slice.node));
        let started = plan.assign.iter().filter_map(|assign| match assign.target {
            Target::Node(node) => Some(node),
            Target::Instance(_) => None,
        });
        for node in jobs.chain(started).chain(plan.scale.iter().map(|scale| scale.node)) {
            self.trim_instances(node);
        }
        if !plan.assign.is_empty() {
            self.log_instances();
        }
    }

    /// Time passes.
    pub(super) fn advance_instances(&mut self, millis: i64) {
        let requests = &mut self.requests;
        requests.run_millis += i64::from(requests.instances.running()) * millis;
        requests.protect_millis += i64::from(requests.instances.protected()) * millis;
    }

    fn log_instances(&mut self) {
        if self.scenario.options.log_allocations {
            let (running, protected) = (self.requests.instances.running(), self.requests.instances.protected());
            let usage = InstanceUsage { at: self.now, running, protected };
            match self.requests.usage.last_mut().filter(|last| last.at == usage.at) {
                Some(last) => *last = usage,
                None => self.requests.usage.push(usage),
            }
        }
    }

    /// Nothing happens any more and requests still wait.
    pub(super) fn unserved(&self) -> Option<SimError> {
        let first = *self.requests.waiting.first()?;
        let model = self.scenario.workload.requests[first.index()].model;
        let model = self.scenario.workload.served[model as usize].name.to_string();
        Some(SimError::Unserved { at: self.now, waiting: self.requests.waiting.len(), model })
    }
}
