//! Machines without a manager: the engine drives the agents of their nodes.
//!
//! What is wanted is written down before any agent is told (`store`); what runs is what agents
//! say. A node that is not heard of is *suspect*: nothing starts there, and its jobs are neither
//! given up nor started elsewhere. Only where its agent said that jobs die without the daemon, and
//! its lease has run out for certain, are they started again ([`Fencing`](goodput_configs::live::node_agent::Fencing)).

mod calls;
mod gang;
mod live;
mod loans;
mod membership;
mod nodes;
mod parts;
mod place;
mod replicas;
mod store;

use std::collections::BTreeMap;

use goodput_configs::live::engine::AgentsConfig;

use super::{
    Capabilities, ClusterSnapshot, DeclaredService, Engine, EngineAction, EngineError, EngineProblem, JobPhase,
    JobResources, JobSeen, LoanSeen, OnNode, Order, Receipt, SpeedReport, StepOutcome, Submission,
};
use crate::agent::api::StoredReport;
use crate::agent::record::RecordError;
use crate::agent::{AgentError, unix_ms};
use crate::etcd::Etcd;
use crate::job::SpeedMeasurement;
use live::LiveJob;
use nodes::{AgentNodes, wanted_devices};
use store::{JobStore, WantedState};

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
    /// Whether what is wanted is read whole at the next look: some of it may not have been written.
    anew: bool,
    /// Time at which the progress of jobs was written down, milliseconds since the Unix epoch.
    progress_ms: i64,
    /// Time at which old jobs were forgotten, milliseconds since the Unix epoch.
    forgot_ms: i64,
}

/// Longest time for which the progress of a job is not written down, milliseconds.
const PROGRESS_MS: i64 = 5000;

/// Time for which jobs that ended stay written down, milliseconds.
const KEPT_MS: i64 = 3_600_000;

/// Time for which jobs that ended stay in snapshots, milliseconds.
const SHOWN_MS: i64 = 60_000;

impl AgentsEngine {
    /// With the jobs of its folder.
    ///
    /// # Errors
    /// The folder or the certificates cannot be used.
    pub fn open(settings: AgentsConfig) -> Result<Self, AgentError> {
        let nodes = AgentNodes::new(&settings)?;
        let (store, wanted) = JobStore::folder(settings.folder.clone())?;
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
            anew: true,
            progress_ms: 0,
            forgot_ms: 0,
        };
        engine.want(wanted);
        Ok(engine)
    }

    /// The engine with jobs in etcd rather than in its folder.
    #[must_use]
    pub fn shared(mut self, etcd: Etcd) -> Self {
        self.store = JobStore::shared(etcd);
        self.want(WantedState::default());
        self
    }

    /// The engine with services that run beside training jobs.
    #[must_use]
    pub fn with_services(self, services: Vec<DeclaredService>) -> Self {
        Self { services, ..self }
    }

    /// The engine for a daemon that looks every `poll_secs` seconds. A node with an agent that would kill
    /// jobs between two looks gets no jobs and says so.
    #[must_use]
    pub fn polled_every(mut self, poll_secs: f64) -> Self {
        self.nodes.set_shortest_fencing(self.settings.shortest_fencing_ms(poll_secs));
        self
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
        self.read().await?;
        let (heard, reports) = self.nodes.look(self.term, &self.settings).await;
        let said = reports.iter().filter_map(|kept| self.said(kept)).collect();
        if !heard.obeyed {
            self.term = None;
        }
        let Some(term) = self.term else { return Ok(said) };
        let now_ms = unix_ms();
        self.advance(now_ms).await?;
        self.tend_loans(now_ms).await?;
        for job in self.jobs.values().filter(|job| job.current.is_some()) {
            self.nodes.start_missing(job, term);
            self.nodes.tell_members(job, term);
        }
        self.nodes.tidy(&self.jobs, term);
        self.nodes.settle().await;
        self.forget_old(now_ms).await?;
        Ok(said)
    }

    /// Brings each job that runs a step on by what its nodes said. It is written down before agents
    /// forget what it is based on.
    async fn advance(&mut self, now_ms: i64) -> Result<(), EngineError> {
        // Progress alone is heard again after a crash, so it is not written down with each report.
        let progress = now_ms - self.progress_ms >= PROGRESS_MS;
        let mut changed = Vec::new();
        for job in self.jobs.values_mut().filter(|job| job.current.is_some()) {
            let mut after = job.clone();
            match job.current.as_ref().is_some_and(|current| current.membership.is_some()) {
                true => membership::advance(&mut after, &self.nodes, now_ms),
                false => gang::advance(&mut after, &self.nodes, now_ms),
            }
            if after == *job {
                continue;
            }
            (job.steps, job.epoch) = (after.steps, after.epoch);
            if after != *job || progress {
                changed.push(after);
            }
        }
        self.save(changed).await?;
        if progress {
            self.progress_ms = now_ms;
        }
        Ok(())
    }

    /// Forgets jobs that ended long ago and of which no node lists an attempt: what is written down
    /// would grow for ever.
    async fn forget_old(&mut self, now_ms: i64) -> Result<(), EngineError> {
        if now_ms - self.forgot_ms < SHOWN_MS {
            return Ok(());
        }
        self.forgot_ms = now_ms;
        let listed = self.nodes.jobs_listed();
        let old = |job: &&LiveJob| job.ended_ms.is_some_and(|ended_ms| now_ms - ended_ms > KEPT_MS);
        let unlisted = self.jobs.values().filter(old).filter(|job| !listed.contains(job.key.as_str()));
        let gone: Vec<String> = unlisted.map(|job| job.key.clone()).collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.store.remove(self.term, &gone).await?;
        gone.iter().for_each(|key| drop(self.jobs.remove(key)));
        Ok(())
    }

    /// Takes up what others have written down.
    async fn read(&mut self) -> Result<(), EngineError> {
        let (jobs, loans) = (std::mem::take(&mut self.jobs), std::mem::take(&mut self.loans));
        let faults = std::mem::take(&mut self.faults);
        let mut wanted = WantedState { jobs, loans, drained: self.nodes.drained(), faults };
        let read = self.store.read(&mut wanted, self.term, self.anew).await;
        self.want(wanted);
        self.anew = read.is_err();
        Ok(read?)
    }

    fn want(&mut self, wanted: WantedState) {
        (self.jobs, self.loans, self.faults) = (wanted.jobs, wanted.loans, wanted.faults);
        self.nodes.set_drained(wanted.drained);
    }

    /// Writes jobs down, and takes them up when they are.
    async fn save(&mut self, jobs: Vec<LiveJob>) -> Result<(), EngineError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let saved = self.store.save(self.term, &jobs).await;
        // A write without an answer may have gone through.
        self.anew = self.anew || saved.is_err();
        saved?;
        self.jobs.extend(jobs.into_iter().map(|job| (job.key.clone(), job)));
        Ok(())
    }

    async fn step(&mut self, order: &Order, term: u64) -> Result<StepOutcome, EngineError> {
        let refused = |reason: &str| Ok(StepOutcome::Refused { reason: reason.to_owned() });
        match &order.action {
            EngineAction::Drain { node, reason } => return self.drain(node, Some(reason.clone())).await,
            EngineAction::Undrain { node } => return self.drain(node, None).await,
            EngineAction::Lend { node } => return self.lend(node, unix_ms()).await,
            EngineAction::Return { node, deadline_ms } => return self.call_back(node, *deadline_ms, unix_ms()).await,
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
                self.keep(job.clone()).await?;
                if running { self.leave(job, *grace_s, term).await } else { self.close(job).await }
            }
            _ if !due && running => Ok(StepOutcome::Accepted),
            _ if !due => refused("the order is for another attempt"),
            EngineAction::Resize { placement, grace_s } | EngineAction::Migrate { placement, grace_s }
                if job.changes_in_place() =>
            {
                self.change_members(&job, placement, *grace_s, term).await
            }
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
        let (wanted, kind) = (action.placement().unwrap_or_default(), (job.starts, job.submission.elastic));
        let current = place::choose(wanted, share, &self.nodes, held, kind, now_ms);
        match current {
            Err(reason) => Ok(StepOutcome::Later { reason }),
            Ok(current) => {
                job.current = Some(current);
                (job.share, job.phase, job.starts) = (share, JobPhase::Released, job.starts + 1);
                job.note.clear();
                self.keep(job.clone()).await?;
                self.nodes.start_missing(&job, term);
                Ok(StepOutcome::Accepted)
            }
        }
    }

    /// Takes the next step of an elastic job towards `wanted`: its members join and leave while it runs.
    async fn change_members(
        &mut self,
        job: &LiveJob,
        wanted: &[OnNode],
        grace_s: u32,
        term: u64,
    ) -> Result<StepOutcome, EngineError> {
        match membership::change(job, wanted, &self.nodes, self.jobs.values(), unix_ms()) {
            Err(reason) => Ok(StepOutcome::Later { reason }),
            Ok(changed) => {
                if changed != *job {
                    self.keep(changed.clone()).await?;
                }
                self.nodes.start_missing(&changed, term);
                self.nodes.tell_members(&changed, term);
                self.nodes.stop(&changed, u64::from(grace_s) * 1000, term);
                Ok(StepOutcome::Accepted)
            }
        }
    }

    async fn leave(&mut self, mut job: LiveJob, grace_s: u32, term: u64) -> Result<StepOutcome, EngineError> {
        if let Some(current) = job.current.as_mut().filter(|current| !current.leaving) {
            current.leaving = true;
            self.keep(job.clone()).await?;
        }
        self.nodes.stop(&job, u64::from(grace_s) * 1000, term);
        Ok(StepOutcome::Accepted)
    }

    async fn close(&mut self, mut job: LiveJob) -> Result<StepOutcome, EngineError> {
        if !job.phase.is_over() {
            (job.phase, job.ended_ms) = (JobPhase::Cancelled, Some(unix_ms()));
            self.keep(job).await?;
        }
        Ok(StepOutcome::Accepted)
    }

    async fn drain(&mut self, node: &str, reason: Option<String>) -> Result<StepOutcome, EngineError> {
        if !self.nodes.drain(node, reason) {
            return Ok(StepOutcome::Refused { reason: "there is no such node".to_owned() });
        }
        self.store.save_drained(self.term, &self.nodes.drained()).await?;
        Ok(StepOutcome::Accepted)
    }

    async fn keep(&mut self, job: LiveJob) -> Result<(), EngineError> {
        self.save(vec![job]).await
    }
}

impl AgentsEngine {
    /// Checks that every node gives parts of accelerators, where a job asks for a part: policies do not know which do.
    fn check_parts(&self, job: &Submission) -> Result<(), String> {
        match self.nodes.without_parts().filter(|_| job.spec.request.share.is_some()) {
            Some(node) => Err(format!(
                "node {node} gives no parts of accelerators, because the control daemon of CUDA MPS does not run \
                 there; start `nvidia-cuda-mps-control -d` on every node, or leave out --compute and --device-memory"
            )),
            None => Ok(()),
        }
    }

    /// Checks what a job asks for beside accelerators.
    fn check_resources(&self, asked: &JobResources) -> Result<(), String> {
        let JobResources { cpus_per_gpu, memory_per_gpu_mib, .. } = *asked;
        if (JobResources { cpus_per_gpu, memory_per_gpu_mib, ..JobResources::default() }) != *asked {
            return Err("node agents know accelerators, processors and memory; leave out time limit, account, QOS, \
                        partition and constraint"
                .to_owned());
        }
        let is_limited = cpus_per_gpu.is_some() || memory_per_gpu_mib.is_some();
        match self.nodes.without_limits().filter(|_| is_limited) {
            Some(node) => Err(format!(
                "node {node} keeps no limits on processors and memory, for which it needs cgroup v2 with these \
                 controllers; leave them out"
            )),
            None => Ok(()),
        }
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
        let mut nodes = self.nodes.seen(&wanted_devices(self.jobs.values()));
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
        self.nodes.settle().await;
        Ok(receipts)
    }

    async fn try_out(&mut self, job: &Submission) -> Result<(), EngineError> {
        let checked = self.check_parts(job).and_then(|()| self.check_resources(&job.resources));
        checked.map_err(|problem| EngineError::Refused { engine: "agents", problem })
    }

    async fn submit(&mut self, job: &Submission) -> Result<String, EngineError> {
        self.try_out(job).await?;
        // The daemon's time of submission names the job, also for a daemon that died before it wrote the key down.
        let told_ms = job.spec.request.submit.as_millis();
        let (now_ms, number) = if told_ms > 0 { (told_ms, 0) } else { (unix_ms(), self.jobs.len()) };
        let live = LiveJob::new(job, now_ms, number);
        let live = live.map_err(|problem| EngineError::Refused { engine: "agents", problem })?;
        if self.jobs.contains_key(&live.key) {
            let problem = format!("job {} was handed in this millisecond", live.key);
            return Err(EngineError::Refused { engine: "agents", problem });
        }
        let key = live.key.clone();
        self.keep(live).await?;
        Ok(key)
    }

    async fn lead(&mut self, term: u64) -> Result<(), EngineError> {
        (self.term, self.anew) = (None, true);
        self.read().await?;
        (self.claimed, self.term) = (Some(term), Some(term));
        self.nodes.lead();
        Ok(())
    }

    async fn maintain(&mut self) -> Result<(), EngineError> {
        match self.term {
            Some(term) => {
                self.retire_undeclared(term).await?;
                self.nodes.settle().await;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn follow(&mut self) {
        self.anew = self.anew || self.term.is_some();
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
