//! A laboratory for the daemon: an engine that carries out orders at once, and jobs of known speed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::policy::RelianceConfig;
use goodput_configs::reader;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::model::{BatchConfig, BatchLimits, GradientStats, Sample, ThroughputParams};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::{
    Attempt, Capabilities, ClusterSnapshot, Engine, EngineAction, EngineError, JobPhase, JobSeen, NodeHealth, NodeSeen,
    Order, Receipt, SpeedReport, StepOutcome, Submission,
};
use goodput_executor::job::SpeedMeasurement;

/// Compute is shared, synchronisation hardly counts: sixteen accelerators are 13 times as fast as
/// one.
pub(super) const SCALES: ThroughputParams = ThroughputParams {
    alpha_c: 0.01,
    beta_c: 0.004,
    alpha_n: 0.02,
    beta_n: 0.002,
    alpha_r: 0.01,
    beta_r: 0.001,
    gamma: 1.5,
};
/// Synchronisation takes as long as all the compute of one accelerator: more are no faster.
pub(super) const DOES_NOT: ThroughputParams =
    ThroughputParams { alpha_r: 4.0, beta_r: 0.5, alpha_n: 6.0, beta_n: 0.5, ..SCALES };

pub(super) const BATCH: u32 = 1024;

pub(super) struct Played {
    pub(super) law: ThroughputParams,
    pub(super) seen: JobSeen,
}

/// Two nodes with eight accelerators each, where orders are carried out at once and jobs report by
/// a known law.
pub(super) struct Lab {
    pub(super) at_ms: i64,
    pub(super) version: u64,
    pub(super) jobs: BTreeMap<String, Played>,
    /// Whether jobs report.
    pub(super) speak: bool,
    pub(super) drained: Option<String>,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self { at_ms: 1_000_000, version: 0, jobs: BTreeMap::new(), speak: true, drained: None }
    }

    pub(super) fn add(&mut self, key: &str, law: ThroughputParams, batch: Option<BatchLimits>) {
        let elasticity = Elasticity::Elastic { min: 1, max: 16 };
        let submit = SimTime::from_millis(self.at_ms);
        let request = JobRequest { name: key.into(), gpus: 2, elasticity, submit, ..JobRequest::default() };
        let spec = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(7200) } };
        let seen = JobSeen { batch, ..JobSeen::held(key, spec) };
        self.jobs.insert(key.into(), Played { law, seen });
    }

    pub(super) fn gpus(&self, key: &str) -> u32 {
        let attempt = self.jobs[key].seen.attempt.as_ref();
        attempt.map_or(0, |attempt| attempt.placement.iter().map(|on| on.gpus).sum())
    }

    pub(super) fn held_on(&self, node: &str) -> u32 {
        let attempts = self.jobs.values().filter_map(|job| job.seen.attempt.as_ref());
        attempts.flat_map(|attempt| &attempt.placement).filter(|on| on.node == node).map(|on| on.gpus).sum()
    }

    pub(super) fn said(&self, key: &str) -> Option<SpeedReport> {
        let (nodes, replicas) = (self.jobs[key].seen.attempt.as_ref()?.placement.len() as u32, self.gpus(key));
        let law = self.jobs[key].law;
        let atomic = BATCH.div_ceil(replicas);
        let step_secs = law.optim_time(nodes, replicas, atomic);
        let sample = Sample { nodes, replicas, atomic, step_secs, sync_secs: step_secs - law.grad_time(atomic) };
        let stats = Some(GradientStats { sqr: 1.0, var: 3.0 });
        let measured = SpeedMeasurement { sample: Some(sample), batch: Some(BATCH), stats };
        Some(SpeedReport { job: key.into(), accelerator: "a100".into(), measured })
    }
}

impl Engine for Lab {
    fn name(&self) -> &'static str {
        "lab"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { hold: true, ..Capabilities::default() }
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        self.version += 1;
        let node = |name: &str| NodeSeen {
            name: name.into(),
            accelerator: "a100".into(),
            gpus: 8,
            free: 8 - self.held_on(name),
            health: if self.drained.as_deref() == Some(name) { NodeHealth::Drained } else { NodeHealth::Up },
            ..NodeSeen::default()
        };
        let nodes = vec![node("n0"), node("n1")];
        let jobs = self.jobs.values().map(|job| job.seen.clone()).collect();
        let said = self.jobs.keys().filter(|_| self.speak).filter_map(|key| self.said(key)).collect();
        Ok(ClusterSnapshot {
            version: self.version,
            at_ms: self.at_ms,
            nodes,
            jobs,
            said,
            ..ClusterSnapshot::default()
        })
    }

    async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        for order in orders {
            if let EngineAction::Drain { node, .. } = &order.action {
                self.drained = Some(node.clone());
                continue;
            }
            let since_ms = self.at_ms;
            let seen = &mut self.jobs.get_mut(&order.job).unwrap().seen;
            assert_eq!(seen.starts, order.starts);
            match order.action.placement() {
                None => (seen.attempt, seen.phase) = (None, JobPhase::Held),
                Some(placement) => {
                    seen.attempt = Some(Attempt {
                        number: seen.starts,
                        placement: placement.to_vec(),
                        since_ms,
                        ..Attempt::default()
                    });
                    (seen.starts, seen.phase) = (seen.starts + 1, JobPhase::Running);
                }
            }
        }
        assert!(["n0", "n1"].iter().all(|node| self.held_on(node) <= 8), "an accelerator is held twice");
        Ok(orders.iter().map(|order| Receipt { id: order.id.clone(), outcome: StepOutcome::Accepted }).collect())
    }

    async fn submit(&mut self, _job: &Submission) -> Result<String, EngineError> {
        unreachable!("jobs of this lab are added")
    }
}

pub(super) fn open(lab: Lab, directory: &Path, policy: &str) -> Daemon<Lab> {
    open_with(lab, directory, policy, "")
}

pub(super) fn open_with(lab: Lab, directory: &Path, policy: &str, more: &str) -> Daemon<Lab> {
    open_as(lab, directory, &format!("name = \"{policy}\""), more)
}

pub(super) fn open_as(lab: Lab, directory: &Path, policy: &str, more: &str) -> Daemon<Lab> {
    open_relying(lab, directory, policy, more, RelianceConfig { timeout_ms: 20_000, ..RelianceConfig::default() })
}

/// A daemon that relies on its policy as `reliance` says, with `fifo` behind it.
pub(super) fn open_relying(
    lab: Lab,
    directory: &Path,
    policy: &str,
    more: &str,
    reliance: RelianceConfig,
) -> Daemon<Lab> {
    let directory = directory.display();
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\n[policy]\n{policy}\n[state]\ndirectory = \"{directory}\"\nname = \"a\"\n[api]\nlisten = \"\"\n[guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\n{more}"
    );
    let mut settings = reader::parse::<Deployment>("t.toml", &text).unwrap();
    settings.reliance = RelianceConfig { fallback: "fifo".into(), ..reliance };
    let tenants = Arc::new(settings.tenants().unwrap());
    daemon::open(lab, settings, Vec::new(), tenants).unwrap()
}

pub(super) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Lets so many rounds of a minute pass.
pub(super) fn rounds(daemon: &mut Daemon<Lab>, count: u32) {
    for _ in 0..count {
        daemon.engine_mut().at_ms += 60_000;
        while block(daemon.cycle()).unwrap().open > 0 {}
        let status = daemon.status();
        assert_eq!(status.lock().unwrap().fallback, "", "the policy itself decides");
    }
}

pub(super) fn on<T>(daemon: &mut Daemon<Lab>, look: impl FnOnce(&ClusterView<'_>) -> T) -> T {
    look(&daemon.seen().unwrap().unwrap().view())
}

/// Distance between what the policy believes of a job and what is true, at sizes between those it
/// has run at.
pub(super) fn off(view: &ClusterView<'_>, index: usize, law: &ThroughputParams) -> f64 {
    let job = view.jobs().nth(index).unwrap();
    let most = job.state.profile.max_replicas();
    let model = job.goodput_model().unwrap();
    let batch = |replicas: u32| BatchConfig { atomic: BATCH.div_ceil(replicas), accumulation: 0 };
    let off = (1..=most.min(8)).map(|replicas| {
        model.params.iter_time(1, replicas, batch(replicas)) / law.iter_time(1, replicas, batch(replicas)) - 1.0
    });
    off.map(f64::abs).fold(0.0, f64::max)
}
