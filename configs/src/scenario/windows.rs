//! Windows of a workload in a file: each seed has some consecutive jobs of it.

use goodput_env::job::Workload;
use goodput_env::seed::{Stream, keyed};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;
use crate::seeds::Split;

/// Windows of a workload. Each seed draws the first job of its window. Windows to learn from and to choose by lie
/// before the held-out part of the jobs, and those to compare on lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowsConfig {
    /// Consecutive jobs in a window. The first is submitted at time 0.
    pub jobs: usize,
    /// Share of the jobs, at the end of the file, that is held out; absent: a third.
    #[serde(default = "third")]
    pub held_out: f64,
}

fn third() -> f64 {
    1.0 / 3.0
}

impl WindowsConfig {
    /// Number of jobs of `workload` before the held-out part.
    fn known(&self, workload: &Workload) -> usize {
        (workload.jobs.len() as f64 * (1.0 - self.held_out)).floor() as usize
    }

    /// Checks that both parts of the workload have room for a window.
    pub(super) fn check(&self, workload: &Workload) -> Result<(), SetupError> {
        let value = |key, value: String, expected: String| Err(SetupError::Value { key, value, expected });
        if !(0.0..1.0).contains(&self.held_out) {
            return value("workload.file.windows.held_out", self.held_out.to_string(), "0 to less than 1".into());
        }
        let known = self.known(workload);
        let most = known.min(workload.jobs.len() - known);
        if self.jobs == 0 || self.jobs > most {
            let expected = format!("1 to {most}, so that both parts of the file have room for a window");
            return value("workload.file.windows.jobs", self.jobs.to_string(), expected);
        }
        if !workload.requests.is_empty() {
            let expected = "none with a file that has inference requests".into();
            return value("workload.file.windows", "given".into(), expected);
        }
        Ok(())
    }

    /// The window of `seed`.
    pub(super) fn of_seed(&self, workload: &Workload, seed: u64) -> Workload {
        let known = self.known(workload);
        let (from, to) = match Split::of(seed) {
            Split::Training | Split::Validation => (0, known),
            Split::HeldOut => (known, workload.jobs.len()),
        };
        let first = keyed(seed, Stream::Resampling, 0).random_range(from..=to - self.jobs);
        let mut jobs = workload.jobs[first..first + self.jobs].to_vec();
        let begin = jobs[0].request.submit;
        for job in &mut jobs {
            job.request.submit -= begin;
            job.request.deadline = job.request.deadline.map(|deadline| deadline - begin);
        }
        Workload { jobs, ..workload.clone() }
    }
}

#[cfg(test)]
mod tests {
    use goodput_env::job::{JobRequest, JobSpec, Work};
    use goodput_env::time::SimTime;

    use super::*;
    use crate::seeds::{HELD_OUT, VALIDATION, training_seed};

    fn workload() -> Workload {
        let job = |at: i64| JobSpec {
            request: JobRequest { name: at.to_string(), submit: SimTime::from_secs(10 * at), ..JobRequest::default() },
            work: Work::Fixed { duration: SimTime::from_secs(1) },
        };
        Workload::new(Vec::new(), (0..90).map(job).collect())
    }

    #[test]
    fn windows_to_learn_from_never_meet_the_held_out_jobs() {
        let windows = WindowsConfig { jobs: 20, held_out: third() };
        windows.check(&workload()).unwrap();
        let first = |seed| windows.of_seed(&workload(), seed).jobs[0].request.name.parse::<usize>().unwrap();
        let training: Vec<usize> = (0..200).map(|number| first(training_seed(3, 0) + number)).collect();
        let validation: Vec<usize> = (0..200).map(|number| first(VALIDATION + number)).collect();
        let held_out: Vec<usize> = (0..200).map(|number| first(HELD_OUT + number)).collect();
        for known in [&training, &validation] {
            assert_eq!((known.iter().min(), known.iter().max()), (Some(&0), Some(&40)));
        }
        assert_ne!(training, validation);
        assert_eq!((held_out.iter().min(), held_out.iter().max()), (Some(&60), Some(&70)));
    }

    #[test]
    fn a_window_begins_at_time_zero() {
        let window = WindowsConfig { jobs: 3, held_out: 0.5 }.of_seed(&workload(), HELD_OUT);
        let submits: Vec<i64> = window.jobs.iter().map(|job| job.request.submit.as_millis()).collect();
        assert_eq!(submits, [0, 10_000, 20_000]);
    }

    #[test]
    fn a_window_that_has_no_room_is_refused() {
        let refused = |jobs, held_out| WindowsConfig { jobs, held_out }.check(&workload()).unwrap_err().to_string();
        assert!(refused(31, third()).contains("workload.file.windows.jobs"), "{}", refused(31, third()));
        assert!(refused(31, third()).contains("1 to 30"));
        assert!(refused(3, 1.0).contains("workload.file.windows.held_out"));
    }
}
