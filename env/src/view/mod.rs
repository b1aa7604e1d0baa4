//! All that a policy knows: the cluster, the active jobs, and what the run's information level lets it see of them.

mod after;
mod services;

use crate::application::{Application, Pace};
use crate::cluster::{Cluster, NodeId};
use crate::job::{JobId, JobRequest, Work};
use crate::model::{BatchLimits, GoodputModel};
use crate::placement::packed_shape;
use crate::request::{InferenceRequest, RequestId};
use crate::scenario::{Batching, Best, Information, JobShapes, Scenario};
use crate::state::{ClusterState, InstanceTable, JobState, JobTable, Loans, ServiceState, Trigger};
use crate::tenant::{QuotaTree, Tenants};
use crate::time::SimTime;

pub use after::Afterwards;
pub use services::ServiceView;

/// A part of a cluster and of its jobs: what one of several policies that share a cluster is shown, by [`ClusterView::within`].
#[derive(Clone, Debug, PartialEq)]
pub struct Restriction {
    /// The machines; as many nodes as the cluster has, with accelerators taken out of them.
    pub cluster: Cluster,
    /// Free accelerators by node.
    pub free: Vec<u32>,
    /// Active jobs, ascending.
    pub jobs: Vec<JobId>,
}

impl Restriction {
    /// All of what `view` shows, to be cut down.
    pub fn of(view: &ClusterView<'_>) -> Self {
        Self { cluster: view.cluster().clone(), free: view.free().to_vec(), jobs: view.ids.to_vec() }
    }
}

/// The state of the cluster at a decision point.
#[derive(Clone, Copy)]
pub struct ClusterView<'a> {
    /// Now.
    pub now: SimTime,
    /// Why the policy is asked.
    pub trigger: Trigger,
    /// What may be known.
    pub information: Information,
    /// How jobs choose their batch size in this run.
    pub batching: Batching,
    pub(crate) scenario: &'a Scenario,
    pub(crate) table: &'a JobTable,
    /// By node: free accelerators that training may take.
    pub(crate) free: &'a [u32],
    /// By node: accelerators that nobody holds.
    pub(crate) idle: &'a [u32],
    /// By node: accelerators that replicas hold; empty where there are no services.
    pub(crate) served: &'a [u32],
    pub(crate) services: &'a [ServiceState],
    pub(crate) loans: &'a Loans,
    pub(crate) instances: &'a InstanceTable,
    pub(crate) waiting: &'a [RequestId],
    pub(crate) cluster: &'a Cluster,
    /// By node: failures that are not repaired yet. Empty: no node ever fails.
    pub(crate) down: &'a [u32],
    /// Jobs on show, ascending.
    pub(crate) ids: &'a [JobId],
}

impl ClusterState {
    /// View of this state, as a policy is shown it.
    pub fn view(&self) -> ClusterView<'_> {
        ClusterView {
            now: self.now,
            trigger: self.trigger,
            information: self.scenario.options.information,
            batching: self.scenario.options.batching,
            scenario: &self.scenario,
            table: &self.jobs,
            free: if self.loans.open.is_empty() { &self.idle } else { &self.loans.open },
            idle: &self.idle,
            served: &self.served,
            services: &self.services,
            loans: &self.loans,
            instances: &self.instances,
            waiting: &self.waiting,
            cluster: &self.cluster,
            down: &self.down,
            ids: self.jobs.active(),
        }
    }
}

impl<'a> ClusterView<'a> {
    /// The machines as they are now: what has failed is missing from its node until it is repaired, and a failed node has no
    /// accelerators.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// Whether `node` exists and has not failed; one that lacks some accelerators has not.
    pub fn healthy(&self, node: NodeId) -> bool {
        (node as usize) < self.cluster.nodes.len() && self.down.get(node as usize).is_none_or(|&down| down == 0)
    }

    /// The same moment with other machines and fewer jobs.
    pub fn within<'b>(&self, part: &'b Restriction) -> ClusterView<'b>
    where
        'a: 'b,
    {
        ClusterView { cluster: &part.cluster, free: &part.free, idle: &part.free, ids: &part.jobs, ..*self }
    }

    /// Free accelerators by node that training may take: none on servers of the inference pool that are not lent; those of free inference
    /// instances are among them, those of instances that run or are protected are not.
    pub fn free(&self) -> &'a [u32] {
        self.free
    }

    /// Free accelerators on `node`.
    pub fn free_on(&self, node: NodeId) -> u32 {
        self.free[node as usize]
    }

    /// Free accelerators in the cluster.
    pub fn total_free(&self) -> u32 {
        self.free.iter().sum()
    }

    /// Inference instances.
    pub fn instances(&self) -> &'a InstanceTable {
        self.instances
    }

    /// Inference requests that nobody answers yet, in order of (submission, id).
    pub fn waiting_requests(&self) -> &'a [RequestId] {
        self.waiting
    }

    /// An inference request; its duration is known when it is over.
    pub fn request(&self, id: RequestId) -> Option<&'a InferenceRequest> {
        self.scenario.workload.requests.get(id.index())
    }

    /// Number of active jobs: submitted and not complete.
    pub fn active(&self) -> usize {
        self.ids.len()
    }

    /// Active jobs in ascending order of (submission, id).
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = JobView<'a>> + DoubleEndedIterator + use<'a> {
        let (table, known) = (self.table, self.known());
        self.ids.iter().map(move |&id| JobView { state: table.state(id), known })
    }

    /// One active job.
    #[inline]
    pub fn job(&self, id: JobId) -> Option<JobView<'a>> {
        let state = self.table.get(id)?;
        if self.ids.len() != self.table.active().len() {
            self.ids.binary_search(&id).ok()?;
        }
        Some(JobView { state, known: self.known() })
    }

    /// Which jobs of the workload are alike to a queue.
    pub fn shapes(&self) -> &'a JobShapes {
        self.scenario.shapes()
    }

    /// Work per second of two jobs on the same accelerators of type `kind`, as many as each of them asked for; `None` where they were not
    /// measured together or do not fit.
    pub fn shared_rates(&self, one: JobId, other: JobId, kind: u16) -> Option<[f64; 2]> {
        let scenario = self.scenario;
        Some([scenario.rate_beside(one, other, kind)?, scenario.rate_beside(other, one, kind)?])
    }

    /// Who shares the cluster.
    pub fn tenants(&self) -> &'a Tenants {
        &self.scenario.workload.tenants
    }

    /// The quotas that hold now; `None` where nobody has any.
    pub fn quotas(&self) -> Option<&'a QuotaTree> {
        self.scenario.workload.tenants.quotas(self.now)
    }

    /// Number of jobs in the workload so far and to come; ids are below it.
    pub fn workload_len(&self) -> usize {
        self.scenario.workload.jobs.len()
    }
}

/// What a job or a service in view has to know of the moment; views of them are made in great numbers, so it is little.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    now: SimTime,
    information: Information,
    batching: Batching,
    scenario: &'a Scenario,
}

impl<'a> ClusterView<'a> {
    pub(crate) fn known(&self) -> Known<'a> {
        Known { now: self.now, information: self.information, batching: self.batching, scenario: self.scenario }
    }
}

/// An active job as a policy may see it.
#[derive(Clone, Copy)]
pub struct JobView<'a> {
    /// What can be observed.
    pub state: &'a JobState,
    known: Known<'a>,
}

impl<'a> JobView<'a> {
    /// The job's id.
    pub fn id(&self) -> JobId {
        self.state.id
    }

    /// What was asked for.
    pub fn request(&self) -> &'a JobRequest {
        &self.known.scenario.workload.jobs[self.state.id.index()].request
    }

    /// The application it trains; its name, limits and published constants are no secret.
    pub fn application(&self) -> Option<&'a Application> {
        self.known.scenario.workload.application(self.state.id).map(|application| &**application)
    }

    /// The name of the model it trains, as submitted; `""` where the trace does not tell.
    pub fn model_name(&self) -> &'a str {
        self.known.scenario.workload.model_name(self.state.id)
    }

    /// The accelerator type it holds, else the first of the cluster: what a policy that is blind to types goes by.
    pub fn kind(&self) -> u16 {
        self.known.scenario.kind_of(&self.state.placement)
    }

    /// Whether anything is known of its speed on accelerator type `kind`; where not, it cannot be placed there.
    pub fn runs_on(&self, kind: u16) -> bool {
        let scenario = self.known.scenario;
        scenario.speeds.runs_on(scenario.workload.jobs[self.state.id.index()].work, kind)
    }

    /// Accelerators held.
    pub fn gpus(&self) -> u32 {
        self.state.placement.gpus()
    }

    /// Time since submission.
    pub fn age(&self) -> SimTime {
        self.known.now - self.request().submit
    }

    /// Accelerator time held so far, GPU-milliseconds, restarts included.
    pub fn attained_gpu_millis(&self) -> i64 {
        self.state.attained_gpu_millis(self.known.now)
    }

    /// Wall time during which accelerators were held.
    pub fn executed(&self) -> SimTime {
        self.state.executed(self.known.now)
    }

    /// Times it failed by itself; it has been tried again as often.
    pub fn failures(&self) -> u32 {
        self.state.saving.failures
    }

    /// Fewest accelerators the job runs on.
    pub fn min_gpus(&self) -> u32 {
        self.request().min_gpus()
    }

    /// Most accelerators the job can use now, all of one type. For an elastic job whose model is being learnt, exploration by
    /// doubling: twice the most replicas profiled so far (Pollux, PolluxAgent).
    pub fn max_gpus(&self) -> u32 {
        self.max_gpus_explored(self.state.profile.max_replicas())
    }

    /// The same for somebody who knows more: as if `replicas` had been profiled.
    pub fn max_gpus_explored(&self, replicas: u32) -> u32 {
        let request = self.request();
        let max = request.max_gpus().min(self.known.scenario.speeds.most_of_one_type().max(request.gpus));
        match (self.known.batching, self.application()) {
            (Batching::Requested, Some(app)) if self.request().gpus != max => {
                let batch = self.requested_batch(app);
                max.min(app.max_replicas).min((batch / app.limits.min_local).max(1))
            }
            (Batching::Agent, Some(app)) => {
                let explored = (2 * replicas).max(self.min_gpus());
                max.min(app.max_replicas).min(explored)
            }
            (_, Some(app)) => max.min(app.max_replicas.max(self.request().gpus)),
            (_, None) => max,
        }
    }

    fn requested_batch(&self, app: &Application) -> u32 {
        self.request().batch_size.unwrap_or(app.limits.init)
    }

    /// Remaining work in the job's unit (scale-invariant iterations, steps, or seconds at the requested size), exact or with
    /// the stated error; `None` where it is unknown.
    pub fn remaining_work(&self) -> Option<f64> {
        match self.known.information {
            Information::Profiled => None,
            Information::Estimate { .. } => Some(self.true_remaining() * self.state.estimate_factor),
            Information::Oracle => Some(self.true_remaining()),
        }
    }

    fn true_remaining(&self) -> f64 {
        (self.known.scenario.total_work(self.state.id) - self.state.done(self.known.now)).max(0.0)
    }

    /// Work per second on `gpus` accelerators of type [`Self::kind`] packed on as few nodes as possible, with the batch size
    /// the run would use; `None` where it is unknown or the job cannot run so.
    pub fn rate(&self, gpus: u32) -> Option<f64> {
        self.rate_on(self.kind(), gpus)
    }

    /// The same on accelerator type `kind`, an index into the cluster's types.
    pub fn rate_on(&self, kind: u16, gpus: u32) -> Option<f64> {
        if gpus == 0 {
            return None;
        }
        match self.known.scenario.workload.jobs[self.state.id.index()].work {
            Work::Fixed { .. } => self.request().linear_rate(gpus),
            Work::Steps { class, .. } if gpus == self.request().gpus => {
                self.known.scenario.speeds.steps_per_sec(class, kind)
            }
            Work::Steps { .. } => None,
            Work::Application { index, .. } => match self.known.batching {
                Batching::Agent if self.known.information == Information::Profiled => {
                    let nodes = gpus.div_ceil(self.known.scenario.speeds.gpus_per_node(kind));
                    let limits = self.known.scenario.speeds.pace(index, kind)?.limits;
                    let model = self.state.profile.model(kind, limits)?;
                    Some(model.best(nodes, gpus)?.goodput / f64::from(model.limits.init))
                }
                Batching::Agent | Batching::Catalog => {
                    self.known.scenario.speeds.best(index, kind, self.state.epoch, gpus).map(|best| best.rate)
                }
                Batching::Requested => {
                    let (app, batch) = self.requested_split(kind, gpus)?;
                    let step = self.packed_step(index, kind, gpus, batch.atomic)?;
                    Some(app.progress_rate(step, gpus, batch, self.state.epoch))
                }
            },
        }
    }

    /// [`Self::rate`] by size, with what does not depend on the size looked up once.
    pub fn rates(&self) -> Rates<'a> {
        self.rates_on(self.kind())
    }

    /// [`Self::rate_on`] by size.
    pub fn rates_on(&self, kind: u16) -> Rates<'a> {
        match self.known.scenario.workload.jobs[self.state.id.index()].work {
            Work::Application { index, .. } if self.known.batching == Batching::Catalog => {
                let row = self.known.scenario.speeds.row(index, kind, self.state.epoch);
                row.map_or(Rates::Job(*self, kind), Rates::Row)
            }
            _ => Rates::Job(*self, kind),
        }
    }

    fn requested_split(&self, kind: u16, gpus: u32) -> Option<(&'a Application, crate::model::BatchConfig)> {
        let app = self.application()?;
        let limits = self.limits_on(kind)?;
        Some((app, limits.split(self.requested_batch(app), gpus)))
    }

    fn pace(&self, kind: u16) -> Option<&'a Pace> {
        match self.known.scenario.workload.jobs[self.state.id.index()].work {
            Work::Application { index, .. } => self.known.scenario.speeds.pace(index, kind),
            _ => None,
        }
    }

    /// Limits of the application's batch size on accelerator type `kind`, whose memory bounds a replica's.
    pub fn limits_on(&self, kind: u16) -> Option<BatchLimits> {
        self.pace(kind).map(|pace| pace.limits)
    }

    /// What a job measures in the seconds before it is first placed: samples per second of one accelerator of type `kind` at the
    /// largest batch that fits it (Sia, SOSP'23, section 3.3).
    pub fn single_throughput(&self, kind: u16) -> Option<f64> {
        self.pace(kind).map(Pace::single_throughput)
    }

    /// The largest batch measured on one accelerator of type `kind` over the longest step: how the Sia artifact compares types.
    pub fn largest_over_slowest(&self, kind: u16) -> Option<f64> {
        self.pace(kind).map(Pace::largest_over_slowest)
    }

    /// Samples per second at total batch size `batch` on `gpus` packed accelerators of type `kind`, as a job with a fixed size and
    /// batch is profiled before it is submitted.
    pub fn fixed_throughput(&self, kind: u16, gpus: u32, batch: u32) -> Option<f64> {
        let pace = self.pace(kind)?;
        let shape = packed_shape(gpus, self.known.scenario.speeds.gpus_per_node(kind));
        let split = pace.limits_on(&shape).split(batch, gpus);
        let step = pace.step_time(&shape, split.atomic).ok()?;
        let iteration = step.step_secs + f64::from(split.accumulation) * (step.step_secs - step.sync_secs);
        Some(f64::from(batch) / iteration)
    }

    /// Seconds a change of its accelerators stops the job for, as measured at its checkpoints.
    pub fn restart_secs(&self) -> f64 {
        let name = self.known.scenario.workload.application_name(self.state.id);
        self.known.scenario.options.switch_cost.cost_millis(name, 1, 1, true) as f64 / 1e3
    }

    fn packed_step(&self, index: u16, kind: u16, gpus: u32, atomic: u32) -> Option<crate::model::StepTime> {
        let shape = packed_shape(gpus, self.known.scenario.speeds.gpus_per_node(kind));
        self.known.scenario.speeds.pace(index, kind)?.step_time(&shape, atomic).ok()
    }

    /// Seconds until completion on `gpus` packed accelerators from now on; `None` where unknown.
    pub fn remaining_secs(&self, gpus: u32) -> Option<f64> {
        Some(self.remaining_work()? / self.rate(gpus)?)
    }

    /// Seconds one iteration takes on `gpus` packed accelerators. With adapted batch sizes the iteration is the
    /// scale-invariant one.
    pub fn iteration_secs(&self, gpus: u32) -> Option<f64> {
        match (self.known.batching, self.known.scenario.workload.jobs[self.state.id.index()].work) {
            (Batching::Requested, Work::Application { index, .. }) => {
                let (_, batch) = self.requested_split(self.kind(), gpus)?;
                let step = self.packed_step(index, self.kind(), gpus, batch.atomic)?;
                Some(step.step_secs + f64::from(batch.accumulation) * (step.step_secs - step.sync_secs))
            }
            _ => self.rate(gpus).map(f64::recip),
        }
    }

    /// [`Self::iteration_secs`] on one accelerator if it accumulates at least once, as one that has to measure gradient noise
    /// does even where the batch would fit without.
    pub fn accumulating_iteration_secs(&self) -> Option<f64> {
        match (self.known.batching, self.known.scenario.workload.jobs[self.state.id.index()].work) {
            (Batching::Requested, Work::Application { index, .. }) => {
                let app = self.application()?;
                let batch = self.requested_batch(app);
                let split =
                    BatchLimits { init: batch.saturating_sub(1), ..self.limits_on(self.kind())? }.split(batch, 1);
                let step = self.packed_step(index, self.kind(), 1, split.atomic)?;
                Some(step.step_secs + f64::from(split.accumulation) * (step.step_secs - step.sync_secs))
            }
            _ => self.iteration_secs(1),
        }
    }

    /// Iterations left, in the unit of [`Self::iteration_secs`]; `None` where remaining work is unknown.
    pub fn remaining_iterations(&self) -> Option<f64> {
        let work = self.remaining_work()?;
        let app = match (self.known.batching, self.application()) {
            (Batching::Requested, Some(app)) => app,
            _ => return Some(work),
        };
        let batch = f64::from(self.requested_batch(app));
        match (&app.iterations, self.known.information) {
            (Some(table), Information::Oracle) => Some(table.remaining(batch, self.state.epoch)),
            _ => {
                let gain = app.gradients.at(batch, self.state.epoch).gain(batch / f64::from(app.limits.init));
                Some(work / gain)
            }
        }
    }

    /// The job's goodput model on the type of [`Self::kind`]: fitted by its agent to what it has measured (`None` before the first measurement), or
    /// the catalogued one where the run reveals it.
    pub fn goodput_model(&self) -> Option<GoodputModel> {
        self.goodput_model_on(self.kind())
    }

    /// The same on accelerator type `kind`.
    pub fn goodput_model_on(&self, kind: u16) -> Option<GoodputModel> {
        let app = self.application()?;
        let Work::Application { index, .. } = self.known.scenario.workload.jobs[self.state.id.index()].work else {
            return None;
        };
        match self.known.batching {
            Batching::Agent => self.state.profile.model(kind, self.limits_on(kind)?),
            _ if self.known.information == Information::Profiled => {
                self.state.profile.model(kind, self.limits_on(kind)?)
            }
            _ => {
                let pace = self.known.scenario.speeds.pace(index, kind)?;
                let stats = app.gradients.at(f64::from(app.limits.init), self.state.epoch);
                Some(GoodputModel { params: pace.params, stats, limits: pace.limits })
            }
        }
    }
}

/// Work per second of one job by number of accelerators.
#[derive(Clone, Copy)]
pub enum Rates<'a> {
    /// A row of the precomputed table, by accelerators - 1.
    Row(&'a [Option<Best>]),
    /// Asked of the job each time, on a type of accelerator.
    Job(JobView<'a>, u16),
}

impl Rates<'_> {
    /// Work per second on `gpus` packed accelerators; zero where it is unknown or the job cannot run so.
    pub fn at(&self, gpus: u32) -> f64 {
        match self {
            Self::Row(row) => {
                let best = (gpus as usize).checked_sub(1).and_then(|at| row.get(at).copied().flatten());
                best.map_or(0.0, |best| best.rate)
            }
            Self::Job(job, kind) => job.rate_on(*kind, gpus).unwrap_or(0.0),
        }
    }
}
