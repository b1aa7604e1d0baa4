//! Predictions beside the starts that came: how many lay in their interval, and how wide it was.

use goodput_agents::start_time::{StartCalibration, WaitInterval};
use goodput_env::job::{JobId, Workload};
use goodput_env::time::SimTime;
use serde::Serialize;

use super::replay::{OpenQuestion, Replay, StartError, StartStudy, settle, with_open};
use crate::stats::quantile;

/// One prediction and what came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StartRow {
    /// Name of the job in the trace.
    pub job: String,
    /// Accelerators asked for.
    pub gpus: u32,
    /// Time of the question: the first decision after the submission, which left the job waiting. Seconds.
    pub asked_secs: f64,
    /// Wait from then on under the policy, seconds.
    pub wait_secs: f64,
    /// Wait as it was predicted.
    pub predicted: WaitInterval,
    /// The interval of the futures themselves.
    pub uncalibrated: WaitInterval,
    /// Wait where all jobs run for as long as their users stated and nothing comes, seconds; absent where a user stated
    /// nothing.
    pub as_stated_secs: Option<f64>,
    /// Past predictions that the calibration stood on.
    pub calibrated_on: usize,
}

/// Predictions beside what came, in figures, which are absent where no prediction was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StartCheck {
    /// Policy of the cluster.
    pub policy: String,
    /// Jobs that had to wait.
    pub waiting: usize,
    /// Predictions, all of them made without a look at what came later.
    pub predictions: usize,
    /// Share of waits within the interval, which is to hold 0.9 of them.
    pub coverage: Option<f64>,
    /// Coverage of the intervals before calibration.
    pub uncalibrated_coverage: Option<f64>,
    /// Median width of an interval, hours.
    pub width_hours: Option<f64>,
    /// Median wait, hours.
    pub wait_hours: Option<f64>,
    /// Median of the absolute error of the predicted median, hours.
    pub error_hours: Option<f64>,
    /// Median of the absolute error of the estimate by what users stated, hours; absent where users stated nothing.
    pub as_stated_error_hours: Option<f64>,
    /// The predictions in the order of their questions.
    pub rows: Vec<StartRow>,
}

impl StartStudy {
    /// Predicts about `questions` starts, spread evenly over the jobs that had to wait in the part of the trace after
    /// `skip` of its jobs: before that, the history fills. The first predictions only calibrate later ones, and are not
    /// counted.
    ///
    /// # Errors
    /// [`StartError`] where the policy cannot be told enough, or a run fails.
    pub fn check(&self, questions: usize, skip: f64, progress: &dyn Fn(u64, u64)) -> Result<StartCheck, StartError> {
        let first = (self.workload.jobs.len() as f64 * skip) as usize;
        let waiting = self.waiting(first)?;
        let chosen = spread(&waiting, questions);
        let mut replay = self.replay(&self.workload)?;
        let (mut open, mut calibration) = (Vec::new(), StartCalibration::default());
        let mut rows: Vec<(JobId, StartRow)> = Vec::new();
        let mut asked = 0;
        while asked < chosen.len() && replay.step()? {
            let now = replay.run.now();
            while asked < chosen.len() && chosen[asked].1 == now {
                let job = chosen[asked].0;
                replay.learn();
                settle(&mut open, &replay.run, &mut calibration);
                let known = with_open(&open, &replay.run, &calibration);
                if let Some(row) = self.predict(&replay, &known, job, now)? {
                    open.push(OpenQuestion { job, asked: now, raw: row.uncalibrated });
                    rows.push((job, row));
                }
                asked += 1;
                progress(asked as u64, chosen.len() as u64);
            }
        }
        while replay.step()? {}
        let outcome = replay.run.outcome();
        let waited = |(job, mut row): (JobId, StartRow)| {
            let start = outcome.jobs[job.index()].start?;
            row.wait_secs = start.as_secs_f64() - row.asked_secs;
            Some(row)
        };
        let rows: Vec<StartRow> = rows.into_iter().filter_map(waited).filter(|row| row.calibrated_on > 0).collect();
        Ok(self.summary(waiting.len(), rows))
    }

    fn predict(
        &self,
        replay: &Replay<'_>,
        calibration: &StartCalibration,
        job: JobId,
        now: SimTime,
    ) -> Result<Option<StartRow>, StartError> {
        let Some(futures) = replay.futures(job, u64::from(job.0))? else { return Ok(None) };
        let Some(raw) = futures.interval(now) else { return Ok(None) };
        let request = &self.workload.jobs[job.index()].request;
        Ok(Some(StartRow {
            job: request.name.clone(),
            gpus: request.gpus,
            asked_secs: now.as_secs_f64(),
            wait_secs: f64::NAN,
            predicted: calibration.calibrated(raw),
            uncalibrated: raw,
            as_stated_secs: futures.as_stated.map(|start| (start - now).as_secs_f64()),
            calibrated_on: calibration.count(),
        }))
    }

    /// Jobs from number `first` on that the first decision after their submission leaves waiting, with its moment.
    pub(super) fn waiting(&self, first: usize) -> Result<Vec<(JobId, SimTime)>, StartError> {
        let mut replay = self.replay(&self.workload)?;
        let jobs = &self.workload.jobs;
        let (mut next, mut found) = (first, Vec::new());
        while replay.step()? {
            let now = replay.run.now();
            while next < jobs.len() && jobs[next].request.submit <= now {
                if replay.run.start_of(JobId::at(next)).is_none() {
                    found.push((JobId::at(next), now));
                }
                next += 1;
            }
        }
        Ok(found)
    }

    fn summary(&self, waiting: usize, rows: Vec<StartRow>) -> StartCheck {
        let share = |held: &dyn Fn(&StartRow) -> bool| {
            let count = rows.iter().filter(|row| held(row)).count();
            (!rows.is_empty()).then(|| count as f64 / rows.len() as f64)
        };
        let hours = |of: &dyn Fn(&StartRow) -> Option<f64>| {
            let mut values: Vec<f64> = rows.iter().filter_map(of).collect();
            values.sort_by(f64::total_cmp);
            Some(quantile(&values, 0.5)? / 3600.0)
        };
        StartCheck {
            policy: self.policy.to_string(),
            waiting,
            predictions: rows.len(),
            coverage: share(&|row| row.predicted.holds(row.wait_secs)),
            uncalibrated_coverage: share(&|row| row.uncalibrated.holds(row.wait_secs)),
            width_hours: hours(&|row| Some(row.predicted.high - row.predicted.low)),
            wait_hours: hours(&|row| Some(row.wait_secs)),
            error_hours: hours(&|row| Some((row.predicted.median - row.wait_secs).abs())),
            as_stated_error_hours: hours(&|row| row.as_stated_secs.map(|by| (by - row.wait_secs).abs())),
            rows,
        }
    }
}

/// About `count` of the items, at equal distances.
pub(super) fn spread<T: Copy>(items: &[T], count: usize) -> Vec<T> {
    let count = count.min(items.len());
    (0..count).map(|at| items[at * items.len() / count.max(1)]).collect()
}

/// Number of the jobs that are submitted by `time`.
pub(super) fn submitted(workload: &Workload, time: SimTime) -> usize {
    workload.jobs.partition_point(|job| job.request.submit <= time)
}
