//! Drills of the daemon over the simulator: what may go wrong, with the number that has to hold.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests, which print what they counted")]
mod agents;
mod mass_failure;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use goodput_agents::compose;
use goodput_configs::live::deployment::{Deployment, Mode};
use goodput_configs::live::guard::GuardConfig;
use goodput_configs::live::policy::RelianceConfig;
use goodput_configs::reader;
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::guard::Guard;
use goodput_env::job::{Elasticity, JobId, JobRequest, JobSpec, Work, Workload};
use goodput_env::placement::{Placement, ShareRequest};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use goodput_executor::daemon::decide::chooser::Chooser;
use goodput_executor::daemon::failpoint::PLACES;
use goodput_executor::daemon::guard::rules::{Circumstances, Rule, admit};
use goodput_executor::daemon::interface::audit;
use goodput_executor::daemon::observe::{ClusterObserver, Setting};
use goodput_executor::daemon::{Daemon, DaemonError};
use goodput_executor::engine::Engine;
use goodput_executor::engine::sim::SimEngine;
use rand::RngExt;

use goodput_testkit::jobs::{RandomSource, application, jobs};

fn scenario(seed: u64, count: u32) -> Scenario {
    let options = SimOptions { information: Information::Oracle, ..SimOptions::standard() };
    let secs = |random: &mut RandomSource| Work::Fixed { duration: SimTime::from_secs(random.random_range(60..1500)) };
    let jobs = jobs(seed, count, 40_000, secs);
    let workload = Arc::new(Workload::new(vec![application()], jobs));
    Scenario::new(Arc::new(Cluster::parse("gpu:4x8").unwrap()), workload, options, seed)
}

fn settings(directory: &Path, text: &str) -> Deployment {
    let directory = directory.display();
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\n[policy]\nname = \"srtf\"\n[state]\ndirectory = \"{directory}\"\nname = \"a\"\n[api]\nlisten = \"\"\n[guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\n{text}"
    );
    reader::parse("drill.toml", &text).unwrap()
}

fn observer(scenario: &Scenario) -> ClusterObserver {
    let Scenario { workload, options, .. } = scenario;
    let (applications, tenants) = (workload.applications.clone(), workload.tenants.clone());
    let setting = Setting { applications, tenants, options: options.clone(), speedup: 1.0, start: SimTime::ZERO };
    ClusterObserver::new(setting).since(0)
}

fn chooser(policy: Box<dyn Policy>, reliance: RelianceConfig) -> Chooser {
    let fallback = compose::by_name(&reliance.fallback, 0).unwrap();
    Chooser::new(reliance, ("tested", policy), fallback, None).unwrap()
}

fn patient() -> RelianceConfig {
    // A busy machine is no fault of a policy.
    RelianceConfig { timeout_ms: 20_000, ..RelianceConfig::default() }
}

fn daemon(engine: SimEngine, scenario: &Scenario, directory: &Path, policy: &str) -> Daemon<SimEngine> {
    let policy = compose::by_name(policy, 0).unwrap();
    Daemon::new(engine, settings(directory, ""), observer(scenario), chooser(policy, patient())).unwrap()
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Lets the daemon run the whole workload: a turn at each moment at which something happens, and
/// again until all orders are carried out.
async fn run_to_end(daemon: &mut Daemon<SimEngine>) -> Result<(), DaemonError> {
    while !daemon.engine_mut().is_complete() {
        let mut turns = 0;
        while daemon.cycle().await?.open > 0 {
            turns += 1;
            assert!(turns < 20, "orders are never carried out");
        }
        let now = daemon.engine_mut().simulator().now();
        let round = SimTime::from_millis((now.as_millis() / 60_000 + 1) * 60_000);
        daemon.engine_mut().advance(round).unwrap();
    }
    Ok(())
}

/// Jobs of the workload that never came to their end; the drill prints how many, and none may be.
fn lost(drill: &str, engine: &SimEngine) -> usize {
    let jobs = engine.outcome().jobs;
    let lost = jobs.iter().filter(|job| job.finish.is_none()).count();
    println!("drill {drill}: {} jobs, {lost} lost", jobs.len());
    lost
}

#[test]
fn the_daemon_over_the_simulator_is_the_simulation() {
    for policy in ["fifo", "srtf", "tiresias"] {
        let scenario = scenario(7, 60);
        let mut direct = compose::by_name(policy, 0).unwrap();
        let expected = Simulator::new(Arc::new(scenario.clone())).run(&mut *direct).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut daemon = daemon(SimEngine::new(scenario.clone()), &scenario, directory.path(), policy);
        block(run_to_end(&mut daemon)).unwrap();
        let outcome = daemon.engine_mut().outcome();
        assert_eq!(outcome.jobs, expected.jobs, "{policy}");
        assert!(outcome.jobs.iter().all(|job| job.finish.is_some()));
        let lines = audit::verify(&directory.path().join("audit.jsonl")).unwrap().lines;
        assert!(lines > 50, "{lines} lines of audit");
    }
}

/// Jobs on parts of accelerators come to the accelerators that the policy chose, and no part is given twice.
#[test]
fn the_daemon_places_parts_as_the_simulation_does() {
    for policy in ["fgd", "hami-binpack", "hami-spread"] {
        let mut scenario = scenario(9, 60);
        Arc::make_mut(&mut scenario.cluster).types[0].memory_mib = Some(15_109);
        for (index, job) in
            Arc::make_mut(&mut scenario.workload).jobs.iter_mut().enumerate().filter(|(at, _)| at % 3 > 0)
        {
            let share = ShareRequest { compute_percent: 15 + 7 * (index as u32 % 10), memory_mib: 3_000 };
            (job.request.share, job.request.gpus, job.request.elasticity) = (Some(share), 1, Elasticity::Rigid);
        }
        let mut direct = compose::by_name(policy, 0).unwrap();
        let expected = Simulator::new(Arc::new(scenario.clone())).run(&mut *direct).unwrap();
        assert!(expected.shared.joint_card_millis > 0 && expected.shared.over_committed == 0, "{:?}", expected.shared);
        let directory = tempfile::tempdir().unwrap();
        let mut daemon = daemon(SimEngine::new(scenario.clone()), &scenario, directory.path(), policy);
        block(run_to_end(&mut daemon)).unwrap();
        let outcome = daemon.engine_mut().outcome();
        assert_eq!((&outcome.jobs, outcome.shared), (&expected.jobs, expected.shared), "{policy}");
    }
}

/// Drill 1, within one process: at least 200 deaths at random places, and the work is done all the
/// same.
#[test]
fn killed_at_every_failpoint_it_goes_on() {
    let deaths = Arc::new(AtomicUsize::new(0));
    let by_place = Arc::new([const { AtomicUsize::new(0) }; PLACES.len()]);
    for seed in 0..80 {
        let scenario = scenario(seed, 12);
        let directory = tempfile::tempdir().unwrap();
        let mut engine = SimEngine::new(scenario.clone());
        let mut random = rng(seed, Stream::Faults);
        let mut last_term = 0;
        for life in 0.. {
            let mut daemon = daemon(engine, &scenario, directory.path(), "srtf");
            let (place, mut left) = (random.random_range(0..PLACES.len()), random.random_range(0..6));
            if life < 6 {
                let (deaths, by_place) = (deaths.clone(), by_place.clone());
                daemon.set_hook(Box::new(move |at| {
                    left -= i32::from(at == PLACES[place]);
                    let dies = at == PLACES[place] && left < 0;
                    deaths.fetch_add(usize::from(dies), Ordering::Relaxed);
                    by_place[place].fetch_add(usize::from(dies), Ordering::Relaxed);
                    dies
                }));
            }
            let ended = block(run_to_end(&mut daemon));
            let term = daemon.journal().lease().unwrap().term;
            assert!(term > last_term, "each life leads in a term of its own");
            last_term = term;
            let starts_seen = block(daemon.engine_mut().snapshot()).unwrap();
            for node in &starts_seen.nodes {
                let on = starts_seen
                    .jobs
                    .iter()
                    .filter_map(|job| job.attempt.as_ref())
                    .flat_map(|attempt| &attempt.placement);
                let held: u32 = on.filter(|on| on.node == node.name).map(|on| on.gpus).sum();
                assert!(held + node.free == node.gpus, "an accelerator is held twice, or by nobody");
            }
            match ended {
                Ok(()) => {
                    let outcome = daemon.engine_mut().outcome();
                    assert!(outcome.jobs.iter().all(|job| job.finish.is_some()), "a job is lost");
                    assert_eq!(daemon.journal().counts().unwrap()[0], 0, "an order is open for ever");
                    break;
                }
                Err(DaemonError::Drill(_)) => engine = daemon.into_engine(),
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        audit::verify(&directory.path().join("audit.jsonl")).unwrap();
    }
    assert!(deaths.load(Ordering::Relaxed) >= 200, "only {} deaths", deaths.load(Ordering::Relaxed));
    assert!(by_place.iter().all(|deaths| deaths.load(Ordering::Relaxed) >= 20), "{by_place:?}");
    println!("{} deaths of 80 workloads of 12 jobs", deaths.load(Ordering::Relaxed));
}

/// Plans that no sound policy makes.
struct Fuzz {
    seed: u64,
    asked: u64,
}

impl Policy for Fuzz {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.asked += 1;
        let mut random = rng(self.seed.wrapping_add(self.asked), Stream::Policy);
        let mut plan = Plan::keep();
        let wild = random.random_bool(0.5);
        for job in view.jobs() {
            if random.random_bool(if wild { 0.4 } else { 0.9 }) {
                continue;
            }
            let (nodes, most) = if wild {
                (view.cluster().nodes.len() as u32 + 1, 12)
            } else {
                (view.cluster().nodes.len() as u32, job.request().gpus)
            };
            let count = if wild { random.random_range(0..=2) } else { 1 };
            let slices: Placement =
                (0..count).map(|_| (NodeId(random.random_range(0..nodes)), random.random_range(0..=most))).collect();
            let id = if wild && random.random_bool(0.1) { JobId(random.random_range(0..200)) } else { job.id() };
            plan.set(id, slices);
        }
        if wild && random.random_bool(0.05) {
            plan.lend(NodeId(random.random_range(0..6)));
        }
        plan
    }
}

/// Drill 12: of 10,000 fuzzed plans nothing invalid is carried out.
#[test]
fn no_plan_however_wild_does_harm() {
    let (mut plans, mut invalid, mut carried_out, mut held_back) = (0, 0, 0_usize, 0_usize);
    let (mut jobs, mut lost) = (0, 0);
    for seed in 0..50 {
        let scenario = Arc::new(scenario(seed, 40));
        let mut simulator = Simulator::new(scenario.clone());
        let mut fuzz = Fuzz { seed: seed * 1_000_000, asked: 0 };
        let mut srtf = compose::by_name("srtf", 0).unwrap();
        let mut guard = Guard::default();
        let rules = GuardConfig::default();
        let mut random = rng(seed, Stream::Faults);
        while plans < (seed + 1) * 200 && simulator.run_until_decision().unwrap() == goodput_env::sim::Status::Decision
        {
            for _ in 0..3 {
                plans += 1;
                let plan = fuzz.decide(&simulator.view());
                let vanished =
                    simulator.view().jobs().map(|job| job.id()).filter(|_| random.random_bool(0.3)).collect();
                let about =
                    Circumstances { vanished, vanished_budget: random.random_range(0..3), ..Default::default() };
                match admit(&rules, &mut guard, &simulator.view(), &plan, &about) {
                    Err(violations) => {
                        assert!(!violations.is_empty());
                        invalid += 1;
                    }
                    Ok((kept, left_out)) => {
                        let view = simulator.view();
                        Guard::default().check(&view, &kept).expect("what is kept is valid");
                        assert!(kept.changes.len() + left_out.len() <= plan.changes.len() + 1);
                        let moved: u32 =
                            kept.changes.iter().filter_map(|change| view.job(change.job)).map(|job| job.gpus()).sum();
                        assert!(moved <= 8, "more than the largest job is moved at once: {moved}");
                        let vanished =
                            kept.changes.iter().filter(|change| about.vanished.contains(&change.job)).count();
                        assert!(vanished <= about.vanished_budget, "{vanished} jobs of lost nodes are changed");
                        let back = left_out.iter().filter(|(_, rule)| *rule == Rule::MassFailure);
                        let back: Vec<JobId> = back.filter_map(|(job, _)| *job).collect();
                        assert!(back.iter().all(|job| about.vanished.contains(job)), "a job that lost nothing waits");
                        held_back += back.len();
                        carried_out += kept.changes.len();
                        simulator.apply(&kept).unwrap();
                    }
                }
            }
            let plan = srtf.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
        }
        // Whatever the wild plans left behind, a sound policy brings every job to its end.
        while simulator.run_until_decision().unwrap() == goodput_env::sim::Status::Decision {
            let plan = srtf.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
        }
        let outcome = simulator.outcome();
        jobs += outcome.jobs.len();
        lost += outcome.jobs.iter().filter(|job| job.finish.is_none()).count();
    }
    println!("drill 12a: {plans} plans, {jobs} jobs, {lost} lost");
    assert_eq!((jobs, lost), (2_000, 0));
    assert!(
        plans >= 10_000 && invalid > 2_000 && carried_out > 500 && held_back > 50,
        "{plans} plans, {invalid} invalid, {carried_out} changes, {held_back} held back"
    );
}

/// A change that finds no room gives back what it took of a budget: else a plan in which jobs change places is refused
/// as a whole, round after round.
#[test]
fn a_change_without_room_leaves_its_budget_to_the_others() {
    let job = |name: &str, gpus| {
        let request = JobRequest { name: name.into(), gpus, ..JobRequest::default() };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(1000) } }
    };
    let workload = Arc::new(Workload::new(vec![], vec![job("large", 4), job("small", 2)]));
    let cluster = Arc::new(Cluster::parse("gpu:2x4").unwrap());
    let mut simulator = Simulator::new(Arc::new(Scenario::new(cluster, workload, SimOptions::standard(), 1)));
    simulator.run_until_decision().unwrap();
    let (large, small) = (JobId(0), JobId(1));
    let plan = |changes: [(JobId, Placement); 2]| {
        let mut plan = Plan::keep();
        changes.into_iter().for_each(|(job, placement)| plan.set(job, placement));
        plan
    };
    simulator.apply(&plan([(large, Placement::on(NodeId(0), 4)), (small, Placement::on(NodeId(1), 2))])).unwrap();
    // Four accelerators may be left at once, as many as the largest job has, and the large job comes first.
    let swap = plan([(large, Placement::on(NodeId(1), 4)), (small, Placement::none())]);
    let rules = GuardConfig { min_run_secs: 0.0, preempt_every_secs: 0.0, preempt_percent: 25.0, ..Default::default() };
    let view = simulator.view();
    let (kept, left_out) = admit(&rules, &mut Guard::default(), &view, &swap, &Circumstances::default()).unwrap();
    assert_eq!(left_out, [(Some(large), Rule::NoRoom)]);
    let kept: Vec<(JobId, u32)> = kept.changes.iter().map(|change| (change.job, change.placement.gpus())).collect();
    assert_eq!(kept, [(small, 0)]);
}

/// Misbehaves in one way from the `after`-th question on.
struct Bad {
    how: &'static str,
    asked: u32,
}

impl Policy for Bad {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.asked += 1;
        match self.how {
            "panics" => panic!("a policy may panic"),
            "sleeps" => std::thread::sleep(Duration::from_secs(60)),
            "over-allocates" => {
                let mut plan = Plan::keep();
                view.jobs().for_each(|job| plan.set(job.id(), Placement::on(NodeId(0), 64)));
                return plan;
            }
            _ => {}
        }
        Plan::keep()
    }
}

/// Drill 12: whichever policy decides, the work is done, from the first cycle on.
#[test]
fn a_bad_policy_is_replaced_in_the_same_cycle() {
    for how in ["panics", "sleeps", "over-allocates"] {
        let scenario = scenario(3, 20);
        let directory = tempfile::tempdir().unwrap();
        let reliance = RelianceConfig { timeout_ms: 1500, fallback: "srtf".into(), ..RelianceConfig::default() };
        let chooser = chooser(Box::new(Bad { how, asked: 0 }), reliance);
        let mut daemon =
            Daemon::new(SimEngine::new(scenario.clone()), settings(directory.path(), ""), observer(&scenario), chooser)
                .unwrap();
        daemon.engine_mut().advance(SimTime::from_secs(120)).unwrap();
        let began = Instant::now();
        let report = block(daemon.cycle()).unwrap();
        assert!(report.decided && report.ordered > 0, "{how}: the fallback decided nothing");
        assert!(began.elapsed() < Duration::from_secs(30), "{how}");
        let text = daemon.metrics().text();
        assert!(text.contains("goodput_fallback_active 1"), "{how}");
        block(run_to_end(&mut daemon)).unwrap();
        assert!(daemon.engine_mut().outcome().jobs.iter().all(|job| job.finish.is_some()), "{how}");
        assert!(daemon.status().lock().unwrap().alerts.iter().any(|alert| alert.starts_with("fallback")), "{how}");
    }
}

/// Takes 700 ms for one question, and decides as FIFO.
struct SlowOnce {
    fifo: Box<dyn Policy>,
    slow_at: u32,
    asked: u32,
}

impl Policy for SlowOnce {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.asked += 1;
        if self.asked == self.slow_at {
            std::thread::sleep(Duration::from_millis(700));
        }
        self.fifo.decide(view)
    }
}

/// A policy may learn the past at its first decision, and has the time of the deployment file from then on.
#[test]
fn the_first_decision_of_a_policy_has_more_time() {
    for (slow_at, fallback) in [(1, "0"), (2, "1")] {
        let scenario = scenario(3, 20);
        let directory = tempfile::tempdir().unwrap();
        let reliance = RelianceConfig { timeout_ms: 200, fallback: "srtf".into(), ..RelianceConfig::default() };
        let policy = SlowOnce { fifo: compose::by_name("fifo", 0).unwrap(), slow_at, asked: 0 };
        let chooser = chooser(Box::new(policy), reliance);
        let mut daemon =
            Daemon::new(SimEngine::new(scenario.clone()), settings(directory.path(), ""), observer(&scenario), chooser)
                .unwrap();
        for secs in [120, 180] {
            daemon.engine_mut().advance(SimTime::from_secs(secs)).unwrap();
            assert!(block(daemon.cycle()).unwrap().decided);
        }
        let text = daemon.metrics().text();
        assert!(text.contains(&format!("goodput_fallback_active {fallback}")), "slow at {slow_at}: {text}");
    }
}

/// Drill 11: with a full disk nothing is done, the mode is observe, and what was written is intact
/// when there is room again.
#[test]
fn a_full_disk_stops_the_daemon_and_nothing_else() {
    let scenario = scenario(5, 40);
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = daemon(SimEngine::new(scenario.clone()), &scenario, directory.path(), "srtf");
    daemon.engine_mut().advance(SimTime::from_secs(200)).unwrap();
    assert!(block(daemon.cycle()).unwrap().ordered > 0);
    daemon.journal().bound_size(Some(0)).unwrap();
    let mut failed = None;
    for minute in 4..60 {
        daemon.engine_mut().advance(SimTime::from_secs(60 * minute)).unwrap();
        let before = block(daemon.engine_mut().snapshot()).unwrap();
        if let Err(error) = block(daemon.cycle()) {
            let after = block(daemon.engine_mut().snapshot()).unwrap();
            assert_eq!(before.jobs, after.jobs, "something was done without a journal");
            failed = Some(error);
            break;
        }
    }
    assert!(matches!(failed, Some(DaemonError::Journal(_))), "{failed:?}");
    assert_eq!(daemon.mode(), Mode::Observe);
    assert!(daemon.metrics().text().contains("goodput_alerts_total{kind=\"journal\"} 1"));
    daemon.journal().bound_size(None).unwrap();
    block(daemon.set_mode("drill", Mode::Act)).unwrap();
    block(run_to_end(&mut daemon)).unwrap();
    assert!(daemon.engine_mut().outcome().jobs.iter().all(|job| job.finish.is_some()), "a job is lost");
}

/// Drill 5: of two daemons one acts; the one that was paused finds its term over and does nothing.
#[test]
fn a_deposed_leader_does_nothing() {
    let scenario = scenario(9, 30);
    let directory = tempfile::tempdir().unwrap();
    let with = |name: &str, engine: SimEngine| {
        let mut settings = settings(directory.path(), "");
        settings.state.name = Some(name.into());
        settings.state.lease_secs = 1;
        let policy = compose::by_name("srtf", 0).unwrap();
        Daemon::new(engine, settings, observer(&scenario), chooser(policy, patient())).unwrap()
    };
    let mut engine = SimEngine::new(scenario.clone());
    engine.advance(SimTime::from_secs(100)).unwrap();
    let mut old = with("old", engine.clone());
    let mut new = with("new", engine);
    assert!(block(old.cycle()).unwrap().leads);
    let report = block(new.cycle()).unwrap();
    assert!(!report.leads && report.ordered == 0, "the second stands by: {report:?}");
    // The old leader is paused for longer than its lease.
    std::thread::sleep(Duration::from_millis(1200));
    assert!(block(new.cycle()).unwrap().leads, "the second takes over");
    old.engine_mut().advance(SimTime::from_secs(300)).unwrap();
    let before = block(old.engine_mut().snapshot()).unwrap();
    let woken = block(old.cycle());
    assert!(!woken.is_ok_and(|report| report.leads), "the old leader still leads");
    let after = block(old.engine_mut().snapshot()).unwrap();
    assert_eq!(before.jobs, after.jobs, "the old leader acted");
    assert!(block(new.cycle()).unwrap().leads);
    assert_eq!(new.journal().lease().unwrap().term, 2);
    // The old one is gone for good, and every job comes to its end under the new one.
    drop(old);
    block(run_to_end(&mut new)).unwrap();
    assert_eq!(lost("5", new.engine_mut()), 0);
}

/// Drill 13: the wall clock jumps by an hour; no lease expires, no job is moved for it.
#[test]
fn a_jump_of_the_clock_changes_nothing() {
    let scenario = scenario(11, 30);
    let directory = tempfile::tempdir().unwrap();
    let mut engine = SimEngine::new(scenario.clone());
    engine.advance(SimTime::from_secs(600)).unwrap();
    let mut observer = observer(&scenario);
    let mut snapshot = block(engine.snapshot()).unwrap();
    let before = observer.read(&snapshot, &[]).unwrap().view().now;
    for jump in [3_600_000, -7_200_000] {
        snapshot.at_ms += jump;
        snapshot.version += 1;
        let cluster = observer.read(&snapshot, &[]).unwrap();
        assert!(cluster.view().now >= before, "the policy's clock went back");
        assert!(cluster.view().jobs().all(|job| job.age() >= SimTime::ZERO));
    }
    // Leases go by the monotonic clock of each daemon: nothing of the snapshot's clock reaches
    // them.
    let mut daemon = daemon(engine, &scenario, directory.path(), "fifo");
    assert!(block(daemon.cycle()).unwrap().leads);
    assert!(block(daemon.cycle()).unwrap().leads);
    assert_eq!(daemon.journal().lease().unwrap().term, 1);
    block(run_to_end(&mut daemon)).unwrap();
    assert_eq!(lost("13", daemon.engine_mut()), 0);
}

/// The stop file is obeyed at the next turn, before anything else is done.
#[test]
fn a_stop_file_stops_it() {
    let scenario = scenario(13, 30);
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = daemon(SimEngine::new(scenario.clone()), &scenario, directory.path(), "srtf");
    daemon.engine_mut().advance(SimTime::from_secs(300)).unwrap();
    std::fs::write(directory.path().join("STOP"), "").unwrap();
    let before = block(daemon.engine_mut().snapshot()).unwrap();
    assert!(block(daemon.cycle()).unwrap().ordered > 0, "it still decides");
    assert_eq!(before.jobs, block(daemon.engine_mut().snapshot()).unwrap().jobs, "and does nothing");
    let status = daemon.status();
    let waits = |reason: &str| status.lock().unwrap().queue.iter().any(|row| row.reason == reason);
    assert!(waits("mode"), "explain says why");
    std::fs::remove_file(directory.path().join("STOP")).unwrap();
    daemon.engine_mut().advance(SimTime::from_secs(360)).unwrap();
    block(daemon.cycle()).unwrap();
    assert_ne!(before.jobs, block(daemon.engine_mut().snapshot()).unwrap().jobs);
}
