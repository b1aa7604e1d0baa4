//! Elastic jobs on agents: members join and leave while the others train, and are lost.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests, which print what they saw")]

mod log;
mod losses;
mod ordered;
mod pytorch;
mod rules;

use goodput_configs::live::node_agent::Fencing;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use goodput_executor::agent::Running;
use goodput_executor::engine::agents::AgentsEngine;
use goodput_executor::engine::{
    ClusterSnapshot, Engine, EngineAction, JobPhase, MembersSeen, OnNode, StepOutcome, Submission,
};

use crate::engine_agents::{Site, carry_out, job, look, on, order, place};
use log::SampleLog;

/// Plain-Python job that speaks the protocol of members.
pub const WORKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/elastic/line_worker.py");

/// A cluster of nodes `n1` to `n3` with two accelerators each, and an elastic job of plain Python on it.
pub struct Lab {
    pub site: Site,
    pub agents: Vec<Running>,
    pub engine: AgentsEngine,
    pub key: String,
    pub log: SampleLog,
}

impl Lab {
    /// A job with steps of 20 ms and members that take `boot_s` to start. An epoch has 10 steps.
    pub async fn new(boot_s: f64) -> Self {
        let site = Site::new(&["n1", "n2", "n3"], Fencing::Keep);
        let agents = site.agents().await;
        let mut engine = site.engine(&agents).await;
        let log = SampleLog::of(site.shared.path().join("samples"), 240);
        let key = engine.submit(&submission(&log, boot_s)).await.unwrap();
        Self { site, agents, engine, key, log }
    }

    /// Starts the job, or resizes it without a stop, and waits until its members train together.
    pub async fn on(&mut self, placement: Vec<OnNode>) -> ClusterSnapshot {
        let seen = self.engine.snapshot().await.unwrap();
        let starts = job(&seen, &self.key).starts;
        let action = match starts {
            0 => place(placement),
            _ => EngineAction::Resize { placement, grace_s: 30 },
        };
        carry_out(&mut self.engine, &order(&self.key, starts, action)).await;
        let key = self.key.clone();
        look(&mut self.engine, "settled", |seen| job(seen, &key).members == Some(MembersSeen::Settled)).await
    }

    /// Waits until the job has made so many steps.
    pub async fn reaches(&mut self, steps: usize) {
        let log = self.log.clone();
        look(&mut self.engine, "steps", |_| log.steps().len() > steps).await;
    }

    /// Lets the job end with its epoch, waits for that, and checks that each sample was used once in each epoch.
    pub async fn finish(&mut self, starts: u32) {
        self.log.enough();
        let key = self.key.clone();
        let seen = look(&mut self.engine, "ends", |seen| job(seen, &key).phase.is_over()).await;
        let seen = job(&seen, &key);
        assert_eq!((seen.phase, seen.starts, seen.failures), (JobPhase::Done, starts, 0), "{}", seen.note);
        self.log.check();
        look(&mut self.engine, "all is free", |seen| seen.nodes.iter().all(|node| node.free == 2)).await;
    }
}

pub fn submission(log: &SampleLog, boot_s: f64) -> Submission {
    let request = JobRequest {
        name: "line".to_owned(),
        gpus: 1,
        elasticity: Elasticity::Elastic { min: 1, max: 6 },
        ..JobRequest::default()
    };
    let spec = JobSpec { request, work: Work::Fixed { duration: SimTime::ZERO } };
    let folder = log.folder().to_string_lossy().into_owned();
    let words = ["python3", WORKER, &folder, "0.02", &boot_s.to_string()].map(ToOwned::to_owned);
    let environment = [("HOME", "/tmp"), ("PYTHONDONTWRITEBYTECODE", "1")];
    let environment = environment.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Submission { environment, grace_s: 30, elastic: true, ..Submission::new(spec, words.to_vec()) }
}

/// Review of fidelity, finding 2 (A22): a resize on agents was a stop and a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_grows_and_shrinks_without_a_stop_and_uses_each_sample_once() {
    let mut lab = Lab::new(0.3).await;
    lab.on(vec![on("n1", 1)]).await;
    lab.on(vec![on("n1", 1), on("n2", 1)]).await;
    let seen = lab.on(vec![on("n1", 2), on("n2", 1)]).await;
    assert_eq!(seen.nodes.iter().map(|node| node.free).collect::<Vec<_>>(), [0, 1, 2]);
    // The member that leads leaves, and with it all that began the attempt.
    let seen = lab.on(vec![on("n2", 1)]).await;
    let (one, attempt) = (job(&seen, &lab.key), job(&seen, &lab.key).attempt.clone().unwrap());
    assert_eq!((one.starts, one.failures, attempt.number, attempt.placement.len()), (1, 0, 0, 1));
    // Elsewhere altogether: what is there goes on until the new member can take over.
    lab.on(vec![on("n3", 1)]).await;
    lab.finish(1).await;
    assert_eq!(lab.log.sizes(), [1, 2, 3, 1, 2, 1], "members at each agreement");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_order_counts_while_members_still_start() {
    let mut lab = Lab::new(0.5).await;
    lab.on(vec![on("n1", 1)]).await;
    for nodes in [vec!["n1", "n2"], vec!["n2", "n3"], vec!["n1", "n2", "n3"]] {
        let placement = nodes.into_iter().map(|node| on(node, 2)).collect();
        let resize = order(&lab.key, 1, EngineAction::Resize { placement, grace_s: 30 });
        let receipts = lab.engine.apply(std::slice::from_ref(&resize)).await.unwrap();
        assert!(!matches!(receipts[0].outcome, StepOutcome::Refused { .. }), "{receipts:?}");
        let seen = lab.engine.snapshot().await.unwrap();
        assert!(seen.nodes.iter().all(|node| node.free <= 2));
    }
    let seen = lab.on(vec![on("n1", 1), on("n3", 1)]).await;
    assert_eq!(job(&seen, &lab.key).starts, 1);
    lab.finish(1).await;
}

/// A42: after a checkpoint and a restart the job sees the samples that it would have seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_job_goes_on_with_the_next_sample() {
    let mut lab = Lab::new(0.0).await;
    lab.on(vec![on("n1", 1), on("n2", 1)]).await;
    carry_out(&mut lab.engine, &order(&lab.key, 1, EngineAction::Stop { grace_s: 30 })).await;
    let seen = lab.engine.snapshot().await.unwrap();
    assert_eq!((job(&seen, &lab.key).phase, job(&seen, &lab.key).failures), (JobPhase::Held, 0));
    let stopped = lab.log.steps().len();
    carry_out(&mut lab.engine, &order(&lab.key, 1, place(vec![on("n3", 2)]))).await;
    lab.finish(2).await;
    let whole = lab.log.order();

    let log = SampleLog::of(lab.site.shared.path().join("fixed"), 240);
    lab.key = lab.engine.submit(&submission(&log, 0.0)).await.unwrap();
    lab.log = log;
    lab.on(vec![on("n1", 1)]).await;
    // Past the step at which the other job was stopped.
    lab.reaches(stopped + 10).await;
    lab.finish(1).await;
    let fixed = lab.log.order();
    let both = whole.len().min(fixed.len());
    assert!(both > stopped && whole[..both] == fixed[..both], "the same batches as a job that nothing stopped");
}
