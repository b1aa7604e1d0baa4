//! Start of one job in one future: the cluster as it is, played on under its policy.

use std::sync::Arc;

use goodput_env::job::{JobId, JobSpec, WHOLE, Work, Workload};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, keyed};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::state::{Observed, ObservedJob};
use goodput_env::time::SimTime;
use rand::Rng;

use crate::futures::{DrawnWork, PossibleWork, RunTimeHistory, ToldWork, draw_arrivals};

/// First stretch that is simulated. Later ones are twice as long each, and all together reach for two months.
const STRETCH: SimTime = SimTime::from_secs(6 * 3600);
/// Bound of the number of stretches.
const STRETCHES: u32 = 8;

/// The question when a job will start that waits on a cluster as it is at one moment.
#[derive(Debug)]
pub struct StartQuestion<'a> {
    /// Jobs by id. Of the work of a job nothing is read but its kind and, where the policy is told an estimate of it,
    /// that estimate; of jobs that are submitted later, nothing.
    workload: &'a Workload,
    /// Jobs of which arrivals are drawn, on the clock of `seen`.
    came: &'a Workload,
    history: &'a RunTimeHistory,
    seen: &'a Observed,
    options: SimOptions,
    /// Index of the asked job among those of `seen`.
    asked: usize,
    possible: Vec<PossibleWork>,
    seed: u64,
}

/// Start of the asked job in one future, with what started before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FutureStart {
    /// Start of the job; `None` where it did not start within two months.
    pub start: Option<SimTime>,
    /// Jobs that waited when the question was asked and started before it.
    pub before: Vec<JobId>,
    /// Jobs submitted after the question that started before it.
    pub later: u32,
    /// Ends of the jobs that ran when the question was asked. A job that still runs when the asked job starts is taken
    /// to keep its speed. `None` where the job is stopped, or where the future was not played to its end.
    pub ends: Vec<(JobId, Option<SimTime>)>,
}

impl<'a> StartQuestion<'a> {
    /// Question for `job`, which is among the jobs of `seen` and holds nothing; `None` where it is not. `options` are
    /// those of the run, `history` the jobs that have ended.
    pub fn new(
        workload: &'a Workload,
        history: &'a RunTimeHistory,
        seen: &'a Observed,
        options: &SimOptions,
        job: JobId,
        seed: u64,
    ) -> Option<Self> {
        let asked = seen.jobs.iter().position(|of| of.id == job && of.placement.is_empty())?;
        let known = |of: &ObservedJob| {
            let job = &workload.jobs[of.id.index()];
            history.possible(job, of.done, told(workload, job, of, options), workload)
        };
        let possible = seen.jobs.iter().map(known).collect();
        let options = SimOptions { faults: None, rental: None, log_allocations: false, ..options.clone() };
        Some(Self { workload, came: workload, history, seen, options, asked, possible, seed })
    }

    /// The question with arrivals drawn from the jobs of `came`, which has the applications and tenants of the
    /// workload.
    #[must_use]
    pub fn with_arrivals_of(self, came: &'a Workload) -> Self {
        Self { came, ..self }
    }

    /// The question on a cluster where the scheduler is told what is left of the time limits of jobs, as a live one is,
    /// rather than estimates of its own.
    #[must_use]
    pub fn telling_limits(mut self) -> Self {
        self.possible = self.possible.into_iter().map(PossibleWork::telling_limit).collect();
        self
    }

    /// The start in future number `index` under a policy made anew for it.
    ///
    /// # Errors
    /// Where the simulation fails.
    pub fn start(&self, index: u64, policy: &mut dyn Policy) -> Result<FutureStart, SimError> {
        let mut random = keyed(self.seed, Stream::Futures, index);
        let work: Vec<DrawnWork> = self.possible.iter().map(|possible| possible.draw(&mut random)).collect();
        self.play(&work, policy, |now, end| self.arrivals(now, end, &mut random))
    }

    /// The start where every job runs for as long as users said and nothing comes: the estimate of batch systems, such
    /// as `squeue --start` of Slurm. Users say a time limit, else what the policy is told; `None` where a job has
    /// neither.
    ///
    /// # Errors
    /// Where the simulation fails.
    pub fn start_as_stated(&self, policy: &mut dyn Policy) -> Result<Option<FutureStart>, SimError> {
        let stated: Option<Vec<DrawnWork>> = self.possible.iter().map(PossibleWork::stated).collect();
        stated.map(|work| self.play(&work, policy, |_, _| Vec::new())).transpose()
    }

    /// Plays stretch by stretch, so that no more arrivals are drawn than are needed.
    fn play(
        &self,
        drawn: &[DrawnWork],
        policy: &mut dyn Policy,
        mut arrivals: impl FnMut(SimTime, SimTime) -> Vec<JobSpec>,
    ) -> Result<FutureStart, SimError> {
        let mut seen = self.seen.clone();
        let mut specs = Vec::with_capacity(drawn.len());
        for (job, of) in seen.jobs.iter_mut().zip(drawn) {
            let request = self.workload.jobs[job.id.index()].request.clone();
            specs.push(JobSpec { request, work: of.work });
            job.estimate_factor = of.factor.unwrap_or(job.estimate_factor);
        }
        renumber(&mut seen.jobs);
        let (waiting, asked) = (specs.len(), self.asked);
        let mut starts: Vec<Option<SimTime>> = Vec::new();
        let mut ends: Vec<Option<SimTime>> = vec![None; specs.len()];
        for stretch in 0..STRETCHES {
            let end = seen.now + SimTime::from_millis(STRETCH.as_millis() << stretch);
            specs.extend(arrivals(seen.now, end));
            starts.resize(specs.len(), None);
            let (run, is_stalled) = self.stretch(specs.clone(), &seen, end, policy, asked)?;
            // A job that ended in an earlier stretch is not in the books of this one.
            starts.iter_mut().enumerate().for_each(|(at, start)| *start = start.or(run.start_of(JobId::at(at))));
            ends.iter_mut().zip(run.records()).for_each(|(end, record)| *end = end.or(record.finish));
            if let Some(start) = starts[asked] {
                let running = |at: usize| ends[at].or_else(|| run.end_as_it_runs(JobId::at(at)));
                let before = |at: &usize| starts[*at].is_some_and(|other| other < start);
                let waited = |at: &usize| self.seen.jobs[*at].placement.is_empty() && *at != asked;
                let queue = (0..waiting).filter(waited).filter(before);
                return Ok(FutureStart {
                    start: Some(start),
                    before: queue.map(|at| self.seen.jobs[at].id).collect(),
                    later: (waiting..specs.len()).filter(before).count() as u32,
                    ends: self.held().map(|at| (self.seen.jobs[at].id, running(at))).collect(),
                });
            }
            if is_stalled {
                break;
            }
            seen = run.observed();
        }
        Ok(self.without_start(&ends))
    }

    /// A future in which the job did not start, where jobs had the ends `ends` by their places.
    fn without_start(&self, ends: &[Option<SimTime>]) -> FutureStart {
        let ends = self.held().map(|at| (self.seen.jobs[at].id, ends[at])).collect();
        FutureStart { ends, ..FutureStart::default() }
    }

    /// Places of the jobs that hold accelerators.
    fn held(&self) -> impl Iterator<Item = usize> {
        (0..self.seen.jobs.len()).filter(|at| !self.seen.jobs[*at].placement.is_empty())
    }

    /// Plays until `end`, or until the asked job has started. Also says whether the run stalled before: nothing runs
    /// and nothing comes that would let the policy start a job.
    fn stretch(
        &self,
        jobs: Vec<JobSpec>,
        seen: &Observed,
        end: SimTime,
        policy: &mut dyn Policy,
        asked: usize,
    ) -> Result<(Simulator, bool), SimError> {
        let Workload { applications, classes, models, tenants, .. } = self.workload;
        let workload = Workload {
            applications: applications.clone(),
            classes: classes.clone(),
            models: models.clone(),
            tenants: tenants.clone(),
            jobs,
            ..Workload::default()
        };
        let options = SimOptions { horizon: Some(end), ..self.options.clone() };
        let scenario = Scenario::new(Arc::new(seen.cluster.clone()), Arc::new(workload), options, self.seed);
        let mut run = Simulator::resume(Arc::new(scenario), seen)?;
        loop {
            match run.run_until_decision() {
                Ok(Status::Decision) => {}
                Ok(_) => break,
                Err(SimError::Stalled { .. }) => return Ok((run, true)),
                Err(error) => return Err(error),
            }
            let plan = policy.decide(&run.view());
            run.apply(&plan)?;
            run.wake_at(policy.wake_at());
            if run.start_of(JobId::at(asked)).is_some() {
                break;
            }
        }
        Ok((run, false))
    }

    fn arrivals(&self, now: SimTime, end: SimTime, random: &mut impl Rng) -> Vec<JobSpec> {
        let mut drawn = draw_arrivals(self.came, self.seen.now, self.seen.now + (end - now), random);
        for job in &mut drawn {
            job.request.submit += now - self.seen.now;
            // What came before may still run, so its run time is drawn.
            job.work = self.history.possible(job, 0.0, None, self.workload).draw(random).work;
        }
        drawn
    }
}

/// Estimate of the work that is left of a job, as the policy is told it.
fn told(workload: &Workload, job: &JobSpec, seen: &ObservedJob, options: &SimOptions) -> Option<ToldWork> {
    let Information::Estimate { sigma } = options.information else { return None };
    if job.request.limit.is_some() {
        return None;
    }
    let total = match job.work {
        Work::Fixed { duration } => duration.as_secs_f64(),
        Work::Application { index, work_milli } => {
            let whole = workload.applications.get(usize::from(index))?.total_work();
            whole * f64::from(work_milli) / f64::from(WHOLE)
        }
        Work::Steps { steps, .. } => steps,
    };
    Some(ToldWork { left: (total - seen.done) * seen.estimate_factor, sigma })
}

/// Gives each job the number of its place, by which the workload of a future lists it.
fn renumber(jobs: &mut [ObservedJob]) {
    let old: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    for (at, job) in jobs.iter_mut().enumerate() {
        job.id = JobId::at(at);
        job.partner = job.partner.and_then(|partner| old.binary_search(&partner).ok().map(JobId::at));
    }
}
