//! External program: its command, its limits of time, and the faults of its processes.

use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use goodput_env::gym::Layout;

use super::process::PolicyProcess;
use super::protocol::{Introduction, ProcessError};

/// Prefixes of the names of external programs.
pub const PREFIXES: [&str; 2] = ["proc:", "python:"];

/// Variable with the Python that runs `python:` policies; absent: `python3`.
const PYTHON: &str = "GOODPUT_PYTHON";

/// Package in Python that serves a class.
pub(super) const PACKAGE: &str = "goodput_gym";

/// Module of the package that serves a class.
const SERVER: &str = "goodput_gym.policy";

/// Time for one answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Time to start and to greet, which includes the imports of a program.
pub(super) const START: Duration = Duration::from_secs(60);

/// Faults of the processes of one program, over all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Number of rounds that ended because the program failed or rested after a failure.
    pub turns: u64,
    /// Number of rounds that ended because the process was still starting. Live rounds alone end so.
    pub starting: u64,
    /// Number of runs in which the program is not asked any more.
    pub abandoned: u64,
    /// Message of the last fault.
    pub last: Option<String>,
}

/// Program that decides rounds.
#[derive(Clone, Debug)]
pub struct ExternalProgram {
    name: String,
    kind: ProgramKind,
    command: Vec<String>,
    answer: Duration,
    turn: Option<Duration>,
    faults: Arc<Mutex<Faults>>,
}

/// Kind of an external program, as its name says.
#[derive(Clone, Debug)]
pub(super) enum ProgramKind {
    /// A command.
    Command,
    /// A class of Python in this module.
    Python(String),
}

impl ExternalProgram {
    /// Program that users call `name`: `proc:COMMAND` with arguments after spaces, or `python:MODULE:CLASS`. `None` for
    /// a name of another kind, or without a command or class.
    pub fn by_name(name: &str) -> Option<Self> {
        let (kind, command): (ProgramKind, Vec<String>) = match name.strip_prefix(PREFIXES[0]) {
            Some(command) => (ProgramKind::Command, command.split_whitespace().map(str::to_owned).collect()),
            None => {
                let target = name.strip_prefix(PREFIXES[1])?;
                let (module, class) = target.split_once(':')?;
                if module.is_empty() || class.is_empty() {
                    return None;
                }
                let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
                let command = vec![python, "-m".to_owned(), SERVER.to_owned(), target.to_owned()];
                (ProgramKind::Python(module.to_owned()), command)
            }
        };
        let (name, faults) = (name.to_owned(), Arc::default());
        (!command.is_empty()).then_some(Self { name, kind, command, answer: ANSWER, turn: None, faults })
    }

    /// Whether `name` has the form of an external program, right or wrong.
    pub fn is_meant_by(name: &str) -> bool {
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    }

    /// Program with another time for one answer.
    #[must_use]
    pub fn answering_within(mut self, answer: Duration) -> Self {
        self.answer = answer;
        self
    }

    /// Program that decides live: each of its rounds ends within `turn`, also while a process starts, and the program
    /// is never given up.
    #[must_use]
    pub fn deciding_within(mut self, turn: Duration) -> Self {
        self.turn = Some(turn);
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

    /// Kind of the program.
    pub(super) fn kind(&self) -> &ProgramKind {
        &self.kind
    }

    /// Longest time for one answer.
    pub fn answer(&self) -> Duration {
        self.answer
    }

    /// Longest time for one round; `None` where only answers have a limit.
    pub fn turn(&self) -> Option<Duration> {
        self.turn
    }

    /// Starts a process.
    ///
    /// # Errors
    /// [`ProcessError::Start`].
    pub(super) fn start(&self, greeting: &Introduction) -> Result<PolicyProcess, ProcessError> {
        PolicyProcess::start(&self.command, greeting)
    }

    /// Starts a process for observations of `layout` and ends it, so that a wrong program is found before any run.
    ///
    /// # Errors
    /// [`ProcessError`] where the program cannot be started, or does not greet in time.
    pub fn check(&self, layout: &Layout, types: &[String]) -> Result<(), ProcessError> {
        self.start(&Introduction::new(layout, types, 0))?.greet(START, START)
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
