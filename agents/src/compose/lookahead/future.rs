//! One future of a cluster: its jobs with drawn work, and jobs that may come.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::application::Application;
use goodput_env::job::{JobSpec, WHOLE, Work};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario};
use goodput_env::seed::{Stream, keyed};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::state::Observed;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::halving::PlayedFuture;
use super::parameters::LookaheadParameters;
use super::seen::SeenRun;
use crate::futures::{PossibleWork, draw_arrivals, secs_of_jobs};

/// The present moment, from which futures are drawn.
pub(super) struct Present<'a> {
    view: &'a ClusterView<'a>,
    seen: &'a SeenRun,
    parameters: &'a LookaheadParameters,
    observed: Observed,
    possible: Vec<PossibleWork>,
    seed: u64,
}

/// A future in which policies can be played.
#[derive(Clone, Debug)]
pub(super) struct Future {
    scenario: Arc<Scenario>,
    start: Arc<Observed>,
}

impl<'a> Present<'a> {
    /// The present as `view` shows it after all that was `seen`.
    pub fn new(view: &'a ClusterView<'a>, seen: &'a SeenRun, parameters: &'a LookaheadParameters, seed: u64) -> Self {
        let possible = view.jobs().map(|job| seen.possible(view, &job)).collect();
        Self { view, seen, parameters, observed: view.observed(), possible, seed }
    }

    /// Future number `index`.
    pub fn future(&self, index: u32) -> Future {
        let mut random = keyed(self.seed, Stream::Futures, u64::from(index));
        let (now, mut start) = (self.view.now, self.observed.clone());
        let until = now + self.parameters.horizon;
        let mut jobs = Vec::with_capacity(self.possible.len());
        for ((job, possible), seen) in self.view.jobs().zip(&self.possible).zip(&mut start.jobs) {
            let drawn = possible.draw(&mut random);
            seen.estimate_factor = drawn.factor.unwrap_or(seen.estimate_factor);
            jobs.push(JobSpec { request: job.request().clone(), work: drawn.work });
        }
        for mut job in draw_arrivals(&self.seen.workload, now, until, &mut random) {
            job.work = self.seen.history.possible(&job, 0.0, None, &self.seen.workload).draw(&mut random).work;
            jobs.push(job);
        }
        let all = &self.seen.workload.applications;
        let applications = match self.hides_speeds() {
            true => Some(self.believed(&mut jobs, &mut start)),
            false if self.seen.applications.is_that_of_the_run(all.len()) => None,
            false => Some(used(&mut jobs, all)),
        };
        // What the simulator itself draws differs from future to future too.
        let seed = self.seed ^ u64::from(index + 1).rotate_left(40);
        let mut scenario = self.view.imagined(&start, applications, jobs, until, seed);
        let Rounds { period, .. } = &mut scenario.options.rounds;
        *period = period.map(|period| period.max(self.parameters.round));
        Future { scenario: Arc::new(scenario), start: Arc::new(start) }
    }

    /// Whether the speeds of applications are only known as far as agents of jobs have measured them.
    fn hides_speeds(&self) -> bool {
        match self.view.batching {
            Batching::Agent => self.view.information == Information::Profiled,
            Batching::Throughput => true,
            Batching::Requested | Batching::Catalog => false,
        }
    }

    /// An application for each job as the run has shown it, in one epoch, of which the job does all.
    fn believed(&self, jobs: &mut [JobSpec], start: &mut Observed) -> Vec<Arc<Application>> {
        let mut applications: Vec<Arc<Application>> = Vec::new();
        for (at, job) in jobs.iter_mut().enumerate() {
            let Work::Application { index, work_milli } = job.work else { continue };
            let Some(of) = self.seen.workload.applications.get(usize::from(index)) else { continue };
            let own = start.jobs.get_mut(at).map(|job| {
                job.epoch = 0;
                &job.profile
            });
            let total = of.total_work() * f64::from(work_milli) / f64::from(WHOLE);
            let believed = self.seen.speeds.believed(of, index, own, total, &self.observed.cluster.types);
            job.work = Work::Application { index: applications.len() as u16, work_milli: WHOLE };
            applications.push(Arc::new(believed));
        }
        applications
    }
}

impl Future {
    /// Plays `policy` from the present to the end of the future. Until `held`, running jobs stay as they are. The cost
    /// is the time that all jobs spend in the system, seconds, with what they have left at the end on a fair share of
    /// the accelerators.
    ///
    /// # Errors
    /// Where the simulation fails.
    pub fn play(&self, policy: &mut dyn Policy, held: SimTime) -> Result<PlayedFuture, SimError> {
        let mut run = Simulator::resume(self.scenario.clone(), &self.start)?;
        while run.run_until_decision()? == Status::Decision {
            let mut plan = policy.decide(&run.view());
            if run.now() < held {
                hold(&run.view(), &mut plan);
            }
            run.apply(&plan)?;
            run.wake_at(policy.wake_at());
        }
        let span = (run.now() - self.start.now).as_secs_f64();
        Ok(PlayedFuture { cost: secs_of_jobs(&run, span), steps: run.steps() })
    }
}

/// The applications of these jobs, to which the work of the jobs is numbered anew.
fn used(jobs: &mut [JobSpec], all: &[Arc<Application>]) -> Vec<Arc<Application>> {
    let (mut places, mut few) = (BTreeMap::new(), Vec::new());
    for job in jobs {
        if let Work::Application { index, .. } = &mut job.work
            && let Some(application) = all.get(usize::from(*index))
        {
            *index = *places.entry(*index).or_insert_with(|| {
                few.push(application.clone());
                (few.len() - 1) as u16
            });
        }
    }
    few
}

/// Takes out of a plan every change of a job that runs, every start beside another job, and every start for which too
/// little is free then. Loans and refusals stay.
pub(super) fn hold(view: &ClusterView<'_>, plan: &mut Plan) {
    let mut free = view.free().to_vec();
    plan.changes.retain(|change| {
        let starts = view.job(change.job).is_some_and(|job| !job.state.is_allocated()) && change.partner.is_none();
        let slices = change.placement.slices();
        let fits = starts && slices.iter().all(|slice| slice.gpus <= free[slice.node.index()]);
        if fits {
            slices.iter().for_each(|slice| free[slice.node.index()] -= slice.gpus);
        }
        fits
    });
}
