//! Earlier predictions of a daemon and what became of them: they say how far its quantiles have to be moved.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use goodput_agents::start_time::{StartCalibration, WaitInterval};

use super::scene::StartScene;

/// Share of waits beyond each of the outer quantiles.
pub(super) const TAIL: f64 = 0.1;
/// Predictions that wait for their start, the latest ones.
const OPEN: usize = 1000;

/// Predictions under one policy on one cluster.
#[derive(Debug)]
pub(super) struct PastPredictions {
    open: VecDeque<OpenPrediction>,
    calibration: StartCalibration,
}

/// Prediction of which the start has not come yet.
#[derive(Debug)]
struct OpenPrediction {
    /// Time of submission and key of the job.
    job: (i64, String),
    at_ms: i64,
    /// Quantiles of the futures.
    raw: WaitInterval,
}

impl PastPredictions {
    /// No prediction yet.
    pub fn new() -> Self {
        Self { open: VecDeque::new(), calibration: StartCalibration::with_tail(TAIL) }
    }

    /// Whether a start is waited for.
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes in the starts that came: by time of submission and key, milliseconds of the engine's clock. A job that is
    /// gone without a start is forgotten.
    pub fn settle(&mut self, scene: &StartScene, starts: &BTreeMap<(i64, String), i64>) {
        let there: BTreeSet<(i64, &str)> = scene.jobs.iter().map(|job| (job.submit_ms, job.key.as_str())).collect();
        let calibration = &mut self.calibration;
        self.open.retain(|open| {
            if let Some(start) = starts.get(&open.job).filter(|start| **start >= open.at_ms) {
                calibration.add(secs(open.at_ms), &open.raw, secs(*start - open.at_ms));
                return false;
            }
            there.contains(&(open.job.0, open.job.1.as_str()))
        });
    }

    /// The quantiles of the futures as the past moves them, and the number of earlier predictions behind that. Those of
    /// which the start has not come count with what has passed: else long waits would be missing while they last.
    pub fn calibrated(&self, raw: WaitInterval, now_ms: i64) -> (WaitInterval, usize) {
        let known = self.open.iter().fold(self.calibration.clone(), |known, open| {
            known.with_open(secs(open.at_ms), &open.raw, secs(now_ms - open.at_ms))
        });
        (known.calibrated(raw), known.count())
    }

    /// Keeps the first prediction of a job until its start comes.
    pub fn keep(&mut self, scene: &StartScene, raw: WaitInterval) {
        let job = &scene.jobs[scene.asked];
        let job = (job.submit_ms, job.key.clone());
        if self.open.iter().any(|open| open.job == job) {
            return;
        }
        self.open.push_back(OpenPrediction { job, at_ms: scene.at_ms, raw });
        if self.open.len() > OPEN {
            self.open.pop_front();
        }
    }
}

fn secs(millis: i64) -> f64 {
    millis as f64 / 1e3
}
