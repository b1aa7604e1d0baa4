//! Numbers of jobs. A task of an array is a job of its own.

use std::fmt;
use std::str::FromStr;

/// Number of a job, or the number of an array with the index of one of its tasks.
///
/// Slurm gives a task a number of its own once the task is altered or starts. The number of the array
/// with the index names the task before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlurmJobId {
    job: u64,
    task: Option<u32>,
}

impl SlurmJobId {
    /// Task `task` of the array `job`.
    pub fn task(job: u64, task: u32) -> Self {
        Self { job, task: Some(task) }
    }

    /// Number of the job, or of the array of a task.
    pub fn number(self) -> u64 {
        self.job
    }

    /// Number of the array of a task; `None` for a job that is no task.
    pub fn array(self) -> Option<u64> {
        self.task.map(|_| self.job)
    }
}

impl From<u64> for SlurmJobId {
    fn from(job: u64) -> Self {
        Self { job, task: None }
    }
}

/// As Slurm's commands take it: `7`, or `7_2` for a task.
impl fmt::Display for SlurmJobId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            None => write!(out, "{}", self.job),
            Some(task) => write!(out, "{}_{task}", self.job),
        }
    }
}

impl FromStr for SlurmJobId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('_') {
            None => Ok(Self::from(text.parse::<u64>()?)),
            Some((job, task)) => Ok(Self::task(job.parse()?, task.parse()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn jobs_and_tasks_are_named_as_slurm_names_them() {
        for (text, id) in [("7", SlurmJobId::from(7)), ("7_12", SlurmJobId::task(7, 12))] {
            assert_eq!((id.to_string().as_str(), text.parse::<SlurmJobId>().unwrap()), (text, id));
        }
        assert_eq!((SlurmJobId::from(7).array(), SlurmJobId::task(7, 1).array()), (None, Some(7)));
        for wrong in ["", "x", "7_", "7_x", "7_1_2", "-1"] {
            assert!(wrong.parse::<SlurmJobId>().is_err(), "{wrong}");
        }
    }
}
