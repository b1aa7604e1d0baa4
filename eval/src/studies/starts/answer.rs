//! Predicted start of one job, with what is ahead of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_agents::start_time::{FutureStart, StartCalibration, WaitInterval};
use goodput_env::job::{JobId, JobRequest, JobSpec, Work, Workload};
use goodput_env::time::SimTime;
use serde::Serialize;

use super::check::{spread, submitted};
use super::replay::{OpenQuestion, Replay, StartError, StartStudy, settle, with_overdue};

/// Jobs ahead that an answer names.
const NAMED: usize = 5;

/// Predicted start of one job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StartAnswer {
    /// Policy of the cluster.
    pub policy: String,
    /// Moment of the question on the trace, hours.
    pub now_hours: f64,
    /// Wait from then on, seconds; all zero where the job starts at once.
    pub wait: WaitInterval,
    /// Wait where all jobs run for as long as their users stated and nothing comes, seconds; absent where a user stated
    /// nothing.
    pub as_stated_secs: Option<f64>,
    /// Past predictions that the interval is calibrated on; 0 where there were too few.
    pub calibrated_on: usize,
    /// Accelerators that are free at the moment of the question, before the job starts.
    pub free: u32,
    /// Jobs that run, and the accelerators that they hold.
    pub running: (usize, u32),
    /// Jobs that wait beside the asked one, and the accelerators that they ask for.
    pub waiting: (usize, u32),
    /// Waiting jobs that start before the asked one in most futures, by descending share.
    pub ahead: Vec<WaitingAhead>,
    /// Number of waiting jobs that start before the asked one in more than half of the futures.
    pub ahead_in_most: usize,
    /// Mean number of jobs that are submitted later and start before it.
    pub overtaking: f64,
}

/// Waiting job that starts before the asked one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitingAhead {
    /// Name of the job in the trace.
    pub job: String,
    /// Accelerators asked for.
    pub gpus: u32,
    /// Share of futures in which it starts earlier.
    pub share: f64,
}

impl StartStudy {
    /// Start of a job like `request`, submitted at its time of submission. `past` predictions of jobs before it
    /// calibrate the interval.
    ///
    /// # Errors
    /// [`StartError`] where the policy cannot be told enough, or a run fails.
    pub fn answer(
        &self,
        request: JobRequest,
        past: usize,
        progress: &dyn Fn(u64, u64),
    ) -> Result<StartAnswer, StartError> {
        if request.limit.is_none() && self.plans_by_run_times() {
            return Err(StartError::Limit { policy: self.policy.to_string() });
        }
        let now = request.submit;
        let asked = submitted(&self.workload, now);
        let workload = Arc::new(with_job(&self.workload, asked, request));
        let before = StartStudy { workload: workload.clone(), ..self.clone() };
        let waiting: Vec<_> = before.waiting(0)?.into_iter().filter(|(_, at)| *at < now).collect();
        // The latest half of those that waited: what is known of run times was less before.
        let chosen = spread(&waiting[waiting.len() / 2..], past);
        let mut replay = before.replay(&workload)?;
        let (mut open, mut calibration, mut next) = (Vec::new(), StartCalibration::default(), 0);
        while replay.step()? {
            let at = replay.run.now();
            while next < chosen.len() && chosen[next].1 == at {
                let job = chosen[next].0;
                replay.learn();
                let raw = replay.futures(job, u64::from(job.0))?.and_then(|futures| futures.interval(at));
                open.extend(raw.map(|raw| OpenQuestion { job, asked: at, raw }));
                next += 1;
                progress(next as u64, chosen.len() as u64 + 1);
            }
            if at >= now && submitted_in(&replay, asked) {
                break;
            }
        }
        replay.learn();
        settle(&mut open, &replay.run, &mut calibration);
        let known = with_overdue(&open, &replay.run, &calibration);
        self.describe(&replay, &known, JobId::at(asked))
    }

    fn describe(
        &self,
        replay: &Replay<'_>,
        calibration: &StartCalibration,
        job: JobId,
    ) -> Result<StartAnswer, StartError> {
        let (seen, now) = (replay.run.observed(), replay.run.now());
        let jobs = &replay.run.scenario().workload.jobs;
        let request = |id: JobId| &jobs[id.index()].request;
        let futures = replay.futures(job, u64::from(job.0))?;
        let raw = futures.as_ref().and_then(|futures| futures.interval(now));
        let starts: &[FutureStart] = futures.as_ref().map_or(&[], |futures| &futures.starts);
        let mut counts: BTreeMap<JobId, u32> = BTreeMap::new();
        starts.iter().flat_map(|future| &future.before).for_each(|id| *counts.entry(*id).or_default() += 1);
        let share = |count: u32| f64::from(count) / starts.len().max(1) as f64;
        let mut ahead: Vec<(JobId, f64)> = counts.into_iter().map(|(id, count)| (id, share(count))).collect();
        ahead.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let named = ahead.iter().take(NAMED).map(|&(id, share)| {
            let JobRequest { name, gpus, .. } = request(id);
            WaitingAhead { job: name.clone(), gpus: *gpus, share }
        });
        let of = |waits: bool| {
            let chosen = seen.jobs.iter().filter(|of| of.placement.is_empty() == waits && of.id != job);
            chosen.fold((0, 0), |(count, gpus), of| {
                (count + 1, gpus + if waits { request(of.id).gpus } else { of.placement.gpus() })
            })
        };
        let held = seen.jobs.iter().find(|of| of.id == job).map_or(0, |of| of.placement.gpus());
        let calibrated = raw.map(|raw| calibration.calibrated(raw));
        Ok(StartAnswer {
            policy: self.policy.to_string(),
            now_hours: now.as_secs_f64() / 3600.0,
            wait: calibrated.unwrap_or(WaitInterval { low: 0.0, median: 0.0, high: 0.0 }),
            as_stated_secs: futures.as_ref().and_then(|of| of.as_stated).map(|start| (start - now).as_secs_f64()),
            calibrated_on: calibration.count(),
            free: seen.idle.iter().sum::<u32>() + held,
            running: of(false),
            waiting: of(true),
            ahead: named.collect(),
            ahead_in_most: ahead.iter().filter(|(_, share)| *share > 0.5).count(),
            overtaking: starts.iter().map(|future| f64::from(future.later)).sum::<f64>() / starts.len().max(1) as f64,
        })
    }
}

/// The jobs until number `asked`, and then a job like `request`. Of its work only the kind counts.
fn with_job(workload: &Workload, asked: usize, request: JobRequest) -> Workload {
    let mut jobs = workload.jobs[..asked].to_vec();
    jobs.push(JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(3600) } });
    Workload { jobs, ..workload.clone() }
}

fn submitted_in(replay: &Replay<'_>, job: usize) -> bool {
    let run = &replay.run;
    run.start_of(JobId::at(job)).is_some() || run.observed().jobs.iter().any(|of| of.id.index() == job)
}
