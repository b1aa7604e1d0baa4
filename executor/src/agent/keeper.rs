//! The keeper of one attempt: parent to everything it starts, and alive when the agent is not.
//!
//! It adopts whatever the job leaves behind (`PR_SET_CHILD_SUBREAPER`), so leaving the process
//! group is no way out. It kills all of it when the job has ended, when the grace period is over,
//! or when the node's lease has run out and the agent said that jobs die then. It writes how the
//! job ended only when nothing of it is left.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{WaitOptions, WaitStatus, set_child_subreaper};
use serde::{Deserialize, Serialize};

use super::cgroup::ControlGroup;
use super::clock::boot_ms;
use super::process::{ProcessId, descendants, kill};
use super::spool::{self, CAUSE, EXIT, ORDER, OUTPUT, PROCESSES, STOP};
use crate::job::{EndCause, Exit};
use crate::private;

/// Interval at which deadlines are checked.
const LOOK: Duration = Duration::from_millis(100);

/// Order to a keeper: the program to run, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperOrder {
    /// Program and arguments.
    pub command: Vec<String>,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
    /// Working directory of the program.
    pub cwd: PathBuf,
    /// Folder of the node's lease, where jobs die with it.
    pub lease: Option<PathBuf>,
    /// Control group of the job, where the node has them.
    #[serde(default)]
    pub group: Option<ControlGroup>,
}

/// Keeper and job, as processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processes {
    /// Process of the keeper.
    pub keeper: ProcessId,
    /// The job, which leads a process group; `None`: not started yet.
    pub job: Option<ProcessId>,
}

/// Time at which everything is killed, on the machine's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// Milliseconds since the machine started.
    pub kill_at_boot_ms: i64,
}

/// Name of the file, in the folder of the lease, that says when jobs die without renewal.
pub const LEASE_DEADLINE: &str = "kill_at.json";

/// Runs the job described in `folder` and returns when nothing of it is left.
///
/// # Errors
/// The folder cannot be read or written. Then nothing is left running either.
pub fn keep(folder: &Path) -> io::Result<()> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no {ORDER} in {}", folder.display()));
    let order: KeeperOrder = spool::read(folder, ORDER).ok_or_else(missing)?;
    // An agent that gave up waiting has made the claim, and nothing may start any more.
    if !spool::claim(folder)? {
        return Ok(());
    }
    // Any process number switches this on.
    set_child_subreaper(rustix::process::Pid::from_raw(1))?;
    let keeper = ProcessId::of(std::process::id()).ok_or_else(|| io::Error::other("/proc is not there"))?;
    // The keeper is on record before the job starts, so that a new agent can find it.
    spool::write(folder, PROCESSES, &Processes { keeper, job: None })?;
    let started = match &order.group {
        Some(group) => group.start_in(|| spawn(folder, &order)),
        None => Ok(spawn(folder, &order)),
    };
    let pid = match started {
        Ok(Ok(pid)) => pid,
        // The node failed, and not the job.
        Err(error) => {
            note(folder, &format!("the control group of the attempt cannot be entered: {error}\n"));
            return spool::write(folder, EXIT, &Exit::Unseen);
        }
        Ok(Err(error)) => {
            // As shells say it: 127 not found, 126 found and not to be run.
            let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            note(folder, &format!("{}: {error}\n", order.command.first().map_or("", String::as_str)));
            return spool::write(folder, EXIT, &Exit::Code(code));
        }
    };
    let children = wait_for_all();
    let written = spool::write(folder, PROCESSES, &Processes { keeper, job: ProcessId::of(pid) });
    // A job that could not be put on record is ended at once: no order could stop it later.
    let exit = watch(folder, &order, pid, &children, written.is_err());
    spool::write(folder, EXIT, &exit)
}

fn spawn(folder: &Path, order: &KeeperOrder) -> io::Result<u32> {
    let output = private::options().create(true).append(true).open(folder.join(OUTPUT))?;
    let (program, arguments) =
        order.command.split_first().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "empty command"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&order.env).current_dir(&order.cwd).process_group(0);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    command.spawn().map(|child| child.id())
}

/// Waits for children, own and adopted, on a thread; the channel closes when there is none left.
fn wait_for_all() -> Receiver<(u32, WaitStatus)> {
    let (ended, children) = mpsc::channel();
    thread::spawn(move || {
        loop {
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => {
                    if ended.send((pid.as_raw_nonzero().get() as u32, status)).is_err() {
                        return;
                    }
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    });
    children
}

fn watch(folder: &Path, order: &KeeperOrder, job: u32, children: &Receiver<(u32, WaitStatus)>, mut over: bool) -> Exit {
    let mut exit = Exit::Unseen;
    loop {
        match children.recv_timeout(LOOK) {
            Ok((pid, status)) if pid == job => {
                exit = how(status);
                over = true;
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) if over => {}
            Err(RecvTimeoutError::Timeout) if passed(folder, STOP) => over = true,
            Err(RecvTimeoutError::Timeout) if lease_passed(order) => {
                // The network failed, not the job. Without the file it counts as the job's failure;
                // with the job left alive it would run twice.
                let _ = spool::write(folder, CAUSE, &EndCause { stopping: false, fault: true });
                over = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return exit,
        }
        if over {
            if let Some(group) = &order.group {
                group.kill();
            }
            // Processes may start others while they are killed, so this goes on until none is left.
            for pid in descendants(std::process::id()) {
                kill(pid);
            }
        }
    }
}

fn how(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unseen,
    }
}

fn passed(folder: &Path, name: &str) -> bool {
    spool::read::<Deadline>(folder, name).is_some_and(|deadline| boot_ms() >= deadline.kill_at_boot_ms)
}

fn lease_passed(order: &KeeperOrder) -> bool {
    order.lease.as_ref().is_some_and(|folder| passed(folder, LEASE_DEADLINE))
}

/// A line where the user looks.
fn note(folder: &Path, text: &str) {
    let file = private::options().create(true).append(true).open(folder.join(OUTPUT));
    if let Ok(mut file) = file {
        // The exit code says the same.
        let _ = io::Write::write_all(&mut file, text.as_bytes());
    }
}
