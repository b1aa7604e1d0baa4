//! Predicted start of one job, with what is ahead of it.

use std::sync::Arc;

use goodput_agents::start_time::{FutureStart, RoomMade, StartCalibration, StartReasons, WaitInterval, room_made};
use goodput_env::job::{JobId, JobRequest, JobSpec, Work, Workload};
use goodput_env::state::Observed;
use goodput_env::time::SimTime;
use serde::Serialize;

use super::check::{spread, submitted};
use super::replay::{Futures, OpenQuestion, Replay, StartError, StartStudy, settle, with_open};

/// Jobs ahead that an answer names.
const NAMED: usize = 5;
/// Running jobs that an answer names with their ends.
const ENDS: usize = 10;
/// Share of ends beyond each end of their intervals, so that an interval holds 0.9 of them.
const TAIL: f64 = 0.05;

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
    /// Running jobs that end before it starts in most futures, by the medians of their ends; the first ones.
    pub frees: Vec<RunningAhead>,
    /// Ends that leave enough room for it and the jobs ahead; `None` where the ends of `frees` do not, where it starts
    /// at once, and on a cluster with several types of accelerators.
    pub room: Option<RoomMade>,
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

/// Running job that ends before the asked one starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunningAhead {
    /// Name of the job.
    pub job: String,
    /// Accelerators that it holds.
    pub on: Vec<HeldOn>,
    /// Share of futures in which it ends before the start.
    pub share: f64,
    /// Time until its end in all futures, seconds.
    pub ends: WaitInterval,
}

/// Accelerators held on one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOn {
    /// Name of the node, or its number from 0.
    pub node: String,
    /// Number of accelerators.
    pub gpus: u32,
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
        let chosen = later_half(&waiting, past);
        let asked_of = |replay: &Replay<'_>| submitted_in(replay, asked);
        let (mut replay, calibration) = before.calibrated(&workload, &chosen, now, asked_of, progress)?;
        replay.learn();
        let job = JobId::at(asked);
        let (seen, futures) = (replay.run.observed(), replay.futures(job, u64::from(job.0))?);
        let scene = AskedScene { workload: &workload, seen: &seen, job, nodes: &[] };
        Ok(self.describe(&scene, futures, &calibration))
    }

    /// The trace as it is at `now`, or later where `there` does not hold yet, and the calibration by predictions of the
    /// jobs `chosen`, each at its moment.
    pub(super) fn calibrated(
        &self,
        workload: &Arc<Workload>,
        chosen: &[(JobId, SimTime)],
        now: SimTime,
        there: impl Fn(&Replay<'_>) -> bool,
        progress: &dyn Fn(u64, u64),
    ) -> Result<(Replay<'_>, StartCalibration), StartError> {
        let mut replay = self.replay(workload)?;
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
            if at >= now && there(&replay) {
                break;
            }
        }
        settle(&mut open, &replay.run, &mut calibration);
        let known = with_open(&open, &replay.run, &calibration);
        Ok((replay, known))
    }

    /// The answer by the futures of a job, which are `None` where the job started at once.
    pub(super) fn describe(
        &self,
        scene: &AskedScene<'_>,
        futures: Option<Futures>,
        calibration: &StartCalibration,
    ) -> StartAnswer {
        let AskedScene { seen, job, .. } = *scene;
        let now = seen.now;
        let raw = futures.as_ref().and_then(|futures| futures.interval(now));
        let starts: &[FutureStart] = futures.as_ref().map_or(&[], |futures| &futures.starts);
        let reasons = StartReasons::of(starts, now, TAIL);
        let named = reasons.ahead.iter().take(NAMED).map(|&(id, share)| {
            let JobRequest { name, gpus, .. } = scene.request(id);
            WaitingAhead { job: name.clone(), gpus: *gpus, share }
        });
        let frees = reasons.frees.iter().take(ENDS).map(|end| RunningAhead {
            job: scene.request(end.job).name.clone(),
            on: scene.on(end.job),
            share: end.share,
            ends: end.ends,
        });
        let of = |waits: bool| {
            let chosen = seen.jobs.iter().filter(|of| of.placement.is_empty() == waits && of.id != job);
            chosen.fold((0, 0), |(count, gpus), of| {
                (count + 1, gpus + if waits { scene.request(of.id).gpus } else { of.placement.gpus() })
            })
        };
        let held = |id: JobId| seen.jobs.iter().find(|of| of.id == id).map_or(0, |of| of.placement.gpus());
        let free = seen.idle.iter().sum::<u32>() + held(job);
        let ahead_in_most = reasons.ahead_in_most();
        let ahead_gpus = reasons.ahead[..ahead_in_most].iter().map(|(id, _)| scene.request(*id).gpus).sum();
        let freed = reasons.frees.iter().map(|end| held(end.job));
        let room = room_made(free, scene.request(job).gpus, ahead_gpus, freed);
        let calibrated = raw.map(|raw| calibration.calibrated(raw));
        StartAnswer {
            policy: self.policy.to_string(),
            now_hours: now.as_secs_f64() / 3600.0,
            wait: calibrated.unwrap_or(WaitInterval { low: 0.0, median: 0.0, high: 0.0 }),
            as_stated_secs: futures.as_ref().and_then(|of| of.as_stated).map(|start| (start - now).as_secs_f64()),
            calibrated_on: calibration.count(),
            free,
            running: of(false),
            waiting: of(true),
            ahead: named.collect(),
            ahead_in_most,
            overtaking: reasons.overtaking,
            frees: frees.collect(),
            room: room.filter(|_| futures.is_some() && seen.cluster.types.len() == 1),
        }
    }
}

/// Cluster at the moment of a question.
pub(super) struct AskedScene<'a> {
    pub workload: &'a Workload,
    pub seen: &'a Observed,
    /// Id of the asked job.
    pub job: JobId,
    /// Names of the nodes, where they have any.
    pub nodes: &'a [String],
}

impl AskedScene<'_> {
    fn request(&self, job: JobId) -> &JobRequest {
        &self.workload.jobs[job.index()].request
    }

    fn on(&self, job: JobId) -> Vec<HeldOn> {
        let seen = self.seen.jobs.iter().find(|of| of.id == job);
        let slices = seen.map_or(&[][..], |of| of.placement.slices());
        let name = |node: usize| self.nodes.get(node).map_or_else(|| format!("node {node}"), String::clone);
        slices.iter().map(|slice| HeldOn { node: name(slice.node.index()), gpus: slice.gpus }).collect()
    }
}

/// About `count` of those that waited, of their later half: what is known of run times was less before.
pub(super) fn later_half(waiting: &[(JobId, SimTime)], count: usize) -> Vec<(JobId, SimTime)> {
    spread(&waiting[waiting.len() / 2..], count)
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
