//! Trained policies on clusters of other sizes than in training, with nodes that come and go.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which prints what it counted")]
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use goodput_agents::{compose, zoo};
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::policy::RelianceConfig;
use goodput_configs::reader;
use goodput_env::cluster::Cluster;
use goodput_env::gym::ExpectedPeak;
use goodput_env::job::{Work, Workload};
use goodput_env::model::fault::{FaultModel, LogNormal};
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use goodput_executor::daemon::Daemon;
use goodput_executor::daemon::decide::chooser::Chooser;
use goodput_executor::daemon::guard::screen::Screen;
use goodput_executor::daemon::observe::{ClusterObserver, Setting};
use goodput_executor::engine::sim::SimEngine;
use goodput_executor::engine::{Engine, EngineAction, Order, OrderId, StepOutcome};
use goodput_testkit::jobs::{RandomSource, application, jobs};
use rand::RngExt;

/// A week of jobs on `nodes` nodes of four accelerators. A node has a fault every two days, which
/// takes four hours to mend. Nodes are drained by [`Drains`].
fn week(nodes: u32) -> Scenario {
    let repair = LogNormal { median_secs: 14_400.0, sigma: 1.0 };
    let faults = Some(FaultModel { mtbf_hours: 24.0, repair, ..FaultModel::default() });
    let options = SimOptions { information: Information::Profiled, faults, ..SimOptions::standard() };
    let whole = |random: &mut RandomSource| Work::Application { index: 0, work_milli: random.random_range(200..8000) };
    let mean_gap_ms = 8 * 3_600_000 / i64::from(nodes);
    let workload = Workload::new(vec![application()], jobs(11, 21 * nodes, 2 * mean_gap_ms, whole));
    let cluster = Cluster::parse(&format!("gpu:{nodes}x4")).unwrap();
    Scenario::new(Arc::new(cluster), Arc::new(workload), options, 11)
}

fn daemon(scenario: &Scenario, directory: &Path, bundle: &str) -> Daemon<SimEngine> {
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\n[policy]\nbundle = \"{bundle}\"\n[state]\ndirectory = \"{}\"\n\
         name = \"a\"\n[api]\nlisten = \"\"\n[guard]\nmin_run_secs = 0\npreempt_every_secs = 0\n\
         preempt_percent = 100\nmass_failure_percent = 100\n",
        directory.display()
    );
    let settings = reader::parse::<Deployment>("week.toml", &text).unwrap();
    // A busy machine is no fault of a policy.
    let reliance = RelianceConfig { timeout_ms: 20_000, ..RelianceConfig::default() };
    let fallback = compose::by_name(&reliance.fallback, 0).unwrap();
    let bundle = zoo::open(Path::new(bundle)).unwrap();
    let policy = bundle.policy(ExpectedPeak::default()).unwrap();
    let chooser = Chooser::new(reliance, ("bundle", policy), fallback, Some(Screen::new(&bundle))).unwrap();
    let Scenario { workload, options, .. } = scenario;
    let (applications, tenants) = (workload.applications.clone(), workload.tenants.clone());
    let setting = Setting { applications, tenants, options: options.clone(), speedup: 1.0, start: SimTime::ZERO };
    let observer = ClusterObserver::new(setting).since(0);
    Daemon::new(SimEngine::new(scenario.clone()), settings, observer, chooser).unwrap()
}

/// Drains by an operator: nodes chosen at random, each for four hours.
struct Drains {
    random: Box<RandomSource>,
    next: SimTime,
    /// Nodes and the ends of their drains, the first end first.
    open: VecDeque<(u32, SimTime)>,
    count: u32,
}

impl Drains {
    /// Hours between two drains, on 16 nodes; larger clusters have more in proportion.
    const EVERY_HOURS: f64 = 6.0;
    const HOURS: i64 = 4;

    fn new() -> Self {
        Self { random: Box::new(rng(5, Stream::Faults)), next: SimTime::ZERO, open: VecDeque::new(), count: 0 }
    }

    async fn act(&mut self, engine: &mut SimEngine, nodes: u32) {
        let now = engine.simulator().now();
        while self.open.front().is_some_and(|&(_, end)| end <= now) {
            let (node, _) = self.open.pop_front().unwrap();
            order(engine, EngineAction::Undrain { node: format!("n{node}") }).await;
        }
        while self.next <= now {
            self.next += SimTime::from_secs((Self::EVERY_HOURS * 3600.0 * 16.0 / f64::from(nodes)) as i64);
            let node = self.random.random_range(0..nodes);
            if self.open.iter().all(|&(open, _)| open != node) {
                order(engine, EngineAction::Drain { node: format!("n{node}"), reason: "maintenance".into() }).await;
                self.open.push_back((node, now + SimTime::from_secs(3600 * Self::HOURS)));
                self.count += 1;
            }
        }
    }
}

async fn order(engine: &mut SimEngine, action: EngineAction) {
    let order = Order { id: OrderId("operator".into()), job: String::new(), starts: 0, action };
    let receipts = engine.apply(&[order]).await.unwrap();
    assert_eq!(receipts[0].outcome, StepOutcome::Accepted);
}

/// Counts of the decisions of a live daemon.
#[derive(Debug, Default)]
struct Decisions {
    all: u32,
    of_fallback: u32,
    /// Decisions while an accelerator was out of service, or a node drained.
    below_strength: u32,
    /// Decisions while a node was drained.
    while_drained: u32,
    drains: u32,
}

async fn decisions(nodes: u32, hours: i64, bundle: &str) -> Decisions {
    let directory = tempfile::tempdir().unwrap();
    let scenario = week(nodes);
    let mut daemon = daemon(&scenario, directory.path(), bundle);
    let mut counts = Decisions::default();
    let mut drains = Drains::new();
    let end = SimTime::from_secs(3600 * hours);
    while !daemon.engine_mut().is_complete() && daemon.engine_mut().simulator().now() < end {
        drains.act(daemon.engine_mut(), nodes).await;
        for turn in 0.. {
            assert!(turn < 20, "orders are never carried out");
            let report = daemon.cycle().await.unwrap();
            if report.decided {
                counts.all += 1;
                counts.of_fallback += u32::from(!daemon.status().lock().unwrap().fallback.is_empty());
                let seen = daemon.engine_mut().simulator().observed();
                let failed = seen.cluster.total_gpus() < 4 * nodes || seen.down.iter().any(|&down| down > 0);
                let drained = !drains.open.is_empty();
                counts.below_strength += u32::from(failed || drained);
                counts.while_drained += u32::from(drained);
            }
            if report.open == 0 {
                break;
            }
        }
        let now = daemon.engine_mut().simulator().now();
        let round = SimTime::from_millis((now.as_millis() / 300_000 + 1) * 300_000);
        daemon.engine_mut().advance(round).unwrap();
    }
    counts.drains = drains.count;
    counts
}

/// Runs a bundle on each size, and checks that the bundle decides 99 % of the rounds, most of them below full
/// strength.
async fn decides(bundle: &str, sizes: &[(u32, i64)]) {
    for &(nodes, hours) in sizes {
        let counts = decisions(nodes, hours, bundle).await;
        println!("{bundle} on {nodes} nodes for {hours} h: {counts:?}");
        assert!(counts.all > 100 && 2 * counts.below_strength > counts.all, "{bundle}, {nodes} nodes: {counts:?}");
        assert!(counts.drains > 0 && counts.while_drained > 0, "{bundle}, {nodes} nodes: {counts:?}");
        assert!(100 * counts.of_fallback <= counts.all, "{bundle}, {nodes} nodes: {counts:?}");
    }
}

/// Names of the shipped policies that decide on clusters of every size: all but nets.
pub fn of_every_size() -> Vec<String> {
    let names = zoo::ZOO.iter().filter(|entry| !zoo::load(entry.name).unwrap().plays_rounds());
    names.map(|entry| format!("zoo:{}", entry.name)).collect()
}

#[tokio::test]
async fn a_trained_policy_decides_while_nodes_come_and_go() {
    decides("zoo:elastic", &[(8, 168), (14, 168), (16, 168), (128, 12)]).await;
}

/// One size each; the ignored test has all of them.
#[tokio::test]
async fn every_shipped_bundle_decides_while_nodes_come_and_go() {
    decides("zoo:capacity", &[(8, 72)]).await;
    decides("zoo:quickstart", &[(14, 72)]).await;
    decides("zoo:elastic-16", &[(14, 168)]).await;
    decides("zoo:heterogeneous", &[(8, 168)]).await;
    decides("zoo:mixed", &[(16, 168)]).await;
    decides("zoo:set-encoder", &[(8, 72)]).await;
}

#[tokio::test]
#[ignore = "takes a quarter of an hour on two busy cores"]
async fn every_shipped_bundle_decides_on_up_to_64_accelerators_for_a_week() {
    for bundle in of_every_size().iter().map(String::as_str).chain(["zoo:set-encoder"]) {
        decides(bundle, &[(8, 168), (14, 168), (16, 168)]).await;
    }
}

/// A net decides up to twice the size of training, so not on 512 accelerators.
#[tokio::test]
#[ignore = "takes an hour on two busy cores"]
async fn every_shipped_bundle_but_nets_decides_on_512_accelerators_for_a_week() {
    for bundle in of_every_size() {
        decides(&bundle, &[(128, 168)]).await;
    }
}

#[tokio::test]
async fn a_net_decides_from_half_to_twice_the_size_of_training() {
    for (nodes, decides) in [(4, false), (8, true), (14, true), (32, true), (48, false)] {
        let counts = decisions(nodes, 24, "zoo:set-encoder").await;
        println!("{nodes} nodes: {counts:?}");
        let expected = if decides { 0..=counts.all / 100 } else { counts.all..=counts.all };
        assert!(expected.contains(&counts.of_fallback), "{nodes} nodes: {counts:?}");
    }
}
