//! Intake of reports: which reports of an attempt are believed and kept.

use thiserror::Error;

use super::fence::Fence;
use super::report::JobReport;

/// Longest line of a report, bytes.
pub const LONGEST_LINE: usize = 4096;

/// Kept at most this often, milliseconds.
const KEPT_EVERY_MS: i64 = 1000;

/// Silence that is always too long, milliseconds.
const LONGEST_SILENCE_MS: i64 = 120_000;

/// Steps of silence that are too long.
const SILENT_STEPS: f64 = 3.0;

/// Reason why a report is not believed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The fence is of another attempt: the process should have ended. HTTP says 409.
    #[error("the fence is not that of a running attempt: a process of an attempt that is over still lives, end it")]
    OldFence,
    /// The job, or its attempt, has not been seen to run yet. HTTP says 503.
    #[error("the attempt has not been seen to run yet: report again later")]
    NotSeen,
    /// The fence is right, and the process that shows it was not started by the attempt. HTTP says
    /// 409.
    #[error("the process that reports does not belong to the attempt: only what an attempt started speaks for it")]
    Stranger,
    /// Not a report. HTTP says 400.
    #[error("not a report: {0}")]
    Malformed(String),
    /// The step count went back within an attempt. HTTP says 400.
    #[error("step {step} after step {last}: steps count over all attempts and never go back within one")]
    WentBack {
        /// Step of the report.
        step: u64,
        /// Step of the report before.
        last: u64,
    },
}

/// Whether a job has said nothing for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// The job reports, or never has and so need not.
    Fine,
    /// Nothing for more than three steps or 120 s.
    Stalled,
}

/// The reports of one running attempt.
#[derive(Debug, Clone)]
pub struct Intake {
    fence: Fence,
    attempt: u32,
    newest: Option<(i64, JobReport)>,
    kept: Option<i64>,
}

impl Intake {
    /// For the attempt that holds `fence`.
    #[must_use]
    pub fn new(fence: Fence, attempt: u32) -> Self {
        Self { fence, attempt, newest: None, kept: None }
    }

    /// Reads a line that came at `now_ms`. `true`: it is to be kept; of several within a second
    /// only the first is, and the newest is [`Intake::newest`].
    ///
    /// # Errors
    /// The line is not to be believed; nothing of it is remembered.
    pub fn read(&mut self, line: &[u8], now_ms: i64) -> Result<bool, Refusal> {
        if line.len() > LONGEST_LINE {
            return Err(Refusal::Malformed(format!("{} bytes, at most {LONGEST_LINE}", line.len())));
        }
        let report: JobReport = serde_json::from_slice(line).map_err(|error| Refusal::Malformed(error.to_string()))?;
        if report.fence != self.fence || report.attempt != self.attempt {
            return Err(Refusal::OldFence);
        }
        if let Some(field) = report.nonsense() {
            return Err(Refusal::Malformed(format!("{field} is negative or not a number")));
        }
        if let Some((_, last)) = &self.newest
            && report.step < last.step
        {
            return Err(Refusal::WentBack { step: report.step, last: last.step });
        }
        let keep = self.kept.is_none_or(|kept| now_ms - kept >= KEPT_EVERY_MS);
        if keep {
            self.kept = Some(now_ms);
        }
        self.newest = Some((now_ms, report));
        Ok(keep)
    }

    /// The last report believed.
    #[must_use]
    pub fn newest(&self) -> Option<&JobReport> {
        self.newest.as_ref().map(|(_, report)| report)
    }

    /// Whether the job has said nothing for more than three times its step time (at least a few
    /// reports' worth), or 120 s.
    #[must_use]
    pub fn silence(&self, now_ms: i64) -> Silence {
        let Some((at, report)) = &self.newest else { return Silence::Fine };
        let steps_ms = report.step_time_s.map_or(f64::INFINITY, |step| step * SILENT_STEPS * 1000.0);
        // Reports come at most once a second, however short the steps are.
        let limit = (steps_ms as i64).clamp(3 * KEPT_EVERY_MS, LONGEST_SILENCE_MS);
        if now_ms - at > limit { Silence::Stalled } else { Silence::Fine }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fence: &Fence, attempt: u32, step: u64) -> Vec<u8> {
        let report = JobReport { step_time_s: Some(2.0), ..JobReport::new(fence.clone(), attempt, step) };
        serde_json::to_vec(&report).unwrap()
    }

    #[test]
    fn an_old_fence_is_refused_and_counts_for_nothing() {
        let (old, new) = (Fence::from_text("old"), Fence::from_text("new"));
        let mut intake = Intake::new(new.clone(), 1);
        assert_eq!(intake.read(&line(&old, 0, 900), 0), Err(Refusal::OldFence));
        assert_eq!(intake.read(&line(&old, 1, 900), 0), Err(Refusal::OldFence));
        assert_eq!(intake.read(&line(&new, 0, 900), 0), Err(Refusal::OldFence));
        assert!(intake.newest().is_none());
        assert_eq!(intake.read(&line(&new, 1, 3), 0), Ok(true));
        assert_eq!(intake.newest().unwrap().step, 3);
    }

    #[test]
    fn one_a_second_is_kept_and_the_newest_is_known() {
        let fence = Fence::from_text("f");
        let mut intake = Intake::new(fence.clone(), 0);
        let kept: Vec<bool> = (0..30).map(|k| intake.read(&line(&fence, 0, k), 100 * k as i64).unwrap()).collect();
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 3);
        assert_eq!(intake.newest().unwrap().step, 29);
    }

    #[test]
    fn nonsense_is_refused() {
        let fence = Fence::from_text("f");
        let mut intake = Intake::new(fence.clone(), 0);
        let long = vec![b' '; LONGEST_LINE + 1];
        let negative = serde_json::to_vec(&JobReport {
            loss: None,
            sync_time_s: Some(-0.1),
            ..JobReport::new(fence.clone(), 0, 1)
        });
        for bad in [b"".to_vec(), b"{}".to_vec(), b"[1]".to_vec(), vec![0xff, 0xfe], long, negative.unwrap()] {
            assert!(matches!(intake.read(&bad, 0), Err(Refusal::Malformed(_))));
        }
        intake.read(&line(&fence, 0, 5), 0).unwrap();
        assert_eq!(intake.read(&line(&fence, 0, 4), 9), Err(Refusal::WentBack { step: 4, last: 5 }));
    }

    #[test]
    fn silence_is_three_steps_or_two_minutes() {
        let fence = Fence::from_text("f");
        let mut intake = Intake::new(fence.clone(), 0);
        assert_eq!(intake.silence(1_000_000), Silence::Fine, "a job that never reports need not");
        intake.read(&line(&fence, 0, 1), 0).unwrap();
        assert_eq!((intake.silence(6_000), intake.silence(6_001)), (Silence::Fine, Silence::Stalled));
        let slow = JobReport { step_time_s: Some(3600.0), ..JobReport::new(fence, 0, 2) };
        intake.read(&serde_json::to_vec(&slow).unwrap(), 10_000).unwrap();
        assert_eq!((intake.silence(130_000), intake.silence(130_001)), (Silence::Fine, Silence::Stalled));
    }
}
