//! Jobs that nobody has ever profiled teach the policy how fast they are, by what they report.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::model::{BatchConfig, BatchLimits, GradientStats, Sample, ThroughputParams};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, Information};
use goodput_executor::daemon::settings::Settings;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::{
    Attempt, Capabilities, Engine, EngineError, JobPhase, JobSeen, NodeSeen, Order, Outcome, Receipt, Said, Snapshot,
    Submission,
};
use goodput_executor::job::Measured;

/// Compute is shared, synchronisation hardly counts: sixteen accelerators are 13 times as fast as one.
const SCALES: ThroughputParams = ThroughputParams {
    alpha_c: 0.01,
    beta_c: 0.004,
    alpha_n: 0.02,
    beta_n: 0.002,
    alpha_r: 0.01,
    beta_r: 0.001,
    gamma: 1.5,
};
/// Synchronisation takes as long as all the compute of one accelerator: more are no faster.
const DOES_NOT: ThroughputParams = ThroughputParams { alpha_r: 4.0, beta_r: 0.5, alpha_n: 6.0, beta_n: 0.5, ..SCALES };

const BATCH: u32 = 1024;

struct Played {
    law: ThroughputParams,
    seen: JobSeen,
}

/// Two nodes with eight accelerators each, where orders are carried out at once and jobs report by a known law.
struct Lab {
    at_ms: i64,
    version: u64,
    jobs: BTreeMap<String, Played>,
    /// Whether jobs report.
    speak: bool,
}

impl Lab {
    fn new() -> Self {
        Self { at_ms: 1_000_000, version: 0, jobs: BTreeMap::new(), speak: true }
    }

    fn add(&mut self, key: &str, law: ThroughputParams, batch: Option<BatchLimits>) {
        let elasticity = Elasticity::Elastic { min: 1, max: 16 };
        let submit = SimTime::from_millis(self.at_ms);
        let request = JobRequest { name: key.into(), gpus: 2, elasticity, submit, ..JobRequest::default() };
        let seen = JobSeen {
            key: key.into(),
            spec: JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(7200) } },
            application: None,
            tenant: String::new(),
            phase: JobPhase::Held,
            starts: 0,
            attempt: None,
            failures: 0,
            hands_off: false,
            done: None,
            epoch: 0,
            batch,
            history: None,
            note: String::new(),
        };
        self.jobs.insert(key.into(), Played { law, seen });
    }

    fn gpus(&self, key: &str) -> u32 {
        let attempt = self.jobs[key].seen.attempt.as_ref();
        attempt.map_or(0, |attempt| attempt.placement.iter().map(|on| on.gpus).sum())
    }

    fn held_on(&self, node: &str) -> u32 {
        let attempts = self.jobs.values().filter_map(|job| job.seen.attempt.as_ref());
        attempts.flat_map(|attempt| &attempt.placement).filter(|on| on.node == node).map(|on| on.gpus).sum()
    }

    fn said(&self, key: &str) -> Option<Said> {
        let (nodes, replicas) = (self.jobs[key].seen.attempt.as_ref()?.placement.len() as u32, self.gpus(key));
        let law = self.jobs[key].law;
        let atomic = BATCH.div_ceil(replicas);
        let step_secs = law.optim_time(nodes, replicas, atomic);
        let sample = Sample { nodes, replicas, atomic, step_secs, sync_secs: step_secs - law.grad_time(atomic) };
        let stats = Some(GradientStats { sqr: 1.0, var: 3.0 });
        let measured = Measured { sample: Some(sample), batch: Some(BATCH), stats };
        Some(Said { job: key.into(), accelerator: "a100".into(), measured })
    }
}

impl Engine for Lab {
    fn name(&self) -> &'static str {
        "lab"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { hold: true, ..Capabilities::default() }
    }

    async fn snapshot(&mut self) -> Result<Snapshot, EngineError> {
        self.version += 1;
        let node = |name: &str| NodeSeen {
            name: name.into(),
            accelerator: "a100".into(),
            gpus: 8,
            free: 8 - self.held_on(name),
            ..NodeSeen::default()
        };
        let nodes = vec![node("n0"), node("n1")];
        let jobs = self.jobs.values().map(|job| job.seen.clone()).collect();
        let said = self.jobs.keys().filter(|_| self.speak).filter_map(|key| self.said(key)).collect();
        Ok(Snapshot { version: self.version, at_ms: self.at_ms, nodes, jobs, said })
    }

    async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        for order in orders {
            let since_ms = self.at_ms;
            let seen = &mut self.jobs.get_mut(&order.job).unwrap().seen;
            assert_eq!(seen.starts, order.starts);
            match order.action.placement() {
                None => (seen.attempt, seen.phase) = (None, JobPhase::Held),
                Some(placement) => {
                    seen.attempt = Some(Attempt { number: seen.starts, placement: placement.to_vec(), since_ms });
                    (seen.starts, seen.phase) = (seen.starts + 1, JobPhase::Running);
                }
            }
        }
        assert!(["n0", "n1"].iter().all(|node| self.held_on(node) <= 8), "an accelerator is held twice");
        Ok(orders.iter().map(|order| Receipt { id: order.id.clone(), outcome: Outcome::Accepted }).collect())
    }

    async fn submit(&mut self, _job: &Submission) -> Result<String, EngineError> {
        unreachable!("jobs of this lab are added")
    }
}

fn open(lab: Lab, directory: &Path, policy: &str) -> Daemon<Lab> {
    let directory = directory.display();
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\n[policy]\nname = \"{policy}\"\n[reliance]\ntimeout_ms = 20000\nfallback = \"fifo\"\n[state]\ndirectory = \"{directory}\"\nname = \"a\"\n[api]\nlisten = \"\"\n[guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\n"
    );
    daemon::open(lab, Settings::parse(&text, Path::new("t.toml")).unwrap(), Vec::new(), Arc::new(Tenants::default()))
        .unwrap()
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Lets so many rounds of a minute pass.
fn rounds(daemon: &mut Daemon<Lab>, count: u32) {
    for _ in 0..count {
        daemon.engine_mut().at_ms += 60_000;
        while block(daemon.cycle()).unwrap().open > 0 {}
        let status = daemon.status();
        assert_eq!(status.lock().unwrap().fallback, "", "the policy itself decides");
    }
}

fn on<T>(daemon: &mut Daemon<Lab>, look: impl FnOnce(&ClusterView<'_>) -> T) -> T {
    look(&daemon.seen().unwrap().unwrap().view())
}

/// What the policy believes of a job beside what is true, at sizes it has not run at.
fn off(view: &ClusterView<'_>, index: usize, law: &ThroughputParams) -> f64 {
    let job = view.jobs().nth(index).unwrap();
    let model = job.goodput_model().unwrap();
    let batch = |replicas: u32| BatchConfig { atomic: BATCH.div_ceil(replicas), accumulation: 0 };
    let sizes = [(1, 1), (1, 3), (1, 6), (1, 8)];
    let off = sizes.map(|(nodes, replicas)| {
        model.params.iter_time(nodes, replicas, batch(replicas)) / law.iter_time(nodes, replicas, batch(replicas)) - 1.0
    });
    off.into_iter().map(f64::abs).fold(0.0, f64::max)
}

#[test]
fn pollux_gives_more_to_the_job_that_scales_also_after_a_restart() {
    for policy in ["pollux-fast", "pollux", "sia"] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        lab.add("a-scales", SCALES, None);
        lab.add("b-does-not", DOES_NOT, None);
        let mut daemon = open(lab, directory.path(), policy);
        rounds(&mut daemon, 1);
        let first = ["a-scales", "b-does-not"].map(|key| daemon.engine_mut().gpus(key));
        assert_eq!(first, [1, 1], "{policy}: nobody knows them, so each has what it needs at least");
        rounds(&mut daemon, 30);
        let lab = daemon.engine_mut();
        let (much, little) = (lab.gpus("a-scales"), lab.gpus("b-does-not"));
        assert!(
            much >= 6 && little <= 2,
            "{policy}: {much} accelerators for the one that scales, {little} for the other"
        );
        on(&mut daemon, |view| {
            assert_eq!(view.information, Information::Profiled);
            for (index, law) in [SCALES, DOES_NOT].iter().enumerate() {
                let off = off(view, index, law);
                assert!(off < 0.1, "{policy}: fit of job {index} is off by {off:.3}");
            }
        });

        // Another daemon over the same cluster, where jobs say nothing any more.
        daemon.resign();
        let mut lab = daemon.into_engine();
        lab.speak = false;
        let mut daemon = open(lab, directory.path(), policy);
        rounds(&mut daemon, 10);
        on(&mut daemon, |view| assert!(off(view, 0, &SCALES) < 0.1, "{policy}: what was learned is in the journal"));
        let lab = daemon.engine_mut();
        let (much, little) = (lab.gpus("a-scales"), lab.gpus("b-does-not"));
        assert!(much >= 6 && little <= 2, "{policy}, after a restart: {much} and {little}");
    }
}

#[test]
fn batch_sizes_are_those_the_job_may_choose_from_once_its_noise_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    let limits = BatchLimits::new(BATCH, 8 * BATCH, 32, 512).unwrap();
    lab.add("adapts", SCALES, Some(limits));
    lab.add("keeps", SCALES, None);
    lab.speak = false;
    let mut daemon = open(lab, directory.path(), "pollux-fast");
    rounds(&mut daemon, 1);
    on(&mut daemon, |view| assert!(view.jobs().all(|job| job.goodput_model().is_none())));
    daemon.engine_mut().speak = true;
    rounds(&mut daemon, 3);
    on(&mut daemon, |view| {
        let models: Vec<_> = view.jobs().map(|job| job.goodput_model().unwrap()).collect();
        assert_eq!(models[0].limits, limits);
        assert_eq!((models[1].limits.init, models[1].limits.max), (BATCH, BATCH));
        assert_eq!(models[0].stats, GradientStats { sqr: 1.0, var: 3.0 });
        assert!(models[0].best(1, 8).unwrap().goodput > models[1].best(1, 8).unwrap().goodput);
    });
}

#[test]
fn a_job_that_does_not_speak_the_protocol_is_taken_for_one_that_scales_linearly() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("mute", DOES_NOT, None);
    lab.speak = false;
    let mut daemon = open(lab, directory.path(), "pollux-fast");
    rounds(&mut daemon, 3);
    assert_eq!(daemon.engine_mut().gpus("mute"), 1, "it may still say something");
    rounds(&mut daemon, 5);
    assert!(daemon.engine_mut().gpus("mute") > 2, "it never will");
    daemon.engine_mut().speak = true;
    rounds(&mut daemon, 30);
    assert!(daemon.engine_mut().gpus("mute") <= 2, "it does after all: {}", daemon.engine_mut().gpus("mute"));
}

/// Queues are sorted by shapes of jobs, worked out once: a job that comes later has one too.
#[test]
fn policies_that_go_by_the_shape_of_jobs_run_live() {
    for policy in ["kubernetes", "kueue", "kai"] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        lab.add("a", SCALES, None);
        let mut daemon = open(lab, directory.path(), policy);
        rounds(&mut daemon, 2);
        daemon.engine_mut().add("b", SCALES, None);
        rounds(&mut daemon, 2);
        assert_eq!(daemon.engine_mut().gpus("b"), 2, "{policy}");
    }
}
