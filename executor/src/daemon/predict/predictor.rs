//! The futures of a prediction, on a thread of their own and for a bounded time: the loop of the daemon only asks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use goodput_agents::start_time::{FutureStart, StartQuestion, StartReasons, WaitInterval, room_made};
use goodput_env::job::JobId;
use goodput_env::scenario::{Information, SimOptions};
use goodput_env::time::SimTime;

use super::answer::{FreeingJob, JobAhead, PredictedStart, Quantiles, StartBasis};
use super::calibration::{PastPredictions, TAIL};
use super::past::SceneWithPast;
use super::scene::StartScene;
use crate::daemon::durability::journal::Journal;
use crate::daemon::shadow::Maker;

/// Futures of a prediction.
const FUTURES: u64 = 100;
/// No further future is begun after this time.
const BUDGET: Duration = Duration::from_secs(2);
/// Jobs that have to have ended before run times are drawn from them.
const NEEDED: usize = 10;
/// Time from one question of the daemon's own to the next.
const SAMPLE_EVERY: Duration = Duration::from_secs(60);
/// Questions that may wait for the thread.
const QUEUE: usize = 8;
/// Jobs ahead that an answer names.
const NAMED: usize = 5;
/// Running jobs that an answer names with their ends.
const ENDS: usize = 10;
/// Standard deviation of the logarithm of the estimate that a policy is told of a job without a stated run time: hardly
/// anything is known.
const UNSTATED_SIGMA: f64 = 2.0;

/// Takes the prediction, or the reason why there is none.
pub type PredictorReply = Box<dyn FnOnce(Result<PredictedStart, String>) + Send>;

/// Thread that predicts starts under one policy, one question at a time.
#[derive(Debug)]
pub struct StartPredictor {
    ask: mpsc::SyncSender<(StartScene, PredictorReply)>,
    /// Questions that are not answered yet.
    under_way: Arc<AtomicUsize>,
    /// Time of the last question of the daemon's own.
    sampled: Option<Instant>,
}

impl StartPredictor {
    /// Predicts under the policy that `incumbent` makes anew for each future, by the journal at `journal`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(incumbent: (String, Maker), journal: PathBuf) -> std::io::Result<Self> {
        let (ask, questions) = mpsc::sync_channel::<(StartScene, PredictorReply)>(QUEUE);
        let under_way = Arc::new(AtomicUsize::new(0));
        let answered = under_way.clone();
        std::thread::Builder::new().name("starts".into()).spawn(move || {
            let mut earlier = PastPredictions::new();
            for (scene, reply) in questions {
                let question = AssertUnwindSafe(|| predict(&scene, &incumbent, &journal, &mut earlier));
                reply(catch_unwind(question).unwrap_or_else(|_| Err("the policy panicked".to_owned())));
                answered.fetch_sub(1, Ordering::Relaxed);
            }
        })?;
        Ok(Self { ask, under_way, sampled: None })
    }

    /// Asks for a prediction; the answer goes to `reply`.
    pub fn ask(&self, scene: StartScene, reply: PredictorReply) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let refused = match self.ask.try_send((scene, reply)) {
            Ok(()) => return,
            Err(mpsc::TrySendError::Full((_, reply))) => (reply, "too many predictions are under way; try again"),
            Err(mpsc::TrySendError::Disconnected((_, reply))) => (reply, "the thread of predictions has ended"),
        };
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        let (reply, why) = refused;
        reply(Err(why.to_owned()));
    }

    /// Whether the daemon may ask a question of its own now, so that later predictions are calibrated: once a minute,
    /// while no other question is open. A time at which it may counts as that of the last question.
    pub fn may_sample(&mut self, now: Instant) -> bool {
        let is_due = self.sampled.is_none_or(|sampled| now.duration_since(sampled) >= SAMPLE_EVERY);
        let may = is_due && self.under_way.load(Ordering::Relaxed) == 0;
        if may {
            self.sampled = Some(now);
        }
        may
    }
}

/// The start of the asked job of a scene.
fn predict(
    scene: &StartScene,
    incumbent: &(String, Maker),
    journal: &Path,
    earlier: &mut PastPredictions,
) -> Result<PredictedStart, String> {
    let began = Instant::now();
    let past = Journal::history_at(journal).map_err(|error| error.to_string())?;
    let known = SceneWithPast::new(scene, &past);
    // What is left of a job that reports its speed is drawn around what its user stated.
    let by_futures = known.ended >= NEEDED || known.measured > 0;
    let known = if by_futures { known } else { known.with_assumed_limits() };
    let (name, maker) = incumbent;
    let make = || maker(&known.seen.cluster);
    let information = match make()?.information {
        Information::Estimate { .. } => Information::Estimate { sigma: UNSTATED_SIGMA },
        told => told,
    };
    let options = SimOptions { information, ..scene.options.clone() };
    let seed = known.seen.now.as_millis().unsigned_abs();
    let question = StartQuestion::new(&known.workload, &known.history, &known.seen, &options, known.asked, seed);
    let question = question.ok_or("it holds accelerators")?.telling_limits();
    let fault = |error| format!("{name}: {error}");
    let mut futures = Vec::new();
    if by_futures {
        while futures.len() < FUTURES as usize && (futures.is_empty() || began.elapsed() < BUDGET) {
            futures.push(question.start(futures.len() as u64, &mut *make()?.policy).map_err(fault)?);
        }
    } else {
        let stated = question.start_as_stated(&mut *make()?.policy).map_err(fault)?;
        futures.push(stated.ok_or("a job at hand states no run time, and too few jobs have ended to guess it")?);
    }
    let secs = |time: SimTime| (time - known.seen.now).as_secs_f64().max(0.0) / scene.speedup;
    let waits = futures.iter().map(|future| future.start.map_or(f64::INFINITY, secs)).collect();
    let raw = WaitInterval::with_tail(waits, TAIL).ok_or("no future was played")?;
    let (wait, basis) = if by_futures {
        if earlier.has_open() {
            let starts = Journal::starts_at(journal).map_err(|error| error.to_string())?;
            earlier.settle(scene, &starts);
        }
        let (wait, calibrated_on) = earlier.calibrated(raw, scene.at_ms);
        if scene.is_submitted {
            earlier.keep(scene, raw);
        }
        let (futures, ended, came) = (futures.len(), known.ended, known.came);
        (wait, StartBasis::Futures { futures, ended, came, calibrated_on })
    } else {
        (raw, StartBasis::Stated { ended: known.ended, needed: NEEDED, assumed: known.unstated })
    };
    let (policy, wait) = (name.clone(), Quantiles::from(wait));
    let answer = PredictedStart { policy, at_ms: scene.at_ms, basis, wait, ..PredictedStart::default() };
    Ok(describe(scene, &known, &futures, answer))
}

/// The answer with what the futures say beside the start.
fn describe(
    scene: &StartScene,
    known: &SceneWithPast,
    futures: &[FutureStart],
    answer: PredictedStart,
) -> PredictedStart {
    let seen = &known.seen;
    let reasons = StartReasons::of(futures, seen.now, TAIL);
    let job = |id: JobId| known.place(id).map(|place| &scene.jobs[place]);
    let asked = |id: JobId| job(id).map_or(0, |job| job.spec.request.gpus);
    let ahead_in_most = reasons.ahead_in_most();
    let named = reasons.ahead.iter().filter(|(_, share)| *share >= 0.1).take(NAMED);
    let ahead = named.filter_map(|&(id, share)| {
        let job = job(id)?;
        let request = &job.spec.request;
        Some(JobAhead { key: job.key.clone(), name: request.name.clone(), gpus: request.gpus, share })
    });
    let free = seen.idle.iter().sum();
    let ahead_gpus = reasons.ahead[..ahead_in_most].iter().map(|(id, _)| asked(*id)).sum();
    let held = |id: JobId| job(id).map_or(0, |job| job.placement.iter().map(|on| on.gpus).sum());
    let room = room_made(free, asked(known.asked), ahead_gpus, reasons.frees.iter().map(|end| held(end.job)));
    let frees = reasons.frees.iter().take(ENDS).filter_map(|end| {
        let job = job(end.job)?;
        let secs = |time: f64| time / scene.speedup;
        let WaitInterval { low, median, high } = end.ends;
        let ends = WaitInterval { low: secs(low), median: secs(median), high: secs(high) }.into();
        let (name, placement) = (job.spec.request.name.clone(), job.placement.clone());
        Some(FreeingJob { key: job.key.clone(), name, placement, share: end.share, ends })
    });
    let mut notes = scene.notes.clone();
    if known.measured > 0 {
        let count = known.measured;
        notes.push(format!(
            "the run times of {count} jobs that report their speed are guessed from what their users stated"
        ));
    }
    PredictedStart {
        ahead: ahead.collect(),
        ahead_in_most,
        overtaking: reasons.overtaking,
        free,
        frees: frees.collect(),
        room: room.filter(|_| seen.cluster.types.len() == 1),
        notes,
        ..answer
    }
}
