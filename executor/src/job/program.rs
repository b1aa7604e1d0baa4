//! Program of a job: the part of a job that the machines need to know.

use std::collections::BTreeMap;
use std::path::{Component, PathBuf};

use goodput_configs::live::name::JobName;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Program of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the job.
    pub name: JobName,
    /// Program and arguments. It is run once a node, and finds its ranks in the environment.
    pub command: Vec<String>,
    /// Variables added to the agent's short list; those of the contract win.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Folder that the program starts in; `None`: its checkpoint folder.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// Seconds from SIGTERM to SIGKILL.
    #[serde(default = "default_grace")]
    pub grace_s: u32,
    /// Folder that survives attempts and is seen by all nodes; `None`: one under the agent's
    /// checkpoint root.
    #[serde(default)]
    pub checkpoint_dir: Option<PathBuf>,
}

/// Reason why a program is not run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("job {job}: {what}")]
pub struct ProgramError {
    /// Of which job.
    pub job: JobName,
    /// Fault of the program, and what would be right.
    pub what: &'static str,
}

/// Kubernetes and Slurm wait about as long.
fn default_grace() -> u32 {
    60
}

impl Program {
    /// A command, all else by default.
    #[must_use]
    pub fn new(name: JobName, command: Vec<String>) -> Self {
        Self { name, command, env: BTreeMap::new(), cwd: None, grace_s: default_grace(), checkpoint_dir: None }
    }

    /// Checks what types cannot.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ProgramError> {
        let any = |wrong: fn(&PathBuf) -> bool| self.cwd.iter().chain(&self.checkpoint_dir).any(wrong);
        let texts = self.command.iter().chain(self.env.values()).chain(self.env.keys());
        let rules = [
            (self.command.first().is_none_or(String::is_empty), "`command` is empty: give a program and its arguments"),
            (texts.into_iter().any(|text| text.contains('\0')), "`command` or `env` contains a zero byte"),
            (self.env.keys().any(|key| key.is_empty() || key.contains('=')), "a variable has no name or one with `=`"),
            (self.env.keys().any(|key| key.starts_with("SCHED_")), "variables of a job must not begin with SCHED_"),
            (any(|path| !path.is_absolute()), "`cwd` and `checkpoint_dir` must be absolute paths"),
            (
                any(|path| path.components().any(|part| part == Component::ParentDir)),
                "`cwd` and `checkpoint_dir` must not contain `..`",
            ),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            None => Ok(()),
            Some((_, what)) => Err(ProgramError { job: self.name.clone(), what }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        Program::new(JobName::new("a").unwrap(), vec!["train".to_owned()])
    }

    #[test]
    fn a_name_and_a_command_are_enough() {
        let read: Program = serde_json::from_str(r#"{"name":"a","command":["train"]}"#).unwrap();
        assert_eq!((read.check(), read.grace_s), (Ok(()), 60));
        assert_eq!(read, program());
        assert!(serde_json::from_str::<Program>(r#"{"name":"a","command":["x"],"comand":[]}"#).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_remedy() {
        let env = |key: &str| BTreeMap::from([(key.to_owned(), "x".to_owned())]);
        let bad = [
            (Program { command: Vec::new(), ..program() }, "command"),
            (Program { command: vec!["a\0".to_owned()], ..program() }, "zero byte"),
            (Program { cwd: Some("here".into()), ..program() }, "absolute"),
            (Program { checkpoint_dir: Some("/data/../etc".into()), ..program() }, "`..`"),
            (Program { env: env("SCHED_FENCE"), ..program() }, "SCHED_"),
            (Program { env: env("A=B"), ..program() }, "variable"),
        ];
        for (program, says) in bad {
            let error = program.check().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
