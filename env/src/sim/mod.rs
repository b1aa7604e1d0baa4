//! The discrete-event simulator.
//!
//! Between events a running job has a constant rate, so an event costs work only for jobs with a
//! new rate, whatever the number of jobs. [`Simulator::run_until_decision`] advances to the next
//! moment a policy is asked; the caller looks at [`Simulator::view`] and answers with
//! [`Simulator::apply`]. Nothing else drives it: evaluation, gym and tests share this path.

mod event_loop;
mod events;
mod faults;
mod fragments;
mod health;
mod holding;
mod jobs;
mod ledger;
mod loans;
mod observed;
mod outages;
mod record;
mod records;
mod rental;
mod replay;
mod requests;
mod resize;
mod resume;
mod saving;
mod segment;
mod services;
mod shared_profiles;
mod shared_use;
mod sharing;
mod slowdown;

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
use crate::state::{ClusterState, EXPECTED_ACTIVE, JobState, ObservedError, Phase, Profile};
use crate::tenant::TenantLimit;
use crate::time::SimTime;
use crate::view::ClusterView;

use events::EventQueue;
pub use fragments::FragmentChange;
use health::Health;
use jobs::RunJobs;
pub use ledger::TrainingOnNode;
pub use loans::LoanRecord;
use loans::RunLoans;
pub use record::{
    AllocationChange, FaultRecord, HardwareRecord, InstanceUsage, JobRecord, Outcome, PlacementChange, RequestRecord,
    Served,
};
use records::RunRecords;
use rental::RunRental;
pub use rental::{RentalRecord, SizeChange};
use requests::RunRequests;
use services::RunServices;
pub use services::ServingChange;
pub use shared_use::SharedUse;

/// Reason why a run cannot go on.
#[derive(Debug, Error)]
pub enum SimError {
    /// The observation does not fit the scenario.
    #[error("cannot go on from what was observed: {0}")]
    Observed(#[from] ObservedError),
    /// The guard refused a plan.
    #[error("the plan at {at} was refused: {}", .violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Refused {
        /// Moment of the failure.
        at: SimTime,
        /// Every rule it breaks.
        violations: Vec<Violation>,
    },
    /// A job runs where its measurements do not reach.
    #[error("job {name} ({application}) at {at}: {source}")]
    Profile {
        /// Moment of the failure.
        at: SimTime,
        /// The job's name.
        name: String,
        /// Name of the job's application.
        application: String,
        /// Measurement that is missing.
        source: OutsideProfile,
    },
    /// A job's application has no speed on this cluster.
    #[error("application {application} has no throughput parameters for accelerator type {accelerator}")]
    NoSpeed {
        /// Name of the application.
        application: String,
        /// The accelerator type.
        accelerator: String,
    },
    /// Nothing runs, nothing will arrive and the policy starts nothing.
    #[error(
        "stalled at {at}: {pending} {}, nothing runs, and the policy starts none of them (first: {first}, which asks for {gpus} of {capacity} accelerators{})",
        if *pending == 1 { "job waits" } else { "jobs wait" },
        limit.as_ref().map_or_else(String::new, |limit| format!("; {limit}: {}", limit.remedy()))
    )]
    Stalled {
        /// Moment of the failure.
        at: SimTime,
        /// Number of jobs that wait.
        pending: usize,
        /// Name of the first.
        first: String,
        /// Accelerators that the first asks for.
        gpus: u32,
        /// Accelerators of the cluster.
        capacity: u32,
        /// Limit of its tenant under which the first cannot start.
        limit: Option<Box<TenantLimit>>,
    },
    /// Requests wait and the policy answers none.
    #[error(
        "stalled at {at}: {waiting} requests for inference wait, first for {model}, and the policy answers none; NAME+ats-i does beside training policy NAME"
    )]
    Unserved {
        /// Moment of the failure.
        at: SimTime,
        /// Number of requests that wait.
        waiting: usize,
        /// The model that the first asks for.
        model: String,
    },
}

/// Standing of a run after it was advanced.
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
///
/// The caller drives the run from one decision to the next. Here one job of 600 s starts at once
/// and ends after its work and the 30 s that a start takes:
///
/// ```
/// use std::sync::Arc;
///
/// use goodput_env::cluster::{Cluster, NodeId};
/// use goodput_env::job::{JobId, JobRequest, JobSpec, Work, Workload};
/// use goodput_env::placement::Placement;
/// use goodput_env::plan::Plan;
/// use goodput_env::scenario::{Scenario, SimOptions};
/// use goodput_env::sim::{Simulator, Status};
/// use goodput_env::time::SimTime;
///
/// let job = JobSpec { request: JobRequest::default(), work: Work::Fixed { duration: SimTime::from_secs(600) } };
/// let workload = Workload::new(Vec::new(), vec![job]);
/// let cluster = Cluster::homogeneous(2, 4);
/// let scenario = Scenario::new(Arc::new(cluster), Arc::new(workload), SimOptions::standard(), 0);
/// let mut run = Simulator::new(Arc::new(scenario));
///
/// while run.run_until_decision()? == Status::Decision {
///     let mut plan = Plan::keep();
///     if run.view().jobs().any(|job| !job.state.is_allocated()) {
///         plan.set(JobId(0), Placement::on(NodeId(0), 1));
///     }
///     run.apply(&plan)?;
/// }
/// assert_eq!(run.records()[0].finish, Some(SimTime::from_secs(630)));
/// # Ok::<(), goodput_env::sim::SimError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulator {
    state: ClusterState,
    /// Events of jobs, services and servers.
    queue: EventQueue,
    decisions: Decisions,
    jobs: RunJobs,
    services: RunServices,
    requests: RunRequests,
    lending: RunLoans,
    /// Faults of the hardware; `None` where nothing ever breaks.
    health: Option<Box<Health>>,
    /// Rented nodes; `None` where nodes are there all the time.
    rental: Option<Box<RunRental>>,
    records: RunRecords,
    guard: Guard,
}

/// Past and requested decision points of a run.
#[derive(Clone, Debug)]
struct Decisions {
    last_round: SimTime,
    /// Moment at which the policy asked to be woken; [`SimTime::NEVER`] where it did not.
    wake: SimTime,
    /// Decisions in a row that changed no allocation.
    idle: u32,
}

impl ClusterState {
    pub(super) fn differs(&self, change: &Change) -> bool {
        let state = self.jobs.state(change.job);
        state.placement != change.placement || state.partner != change.partner
    }
}

impl Simulator {
    /// A run at time zero.
    pub fn new(scenario: Arc<Scenario>) -> Self {
        let nodes = scenario.cluster.nodes.len();
        let overlaps = scenario.options.resize != Resize::StopRestart;
        let room = scenario.workload.jobs.len().min(EXPECTED_ACTIVE);
        let mut state = ClusterState::new(scenario.clone());
        let rental = scenario.options.rental.map(|terms| Box::new(RunRental::new(&terms, &mut state)));
        let mut queue = EventQueue::with_capacity(4 * (room + state.services.len()));
        Self {
            services: RunServices::new(&state, &mut queue),
            state,
            queue,
            decisions: Decisions { last_round: SimTime::ZERO, wake: SimTime::NEVER, idle: 0 },
            jobs: RunJobs {
                shared: shared_profiles::empty(&scenario),
                distributed: vec![0; nodes],
                drained: vec![SimTime::ZERO; if overlaps { nodes } else { 0 }],
                ..RunJobs::default()
            },
            requests: RunRequests::new(&scenario),
            lending: RunLoans::default(),
            rental,
            health: scenario.options.faults.as_ref().map(|model| Box::new(Health::new(model, &scenario))),
            records: RunRecords::new(&scenario),
            guard: Guard::with_capacity(nodes, room),
        }
    }

    /// The inputs of this run.
    pub fn scenario(&self) -> &Arc<Scenario> {
        &self.state.scenario
    }

    /// Present moment of the run.
    pub fn now(&self) -> SimTime {
        self.state.now
    }

    /// Integral over time of the number of jobs in the system, job-milliseconds. By Little's law
    /// its final value is the sum of all completion times.
    pub fn job_millis(&self) -> i64 {
        self.records.job_millis
    }

    /// Events processed and decisions asked for so far: what the run has cost.
    pub fn steps(&self) -> u64 {
        self.records.events + self.records.decisions
    }

    /// Integral over time of the number of accelerators held, GPU-milliseconds.
    pub fn gpu_millis(&self) -> i64 {
        self.records.gpu_millis
    }

    /// View of the present state, as a policy is shown it.
    pub fn view(&self) -> ClusterView<'_> {
        ClusterView { trigger: self.requests.trigger(&self.state), ..self.state.view() }
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

    /// Makes `at` a decision point if no other comes first and decisions fall on churn. It is
    /// forgotten at the next decision.
    pub fn wake_at(&mut self, at: Option<SimTime>) {
        let at = at.filter(|&at| at > self.state.now && self.state.scenario.options.rounds.on_churn);
        self.decisions.wake = at.unwrap_or(SimTime::NEVER);
    }

    /// The records so far.
    pub fn outcome(mut self) -> Outcome {
        let now = self.state.now;
        for id in self.state.jobs.active() {
            self.records.jobs[id.index()] =
                record_of(self.state.jobs.state(id), &self.records.jobs[id.index()], now, None);
            self.records.idle_gpu_millis += self.state.jobs.state(id).idle_gpu_millis(now);
        }
        let unanswered = self.requests.records.iter().any(|record| record.finish.is_none());
        let truncated = unanswered || self.records.jobs.iter().any(|record| record.left().is_none());
        Outcome {
            services: self.service_records(),
            loans: self.loan_record(),
            training: self.training_by_node(),
            serving: self.services.log.take().unwrap_or_default(),
            end: now,
            truncated,
            idle_gpu_millis: self.records.idle_gpu_millis,
            fragmented_gpu_millis: self.records.fragments.millis,
            fragments: std::mem::take(&mut self.records.fragments.log),
            shared: self.records.shared.total,
            hardware: self.health.as_ref().map(|health| health.record).unwrap_or_default(),
            rental: self.rental.as_mut().map(|rental| rental.record_until(now)).unwrap_or_default(),
            decisions: self.records.decisions,
            events: self.records.events,
            allocations: std::mem::take(&mut self.records.allocations),
            placements: std::mem::take(&mut self.records.placements),
            requests: self.requests.records,
            instance_usage: self.requests.usage,
            instance_run_millis: self.requests.run_millis,
            instance_cold_millis: self.requests.cold_millis,
            instance_protect_millis: self.requests.protect_millis,
            jobs: self.records.jobs,
        }
    }

    /// Records of completed jobs so far, by id; others are blank.
    pub fn records(&self) -> &[JobRecord] {
        &self.records.jobs
    }

    /// First time that a job held accelerators; `None` where it has not so far.
    pub fn start_of(&self, job: JobId) -> Option<SimTime> {
        let active = self.view().job(job).map(|view| view.state.started);
        active.unwrap_or(self.records.jobs[job.index()].start)
    }

    /// Carries out a plan at the current decision point.
    ///
    /// # Errors
    /// [`SimError::Refused`] where the guard finds violations (nothing is changed then),
    /// [`SimError::Profile`] where a job would run outside its measurements.
    pub fn apply(&mut self, plan: &Plan) -> Result<(), SimError> {
        // The guard leaves `self` for the check, because the view borrows all of it.
        let mut guard = std::mem::take(&mut self.guard);
        let checked = guard.check(&self.view(), plan);
        self.guard = guard;
        checked.map_err(|violations| SimError::Refused { at: self.state.now, violations })?;
        // Every release comes before every allocation, so that the order within a plan does not
        // matter.
        plan.scale.iter().for_each(|scale| self.scale_in(scale));
        self.lend_and_call_back(plan);
        for change in &plan.changes {
            if self.state.is_free_move(change) {
                self.relabel(change);
            } else if self.state.differs(change) {
                self.decisions.idle = 0;
                if self.overlaps(change) {
                    self.prepare(change)?;
                } else {
                    self.vacate(change.job)?;
                }
            }
        }
        self.assign(&plan.assign);
        for &job in &plan.refuse {
            self.decisions.idle = 0;
            self.leave(job, Departure::Refused)?;
        }
        // Moves that are free were carried out above and do not differ any more.
        for change in &plan.changes {
            if self.state.differs(change) {
                match self.state.jobs.state(change.job).is_allocated() {
                    true => self.reconfigure(change)?,
                    false => self.occupy(change)?,
                }
            }
        }
        self.return_servers();
        plan.scale.iter().for_each(|scale| self.scale_out(scale));
        self.evict_instances(plan);
        self.rechoose_batches()?;
        self.update_sharing()?;
        self.update_interference()?;
        self.state.refresh_open();
        Ok(())
    }

    fn arrive(&mut self) {
        self.requests.forget_evicted();
        let id = JobId(self.jobs.arrived as u32);
        let factor = match self.state.scenario.options.information {
            Information::Estimate { sigma } => {
                // Keyed by job, so that the error of an estimate does not depend on what was
                // decided before.
                let mut rng = keyed(self.state.scenario.seed, Stream::Estimates, u64::from(id.0));
                (sigma * standard_normal(rng.random(), rng.random())).exp()
            }
            Information::Oracle | Information::Profiled => 1.0,
        };
        let mut state = JobState::new(id, self.state.now, factor);
        state.profile = Profile::new(self.state.scenario.options.agent_fit);
        let faults = self.state.scenario.options.faults.as_ref();
        let tenant = self.state.scenario.workload.jobs[id.index()].request.tenant;
        state.saving.buggy = faults.is_some_and(|model| model.is_buggy(self.state.scenario.seed, id, tenant));
        self.state.jobs.insert(state);
        self.jobs.know_what_others_measured(&mut self.state, id);
        self.records.fragments.count_waiting(&self.state, id, 1);
        self.jobs.arrived += 1;
        self.records.in_system += 1;
        self.records.events += 1;
        self.state.trigger.arrival = true;
    }

    /// A job ends its restart or an epoch.
    fn phase_end(&mut self, job: JobId) -> Result<(), SimError> {
        let now = self.state.now;
        let state = self.state.jobs.state_mut(job);
        state.settle(now);
        if let Phase::Starting { .. } = state.phase {
            self.wake_after_restart();
            return self.begin(job);
        }
        let end = self.state.scenario.epoch_end(job, state.epoch);
        state.epoch += 1;
        let workload = &self.state.scenario.workload;
        if workload.application(job).is_some() || workload.class(job).is_some_and(|class| class.stages() > 1) {
            // The end of an epoch is exact by definition, whatever rounding put the event here.
            state.progress = end;
        }
        if end >= self.state.scenario.total_work(job) {
            // An attempt that is to fail does so at its end at the latest.
            return if self.state.jobs.state(job).saving.buggy {
                self.fail(job)
            } else {
                self.leave(job, Departure::Complete)
            };
        }
        self.state.choose_batch(job);
        self.run_segment(job)
    }

    /// A job leaves the system.
    fn leave(&mut self, job: JobId, how: Departure) -> Result<(), SimError> {
        let (state, now) = (self.state.jobs.state(job), self.state.now);
        let at = |of: Departure| (how == of).then_some(now);
        let mut record = record_of(state, &self.records.jobs[job.index()], now, at(Departure::Complete));
        record.faults.failed = at(Departure::GivenUp);
        record.refused = at(Departure::Refused);
        self.records.idle_gpu_millis += state.idle_gpu_millis(self.state.now);
        self.records.slowdowns += record.slowdown_at_end();
        self.records.jobs[job.index()] = record;
        self.records.in_system -= 1;
        // The policy knows of the jobs that it refuses, and need not be asked again because of them.
        self.state.trigger.completion |= how != Departure::Refused;
        let placement = self.state.jobs.place(job, Placement::none());
        if placement.is_empty() {
            self.records.fragments.count_waiting(&self.state, job, -1);
        }
        if self.leave_partner(job)? {
            self.records.log(&self.state, job, &Placement::none());
        } else if self.state.scenario.options.release == Release::NextRound
            && self.state.scenario.options.rounds.period.is_some()
        {
            self.jobs.holding.push((job, placement));
        } else {
            self.give_back(job, &placement);
        }
        self.state.jobs.remove(job);
        self.return_servers();
        self.update_sharing()
    }
}

/// Way in which a job leaves the system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Departure {
    /// The job has done its work.
    Complete,
    /// The job has failed too often.
    GivenUp,
    /// The policy has sent the job away.
    Refused,
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
            lost_gpu_millis: state.lost_gpu_millis(),
        },
        ..*blank
    }
}
