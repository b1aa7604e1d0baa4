//! Process of an external program.

use std::io::BufReader;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::protocol::{Answer, Heard, Introduction, ProcessError, talk};

/// Time to end after the end of standard input.
const END: Duration = Duration::from_millis(500);

/// A running process, the leader of a process group of its own. Dropping it closes its input. Then the group is killed:
/// at once after a fault, and otherwise when the leader has ended or had the time to end.
#[derive(Debug)]
pub(super) struct PolicyProcess {
    child: Child,
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
            return Err(ProcessError::Ended);
        };
        let (requests, waiting) = channel();
        let (speak, answers) = channel();
        // The thread blocks on the pipes in place of the caller. It ends with the process or with the last request.
        thread::spawn(move || talk(input, BufReader::new(output), &line, &waiting, &speak));
        let began = Instant::now();
        Ok(Self { child, began, greeted: false, faulty: false, requests: Some(requests), answers })
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
            heard => self.understood(heard, limit)?,
        };
        self.greeted = true;
        Ok(())
    }

    /// Asks for an action.
    pub fn ask(&mut self, observation: &[f32], mask: &[u8], limit: Duration) -> Result<Answer, ProcessError> {
        let mut request = Vec::with_capacity(1 + 4 * observation.len() + mask.len());
        request.push(b'd');
        request.extend(observation.iter().flat_map(|feature| feature.to_le_bytes()));
        request.extend(mask);
        let requests = self.requests.as_ref().ok_or(ProcessError::Ended)?;
        requests.send(request).map_err(|_| ProcessError::Ended)?;
        let heard = self.answers.recv_timeout(limit);
        match self.understood(heard, limit)? {
            Heard::Answered(answer) => Ok(answer),
            Heard::Greeted => Err(ProcessError::Ended),
        }
    }

    /// What the process has said within `limit`.
    fn understood(
        &mut self,
        heard: Result<Result<Heard, ProcessError>, RecvTimeoutError>,
        limit: Duration,
    ) -> Result<Heard, ProcessError> {
        let heard = heard.unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(ProcessError::Late(limit)),
            RecvTimeoutError::Disconnected => Err(ProcessError::Ended),
        });
        self.faulty |= heard.is_err();
        heard
    }
}

impl Drop for PolicyProcess {
    fn drop(&mut self) {
        self.requests = None;
        let pause = Duration::from_millis(5);
        let leader = Pid::from_child(&self.child);
        // The leader is not reaped before the kill, so that the number of its group is no other's.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let mut left = if self.faulty { Duration::ZERO } else { END };
        while !left.is_zero() && matches!(waitid(WaitId::Pid(leader), look), Ok(None)) {
            thread::sleep(pause);
            left = left.saturating_sub(pause);
        }
        // It fails where the whole group has ended, as it should have.
        let _ = kill_process_group(leader, Signal::KILL);
        let _ = self.child.wait();
    }
}
