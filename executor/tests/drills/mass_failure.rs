//! Drill 6: half of the nodes are gone at once, by failure or by a partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use goodput_agents::compose;
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
use goodput_env::model::FaultModel;
use goodput_env::model::fault::{Cause, Scripted};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use goodput_executor::daemon::Daemon;
use goodput_executor::engine::sim::SimEngine;
use goodput_executor::engine::{
    Capabilities, ClusterSnapshot, Engine, EngineError, NodeHealth, Order, OrderProgress, Receipt, Submission,
};

use super::{block, chooser, lost as lost_jobs, observer, patient, run_to_end, settings};
use goodput_testkit::jobs;

/// A cluster of which some nodes are not heard of, though all that runs there goes on.
struct Partition {
    inner: SimEngine,
    silent: Vec<String>,
}

impl Engine for Partition {
    fn name(&self) -> &'static str {
        "partition"
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        let mut snapshot = self.inner.snapshot().await?;
        let silent = snapshot.nodes.iter_mut().filter(|node| self.silent.contains(&node.name));
        silent.for_each(|node| node.health = NodeHealth::Suspect);
        Ok(snapshot)
    }

    async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        self.inner.apply(orders).await
    }

    fn verify(&self, order: &Order, snapshot: &ClusterSnapshot) -> OrderProgress {
        self.inner.verify(order, snapshot)
    }

    async fn submit(&mut self, job: &Submission) -> Result<String, EngineError> {
        self.inner.submit(job).await
    }
}

/// Twenty nodes; seventy jobs that take hours, and ten more that come after twenty minutes.
fn large(faults: Option<FaultModel>) -> Scenario {
    let options = SimOptions { information: Information::Oracle, faults, ..SimOptions::standard() };
    let job = |index: u32| {
        let submit = SimTime::from_secs(if index < 70 { 0 } else { 1200 });
        let request = JobRequest { name: format!("job-{index}"), submit, gpus: 1, ..JobRequest::default() };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(18_000) } }
    };
    let workload = Arc::new(Workload::new(vec![jobs::application()], (0..80).map(job).collect()));
    Scenario::new(Arc::new(Cluster::parse("gpu:20x8").unwrap()), workload, options, 1)
}

/// Keys of the jobs that ran on any of `nodes`.
fn ran_on(snapshot: &ClusterSnapshot, nodes: &[String]) -> Vec<String> {
    let on = |job: &&goodput_executor::engine::JobSeen| {
        job.attempt.iter().flat_map(|attempt| &attempt.placement).any(|on| nodes.contains(&on.node))
    };
    snapshot.jobs.iter().filter(on).map(|job| job.key.clone()).collect()
}

/// Number of `jobs` that were started a second time.
fn started_again(snapshot: &ClusterSnapshot, jobs: &[String]) -> usize {
    snapshot.jobs.iter().filter(|job| jobs.contains(&job.key) && job.starts > 1).count()
}

/// While the rule holds a tenth of their jobs is placed again and no more; new jobs start; then all
/// of them are.
#[test]
fn when_half_of_the_nodes_vanish_a_tenth_of_their_jobs_is_placed_again_at_first() {
    let node = |node| Scripted { at_secs: 600.0, cause: Cause::Node, node, lasts_secs: Some(20_000.0) };
    let scenario = large(Some(FaultModel::scripted(NodeId::first(10).map(node).collect())));
    let directory = tempfile::tempdir().unwrap();
    const HOLD: Duration = Duration::from_millis(2500);
    let settings = settings(directory.path(), &format!("mass_failure_hold_secs = {}\n", HOLD.as_secs_f64()));
    let policy = compose::by_name("srtf", 0).unwrap();
    let engine = SimEngine::new(scenario.clone());
    let mut daemon = Daemon::new(engine, settings, observer(&scenario), chooser(policy, patient())).unwrap();
    let at = |daemon: &mut Daemon<SimEngine>, secs: i64| {
        while daemon.engine_mut().simulator().now() < SimTime::from_secs(secs) {
            daemon.engine_mut().advance(SimTime::from_secs(secs)).unwrap();
        }
    };
    at(&mut daemon, 60);
    block(daemon.cycle()).unwrap();
    let half: Vec<String> = (0..10).map(|node| format!("n{node}")).collect();
    let lost = ran_on(&block(daemon.engine_mut().snapshot()).unwrap(), &half);
    assert!(lost.len() >= 40, "{} jobs ran there", lost.len());
    block(daemon.cycle()).unwrap();

    at(&mut daemon, 600);
    let began = Instant::now();
    let mut secs = 600;
    loop {
        block(daemon.cycle()).unwrap();
        let seen = block(daemon.engine_mut().snapshot()).unwrap();
        if began.elapsed() >= HOLD {
            break;
        }
        let again = started_again(&seen, &lost);
        assert!(again <= lost.len() / 10, "{again} of {} jobs were placed again", lost.len());
        if secs > 1300 {
            assert_eq!(again, lost.len() / 10, "so many may be");
            assert!(
                seen.jobs.iter().filter(|job| !lost.contains(&job.key)).all(|job| job.starts == 1),
                "new jobs start"
            );
            let status = daemon.status();
            let reasons = status.lock().unwrap().queue.iter().filter(|row| row.reason == "guard:mass-failure").count();
            assert_eq!(reasons, lost.len() - again);
        }
        secs += 60;
        at(&mut daemon, secs);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(secs > 1300, "the drill was too slow to show anything: {secs}");
    std::thread::sleep(Duration::from_millis(100));
    block(daemon.cycle()).unwrap();
    let seen = block(daemon.engine_mut().snapshot()).unwrap();
    let holding = seen.jobs.iter().filter(|job| job.phase.holds()).count();
    assert_eq!(holding, 80, "all run again as soon as it is over");
    let alerts = daemon.metrics().text();
    assert!(alerts.contains("goodput_alerts_total{kind=\"mass-failure\"} 1"), "{alerts}");
    assert!(alerts.contains("goodput_guard_left_out_total{rule=\"mass-failure\"}"));
    block(run_to_end(&mut daemon)).unwrap();
    assert_eq!(lost_jobs("6a", daemon.engine_mut()), 0);
}

/// Moves every job that runs to another node, whenever it is asked.
struct Restless {
    calm: Arc<AtomicBool>,
}

impl Policy for Restless {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let nodes = view.cluster().node_ids();
        let mut free: Vec<u32> = nodes.clone().map(|node| view.free_on(node)).collect();
        for job in view.jobs() {
            let held = job.gpus() > 0;
            let elsewhere =
                |node: &NodeId| free[node.index()] > 0 && job.state.placement.slices().iter().all(|s| s.node != *node);
            if let Some(node) = nodes.clone().find(elsewhere)
                && !(held && self.calm.load(Ordering::Relaxed))
            {
                free[node.index()] -= 1;
                plan.set(job.id(), Placement::on(node, 1));
            }
        }
        plan
    }
}

/// After a partition, nodes that come back find their jobs as they were, whatever the policy wanted
/// meanwhile.
#[test]
fn jobs_of_nodes_that_come_back_go_on_without_a_second_start() {
    let scenario = large(None);
    let directory = tempfile::tempdir().unwrap();
    let calm = Arc::new(AtomicBool::new(true));
    let chooser = chooser(Box::new(Restless { calm: calm.clone() }), patient());
    let engine = Partition { inner: SimEngine::new(scenario.clone()), silent: Vec::new() };
    let settings = settings(directory.path(), "");
    let mut daemon = Daemon::new(engine, settings, observer(&scenario), chooser).unwrap();
    let minute = |daemon: &mut Daemon<Partition>, minute: i64| {
        let engine = &mut daemon.engine_mut().inner;
        while engine.simulator().now() < SimTime::from_secs(60 * minute) {
            engine.advance(SimTime::from_secs(60 * minute)).unwrap();
        }
        block(daemon.cycle()).unwrap();
        block(daemon.engine_mut().snapshot()).unwrap()
    };
    let half: Vec<String> = (0..10).map(|node| format!("n{node}")).collect();
    minute(&mut daemon, 1);
    let lost = ran_on(&minute(&mut daemon, 2), &half);
    assert_eq!(lost.len(), 70);
    calm.store(false, Ordering::Relaxed);
    daemon.engine_mut().silent.clone_from(&half);
    for at in 3..13 {
        let seen = minute(&mut daemon, at);
        assert!(started_again(&seen, &lost) <= 7, "minute {at}: more than a tenth is moved");
    }
    daemon.engine_mut().silent.clear();
    calm.store(true, Ordering::Relaxed);
    let mut at = 13;
    while !daemon.engine_mut().inner.is_complete() {
        let seen = minute(&mut daemon, at);
        let again = started_again(&seen, &lost);
        assert_eq!(again, 7, "minute {at}: the others go on where they are");
        at += 5;
    }
    let outcome = daemon.engine_mut().inner.outcome();
    assert!(outcome.jobs.iter().all(|job| job.finish.is_some()), "a job is lost");
}
