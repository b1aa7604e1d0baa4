//! Active job as a policy may see it: state, limits and rates, within the run's information level.

use super::Known;
use crate::application::{Application, Pace};
use crate::cluster::TypeId;
use crate::job::{JobId, JobRequest, Work};
use crate::model::{BatchLimits, GoodputModel};
use crate::placement::packed_shape;
use crate::scenario::{Batching, Best, Information};
use crate::state::{JobState, Phase};
use crate::time::SimTime;

/// An active job as a policy may see it.
#[derive(Clone, Copy)]
pub struct JobView<'a> {
    /// Observable state of the job.
    pub state: &'a JobState,
    pub(super) known: Known<'a>,
}

impl<'a> JobView<'a> {
    /// The job's id.
    pub fn id(&self) -> JobId {
        self.state.id
    }

    /// Request that the user submitted.
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

    /// The accelerator type it holds, else the first of the cluster: what a policy that is blind to
    /// types goes by.
    pub fn kind(&self) -> TypeId {
        self.known.scenario.kind_of(&self.state.placement)
    }

    /// Whether anything is known of its speed on accelerator type `kind`; where not, it cannot be
    /// placed there.
    pub fn runs_on(&self, kind: TypeId) -> bool {
        let scenario = self.known.scenario;
        scenario.speeds.runs_on(scenario.workload.jobs[self.state.id.index()].work, kind)
    }

    /// Number of accelerators that the job holds.
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

    /// Number of attempts that failed by themselves; the job has been tried again as often.
    pub fn failures(&self) -> u32 {
        self.state.saving.failures
    }

    /// Fewest accelerators the job runs on.
    pub fn min_gpus(&self) -> u32 {
        self.request().min_gpus()
    }

    /// Largest number of accelerators of one type that the job can use now. For an elastic job with
    /// a model that is still being learnt, exploration doubles: twice the largest number of
    /// replicas profiled so far (Pollux, PolluxAgent).
    pub fn max_gpus(&self) -> u32 {
        self.max_gpus_explored(self.state.profile.max_replicas())
    }

    /// Largest number of accelerators that the job could use if `replicas` had been profiled.
    pub fn max_gpus_explored(&self, replicas: u32) -> u32 {
        let request = self.request();
        let max = request.max_gpus().min(self.known.scenario.speeds.most_of_one_type().max(request.gpus));
        match (self.known.batching, self.application()) {
            (Batching::Requested, Some(app)) if self.request().gpus != max => {
                let batch = self.requested_batch(app);
                // On more replicas each would get less than the smallest local batch.
                max.min(app.max_replicas).min((batch / app.limits.min_local).max(1))
            }
            (Batching::Agent | Batching::Throughput, Some(app)) => {
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

    /// Remaining work in the job's unit (scale-invariant iterations, steps, or seconds at the
    /// requested size), exact or with the stated error; `None` where it is unknown.
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

    /// Work per second on `gpus` accelerators of type [`Self::kind`] packed on as few nodes as
    /// possible, with the batch size the run would use; `None` where it is unknown or the job
    /// cannot run so.
    pub fn rate(&self, gpus: u32) -> Option<f64> {
        self.rate_on(self.kind(), gpus)
    }

    /// Rate of the job on accelerator type `kind`, an index into the cluster's types.
    pub fn rate_on(&self, kind: TypeId, gpus: u32) -> Option<f64> {
        if gpus == 0 {
            return None;
        }
        match self.known.scenario.workload.jobs[self.state.id.index()].work {
            Work::Fixed { .. } => self.request().linear_rate(gpus),
            Work::Steps { class, .. } if gpus == self.request().gpus => {
                self.known.scenario.speeds.work_per_sec(class, self.state.epoch, kind)
            }
            Work::Steps { .. } => None,
            Work::Application { index, .. } => match self.known.batching {
                _ if self.is_rated_by_agent() => {
                    self.agent_rate(kind, gpus.div_ceil(self.known.scenario.speeds.gpus_per_node(kind)), gpus)
                }
                Batching::Agent | Batching::Throughput | Batching::Catalog => {
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

    /// Work per second on `gpus` accelerators of type `kind`, spread evenly over `more` nodes than
    /// they need, or as many as there are accelerators, with the batch size the run would use there;
    /// `None` where it is unknown or the job cannot run so.
    pub fn rate_over(&self, kind: TypeId, gpus: u32, more: u32) -> Option<f64> {
        let scenario = self.known.scenario;
        let fewest = gpus.div_ceil(scenario.speeds.gpus_per_node(kind));
        let nodes = (fewest + more).min(gpus);
        let work = scenario.workload.jobs[self.state.id.index()].work;
        let Work::Application { index, .. } = work else { return self.rate_on(kind, gpus) };
        if nodes <= fewest {
            return self.rate_on(kind, gpus);
        }
        let app = self.application()?;
        let batch = match self.known.batching {
            _ if self.is_rated_by_agent() => return self.agent_rate(kind, nodes, gpus),
            Batching::Agent | Batching::Throughput | Batching::Catalog => match app.fixed_batch {
                Some(total) => self.limits_on(kind)?.split(total, gpus),
                None => scenario.best_batch(index, kind, self.state.epoch, nodes, gpus)?,
            },
            Batching::Requested => self.requested_split(kind, gpus)?.1,
        };
        let shape: Vec<u32> = (0..nodes).map(|node| gpus / nodes + u32::from(node < gpus % nodes)).collect();
        let step = scenario.speeds.pace(index, kind)?.step_time(&shape, batch.atomic).ok()?;
        Some(app.progress_rate(step, gpus, batch, self.state.epoch))
    }

    /// Whether its speed is what its own agent expects: the table of speeds has the batches of highest goodput only.
    fn is_rated_by_agent(&self) -> bool {
        match self.known.batching {
            Batching::Agent => self.known.information == Information::Profiled,
            Batching::Throughput => true,
            Batching::Requested | Batching::Catalog => false,
        }
    }

    /// Work per second by the model that the job's agent has fitted.
    fn agent_rate(&self, kind: TypeId, nodes: u32, gpus: u32) -> Option<f64> {
        let model = self.state.profile.model(kind, self.limits_on(kind)?)?;
        let best = self.known.batching.objective(model).best(nodes, gpus)?;
        let goodput = match self.known.batching {
            Batching::Throughput => model.goodput(nodes, gpus, best.batch),
            _ => best.goodput,
        };
        // Goodput counts samples, but work counts iterations of the initial batch.
        Some(goodput / f64::from(model.limits.init))
    }

    /// [`Self::rate`] by size, with what does not depend on the size looked up once.
    pub fn rates(&self) -> Rates<'a> {
        self.rates_on(self.kind())
    }

    /// [`Self::rate_on`] by size.
    pub fn rates_on(&self, kind: TypeId) -> Rates<'a> {
        match self.known.scenario.workload.jobs[self.state.id.index()].work {
            Work::Application { index, .. } if self.known.batching == Batching::Catalog => {
                let row = self.known.scenario.speeds.row(index, kind, self.state.epoch);
                row.map_or(Rates::Job(*self, kind), Rates::Row)
            }
            _ => Rates::Job(*self, kind),
        }
    }

    fn requested_split(&self, kind: TypeId, gpus: u32) -> Option<(&'a Application, crate::model::BatchConfig)> {
        let app = self.application()?;
        let limits = self.limits_on(kind)?;
        Some((app, limits.split(self.requested_batch(app), gpus)))
    }

    fn pace(&self, kind: TypeId) -> Option<&'a Pace> {
        match self.known.scenario.workload.jobs[self.state.id.index()].work {
            Work::Application { index, .. } => self.known.scenario.speeds.pace(index, kind),
            _ => None,
        }
    }

    /// Limits of the application's batch size on accelerator type `kind`. The memory of the type
    /// bounds the batch of a replica.
    pub fn limits_on(&self, kind: TypeId) -> Option<BatchLimits> {
        self.pace(kind).map(|pace| pace.limits)
    }

    /// Throughput that a job measures in the seconds before its first placement: samples per second
    /// of one accelerator of type `kind` at the largest batch that fits it (Sia, SOSP'23, section
    /// 3.3).
    pub fn single_throughput(&self, kind: TypeId) -> Option<f64> {
        self.pace(kind).map(Pace::single_throughput)
    }

    /// The largest batch measured on one accelerator of type `kind` over the longest step: how the
    /// Sia artifact compares types.
    pub fn largest_over_slowest(&self, kind: TypeId) -> Option<f64> {
        self.pace(kind).map(Pace::largest_over_slowest)
    }

    /// Samples per second at total batch size `batch` on `gpus` packed accelerators of type `kind`,
    /// as a job with a fixed size and batch is profiled before it is submitted.
    pub fn fixed_throughput(&self, kind: TypeId, gpus: u32, batch: u32) -> Option<f64> {
        let pace = self.pace(kind)?;
        let shape = packed_shape(gpus, self.known.scenario.speeds.gpus_per_node(kind));
        let split = pace.limits_on(&shape).split(batch, gpus);
        let step = pace.step_time(&shape, split.atomic).ok()?;
        // Passes that only accumulate do not synchronise, so their time lacks that part.
        let iteration = step.step_secs + f64::from(split.accumulation) * (step.step_secs - step.sync_secs);
        Some(f64::from(batch) / iteration)
    }

    /// Seconds a change of its accelerators stops the job for, as measured at its checkpoints.
    pub fn restart_secs(&self) -> f64 {
        let name = self.known.scenario.workload.application_name(self.state.id);
        self.known.scenario.options.switch_cost.cost_millis(name, 1, 1) as f64 / 1e3
    }

    fn packed_step(&self, index: u16, kind: TypeId, gpus: u32, atomic: u32) -> Option<crate::model::StepTime> {
        let shape = packed_shape(gpus, self.known.scenario.speeds.gpus_per_node(kind));
        self.known.scenario.speeds.pace(index, kind)?.step_time(&shape, atomic).ok()
    }

    /// Seconds until completion on `gpus` packed accelerators from now on; `None` where unknown.
    pub fn remaining_secs(&self, gpus: u32) -> Option<f64> {
        Some(self.remaining_work()? / self.rate(gpus)?)
    }

    /// A bound of [`Self::remaining_secs`] that holds until the job changes, seconds since the start of the run: until
    /// then no more is left than from now to the bound. `None` for a job that waits, or is slower than `gpus` packed
    /// accelerators would make it.
    pub fn due_secs(&self, gpus: u32) -> Option<f64> {
        let (state, remaining) = (self.state, self.remaining_secs(gpus)?);
        let from = match state.phase {
            Phase::Pending => return None,
            // Nothing is done before the job runs, and that is a change.
            Phase::Starting { until } => until.max(self.known.now),
            Phase::Running => {
                let factor = match self.known.information {
                    Information::Estimate { .. } => state.estimate_factor,
                    Information::Profiled | Information::Oracle => 1.0,
                };
                let stands_still = state.saving.work > 0;
                if stands_still || state.rate * factor < self.rate(gpus)? {
                    return None;
                }
                self.known.now
            }
        };
        Some(from.as_secs_f64() + remaining)
    }

    /// Seconds one iteration takes on `gpus` packed accelerators. With adapted batch sizes the
    /// iteration is the scale-invariant one.
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

    /// [`Self::iteration_secs`] on one accelerator if it accumulates at least once, as one that has
    /// to measure gradient noise does even where the batch would fit without.
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
            // Only an oracle may know how the gain of the batch changes in later epochs.
            (Some(table), Information::Oracle) => Some(table.remaining(batch, self.state.epoch)),
            _ => {
                let gain = app.gradients.at(batch, self.state.epoch).gain(batch / f64::from(app.limits.init));
                Some(work / gain)
            }
        }
    }

    /// The job's goodput model on the type of [`Self::kind`]: fitted by its agent to what it has
    /// measured (`None` before the first measurement), or the catalogued one where the run reveals
    /// it.
    pub fn goodput_model(&self) -> Option<GoodputModel> {
        self.goodput_model_on(self.kind())
    }

    /// Goodput model of the job on accelerator type `kind`.
    pub fn goodput_model_on(&self, kind: TypeId) -> Option<GoodputModel> {
        let app = self.application()?;
        let Work::Application { index, .. } = self.known.scenario.workload.jobs[self.state.id.index()].work else {
            return None;
        };
        match self.known.batching {
            Batching::Agent | Batching::Throughput => self.state.profile.model(kind, self.limits_on(kind)?),
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
    Job(JobView<'a>, TypeId),
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
