//! Machines without a manager: the engine drives the agents of their nodes.
//!
//! What is wanted is written down before any agent is told ([`store`]); what runs is what agents
//! say. A node that is not heard of is *suspect*: nothing starts there, and its jobs are neither
//! given up nor started elsewhere. Only where its agent said that jobs die without the daemon, and
//! its lease has run out for certain, are they started again ([`Fencing`](goodput_configs::live::node_agent::Fencing)).

mod gang;
mod live;
mod loans;
mod nodes;
mod place;
mod replicas;
pub mod store;

use std::collections::BTreeMap;

use goodput_configs::live::engine::AgentsConfig;

use super::{
    Capabilities, ClusterSnapshot, DeclaredService, Engine, EngineAction, EngineError, EngineProblem, JobPhase,
    JobSeen, LoanSeen, Order, Receipt, SpeedReport, StepOutcome, Submission,
};
use crate::agent::api::StoredReport;
use crate::agent::record::RecordError;
use crate::agent::{AgentError, unix_ms};
use crate::job::SpeedMeasurement;
use live::LiveJob;
use nodes::AgentNodes;
use store::{JobStore, StoredJobs};

/// The agents of a cluster.
pub struct AgentsEngine {
    settings: AgentsConfig,
    nodes: AgentNodes,
    store: JobStore,
    jobs: BTreeMap<String, LiveJob>,
    /// Services that the deployment declares.
    services: Vec<DeclaredService>,
    /// Nodes that are lent to training.
    loans: BTreeMap<String, LoanSeen>,
    /// Files of jobs that cannot be used.
    faults: Vec<RecordError>,
    /// Term in which this daemon leads; `None` where it stands by.
    claimed: Option<u64>,
    /// Term in which agents obey this daemon; `None` where it only looks, or an agent obeys another one.
    term: Option<u64>,
    version: u64,
}

/// Time for which jobs that ended stay in snapshots, milliseconds.
const SHOWN_MS: i64 = 60_000;

impl AgentsEngine {
    /// With the jobs of its folder.
    ///
    /// # Errors
    /// The folder or the certificates cannot be used.
    pub fn open(settings: AgentsConfig) -> Result<Self, AgentError> {
        let nodes = AgentNodes::new(&settings)?;
        let store = JobStore::open(settings.folder.clone())?;
        let mut engine = Self {
            settings,
            nodes,
            store,
            jobs: BTreeMap::new(),
            services: Vec::new(),
            loans: BTreeMap::new(),
            faults: Vec::new(),
            claimed: None,
            term: None,
            version: 0,
        };
        engine.reload()?;
        Ok(engine)
    }

    /// The engine with services that run beside training jobs.
    #[must_use]
    pub fn with_services(self, services: Vec<DeclaredService>) -> Self {
        Self { services, ..self }
    }

    /// Reads anew what is on disk.
    ///
    /// # Errors
    /// [`AgentError::Record`] where a later program wrote a file, or it cannot be told which nodes are drained or lent.
    fn reload(&mut self) -> Result<(), AgentError> {
        self.jobs.clear();
        self.take_up()?;
        self.loans = self.store.loans()?;
        self.nodes.set_drained(self.store.drained()?);
        Ok(())
    }

    /// Takes up jobs on disk that are not known: jobs that a daemon wrote which leads no more, and jobs that were put
    /// back from a backup.
    fn take_up(&mut self) -> Result<(), AgentError> {
        let StoredJobs { jobs, mut faults } = self.store.load(&self.jobs)?;
        if let Some(newer) = faults.iter().position(|fault| matches!(fault, RecordError::Newer { .. })) {
            return Err(faults.swap_remove(newer).into());
        }
        self.jobs.extend(jobs);
        self.faults = faults;
        Ok(())
    }

    /// Speed that a report tells, on the accelerators of the attempt that runs: those of earlier
    /// attempts are not known any more.
    fn said(&self, kept: &StoredReport) -> Option<SpeedReport> {
        let job = self.jobs.get(kept.job.as_str()).filter(|job| job.replica_of.is_none())?;
        let current = job.current.as_ref()?;
        let on = current.placement.first().filter(|_| current.number == kept.report.attempt)?;
        let accelerator = self.nodes.kind(&on.node, on.accelerators.first()?)?;
        let measured = SpeedMeasurement::of(&kept.report, kept.nodes, kept.world)?;
        Some(SpeedReport { job: kept.job.to_string(), accelerator, measured })
    }

    /// Asks all nodes, and where this daemon leads brings each job a step on. Returns what jobs
    /// said meanwhile.
    async fn look(&mut self) -> Result<Vec<SpeedReport>, EngineError> {
        // Where this daemon does not lead, another one may have changed all of them.
        let read = if self.term.is_none() { self.reload() } else { self.take_up() };
        read.map_err(unreadable)?;
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
                // It is written down before agents forget what it is based on.
                self.store.save(job).map_err(full)?;
            }
        }
        self.tend_loans(now_ms)?;
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
            EngineAction::Lend { node } => return self.lend(node, unix_ms()),
            EngineAction::Return { node, deadline_ms } => return self.call_back(node, *deadline_ms, unix_ms()),
            EngineAction::Scale { service, node, replicas } => {
                return self.scale(service, node, *replicas, term).await;
            }
            EngineAction::Suspend | EngineAction::Resume => return refused("agents cannot do that"),
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
        let (exact_accelerator, fractional, hold, lend, scale) = (true, true, true, true, true);
        Capabilities { exact_accelerator, fractional, hold, lend, scale, ..Capabilities::default() }
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        let said = self.look().await?;
        self.version += 1;
        let at_ms = unix_ms();
        let shown = |job: &&LiveJob| job.ended_ms.is_none_or(|ended_ms| at_ms - ended_ms < SHOWN_MS);
        let trains = |job: &&LiveJob| job.replica_of.is_none();
        let jobs = self.jobs.values().filter(trains).filter(shown);
        let jobs: Vec<JobSeen> = jobs.map(|job| job.seen(&self.nodes)).collect();
        let mut nodes = self.nodes.seen(self.jobs.values());
        self.show_loans(&mut nodes);
        let services = self.services_seen(at_ms);
        Ok(ClusterSnapshot { version: self.version, at_ms, nodes, jobs, services, said })
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
        // The daemon's time of submission names the job, also for a daemon that died before it wrote the key down.
        let told_ms = job.spec.request.submit.as_millis();
        let now_ms = if told_ms > 0 { told_ms } else { unix_ms() };
        let live = LiveJob::new(job, now_ms, self.jobs.len());
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
        self.reload().map_err(unreadable)?;
        (self.claimed, self.term) = (Some(term), Some(term));
        self.nodes.lead();
        Ok(())
    }

    async fn maintain(&mut self) -> Result<(), EngineError> {
        match self.term {
            Some(term) => self.retire_undeclared(term).await,
            None => Ok(()),
        }
    }

    fn follow(&mut self) {
        (self.claimed, self.term) = (None, None);
    }

    fn problems(&self) -> Vec<EngineProblem> {
        let damaged = self.faults.iter().map(|fault| EngineProblem::new("damaged", fault.to_string()));
        let rival = self.nodes.rival().filter(|_| self.claimed.is_some() && self.term.is_none()).map(|rival| {
            let text = format!(
                "agents obey {:?} in term {}: either this daemon's journal is an old one, which mends itself when that leader has been silent for {} s, or two daemons with different state directories drive one cluster, of which one has to be stopped",
                rival.leader,
                rival.term,
                self.settings.lease_ms / 1000
            );
            EngineProblem::new("rival", text)
        });
        let unfit = self
            .nodes
            .unfit()
            .map(|(node, why)| EngineProblem::new("unfit", format!("node {node} is given no jobs: {why}")));
        let certificates = self
            .nodes
            .certificates()
            .map(|(node, text)| EngineProblem::new("certificate", format!("node {node}: {text}")));
        damaged.chain(rival).chain(unfit).chain(certificates).collect()
    }

    fn submitted_at(&self, submit_ms: i64) -> Option<String> {
        self.jobs.values().find(|job| job.submitted_ms == submit_ms).map(|job| job.key.clone())
    }

    fn outdated(&self) -> Option<u64> {
        self.claimed.filter(|_| self.term.is_none())?;
        let rival = self.nodes.rival().filter(|rival| rival.silent_ms >= self.settings.lease_ms)?;
        Some(rival.term)
    }
}

fn unreadable(error: AgentError) -> EngineError {
    EngineError::Unreadable { engine: "agents", what: "its folder", problem: error.to_string() }
}

fn full(error: AgentError) -> EngineError {
    EngineError::Unreachable {
        engine: "agents",
        problem: error.to_string(),
        remedy: "make room or mend the disk; nothing is done that cannot be written down",
    }
}
