//! The trace under a policy, and what is known of it at the moments of questions.

use std::sync::Arc;

use goodput_agents::compose::NamedPolicy;
use goodput_agents::compose::loaning::Sharing;
use goodput_agents::futures::RunTimeHistory;
use goodput_agents::start_time::{FutureStart, StartCalibration, StartQuestion, WaitInterval};
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobId, Workload};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Rounds, Scenario, SimOptions};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::time::SimTime;
use rayon::prelude::*;
use thiserror::Error;

/// A trace on a cluster under one policy, of which starts are predicted.
#[derive(Clone, Debug)]
pub struct StartStudy {
    /// Machines that the jobs run on.
    pub cluster: Arc<Cluster>,
    /// Jobs of the trace.
    pub workload: Arc<Workload>,
    /// Policy of the cluster.
    pub policy: NamedPolicy,
    /// Number of futures of a prediction.
    pub futures: u64,
    /// Standard deviation of the logarithm of the run times that the policy is told, where it has to know run times and
    /// a job has no time limit.
    pub sigma: f64,
}

/// Reason for which there is no prediction.
#[derive(Debug, Error)]
pub enum StartError {
    /// The policy has to know more than an estimate.
    #[error("policy {policy} has to know run times exactly, which no user does before a job has run")]
    Information {
        /// Name of the policy.
        policy: String,
    },
    /// The policy plans by run times, and nothing says how long the asked job runs.
    #[error("policy {policy} plans by run times, so the asked job needs a time limit")]
    Limit {
        /// Name of the policy.
        policy: String,
    },
    /// The policy plans by run times, and nothing says how long some jobs of the queue run.
    #[error(
        "policy {policy} plans by run times, and no time limit is known of {count} jobs of the queue, such as {job}"
    )]
    QueueLimit {
        /// Name of the policy.
        policy: String,
        /// Name of the first one.
        job: String,
        /// Number of jobs of the queue without a time limit.
        count: usize,
    },
    /// A run failed.
    #[error("policy {policy}: {source}")]
    Run {
        /// Name of the policy.
        policy: String,
        /// Error of the simulator.
        source: Box<SimError>,
    },
}

/// The trace as it is played, and what has become of its jobs.
pub(super) struct Replay<'a> {
    study: &'a StartStudy,
    policy: Box<dyn Policy>,
    pub run: Simulator,
    pub history: RunTimeHistory,
    /// Jobs that are in the history.
    known: Vec<bool>,
}

impl StartStudy {
    pub(super) fn replay(&self, workload: &Arc<Workload>) -> Result<Replay<'_>, StartError> {
        let policy = self.made();
        let options = self.options(&*policy)?;
        let scenario = Scenario::new(self.cluster.clone(), workload.clone(), options, 0);
        Ok(Replay {
            study: self,
            policy,
            run: Simulator::new(Arc::new(scenario)),
            history: RunTimeHistory::default(),
            known: vec![false; workload.jobs.len()],
        })
    }

    pub(super) fn made(&self) -> Box<dyn Policy> {
        self.policy.build(0, &Sharing::default())
    }

    pub(super) fn options(&self, policy: &dyn Policy) -> Result<SimOptions, StartError> {
        let information = match policy.information() {
            Information::Profiled => Information::Profiled,
            Information::Estimate { .. } | Information::Oracle => Information::Estimate { sigma: self.sigma },
        };
        if !information.allows(policy.needs()) {
            return Err(StartError::Information { policy: self.policy.to_string() });
        }
        Ok(SimOptions {
            rounds: Rounds { period: policy.round(), on_churn: true },
            batching: policy.batching(),
            information,
            ..SimOptions::standard()
        })
    }

    /// Whether the policy is told run times, where jobs have no time limits.
    pub(super) fn plans_by_run_times(&self) -> bool {
        self.made().information() != Information::Profiled
    }

    /// Futures of a question.
    pub(super) fn futures_of(&self, question: &StartQuestion<'_>) -> Result<Futures, StartError> {
        let fault = |source| self.fault(source);
        let one = |index: u64| question.start(index, &mut *self.made()).map_err(fault);
        let starts: Vec<_> = (0..self.futures).into_par_iter().map(one).collect();
        let as_stated = question.start_as_stated(&mut *self.made()).map_err(fault)?;
        Ok(Futures {
            starts: starts.into_iter().collect::<Result<_, _>>()?,
            as_stated: as_stated.and_then(|future| future.start),
        })
    }

    fn fault(&self, source: SimError) -> StartError {
        StartError::Run { policy: self.policy.to_string(), source: Box::new(source) }
    }
}

/// Futures of one job, with the estimate by what users stated, where all did.
pub(super) struct Futures {
    pub starts: Vec<FutureStart>,
    pub as_stated: Option<SimTime>,
}

impl Futures {
    /// The wait from `now`, before calibration.
    pub fn interval(&self, now: SimTime) -> Option<WaitInterval> {
        let wait = |future: &FutureStart| future.start.map_or(f64::INFINITY, |start| (start - now).as_secs_f64());
        WaitInterval::of(self.starts.iter().map(wait).collect())
    }
}

impl Replay<'_> {
    /// Plays on to the next decision and carries it out. `false` where the run is over.
    pub fn step(&mut self) -> Result<bool, StartError> {
        let fault = |source| self.study.fault(source);
        if self.run.run_until_decision().map_err(fault)? != Status::Decision {
            return Ok(false);
        }
        let plan = self.policy.decide(&self.run.view());
        self.run.apply(&plan).map_err(fault)?;
        self.run.wake_at(self.policy.wake_at());
        Ok(true)
    }

    /// Adds the jobs that have ended by now to the history.
    pub fn learn(&mut self) {
        let now = self.run.now();
        let jobs = &self.run.scenario().workload.jobs;
        for (at, record) in self.run.records().iter().enumerate() {
            if !self.known[at] && record.finish.is_some_and(|finish| finish <= now) {
                self.known[at] = true;
                self.history.add(&jobs[at]);
            }
        }
    }

    /// Futures of `job`, which waits; `None` where it does not. `seed` differs from question to question.
    pub fn futures(&self, job: JobId, seed: u64) -> Result<Option<Futures>, StartError> {
        let seen = self.run.observed();
        let scenario = self.run.scenario();
        let (workload, options) = (&*scenario.workload, &scenario.options);
        let Some(question) = StartQuestion::new(workload, &self.history, &seen, options, job, seed) else {
            return Ok(None);
        };
        self.study.futures_of(&question).map(Some)
    }
}

/// A question that was asked and has not been answered by the run yet.
pub(super) struct OpenQuestion {
    pub job: JobId,
    pub asked: SimTime,
    pub raw: WaitInterval,
}

/// Moves the questions that the run has answered by now into `calibration`.
pub(super) fn settle(open: &mut Vec<OpenQuestion>, run: &Simulator, calibration: &mut StartCalibration) {
    open.retain(|question| {
        let start = run.start_of(question.job);
        if let Some(start) = start {
            calibration.add(question.asked.as_secs_f64(), &question.raw, (start - question.asked).as_secs_f64());
        }
        start.is_none()
    });
}

/// The calibration with the questions that have no answer yet: without them, long waits would be missing while they
/// last.
pub(super) fn with_open(open: &[OpenQuestion], run: &Simulator, calibration: &StartCalibration) -> StartCalibration {
    open.iter().fold(calibration.clone(), |known, question| {
        let passed = (run.now() - question.asked).as_secs_f64();
        known.with_open(question.asked.as_secs_f64(), &question.raw, passed)
    })
}
