//! Process of an external program.

use std::io::{self, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};

use super::protocol::{Heard, Introduction, ProcessEnd, ProcessError, ProgramAnswer, talk};

/// Time to end after the end of standard input.
const END: Duration = Duration::from_millis(500);

/// Time to end for a process that has closed its output.
const CLOSED: Duration = Duration::from_millis(200);

/// Script of the watch: it waits for the end of its input, and kills the process group in its argument. The input ends
/// with this process, however that ends.
const WATCH: &str = "read -r end; kill -s KILL -- \"-$1\"";

/// A running process, the leader of a process group of its own. Dropping it closes its input. Then the group is killed:
/// at once after a fault, and otherwise when the leader has ended or had the time to end. The group does not outlive
/// this process either: a watch kills it then.
#[derive(Debug)]
pub(super) struct PolicyProcess {
    child: Child,
    /// `None` where there is no shell for it.
    watch: Option<Child>,
    began: Instant,
    greeted: bool,
    faulty: bool,
    requests: Option<Sender<Vec<u8>>>,
    answers: Receiver<Result<Heard, ProcessError>>,
}

impl PolicyProcess {
    /// Starts `command` and sends it the greeting.
    pub fn start(command: &[String], greeting: &Introduction) -> Result<Self, ProcessError> {
        let program = command.first().cloned().unwrap_or_default();
        let failed = |error| ProcessError::Start { program: program.clone(), error };
        let mut command_line = Command::new(&program);
        command_line.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut line = serde_json::to_vec(greeting).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        let mut child = command_line.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ProcessError::Closed);
        };
        let (requests, waiting) = channel();
        let (speak, answers) = channel();
        // The thread blocks on the pipes in place of the caller. It ends with the process or with the last request.
        thread::spawn(move || talk(input, BufReader::new(output), &line, &waiting, &speak));
        let began = Instant::now();
        let watch = watch(&child).ok();
        Ok(Self { child, watch, began, greeted: false, faulty: false, requests: Some(requests), answers })
    }

    /// Waits for the greeting, which may come until `limit` after the start; but no longer than `patience`.
    ///
    /// # Errors
    /// [`ProcessError::Starting`] where the greeting may still come.
    pub fn greet(&mut self, limit: Duration, patience: Duration) -> Result<(), ProcessError> {
        if self.greeted {
            return Ok(());
        }
        let left = limit.saturating_sub(self.began.elapsed());
        match self.answers.recv_timeout(left.min(patience)) {
            Err(RecvTimeoutError::Timeout) if patience < left => return Err(ProcessError::Starting),
            heard => self.checked(heard, limit, self.began + limit)?,
        };
        self.greeted = true;
        Ok(())
    }

    /// Asks for an action.
    pub fn ask(&mut self, observation: &[f32], mask: &[u8], limit: Duration) -> Result<ProgramAnswer, ProcessError> {
        let mut request = Vec::with_capacity(1 + 4 * observation.len() + mask.len());
        request.push(b'd');
        request.extend(observation.iter().flat_map(|feature| feature.to_le_bytes()));
        request.extend(mask);
        let requests = self.requests.as_ref().ok_or(ProcessError::Closed)?;
        requests.send(request).map_err(|_| ProcessError::Closed)?;
        let until = Instant::now() + limit;
        let heard = self.answers.recv_timeout(limit);
        match self.checked(heard, limit, until)? {
            Heard::Answered(answer) => Ok(answer),
            Heard::Greeted => Err(ProcessError::Closed),
        }
    }

    /// Message of the process that came within `limit`, which is over at `until`, or the fault.
    fn checked(
        &mut self,
        heard: Result<Result<Heard, ProcessError>, RecvTimeoutError>,
        limit: Duration,
        until: Instant,
    ) -> Result<Heard, ProcessError> {
        let heard = heard.unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(ProcessError::Late(limit)),
            RecvTimeoutError::Disconnected => Err(ProcessError::Closed),
        });
        self.faulty |= heard.is_err();
        heard.map_err(|error| match error {
            // A process that has closed its output is about to end.
            ProcessError::Closed => self.end(until.min(Instant::now() + CLOSED)).map_or(error, ProcessError::Ended),
            _ => error,
        })
    }

    /// The way in which the process ended, where it ends before `until`.
    fn end(&self, until: Instant) -> Option<ProcessEnd> {
        let status = self.exited(until)?;
        let signal = status.terminating_signal().map(ProcessEnd::Signal);
        signal.or_else(|| status.exit_status().map(ProcessEnd::Status))
    }

    /// Status of the leader, where it ends before `until`. The leader is not reaped, so that the number of its group is
    /// no other's.
    fn exited(&self, until: Instant) -> Option<WaitIdStatus> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while Instant::now() < until {
            match waitid(WaitId::Pid(Pid::from_child(&self.child)), look) {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                found => return found.ok().flatten(),
            }
        }
        None
    }
}

impl Drop for PolicyProcess {
    fn drop(&mut self) {
        self.requests = None;
        if !self.faulty {
            self.exited(Instant::now() + END);
        }
        // The watch ends before the number of the group is free again.
        if let Some(watch) = &mut self.watch {
            let _ = watch.kill();
            let _ = watch.wait();
        }
        // It fails where the whole group has ended, as it should have.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Starts the watch of a process group.
fn watch(leader: &Child) -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", WATCH, "sh", &leader.id().to_string()]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
