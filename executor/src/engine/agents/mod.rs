//! Machines without a manager: the engine drives the agents of their nodes.
//!
//! What is wanted is written down before any agent is told ([`store`]); what runs is what agents
//! say. A node that is not heard of is *suspect*: nothing starts there, and its jobs are neither
//! given up nor started elsewhere. Only where its agent said that jobs die without the daemon, and
//! its lease has run out for certain, are they started again ([`crate::agent::Fencing`]).

mod gang;
mod live;
mod nodes;
mod place;
pub mod store;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Capabilities, ClusterSnapshot, Engine, EngineAction, EngineError, JobPhase, JobSeen, Order, Receipt, SpeedReport,
    StepOutcome, Submission,
};
use crate::agent::api::Kept;
use crate::agent::tls::TlsFiles;
use crate::agent::{AgentError, unix_ms};
use crate::job::{JobName, SpeedMeasurement};
use live::LiveJob;
use nodes::AgentNodes;
use store::JobStore;

/// How the engine reaches its nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsSettings {
    /// Nodes in the order in which snapshots list them.
    pub nodes: Vec<NodeAddress>,
    /// The daemon's certificates.
    pub tls: TlsFiles,
    /// Folder for jobs; all daemons that may lead share it.
    pub folder: PathBuf,
    /// Name of this daemon, for people.
    #[serde(default = "leader")]
    pub leader: String,
    /// Silence after which a node is suspect, milliseconds.
    #[serde(default = "suspect_ms")]
    pub suspect_ms: u64,
    /// How long agents may count on this daemon after its last word, milliseconds; longer than any
    /// agent's `fencing`.
    #[serde(default = "lease_ms")]
    pub lease_ms: u64,
    /// How long a call may take, milliseconds.
    #[serde(default = "patience_ms")]
    pub patience_ms: u64,
}

/// Address of a node's agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAddress {
    /// Name of the node, as in its certificate.
    pub name: JobName,
    /// Address on which its agent listens.
    pub address: SocketAddr,
}

fn leader() -> String {
    "daemon".to_owned()
}
const fn suspect_ms() -> u64 {
    10_000
}
const fn lease_ms() -> u64 {
    30_000
}
const fn patience_ms() -> u64 {
    3000
}

/// The agents of a cluster.
pub struct AgentsEngine {
    settings: AgentsSettings,
    nodes: AgentNodes,
    store: JobStore,
    jobs: BTreeMap<String, LiveJob>,
    /// Of this daemon's leadership; `None`: another leads, and this one only looks.
    term: Option<u64>,
    version: u64,
}

/// How long jobs that ended stay in snapshots, milliseconds.
const SHOWN_MS: i64 = 60_000;

impl AgentsEngine {
    /// With the jobs of its folder.
    ///
    /// # Errors
    /// The folder or the certificates cannot be used.
    pub fn open(settings: AgentsSettings) -> Result<Self, AgentError> {
        let nodes = AgentNodes::new(&settings)?;
        let store = JobStore::open(settings.folder.clone())?;
        let jobs = store.load();
        Ok(Self { settings, nodes, store, jobs, term: None, version: 0 })
    }

    /// Speed that a report tells, on the accelerators of the attempt that runs: those of earlier
    /// attempts are not known any more.
    fn said(&self, kept: &Kept) -> Option<SpeedReport> {
        let current = self.jobs.get(kept.job.as_str())?.current.as_ref()?;
        let on = current.placement.first().filter(|_| current.number == kept.report.attempt)?;
        let accelerator = self.nodes.kind(&on.node, on.accelerators.first()?)?;
        let measured = SpeedMeasurement::of(&kept.report, kept.nodes, kept.world)?;
        Some(SpeedReport { job: kept.job.to_string(), accelerator, measured })
    }

    /// Asks all nodes, and where this daemon leads brings each job a step on. Returns what jobs
    /// said meanwhile.
    async fn look(&mut self) -> Result<Vec<SpeedReport>, EngineError> {
        if self.term.is_none() {
            // Another daemon may have changed them.
            self.jobs = self.store.load();
        }
        let (heard, reports) = self.nodes.look(self.term, &self.settings).await;
        let said = reports.iter().filter_map(|kept| self.said(kept)).collect();
        if !heard.obeyed {
            self.term = None;
        }
        let Some(term) = self.term else { return Ok(said) };
        let now_ms = unix_ms();
        for job in self.jobs.values_mut() {
            let before = job.clone();
            gang::advance(job, &self.nodes, now_ms);
            if *job != before {
                // Written down before agents forget what it is based on.
                self.store.save(job).map_err(full)?;
            }
        }
        let waiting: Vec<LiveJob> = self.jobs.values().filter(|job| job.current.is_some()).cloned().collect();
        for job in waiting {
            self.nodes.start_missing(&job, term).await;
        }
        self.nodes.tidy(&self.jobs, term).await;
        Ok(said)
    }

    async fn step(&mut self, order: &Order, term: u64) -> Result<StepOutcome, EngineError> {
        let refused = |reason: &str| Ok(StepOutcome::Refused { reason: reason.to_owned() });
        match &order.action {
            EngineAction::Drain { node, reason } => return self.drain(node, Some(reason.clone())),
            EngineAction::Undrain { node } => return self.drain(node, None),
            EngineAction::Lend { .. }
            | EngineAction::Return { .. }
            | EngineAction::Scale { .. }
            | EngineAction::Suspend
            | EngineAction::Resume => {
                return refused("agents cannot do that");
            }
            _ => {}
        }
        let Some(job) = self.jobs.get(&order.job) else { return refused("there is no such job") };
        let mut job = job.clone();
        let running = job.current.is_some();
        let due = job.starts == order.starts;
        match &order.action {
            EngineAction::Cancel { grace_s } => {
                job.cancelled = true;
                self.keep(job.clone())?;
                if running { self.leave(job, *grace_s, term).await } else { self.close(job) }
            }
            _ if !due && running => Ok(StepOutcome::Accepted),
            _ if !due => refused("the order is for another attempt"),
            EngineAction::Stop { grace_s }
            | EngineAction::Resize { grace_s, .. }
            | EngineAction::Migrate { grace_s, .. }
                if running =>
            {
                self.leave(job, *grace_s, term).await
            }
            EngineAction::Stop { .. } => Ok(StepOutcome::Accepted),
            EngineAction::Place { .. } if running => refused("the job runs"),
            EngineAction::Place { share, .. } => self.place(job, &order.action, *share, term).await,
            _ => {
                let share = job.share;
                self.place(job, &order.action, share, term).await
            }
        }
    }

    async fn place(
        &mut self,
        mut job: LiveJob,
        action: &EngineAction,
        share: Option<super::AcceleratorShare>,
        term: u64,
    ) -> Result<StepOutcome, EngineError> {
        if job.phase.is_over() {
            return Ok(StepOutcome::Refused { reason: "the job is over".to_owned() });
        }
        let now_ms = unix_ms();
        if job.not_before_ms > now_ms {
            let reason = format!("it failed, and waits {} s more", (job.not_before_ms - now_ms) / 1000 + 1);
            return Ok(StepOutcome::Later { reason });
        }
        let held = self.jobs.values();
        let current =
            place::choose(action.placement().unwrap_or_default(), share, &self.nodes, held, job.starts, now_ms);
        match current {
            Err(reason) => Ok(StepOutcome::Later { reason }),
            Ok(current) => {
                job.current = Some(current);
                (job.share, job.phase, job.starts) = (share, JobPhase::Released, job.starts + 1);
                job.note.clear();
                self.keep(job.clone())?;
                self.nodes.start_missing(&job, term).await;
                Ok(StepOutcome::Accepted)
            }
        }
    }

    async fn leave(&mut self, mut job: LiveJob, grace_s: u32, term: u64) -> Result<StepOutcome, EngineError> {
        if let Some(current) = job.current.as_mut().filter(|current| !current.leaving) {
            current.leaving = true;
            self.keep(job.clone())?;
        }
        self.nodes.stop(&job, u64::from(grace_s) * 1000, term).await;
        Ok(StepOutcome::Accepted)
    }

    fn close(&mut self, mut job: LiveJob) -> Result<StepOutcome, EngineError> {
        if !job.phase.is_over() {
            (job.phase, job.ended_ms) = (JobPhase::Cancelled, Some(unix_ms()));
            self.keep(job)?;
        }
        Ok(StepOutcome::Accepted)
    }

    fn drain(&mut self, node: &str, reason: Option<String>) -> Result<StepOutcome, EngineError> {
        if !self.nodes.drain(node, reason) {
            return Ok(StepOutcome::Refused { reason: "there is no such node".to_owned() });
        }
        self.store.save_drained(&self.nodes.drained()).map_err(full)?;
        Ok(StepOutcome::Accepted)
    }

    fn keep(&mut self, job: LiveJob) -> Result<(), EngineError> {
        self.store.save(&job).map_err(full)?;
        self.jobs.insert(job.key.clone(), job);
        Ok(())
    }
}

impl Engine for AgentsEngine {
    fn name(&self) -> &'static str {
        "agents"
    }

    fn capabilities(&self) -> Capabilities {
        let (exact_accelerator, fractional, hold) = (true, true, true);
        Capabilities { exact_accelerator, fractional, hold, ..Capabilities::default() }
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        if self.version == 0 {
            self.nodes.set_drained(self.store.drained());
        }
        let said = self.look().await?;
        self.version += 1;
        let at_ms = unix_ms();
        let shown = |job: &&LiveJob| job.ended_ms.is_none_or(|ended_ms| at_ms - ended_ms < SHOWN_MS);
        let jobs: Vec<JobSeen> = self.jobs.values().filter(shown).map(|job| job.seen(&self.nodes)).collect();
        let nodes = self.nodes.seen(self.jobs.values());
        Ok(ClusterSnapshot { version: self.version, at_ms, nodes, jobs, said, ..ClusterSnapshot::default() })
    }

    async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        let mut receipts = Vec::with_capacity(orders.len());
        for order in orders {
            let outcome = match self.term {
                Some(term) => self.step(order, term).await?,
                None => StepOutcome::Refused { reason: "another daemon leads".to_owned() },
            };
            receipts.push(Receipt { id: order.id.clone(), outcome });
        }
        Ok(receipts)
    }

    async fn submit(&mut self, job: &Submission) -> Result<String, EngineError> {
        let live = LiveJob::new(job, unix_ms(), self.jobs.len());
        let live = live.map_err(|problem| EngineError::Refused { engine: "agents", problem })?;
        if self.jobs.contains_key(&live.key) {
            let problem = format!("job {} was handed in this millisecond", live.key);
            return Err(EngineError::Refused { engine: "agents", problem });
        }
        let key = live.key.clone();
        self.keep(live)?;
        Ok(key)
    }

    async fn lead(&mut self, term: u64) -> Result<(), EngineError> {
        self.jobs = self.store.load();
        self.term = Some(term);
        self.nodes.lead();
        Ok(())
    }

    fn follow(&mut self) {
        self.term = None;
    }
}

fn full(error: AgentError) -> EngineError {
    EngineError::Unreachable {
        engine: "agents",
        problem: error.to_string(),
        remedy: "make room or mend the disk; nothing is done that cannot be written down",
    }
}

impl AgentsSettings {
    fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms)
    }
}
