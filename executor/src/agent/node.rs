//! The agent itself: attempts and accelerators of one node.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_configs::live::node_agent::NodeAgentConfig;
use rustix::process::Signal;
use tokio::time::sleep;

use super::api::{AttemptStatus, Done, LeaderLease, ReportPage, Start, Stop, StoredReport, TellMembers, Term};
use super::attempt::{LaunchRecord, LocalAttempt};
use super::cgroup::{ControlGroup, Hierarchy};
use super::clock::{boot_ms, unix_ms};
use super::disk::DiskWatch;
use super::error::AgentError;
use super::keeper::{Deadline, KeeperOrder, Processes};
use super::lease::LeaseBook;
use super::mps;
use super::process::{ProcessId, kill, processes_with_token};
use super::record::{self, RecordError};
use super::spool::{self, CAUSE, EXIT, LAUNCH, MEMBERS, ORDER, PROCESSES, STOP};
use crate::devices::Telemetry;
use crate::job::contract::Surroundings;
use crate::job::{EndCause, Exit, GrantIsolation, Launch, NodeLimits};
use crate::private;

/// Reports kept for the daemon to fetch.
const REPORTS: usize = 10_000;

/// Longest time that a keeper may take to begin.
const BEGIN: Duration = Duration::from_secs(2);

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Folder of an attempt that is not to use the node's MPS: it is empty, unless the job starts a control daemon itself.
const OWN_PIPES: &str = "mps";

/// The variables of the agent that jobs inherit. All else that a job needs, its user asks for.
const INHERITED: [&str; 5] = ["PATH", "HOME", "USER", "LANG", "TZ"];

/// The agent of one node.
pub struct Agent {
    pub(super) config: NodeAgentConfig,
    pub(super) telemetry: Telemetry,
    pub(super) since_ms: i64,
    /// Whether the disk of the node takes writes.
    pub(super) disk: DiskWatch,
    /// Records of an earlier agent that cannot be used, with a remedy each.
    pub(super) damaged: Vec<String>,
    /// Starts are looked at one at a time, so that two do not find the same accelerator free.
    pub(super) starting: tokio::sync::Mutex<()>,
    /// Control groups of attempts, or in words why there are none.
    pub(super) hierarchy: Result<Hierarchy, String>,
    job_url: String,
    inner: Mutex<NodeState>,
}

pub(super) struct NodeState {
    pub lease: LeaseBook,
    pub attempts: BTreeMap<String, LocalAttempt>,
    reports: VecDeque<StoredReport>,
    /// Number of the next report; starts with the time, so that it grows over restarts.
    next: u64,
}

impl Agent {
    /// With what an earlier agent left behind; `job_url` is where jobs reach it by HTTP.
    ///
    /// # Errors
    /// A later agent wrote a record, or it cannot be told which term was seen last.
    pub(super) fn new(config: NodeAgentConfig, telemetry: Telemetry, job_url: String) -> Result<Self, AgentError> {
        let lease = LeaseBook::open(config.state_dir.clone(), config.fencing)?;
        let (mut attempts, mut damaged) = (BTreeMap::new(), Vec::new());
        for folder in spool::folders(&config.state_dir.join("attempts")) {
            match LocalAttempt::load(folder) {
                Ok(found) => attempts.extend(found.map(|attempt| (attempt.record.launch.id(), attempt))),
                Err(newer @ RecordError::Newer { .. }) => return Err(newer.into()),
                // Its processes may run, so the node is given nothing more until a person has looked.
                Err(fault) => damaged.push(format!("{fault}; then start the agent again")),
            }
        }
        let since_ms = unix_ms();
        let disk = DiskWatch::new(config.state_dir.clone());
        let inner = NodeState { lease, attempts, reports: VecDeque::new(), next: since_ms as u64 };
        let hierarchy = Hierarchy::find();
        match &hierarchy {
            Ok(hierarchy) if hierarchy.keeps_limits() => {}
            Ok(_) => {
                tracing::info!("limits on processors and memory are not kept: see Control groups in the documents")
            }
            Err(why) => tracing::warn!(%why, "jobs have no control groups: one that hides outlives its keeper"),
        }
        let (starting, inner) = (tokio::sync::Mutex::new(()), Mutex::new(inner));
        Ok(Self { config, telemetry, since_ms, disk, damaged, starting, hierarchy, job_url, inner })
    }

    /// Whether attempts are kept to the processors and the memory that they were given.
    pub(super) fn keeps_limits(&self) -> bool {
        self.hierarchy.as_ref().is_ok_and(Hierarchy::keeps_limits)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows what still runs. All of an earlier agent's attempts are accounted for when this
    /// returns.
    pub(super) async fn adopt(self: &Arc<Self>) {
        let running: Vec<String> = self
            .lock()
            .attempts
            .iter()
            .filter(|(_, attempt)| attempt.ended.is_none())
            .map(|(id, _)| id.clone())
            .collect();
        for id in running {
            match self.keeper_of(&id).await {
                Some(keeper) => self.follow(id, keeper, None),
                None => self.finish(&id).await,
            }
        }
    }

    /// The keeper of an attempt, if it lives; waits a little for one that is just starting.
    async fn keeper_of(&self, id: &str) -> Option<ProcessId> {
        let given_up = tokio::time::Instant::now() + BEGIN;
        loop {
            let (keeper, folder) = {
                let mut inner = self.lock();
                let attempt = inner.attempts.get_mut(id)?;
                attempt.refresh();
                (attempt.processes.map(|processes| processes.keeper), attempt.folder.clone())
            };
            match keeper {
                Some(keeper) => return keeper.is_alive().then_some(keeper),
                // The keeper began and cannot be told: all that it started is found by the attempt's token.
                None if record::load::<Processes>(&folder.join(PROCESSES)).is_err() => return None,
                None if tokio::time::Instant::now() < given_up => sleep(LOOK_AGAIN).await,
                // From here on no keeper can begin.
                None if spool::claim(&folder).unwrap_or(true) => return None,
                None => sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// Renews the lease.
    ///
    /// # Errors
    /// The term is over, or the disk fails.
    pub fn renew(&self, lease: &LeaderLease) -> Result<Done, AgentError> {
        let mut inner = self.lock();
        let admitted = inner.lease.admit(lease.term, Some(&lease.leader));
        admitted.map_err(|error| self.disk.explain(error))?;
        let renewed = inner.lease.renew(lease.as_of_boot_ms).map_err(AgentError::io("renew the lease"));
        renewed.map_err(|error| self.disk.explain(error))?;
        Ok(Done { term: inner.lease.term() })
    }

    /// Starts an attempt, or says how it is if it was started before.
    ///
    /// # Errors
    /// The term is over; an accelerator is not there, not fit or not free; the program makes no
    /// sense; the disk fails.
    pub async fn start(self: &Arc<Self>, start: &Start) -> Result<AttemptStatus, AgentError> {
        let _one_at_a_time = self.starting.lock().await;
        let launch = &start.launch;
        let id = launch.id();
        {
            let mut inner = self.lock();
            inner.lease.admit(start.term, None)?;
            if let Some(attempt) = inner.attempts.get(&id) {
                let same = attempt.record.launch.fence == launch.fence;
                return if same { Ok(attempt.status()) } else { Err(AgentError::Taken(id)) };
            }
            if !inner.lease.is_good() {
                return Err(AgentError::NoLease);
            }
        }
        launch.program.check()?;
        // An attempt that goes beyond its limits would take from the others.
        if launch.limits != NodeLimits::default() && !self.keeps_limits() {
            return Err(AgentError::NoLimits);
        }
        if let Some(why) = self.disk.trouble() {
            return Err(AgentError::NoRoom(why));
        }
        self.check_grants(&launch.grants).await?;
        if start.void_boot_ms.is_some_and(|void| boot_ms() >= void) {
            return Err(AgentError::TooLate);
        }
        let record = LaunchRecord { launch: launch.clone(), started_ms: unix_ms() };
        let folder = self.config.state_dir.join("attempts").join(&id);
        let keeper = self.begin(&folder, &record);
        let keeper = keeper.map_err(|source| {
            // Nothing has begun; what is left of the folder would look like an attempt to the next agent.
            let _ = fs::remove_dir_all(&folder);
            self.disk.explain(AgentError::Io { action: format!("start {id}"), source })
        })?;
        let status = {
            let mut inner = self.lock();
            let attempt = inner.attempts.entry(id.clone()).or_insert(LocalAttempt::new(folder, record));
            attempt.status()
        };
        let found = ProcessId::of(keeper.id());
        match found {
            Some(process) => self.follow(id, process, Some(keeper)),
            None => self.finish(&id).await,
        }
        Ok(status)
    }

    fn begin(&self, folder: &PathBuf, record: &LaunchRecord) -> std::io::Result<Child> {
        let launch = &record.launch;
        let program = &launch.program;
        let of_job = || self.config.checkpoint_root.join(program.name.as_str());
        let checkpoint_dir = program.checkpoint_dir.clone().unwrap_or_else(of_job);
        private::folder(folder)?;
        private::folder(&folder.join(OWN_PIPES))?;
        fs::create_dir_all(&checkpoint_dir)?;
        spool::write(folder, LAUNCH, record)?;
        if let Some(member) = &launch.member {
            spool::write(folder, MEMBERS, &member.plan)?;
        }
        let order = KeeperOrder {
            command: program.command.clone(),
            env: self.environment(launch, folder, &checkpoint_dir),
            cwd: program.cwd.clone().unwrap_or(checkpoint_dir),
            lease: self.lock().lease.watched(),
            group: self
                .hierarchy
                .as_ref()
                .ok()
                .map(|hierarchy| hierarchy.make(self.config.node.as_str(), launch))
                .transpose()?,
        };
        spool::write(folder, ORDER, &order)?;
        let (keeper, arguments) =
            self.config.keeper.split_first().ok_or_else(|| std::io::Error::other("`keeper` is empty"))?;
        let mut command = Command::new(keeper);
        command.args(arguments).arg(folder).env_clear().current_dir("/");
        // In a group of its own the keeper gets no signals that are meant for the agent's group.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    fn environment(&self, launch: &Launch, folder: &Path, checkpoint_dir: &Path) -> BTreeMap<String, String> {
        let around = Surroundings {
            node: self.config.node.clone(),
            checkpoint_dir: checkpoint_dir.to_owned(),
            socket: self.socket_path(),
            members: folder.join(MEMBERS),
            url: self.job_url.clone(),
        };
        let inherited = INHERITED.iter().filter_map(|key| Some(((*key).to_owned(), std::env::var(key).ok()?)));
        let mut env: BTreeMap<String, String> = inherited.collect();
        env.extend(launch.environment(&around));
        let text = |path: &Path| path.to_string_lossy().into_owned();
        if launch.grants.iter().any(|grant| grant.isolation == GrantIsolation::Mps) {
            env.insert(mps::PIPES.to_owned(), text(&self.config.mps_pipes));
        } else {
            // A job that runs a control daemon of its own may name its pipes.
            env.entry(mps::PIPES.to_owned()).or_insert_with(|| text(&folder.join(OWN_PIPES)));
        }
        env
    }

    /// Socket on which jobs report.
    pub(super) fn socket_path(&self) -> PathBuf {
        self.config.state_dir.join("jobs.sock")
    }

    /// Waits for the end of a keeper, whether or not it is our child.
    fn follow(self: &Arc<Self>, id: String, keeper: ProcessId, child: Option<Child>) {
        let agent = Arc::clone(self);
        tokio::spawn(async move {
            let (gone, told) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || {
                keeper.wait();
                // The receiver is gone where the agent has ended.
                let _ = gone.send(());
            });
            let _ = told.await;
            if let Some(mut child) = child {
                // It is dead: this only takes it off the system's list.
                let _ = child.wait();
            }
            agent.finish(&id).await;
        });
    }

    /// The keeper is gone: either it said how the job ended, or it was killed, and then nothing of
    /// the job may stay.
    async fn finish(&self, id: &str) {
        let Some((folder, fence)) = ({
            let inner = self.lock();
            let attempt = inner.attempts.get(id);
            attempt.map(|attempt| (attempt.folder.clone(), attempt.record.launch.fence.clone()))
        }) else {
            return;
        };
        let exit: Option<Exit> = spool::read(&folder, EXIT);
        let group = group_of(&folder);
        let is_empty = || group.as_ref().is_none_or(ControlGroup::is_empty);
        if exit.is_none() || !is_empty() {
            // A process may start another while it is killed, so this goes on until none is found.
            loop {
                let left = processes_with_token(fence.as_str(), self.config.node.as_str());
                let none = left.is_empty() && is_empty();
                left.into_iter().for_each(kill);
                if none {
                    break;
                }
                group.iter().for_each(ControlGroup::kill);
                sleep(LOOK_AGAIN).await;
            }
        }
        if exit.is_none() {
            // If this cannot be written, the next agent comes to the same end by the same way.
            let _ = spool::write(&folder, EXIT, &Exit::Unseen);
        }
        group.iter().for_each(ControlGroup::remove);
        if let Some(attempt) = self.lock().attempts.get_mut(id) {
            attempt.end(exit.unwrap_or(Exit::Unseen));
        }
    }

    /// Tells an attempt to stop: SIGTERM now, SIGKILL when its grace is over.
    ///
    /// # Errors
    /// The term is over, there is no such attempt, or the disk fails.
    pub fn stop(&self, id: &str, stop: &Stop) -> Result<AttemptStatus, AgentError> {
        let mut inner = self.lock();
        inner.lease.admit(stop.term, None)?;
        let attempt = inner.attempts.get_mut(id).ok_or_else(|| AgentError::NoAttempt(id.to_owned()))?;
        // The plan comes before the signal: a member that leaves is told so first.
        if let Some(plan) = &stop.plan {
            attempt.tell(plan).map_err(AgentError::io(format!("write the plan of {id}")))?;
        }
        stop_attempt(attempt, stop.grace_ms)?;
        Ok(attempt.status())
    }

    /// Tells a member of an elastic attempt the plan for all members.
    ///
    /// # Errors
    /// The term is over, there is no such attempt, or the disk fails.
    pub fn tell_members(&self, id: &str, order: &TellMembers) -> Result<AttemptStatus, AgentError> {
        let mut inner = self.lock();
        inner.lease.admit(order.term, None)?;
        let attempt = inner.attempts.get_mut(id).ok_or_else(|| AgentError::NoAttempt(id.to_owned()))?;
        let told = attempt.tell(&order.plan).map_err(AgentError::io(format!("write the plan of {id}")));
        told.map_err(|error| self.disk.explain(error))?;
        Ok(attempt.status())
    }

    /// Asks an attempt to write a checkpoint and go on.
    ///
    /// # Errors
    /// The term is over, or there is no such attempt.
    pub fn checkpoint(&self, id: &str, order: Term) -> Result<AttemptStatus, AgentError> {
        let mut inner = self.lock();
        inner.lease.admit(order.term, None)?;
        let attempt = inner.attempts.get_mut(id).ok_or_else(|| AgentError::NoAttempt(id.to_owned()))?;
        attempt.refresh();
        if attempt.ended.is_some() {
            return Ok(attempt.status());
        }
        match attempt.processes.and_then(|processes| processes.job) {
            // Only the job itself: SIGUSR1 would end helpers that do not expect it.
            Some(job) if job.catches(Signal::USR1) => job.signal(Signal::USR1),
            Some(_) => return Err(AgentError::NoCheckpoint(id.to_owned())),
            // A job may report before its keeper has written down which process it is.
            None => return Err(AgentError::NotStarted(id.to_owned())),
        }
        Ok(attempt.status())
    }

    /// Forgets an attempt that has ended, once its end is recorded elsewhere.
    ///
    /// # Errors
    /// The term is over, it has not ended, or the disk fails. Forgetting what is not there is no
    /// error.
    pub fn forget(&self, id: &str, order: Term) -> Result<Done, AgentError> {
        let mut inner = self.lock();
        inner.lease.admit(order.term, None)?;
        let Some(attempt) = inner.attempts.get(id) else { return Ok(Done { term: inner.lease.term() }) };
        if attempt.ended.is_none() {
            return Err(AgentError::NotEnded(id.to_owned()));
        }
        spool::keep_output(&attempt.folder).map_err(AgentError::io(format!("keep what {id} printed")))?;
        // The group is still there where the keeper ended while no agent ran.
        group_of(&attempt.folder).iter().for_each(ControlGroup::remove);
        fs::remove_dir_all(&attempt.folder).map_err(AgentError::io(format!("forget {id}")))?;
        inner.attempts.remove(id);
        Ok(Done { term: inner.lease.term() })
    }

    /// Keeps a report for the daemon.
    pub(super) fn keep(inner: &mut NodeState, kept: StoredReport) {
        inner.reports.push_back(kept);
        inner.next += 1;
        if inner.reports.len() > REPORTS {
            inner.reports.pop_front();
        }
    }

    /// Reports kept from number `since` on.
    pub fn reports(&self, since: u64) -> ReportPage {
        let inner = self.lock();
        // Numbers are consecutive, so that of the oldest report follows from the next one.
        let first = inner.next - inner.reports.len() as u64;
        let skip = since.saturating_sub(first) as usize;
        ReportPage { next: inner.next, reports: inner.reports.iter().skip(skip).cloned().collect() }
    }
}

/// Control group of the attempt in `folder`.
fn group_of(folder: &Path) -> Option<ControlGroup> {
    spool::read::<KeeperOrder>(folder, ORDER).and_then(|order| order.group)
}

/// SIGTERM at the first call; later calls may only shorten the grace.
pub(super) fn stop_attempt(attempt: &mut LocalAttempt, grace_ms: Option<u64>) -> Result<(), AgentError> {
    if attempt.ended.is_some() {
        return Ok(());
    }
    let grace_ms = grace_ms.unwrap_or(u64::from(attempt.record.launch.program.grace_s) * 1000);
    let at = boot_ms().saturating_add(i64::try_from(grace_ms).unwrap_or(i64::MAX));
    let earlier = spool::read::<Deadline>(&attempt.folder, STOP).map_or(i64::MAX, |deadline| deadline.kill_at_boot_ms);
    // The order is on disk before the signal, or a new agent would take the end for a failure.
    if at < earlier {
        let written = spool::write(&attempt.folder, STOP, &Deadline { kill_at_boot_ms: at });
        written.map_err(AgentError::io("write down that the attempt is to stop"))?;
    }
    attempt.refresh();
    if !attempt.stopping {
        attempt.stopping = true;
        if let Some(job) = attempt.processes.and_then(|processes| processes.job) {
            job.signal_group(Signal::TERM);
        }
    }
    Ok(())
}

/// An accelerator of the attempt has failed: what comes of it is not the job's fault.
pub(super) fn blame_machine(attempt: &mut LocalAttempt) -> Result<(), AgentError> {
    attempt.fault = true;
    let cause = EndCause { stopping: false, fault: true };
    spool::write(&attempt.folder, CAUSE, &cause).map_err(AgentError::io("write down that an accelerator failed"))
}
