//! External program: its command, and the faults of its processes.

use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use goodput_env::gym::Layout;

use super::process::{Introduction, PolicyProcess, ProcessError};

/// Prefixes of the names of external programs.
pub const PREFIXES: [&str; 2] = ["proc:", "python:"];

/// Variable with the Python that runs `python:` policies; absent: `python3`.
const PYTHON: &str = "GOODPUT_PYTHON";

/// Module of the package `goodput-gym` that serves a class of Python.
const SERVER: &str = "goodput_gym.policy";

/// Time for one answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Time to start and to greet, which includes the imports of a program.
const START: Duration = Duration::from_secs(60);

/// Faults of the processes of one program, over all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Number of rounds that ended because the program failed or rested after a failure.
    pub turns: u64,
    /// Number of runs in which the program is not asked any more.
    pub abandoned: u64,
    /// Message of the last fault.
    pub last: Option<String>,
}

/// Program that decides rounds.
#[derive(Clone, Debug)]
pub struct ExternalProgram {
    name: String,
    command: Vec<String>,
    answer: Duration,
    faults: Arc<Mutex<Faults>>,
}

impl ExternalProgram {
    /// Program that users call `name`: `proc:COMMAND` with arguments after spaces, or `python:MODULE:CLASS`. `None` for
    /// a name of another kind, or without a command or class.
    pub fn by_name(name: &str) -> Option<Self> {
        let command: Vec<String> = match name.strip_prefix(PREFIXES[0]) {
            Some(command) => command.split_whitespace().map(str::to_owned).collect(),
            None => {
                let target = name.strip_prefix(PREFIXES[1])?;
                target.split_once(':').filter(|(module, class)| !module.is_empty() && !class.is_empty())?;
                let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
                vec![python, "-m".to_owned(), SERVER.to_owned(), target.to_owned()]
            }
        };
        let faults = Arc::default();
        (!command.is_empty()).then(|| Self { name: name.to_owned(), command, answer: ANSWER, faults })
    }

    /// Program with another time for one answer.
    #[must_use]
    pub fn answering_within(mut self, answer: Duration) -> Self {
        self.answer = answer;
        self
    }

    /// Name by which users call the program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Program and arguments.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Longest time for one answer.
    pub fn answer(&self) -> Duration {
        self.answer
    }

    /// Starts a process and exchanges greetings.
    ///
    /// # Errors
    /// [`ProcessError`] where the program cannot be started, or does not greet in time.
    pub(super) fn start(&self, greeting: &Introduction) -> Result<PolicyProcess, ProcessError> {
        PolicyProcess::start(&self.command, greeting, START)
    }

    /// Starts a process for observations of `layout` and ends it, so that a wrong command is found before any run.
    ///
    /// # Errors
    /// [`ProcessError`] where the program cannot be started, or does not greet in time.
    pub fn check(&self, layout: &Layout, types: &[String]) -> Result<(), ProcessError> {
        self.start(&Introduction::new(layout, types, 0)).map(drop)
    }

    /// Faults so far, over all runs.
    pub fn faults(&self) -> Faults {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the faults.
    pub(super) fn note(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.faults.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
