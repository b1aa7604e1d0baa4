//! Protocol that a program speaks over its standard input and output.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use goodput_env::gym::Layout;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of the protocol.
const PROTOCOL: u32 = 1;

/// Longest line of a program's greeting, bytes.
const LONGEST_GREETING: u64 = 1 << 16;

/// Longest reason of an action, bytes.
const LONGEST_REASON: u32 = 4096;

/// Error of a process.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// The program cannot be started.
    #[error("cannot start {program}: {error}")]
    Start {
        /// Program that was to be started.
        program: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The process has not greeted, and still has time to do so.
    #[error("the process is still starting")]
    Starting,
    /// The process has not greeted or answered in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// The answers of a live round have not all come in time.
    #[error("the round took longer than {} s", .0.as_secs_f64())]
    Slow(Duration),
    /// The process has closed its input or its output.
    #[error("the process has closed its input or its output")]
    Closed,
    /// The process has ended.
    #[error("the process has ended {0}; its standard error may say why")]
    Ended(ProcessEnd),
    /// The mask forbids the action.
    #[error("action {0} is forbidden by the mask")]
    Forbidden(usize),
    /// The first line of the process is no greeting.
    #[error("the first line is {0:?}, expected {{\"protocol\": {PROTOCOL}}}")]
    Greeting(String),
    /// The reason of an action is too long.
    #[error("a reason of {0} bytes, expected at most {LONGEST_REASON}")]
    Reason(u32),
}

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// The process left with this exit status.
    Status(i32),
    /// The signal of this number ended the process.
    Signal(i32),
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "with exit status {status}"),
            Self::Signal(signal) => write!(f, "by signal {signal}"),
        }
    }
}

/// First line to a program: the shapes and the meaning of what follows.
#[derive(Clone, Debug, Serialize)]
pub struct Introduction {
    /// Version of the protocol.
    pub protocol: u32,
    /// Numbers of an observation.
    pub obs_dim: usize,
    /// Number of actions.
    pub actions: usize,
    /// Job slots of an observation.
    pub slots: usize,
    /// Features of a job slot.
    pub slot_features: usize,
    /// Features after the slots.
    pub globals: usize,
    /// Actions of a job slot.
    pub verbs: usize,
    /// Hash of the meaning of all numbers.
    pub schema: String,
    /// Seed of the run, for programs that draw.
    pub seed: u64,
    /// Names of the numbers of an observation.
    pub features: Vec<String>,
    /// Names of the actions.
    pub action_names: Vec<String>,
}

impl Introduction {
    /// Introduction to observations of `layout` in the run of `seed`. `types` names the distinguished accelerator
    /// types.
    pub fn new(layout: &Layout, types: &[String], seed: u64) -> Self {
        Self {
            protocol: PROTOCOL,
            obs_dim: layout.obs_dim(),
            actions: layout.actions(),
            slots: layout.slots,
            slot_features: layout.slot_features,
            globals: layout.globals,
            verbs: layout.verbs,
            schema: layout.schema_hash(),
            seed,
            features: layout.features(types).into_iter().map(|feature| feature.name).collect(),
            action_names: layout.action_names(types),
        }
    }
}

/// First line from a program.
#[derive(Clone, Copy, Deserialize)]
struct Reply {
    protocol: u32,
    /// Whether a reason follows each action.
    #[serde(default)]
    reasons: bool,
}

/// Action that a process has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramAnswer {
    pub action: usize,
    /// Reason of the action in the program's words; empty where the program gives none.
    pub reason: String,
}

/// Message of the thread that talks to the process.
#[derive(Debug)]
pub(super) enum Heard {
    Greeted,
    Answered(ProgramAnswer),
}

/// Talks to a process until it ends, makes a mistake, or no more requests come.
pub(super) fn talk(
    mut input: ChildStdin,
    mut output: BufReader<ChildStdout>,
    greeting: &[u8],
    requests: &Receiver<Vec<u8>>,
    speak: &Sender<Result<Heard, ProcessError>>,
) {
    let reply = match greeted(&mut input, &mut output, greeting) {
        Ok(reply) => reply,
        Err(error) => {
            // The receiver is gone where the process was given up.
            let _ = speak.send(Err(error));
            return;
        }
    };
    let mut goes_on = speak.send(Ok(Heard::Greeted)).is_ok();
    while goes_on && let Ok(request) = requests.recv() {
        let heard = say(&mut input, &request).and_then(|()| answer(&mut output, reply)).map(Heard::Answered);
        goes_on = heard.is_ok();
        goes_on &= speak.send(heard).is_ok();
    }
}

fn say(input: &mut ChildStdin, bytes: &[u8]) -> Result<(), ProcessError> {
    input.write_all(bytes).and_then(|()| input.flush()).map_err(|_| ProcessError::Closed)
}

/// Sends the greeting and reads the reply of the program.
fn greeted(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
    greeting: &[u8],
) -> Result<Reply, ProcessError> {
    say(input, greeting)?;
    let mut line = String::new();
    let wrong = |line: &str| ProcessError::Greeting(line.trim_end().to_owned());
    match output.by_ref().take(LONGEST_GREETING).read_line(&mut line) {
        Ok(0) => Err(ProcessError::Closed),
        Ok(_) => match serde_json::from_str(&line) {
            Ok(reply @ Reply { protocol: PROTOCOL, .. }) => Ok(reply),
            _ => Err(wrong(&line)),
        },
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(wrong("no UTF-8")),
        Err(_) => Err(ProcessError::Closed),
    }
}

/// Reads an action, and its reason where the program gives reasons.
fn answer(output: &mut BufReader<ChildStdout>, reply: Reply) -> Result<ProgramAnswer, ProcessError> {
    let mut number = || {
        let mut bytes = [0; 4];
        output.read_exact(&mut bytes).map(|()| u32::from_le_bytes(bytes)).map_err(|_| ProcessError::Closed)
    };
    let action = number()? as usize;
    let length = if reply.reasons { number()? } else { 0 };
    if length > LONGEST_REASON {
        return Err(ProcessError::Reason(length));
    }
    let mut reason = vec![0; length as usize];
    output.read_exact(&mut reason).map_err(|_| ProcessError::Closed)?;
    Ok(ProgramAnswer { action, reason: String::from_utf8_lossy(&reason).into_owned() })
}
