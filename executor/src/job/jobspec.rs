//! What a user submits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::contract::Isolation;
use super::name::JobName;
use super::retry::RetryBudget;

/// A job for real machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Name, unique among jobs that are not done.
    pub name: JobName,
    /// Program and arguments. It is run once a node, and finds its ranks in the environment.
    pub command: Vec<String>,
    /// Variables added to the agent's short list; those of the contract win.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Folder it starts in; `None`: its checkpoint folder.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// What it is for.
    #[serde(default)]
    pub kind: Kind,
    /// Accelerators asked for.
    pub accelerators: u32,
    /// Fewest it runs on; `None`: exactly `accelerators`.
    #[serde(default)]
    pub min_accelerators: Option<u32>,
    /// Most it can use; `None`: exactly `accelerators`.
    #[serde(default)]
    pub max_accelerators: Option<u32>,
    /// Type it must have, such as `a100`; `None`: any.
    #[serde(default)]
    pub accelerator_type: Option<String>,
    /// Part of one accelerator, where a whole one is too much.
    #[serde(default)]
    pub share: Option<Share>,
    /// Who pays.
    #[serde(default)]
    pub tenant: Option<String>,
    /// The higher the earlier, where a policy goes by it.
    #[serde(default)]
    pub priority: i32,
    /// Batch size it starts with, samples; `None`: the application's.
    #[serde(default)]
    pub batch_size: Option<u32>,
    /// Entry of the catalog that tells how fast it is; `None`: learned from its reports.
    #[serde(default)]
    pub application: Option<String>,
    /// Seconds from SIGTERM to SIGKILL.
    #[serde(default = "default_grace")]
    pub grace_s: u32,
    /// How often it may fail.
    #[serde(default)]
    pub retry: RetryBudget,
    /// Folder that survives attempts and is seen by all nodes; `None`: one under the agent's checkpoint root.
    #[serde(default)]
    pub checkpoint_dir: Option<PathBuf>,
}

/// What a job is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It ends when it is done.
    #[default]
    Training,
    /// A replica of a service: on SIGTERM it finishes what it serves and exits 0.
    Inference,
}

/// A part of one accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Part of its compute, 1 to 100 percent.
    pub compute_percent: u32,
    /// Memory, MiB.
    pub memory_mib: u64,
    /// Who keeps it to that.
    #[serde(default = "Isolation::mps")]
    pub isolation: Isolation,
}

/// Why a job is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("job {job}: {what}")]
pub struct SpecError {
    /// Which job.
    pub job: JobName,
    /// What is wrong and what would be right.
    pub what: String,
}

/// Kubernetes and Slurm wait about as long.
fn default_grace() -> u32 {
    60
}

impl JobSpec {
    /// A job of `command` on exactly `accelerators`, all else by default.
    #[must_use]
    pub fn new(name: JobName, command: Vec<String>, accelerators: u32) -> Self {
        Self {
            name,
            command,
            env: BTreeMap::new(),
            cwd: None,
            kind: Kind::Training,
            accelerators,
            min_accelerators: None,
            max_accelerators: None,
            accelerator_type: None,
            share: None,
            tenant: None,
            priority: 0,
            batch_size: None,
            application: None,
            grace_s: default_grace(),
            retry: RetryBudget::default(),
            checkpoint_dir: None,
        }
    }

    /// Fewest and most accelerators it runs on.
    #[must_use]
    pub fn range(&self) -> (u32, u32) {
        (self.min_accelerators.unwrap_or(self.accelerators), self.max_accelerators.unwrap_or(self.accelerators))
    }

    /// Checks what types cannot.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        let (min, max) = self.range();
        let relative = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| !path.is_absolute());
        let climbs = |path: &Option<PathBuf>| {
            path.as_ref().is_some_and(|path| path.components().any(|part| part == std::path::Component::ParentDir))
        };
        let no_variable = |key: &String| key.is_empty() || key.contains(['=', '\0']) || key.starts_with("SCHED_");
        let problem = if self.command.first().is_none_or(String::is_empty) {
            Some("`command` is empty: give a program and its arguments".to_owned())
        } else if self.command.iter().chain(self.env.values()).any(|text| text.contains('\0')) {
            Some("`command` or `env` contains a zero byte".to_owned())
        } else if self.accelerators == 0 || min == 0 || min > self.accelerators || max < self.accelerators {
            Some(format!(
                "accelerators: 1 <= min ({min}) <= asked for ({}) <= max ({max}) is required",
                self.accelerators
            ))
        } else if self.share.is_some_and(|share| !(1..=100).contains(&share.compute_percent)) {
            Some("`share.compute_percent` is a number from 1 to 100".to_owned())
        } else if self.share.is_some() && max > 1 {
            Some("`share` is a part of one accelerator: ask for exactly one".to_owned())
        } else if relative(&self.cwd) || relative(&self.checkpoint_dir) {
            Some("`cwd` and `checkpoint_dir` must be absolute paths".to_owned())
        } else if climbs(&self.cwd) || climbs(&self.checkpoint_dir) {
            Some("`cwd` and `checkpoint_dir` must not contain `..`".to_owned())
        } else {
            let bad = self.env.keys().find(|key| no_variable(key));
            bad.map(|key| format!("variable {key:?}: names are not empty, have no `=` and do not begin with SCHED_"))
        };
        match problem {
            None => Ok(()),
            Some(what) => Err(SpecError { job: self.name.clone(), what }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> JobSpec {
        JobSpec::new(JobName::new("a").unwrap(), vec!["train".to_owned()], 2)
    }

    #[test]
    fn three_fields_make_a_job() {
        let read: JobSpec = serde_json::from_str(r#"{"name":"a","command":["train"],"accelerators":2}"#).unwrap();
        assert_eq!(read, spec());
        assert_eq!((read.range(), read.grace_s, read.retry.failures), ((2, 2), 60, 3));
        read.check().unwrap();
        assert!(serde_json::from_str::<JobSpec>(r#"{"name":"a","command":["x"],"accelerators":1,"gpu":2}"#).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_remedy() {
        let share = Share { compute_percent: 0, memory_mib: 1, isolation: Isolation::Mps };
        let half = Share { compute_percent: 50, ..share };
        let bad = [
            (JobSpec { command: Vec::new(), ..spec() }, "command"),
            (JobSpec { command: vec!["a\0".to_owned()], ..spec() }, "zero byte"),
            (JobSpec { accelerators: 0, ..spec() }, "min"),
            (JobSpec { min_accelerators: Some(3), ..spec() }, "min"),
            (JobSpec { max_accelerators: Some(1), ..spec() }, "max"),
            (JobSpec { accelerators: 1, share: Some(share), ..spec() }, "1 to 100"),
            (JobSpec { share: Some(half), ..spec() }, "exactly one"),
            (JobSpec { cwd: Some("here".into()), ..spec() }, "absolute"),
            (JobSpec { checkpoint_dir: Some("/data/../etc".into()), ..spec() }, "`..`"),
            (JobSpec { env: [("SCHED_FENCE".to_owned(), "x".to_owned())].into(), ..spec() }, "SCHED_"),
        ];
        for (spec, says) in bad {
            let error = spec.check().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
