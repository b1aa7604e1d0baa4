//! Process of an external program, and the protocol over its standard input and output.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use goodput_env::gym::Layout;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of the protocol.
const PROTOCOL: u32 = 1;

/// Longest line of a program's greeting, bytes.
const LONGEST_GREETING: u64 = 1 << 16;

/// Time to end after the end of standard input.
const END: Duration = Duration::from_millis(500);

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
    /// The process has not answered in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// The process has ended, or has closed its output.
    #[error("the process has ended")]
    Ended,
    /// The mask forbids the action.
    #[error("action {0} is forbidden by the mask")]
    Forbidden(usize),
    /// The first line of the process is no greeting.
    #[error("the first line is {0:?}, expected {{\"protocol\": {PROTOCOL}}}")]
    Greeting(String),
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
#[derive(Deserialize)]
struct Reply {
    protocol: u32,
}

/// Message of the thread that talks to the process.
enum Heard {
    Greeting(String),
    Action(u32),
}

/// A running process, the leader of a process group of its own. Dropping it closes its input. Then the group is killed:
/// at once where an answer was late, and otherwise when the leader has ended or had the time to end.
#[derive(Debug)]
pub(super) struct PolicyProcess {
    child: Child,
    late: bool,
    requests: Option<Sender<Vec<u8>>>,
    answers: Receiver<io::Result<Heard>>,
}

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Greeting(line) => write!(f, "greeting {line:?}"),
            Self::Action(action) => write!(f, "action {action}"),
        }
    }
}

impl PolicyProcess {
    /// Starts `command` and exchanges greetings within `limit`.
    pub fn start(command: &[String], greeting: &Introduction, limit: Duration) -> Result<Self, ProcessError> {
        let program = command.first().cloned().unwrap_or_default();
        let failed = |error| ProcessError::Start { program: program.clone(), error };
        let mut command_line = Command::new(&program);
        command_line.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command_line.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ProcessError::Ended);
        };
        let mut line = serde_json::to_vec(greeting).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        let (requests, waiting) = channel();
        let (speak, answers) = channel();
        // The thread blocks on the pipes in place of the caller. It ends with the process or with the last request.
        thread::spawn(move || talk(input, BufReader::new(output), &line, &waiting, &speak));
        let mut process = Self { child, late: false, requests: Some(requests), answers };
        match process.hear(limit)? {
            Heard::Greeting(line) => match serde_json::from_str(&line) {
                Ok(Reply { protocol: PROTOCOL }) => Ok(process),
                _ => Err(ProcessError::Greeting(line.trim_end().to_owned())),
            },
            Heard::Action(_) => Err(ProcessError::Ended),
        }
    }

    /// Asks for an action.
    pub fn ask(&mut self, observation: &[f32], mask: &[u8], limit: Duration) -> Result<usize, ProcessError> {
        let mut request = Vec::with_capacity(1 + 4 * observation.len() + mask.len());
        request.push(b'd');
        request.extend(observation.iter().flat_map(|feature| feature.to_le_bytes()));
        request.extend(mask);
        let requests = self.requests.as_ref().ok_or(ProcessError::Ended)?;
        requests.send(request).map_err(|_| ProcessError::Ended)?;
        match self.hear(limit)? {
            Heard::Action(action) => Ok(action as usize),
            Heard::Greeting(_) => Err(ProcessError::Ended),
        }
    }

    fn hear(&mut self, limit: Duration) -> Result<Heard, ProcessError> {
        match self.answers.recv_timeout(limit) {
            Ok(Ok(heard)) => Ok(heard),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(ProcessError::Ended),
            Err(RecvTimeoutError::Timeout) => {
                self.late = true;
                Err(ProcessError::Late(limit))
            }
        }
    }
}

impl Drop for PolicyProcess {
    fn drop(&mut self) {
        self.requests = None;
        let pause = Duration::from_millis(5);
        let leader = Pid::from_child(&self.child);
        // The leader is not reaped before the kill, so that the number of its group is no other's.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let mut left = if self.late { Duration::ZERO } else { END };
        while !left.is_zero() && matches!(waitid(WaitId::Pid(leader), look), Ok(None)) {
            thread::sleep(pause);
            left = left.saturating_sub(pause);
        }
        // It fails where the whole group has ended, as it should have.
        let _ = kill_process_group(leader, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Talks to a process until it ends or no more requests come.
fn talk(
    mut input: ChildStdin,
    mut output: BufReader<ChildStdout>,
    greeting: &[u8],
    requests: &Receiver<Vec<u8>>,
    speak: &Sender<io::Result<Heard>>,
) {
    let mut say = |bytes: &[u8]| input.write_all(bytes).and_then(|()| input.flush());
    let greeted = say(greeting).and_then(|()| {
        let mut line = String::new();
        let read = output.by_ref().take(LONGEST_GREETING).read_line(&mut line)?;
        if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(Heard::Greeting(line)) }
    });
    let mut goes_on = greeted.is_ok() && speak.send(greeted).is_ok();
    while goes_on && let Ok(request) = requests.recv() {
        let heard = say(&request).and_then(|()| {
            let mut action = [0; 4];
            output.read_exact(&mut action).map(|()| Heard::Action(u32::from_le_bytes(action)))
        });
        goes_on = heard.is_ok();
        goes_on &= speak.send(heard).is_ok();
    }
}
