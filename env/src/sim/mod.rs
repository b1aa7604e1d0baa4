//! The discrete-event simulator.
//!
//! Between events a running job has a constant rate, so an event costs work only for jobs whose rate changed, whatever
//! the number of jobs. [`Simulator::run_until_decision`] advances to the next moment a policy is asked; the caller looks at
//! [`Simulator::view`] and answers with [`Simulator::apply`]. Nothing else drives it: evaluation, gym and tests share this
//! path.

mod event_loop;
mod events;
mod faults;
mod fragments;
mod health;
mod holding;
mod ledger;
mod loans;
mod observed;
mod outages;
mod record;
mod replay;
mod requests;
mod resize;
mod resume;
mod saving;
mod segment;
mod services;
mod shared_profiles;

use std::sync::Arc;

use rand::RngExt;
use thiserror::Error;

use crate::guard::{Guard, Violation};
use crate::job::JobId;
use crate::model::OutsideProfile;
use crate::placement::Placement;
use crate::plan::{Change, Plan};
use crate::policy::Policy;
use crate::scenario::{Information, Release, Resize, Scenario};
use crate::seed::{Stream, keyed, standard_normal};
use crate::state::{EXPECTED_ACTIVE, InstanceTable, JobState, JobTable, Loans, ObservedError, Phase, Profile, Trigger};
use crate::time::SimTime;
use crate::view::ClusterView;

use events::EventQueue;
pub use fragments::FragmentChange;
use fragments::Fragments;
use health::Health;
use ledger::Ledger;
pub use ledger::TrainingOnNode;
pub use loans::LoanRecord;
pub use record::{
    AllocationChange, FaultRecord, HardwareRecord, InstanceUsage, JobRecord, Outcome, RequestRecord, Served,
};
use requests::Requests;
pub use services::ServingChange;
use services::{ReplicasHeld, Services};

/// Why a run cannot go on.
#[derive(Debug, Error)]
pub enum SimError {
    /// What was observed cannot be gone on from.
    #[error("cannot go on from what was observed: {0}")]
    Observed(#[from] ObservedError),
    /// The guard refused a plan.
    #[error("the plan at {at} was refused: {}", .violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Refused {
        /// When.
        at: SimTime,
        /// Every rule it breaks.
        violations: Vec<Violation>,
    },
    /// A job runs where its measurements do not reach.
    #[error("job {name} ({application}) at {at}: {source}")]
    Profile {
        /// When.
        at: SimTime,
        /// The job's name.
        name: String,
        /// Its application.
        application: String,
        /// What is missing.
        source: OutsideProfile,
    },
    /// A job's application has no speed on this cluster.
    #[error("application {application} has no throughput parameters for accelerator type {accelerator}")]
    NoSpeed {
        /// The application.
        application: String,
        /// The accelerator type.
        accelerator: String,
    },
    /// Nothing runs, nothing will arrive and the policy starts nothing.
    #[error("stalled at {at}: {pending} jobs wait, nothing runs, and the policy starts none of them (first: {first})")]
    Stalled {
        /// When.
        at: SimTime,
        /// Jobs waiting.
        pending: usize,
        /// Name of the first.
        first: String,
    },
    /// Requests wait and the policy answers none.
    #[error(
        "stalled at {at}: {waiting} requests for inference wait, first for {model}, and the policy answers none; NAME+ats-i does beside training policy NAME"
    )]
    Unserved {
        /// When.
        at: SimTime,
        /// Requests waiting.
        waiting: usize,
        /// The model that the first asks for.
        model: String,
    },
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A policy is to decide.
    Decision,
    /// Every job is complete.
    Complete,
    /// The horizon is reached.
    Truncated,
}

/// One run. Cloning it is a snapshot; assigning the clone back restores it.
#[derive(Clone, Debug)]
pub struct Simulator {
    scenario: Arc<Scenario>,
    now: SimTime,
    table: JobTable,
    /// Accelerators by node that neither jobs nor instances which run or are protected hold.
    free: Vec<u32>,
    fragments: Fragments,
    requests: Requests,
    queue: EventQueue,
    /// Jobs that have arrived are those below.
    arrived: usize,
    last_round: SimTime,
    /// When the policy asked to be woken; [`SimTime::NEVER`] where it did not.
    wake: SimTime,
    trigger: Trigger,
    /// What completed jobs hold until the next round, and with it their part in interference.
    holding: Vec<(JobId, Placement)>,
    /// Running jobs whose batch size is to be chosen again at the next decision.
    stale: Vec<JobId>,
    /// By application, where jobs share what they measure; empty where they do not.
    shared: Vec<Profile>,
    records: Vec<JobRecord>,
    allocations: Vec<AllocationChange>,
    distributed: Vec<u32>,
    /// By node: when the last job that was told to leave accelerators there has left them. Empty where changes of size stop a job.
    drained: Vec<SimTime>,
    services: Services,
    served: ReplicasHeld,
    loans: Loans,
    loan_record: LoanRecord,
    ledger: Ledger,
    in_system: u32,
    job_millis: i64,
    gpu_millis: i64,
    /// Accelerator time that completed jobs held without use.
    idle_gpu_millis: i64,
    held: u32,
    /// What is broken; `None` where nothing ever is.
    health: Option<Box<Health>>,
    idle_decisions: u32,
    decisions: u64,
    events: u64,
    guard: Guard,
}

impl Simulator {
    /// A run at time zero.
    pub fn new(scenario: Arc<Scenario>) -> Self {
        let free: Vec<u32> = scenario.cluster.nodes.iter().map(|node| node.gpus).collect();
        let overlaps = scenario.options.resize != Resize::StopRestart;
        let jobs = &scenario.workload.jobs;
        let room = jobs.len().min(EXPECTED_ACTIVE);
        let records = jobs
            .iter()
            .enumerate()
            .map(|(index, job)| JobRecord {
                job: JobId(index as u32),
                submit: job.request.submit,
                start: None,
                finish: None,
                restarts: 0,
                attained_gpu_millis: 0,
                executed: SimTime::ZERO,
                restarting: SimTime::ZERO,
                faults: FaultRecord::default(),
            })
            .collect();
        let workload = &scenario.workload;
        let requests = Requests {
            instances: InstanceTable::new(workload.served.len(), free.len()),
            records: workload.requests.iter().map(|request| RequestRecord::new(request.submit)).collect(),
            ..Requests::default()
        };
        Self {
            requests,
            now: SimTime::ZERO,
            table: JobTable::new(jobs.len()),
            distributed: vec![0; free.len()],
            drained: vec![SimTime::ZERO; if overlaps { free.len() } else { 0 }],
            services: Services::new(&scenario),
            served: ReplicasHeld::new(&scenario),
            loans: Loans::new(&scenario.cluster),
            loan_record: LoanRecord::default(),
            ledger: Ledger::new(free.len()),
            fragments: Fragments::new(&scenario),
            free,
            queue: EventQueue::with_capacity(4 * room),
            arrived: 0,
            last_round: SimTime::ZERO,
            wake: SimTime::NEVER,
            trigger: Trigger::default(),
            holding: Vec::new(),
            stale: Vec::new(),
            shared: shared_profiles::empty(&scenario),
            records,
            allocations: Vec::new(),
            in_system: 0,
            job_millis: 0,
            gpu_millis: 0,
            idle_gpu_millis: 0,
            held: 0,
            health: scenario.options.faults.as_ref().map(|model| Box::new(Health::new(model, &scenario))),
            idle_decisions: 0,
            decisions: 0,
            events: 0,
            guard: Guard::with_capacity(scenario.cluster.nodes.len(), room),
            scenario,
        }
    }

    /// The inputs of this run.
    pub fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }

    /// Now.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Integral over time of the number of jobs in the system, job-milliseconds. By Little's law its final value is the
    /// sum of all completion times.
    pub fn job_millis(&self) -> i64 {
        self.job_millis
    }

    /// Integral over time of the number of accelerators held, GPU-milliseconds.
    pub fn gpu_millis(&self) -> i64 {
        self.gpu_millis
    }

    /// What a policy sees now.
    pub fn view(&self) -> ClusterView<'_> {
        let health = self.health.as_deref();
        ClusterView {
            now: self.now,
            trigger: self.current_trigger(),
            information: self.scenario.options.information,
            batching: self.scenario.options.batching,
            scenario: &self.scenario,
            table: &self.table,
            free: if self.loans.open.is_empty() { &self.free } else { &self.loans.open },
            idle: &self.free,
            served: &self.served.by_node,
            services: &self.services.states,
            loans: &self.loans,
            instances: &self.requests.instances,
            waiting: &self.requests.waiting,
            cluster: health.map_or(&self.scenario.cluster, |health| &health.cluster),
            down: health.map_or(&[], |health| &health.down),
            ids: self.table.active(),
        }
    }

    /// Runs `policy` to the end.
    ///
    /// # Errors
    /// [`SimError`] where the policy breaks a rule, a job leaves its profile, or the run stalls.
    pub fn run(mut self, policy: &mut dyn Policy) -> Result<Outcome, SimError> {
        while self.run_until_decision()? == Status::Decision {
            let plan = policy.decide(&self.view());
            self.apply(&plan)?;
            self.wake_at(policy.wake_at());
        }
        Ok(self.outcome())
    }

    /// Makes `at` a decision point if no other comes first and decisions fall on churn. It is forgotten at the next decision.
    pub fn wake_at(&mut self, at: Option<SimTime>) {
        let at = at.filter(|&at| at > self.now && self.scenario.options.rounds.on_churn);
        self.wake = at.unwrap_or(SimTime::NEVER);
    }

    /// The records so far.
    pub fn outcome(mut self) -> Outcome {
        let now = self.now;
        for &id in self.table.active() {
            self.records[id.index()] = record_of(self.table.state(id), &self.records[id.index()], now, None);
            self.idle_gpu_millis += self.table.state(id).idle_gpu_millis(now);
        }
        let unanswered = self.requests.records.iter().any(|record| record.finish.is_none());
        let truncated = unanswered || self.records.iter().any(|record| record.left().is_none());
        Outcome {
            services: self.service_records(),
            loans: self.loan_record(),
            training: self.training_by_node(),
            serving: self.served.log.take().unwrap_or_default(),
            end: now,
            truncated,
            idle_gpu_millis: self.idle_gpu_millis,
            fragmented_gpu_millis: self.fragments.millis,
            fragments: std::mem::take(&mut self.fragments.log),
            hardware: self.health.as_ref().map(|health| health.record).unwrap_or_default(),
            decisions: self.decisions,
            events: self.events,
            allocations: std::mem::take(&mut self.allocations),
            requests: self.requests.records,
            instance_usage: self.requests.usage,
            instance_run_millis: self.requests.run_millis,
            instance_cold_millis: self.requests.cold_millis,
            instance_protect_millis: self.requests.protect_millis,
            jobs: self.records,
        }
    }

    /// Records of completed jobs so far, by id; others are blank.
    pub fn records(&self) -> &[JobRecord] {
        &self.records
    }

    /// Carries out a plan at the current decision point.
    ///
    /// # Errors
    /// [`SimError::Refused`] where the guard finds violations (nothing is changed then), [`SimError::Profile`] where a job
    /// would run outside its measurements.
    pub fn apply(&mut self, plan: &Plan) -> Result<(), SimError> {
        let mut guard = std::mem::take(&mut self.guard);
        let checked = guard.check(&self.view(), plan);
        self.guard = guard;
        checked.map_err(|violations| SimError::Refused { at: self.now, violations })?;
        // Every release comes before every allocation, so that the order within a plan does not matter.
        plan.scale.iter().for_each(|scale| self.scale_in(scale));
        self.lend_and_call_back(plan);
        for change in &plan.changes {
            if self.is_free_move(change) {
                self.relabel(change);
            } else if self.differs(change) {
                self.idle_decisions = 0;
                if self.overlaps(change) {
                    self.prepare(change)?;
                } else {
                    self.vacate(change.job)?;
                }
            }
        }
        self.assign(&plan.assign);
        for change in &plan.changes {
            if self.differs(change) {
                match self.table.state(change.job).is_allocated() {
                    true => self.reconfigure(change)?,
                    false => self.occupy(change)?,
                }
            }
        }
        self.bring_home();
        plan.scale.iter().for_each(|scale| self.scale_out(scale));
        self.evict_instances(plan);
        self.rechoose_batches()?;
        self.update_interference()?;
        self.refresh_open();
        Ok(())
    }

    fn differs(&self, change: &Change) -> bool {
        let state = self.table.state(change.job);
        state.placement != change.placement || state.partner != change.partner
    }

    fn name(&self, job: JobId) -> &str {
        &self.scenario.workload.jobs[job.index()].request.name
    }

    fn arrive(&mut self) {
        let id = JobId(self.arrived as u32);
        let factor = match self.scenario.options.information {
            Information::Estimate { sigma } => {
                let mut rng = keyed(self.scenario.seed, Stream::Estimates, u64::from(id.0));
                (sigma * standard_normal(rng.random(), rng.random())).exp()
            }
            Information::Oracle | Information::Profiled => 1.0,
        };
        let mut state = JobState::new(id, self.now, factor);
        let faults = self.scenario.options.faults.as_ref();
        let tenant = self.scenario.workload.jobs[id.index()].request.tenant;
        state.saving.buggy = faults.is_some_and(|model| model.is_buggy(self.scenario.seed, id, tenant));
        self.table.insert(state);
        self.know_what_others_measured(id);
        self.count_waiting(id, 1);
        self.arrived += 1;
        self.in_system += 1;
        self.events += 1;
        self.trigger.arrival = true;
    }

    /// A job ends its restart or an epoch.
    fn phase_end(&mut self, job: JobId) -> Result<(), SimError> {
        self.events += 1;
        let now = self.now;
        let state = self.table.state_mut(job);
        state.settle(now);
        if let Phase::Starting { .. } = state.phase {
            return self.begin(job);
        }
        let end = self.scenario.epoch_end(job, state.epoch);
        state.epoch += 1;
        if self.scenario.workload.application(job).is_some() {
            // The end of an epoch is exact by definition, whatever rounding put the event here.
            state.progress = end;
        }
        if end >= self.scenario.total_work(job) {
            return if self.table.state(job).saving.buggy { self.fail(job) } else { self.leave(job, Some(now)) };
        }
        self.choose_batch(job);
        self.run_segment(job)
    }

    /// A job leaves the system: complete, or given up where there is no `finish`.
    fn leave(&mut self, job: JobId, finish: Option<SimTime>) -> Result<(), SimError> {
        let state = self.table.state(job);
        let mut record = record_of(state, &self.records[job.index()], self.now, finish);
        record.faults.failed = finish.is_none().then_some(self.now);
        self.idle_gpu_millis += state.idle_gpu_millis(self.now);
        self.records[job.index()] = record;
        self.in_system -= 1;
        self.trigger.completion = true;
        let placement = std::mem::take(&mut self.table.state_mut(job).placement);
        if placement.is_empty() {
            self.count_waiting(job, -1);
        }
        if self.leave_partner(job)? {
            self.log(job, &Placement::none());
        } else if self.scenario.options.release == Release::NextRound && self.scenario.options.rounds.period.is_some() {
            self.holding.push((job, placement));
        } else {
            self.give_back(job, &placement);
        }
        self.table.remove(job);
        self.bring_home();
        Ok(())
    }
}

fn record_of(state: &JobState, blank: &JobRecord, now: SimTime, finish: Option<SimTime>) -> JobRecord {
    JobRecord {
        start: state.started,
        finish,
        restarts: state.restarts,
        attained_gpu_millis: state.attained_gpu_millis(now),
        executed: state.executed(now),
        restarting: state.restarting(now),
        faults: FaultRecord {
            hits: state.saving.hits,
            failures: state.saving.failures,
            failed: None,
            idle_gpu_millis: state.idle_gpu_millis(now),
            writing_gpu_millis: state.writing_gpu_millis(now),
            lost_gpu_millis: state.saving.lost,
        },
        ..*blank
    }
}
