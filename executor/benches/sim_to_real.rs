//! One trace in simulation, on real Slurm, on node agents and on a control plane of Kubernetes: 60 jobs on four nodes
//! with eight accelerators each, real processes, time compressed 60 times.
//!
//! First the cost of an action is measured: from submission to the first line of the program on an
//! empty cluster. The simulator is given that cost and the daemon's period; then mean completion
//! times are compared. `GOODPUT_BUNDLE` names a bundle to compare beside the heuristics;
//! `GOODPUT_JOBS` the number of jobs; `GOODPUT_LOGS` a directory for both lives of every job, start
//! by start. Words after `--` choose rows, by machines (`slurm`, `agents`, `kubernetes`) and by policy.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

#[path = "../tests/nodes/mod.rs"]
mod nodes;
#[path = "site/mod.rs"]
mod site;
#[path = "site/agents.rs"]
mod site_agents;
#[path = "site/kubernetes.rs"]
mod site_kubernetes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose;
use goodput_env::cluster::Cluster;
use goodput_env::gym::ExpectedPeak;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_executor::engine::{Engine, EngineAction, OnNode, Order};
use rand::RngExt;
use site::Site;

/// Factor by which the trace is played faster than its own time.
const SPEEDUP: f64 = 60.0;
/// Resizes that are measured apart.
const RESIZES: usize = 8;
/// Policies beside the bundle, which has the name `bundle`.
const POLICIES: [&str; 5] = ["fifo", "srtf", "las", "tiresias", "pollux-fast"];
/// Seconds of the trace between two decisions when nothing happens.
const ROUND: f64 = 60.0;

/// Times are the trace's.
fn trace(jobs: u32) -> Vec<JobSpec> {
    let mut random = rng(60, Stream::Workload);
    let mut submit = 0.0;
    let job = |index: u32| {
        submit += -45.0 * (1.0 - random.random::<f64>()).ln();
        let gpus = [1, 1, 2, 2, 4, 4, 8][random.random_range(0..7)];
        let elastic = random.random_bool(0.5);
        let elasticity = if elastic { Elasticity::Elastic { min: 1, max: 2 * gpus } } else { Elasticity::Rigid };
        let duration = SimTime::from_secs(random.random_range(180..1200));
        let request = JobRequest {
            name: format!("job-{index}"),
            submit: SimTime::from_secs_f64(submit),
            gpus,
            elasticity,
            ..JobRequest::default()
        };
        JobSpec { request, work: Work::Fixed { duration } }
    };
    (0..jobs).map(job).collect()
}

fn policy(name: &str) -> Box<dyn Policy> {
    match compose::by_name(name, 0) {
        Some(policy) => policy,
        None => PolicyBundle::load(&PathBuf::from(name)).unwrap().policy(ExpectedPeak::default()).unwrap(),
    }
}

/// Times of one life of the trace, seconds of it.
#[derive(Default)]
struct Life {
    mean_jct: f64,
    restarts: u32,
    /// Job, accelerators from now on or what the job said, and when.
    log: Vec<(usize, String, f64)>,
}

/// The trace in simulation.
fn simulated(name: &str, jobs: &[JobSpec], cost: SimTime) -> Life {
    let mut policy = policy(name);
    let rounds = Rounds { period: Some(SimTime::from_secs_f64(ROUND)), on_churn: true };
    let switch_cost = SwitchCost::Constant { millis: cost.as_millis() };
    let information = Information::Estimate { sigma: 0.0 };
    let options = SimOptions {
        rounds,
        switch_cost,
        information,
        batching: policy.batching(),
        log_allocations: true,
        ..SimOptions::standard()
    };
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add("a100", 4, 8);
    let scenario = Scenario::new(Arc::new(cluster), Arc::new(Workload::new(Vec::new(), jobs.to_vec())), options, 0);
    let outcome = Simulator::new(Arc::new(scenario)).run(&mut *policy).unwrap();
    let total: f64 = outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64()).sum();
    let log = outcome.allocations.iter().map(|a| (a.job.index(), a.gpus.to_string(), a.at.as_secs_f64())).collect();
    Life { mean_jct: total / jobs.len() as f64, restarts: outcome.jobs.iter().map(|job| job.restarts).sum(), log }
}

const CYCLE: &str = "[cycle]\npoll_secs = 0.1\nround_secs = 60\nspeedup = 60\n[guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\n";

/// Runs the trace with real processes.
fn real<E: Engine, M>(site: &Site<M>, engine: E, name: &str, jobs: &[JobSpec]) -> Life {
    let who = if compose::by_name(name, 0).is_some() { "name" } else { "bundle" };
    let mut daemon = site.daemon(engine, &format!("[policy]\n{who} = {name:?}\n{CYCLE}"));
    let (began, zero) = (Instant::now(), site::now_ms());
    let mut submitted: Vec<(String, i64)> = Vec::new();
    site::runtime().block_on(async {
        loop {
            while let Some(next) = jobs.get(submitted.len()) {
                let due = Duration::from_secs_f64(next.request.submit.as_secs_f64() / SPEEDUP);
                if began.elapsed() < due {
                    break;
                }
                let now = site::now_ms();
                let key = daemon.engine_mut().submit(&site.submission(next, SPEEDUP)).await.unwrap();
                submitted.push((key, now));
            }
            let _ = daemon.cycle().await;
            if submitted.len() == jobs.len() && site.ended() == jobs.len() {
                break;
            }
            assert!(
                began.elapsed() < Duration::from_secs(600),
                "not at the end: {:?}",
                daemon.status().lock().unwrap().queue
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    for alert in &daemon.status().lock().unwrap().alerts {
        println!("alert: {alert}");
    }
    let mut life = Life::default();
    for (index, (key, submit)) in submitted.iter().enumerate() {
        let (ended, starts) = site.witness(key);
        life.mean_jct += (ended - submit) as f64 / 1e3 * SPEEDUP / jobs.len() as f64;
        life.restarts += starts - 1;
        let secs = |at: i64| (at - zero) as f64 / 1e3 * SPEEDUP;
        life.log.push((index, "submit".into(), secs(*submit)));
        life.log.extend(site.log(key).into_iter().map(|(what, at)| (index, what, secs(at))));
    }
    life
}

/// Writes both lives of each job of a row, to show where simulation and reality part.
fn keep(file: &str, is_alive: [(&str, &Life); 2]) {
    let Ok(directory) = std::env::var("GOODPUT_LOGS") else { return };
    let mut text = String::from("life,job,what,secs\n");
    for (which, life) in is_alive {
        life.log.iter().for_each(|(job, what, secs)| text.push_str(&format!("{which},{job},{what},{secs:.3}\n")));
    }
    std::fs::write(PathBuf::from(directory).join(file), text).unwrap();
}

/// From submission to the first line of the program, milliseconds, the mean of a few, one at a
/// time.
fn action_cost<E: Engine, M>(site: &Site<M>, engine: E) -> f64 {
    let mut daemon = site.daemon(engine, &format!("[policy]\nname = \"fifo\"\n{CYCLE}"));
    let mut costs = Vec::new();
    site::runtime().block_on(async {
        for index in 0..8 {
            let request = JobRequest { name: format!("cost-{index}"), gpus: 2, ..JobRequest::default() };
            let job = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(30) } };
            let now = site::now_ms();
            let key = daemon.engine_mut().submit(&site.submission(&job, SPEEDUP)).await.unwrap();
            while site.ended() <= index {
                let _ = daemon.cycle().await;
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert!(now + 60_000 > site::now_ms(), "{:?}", daemon.status().lock().unwrap().queue);
            }
            costs.push((site.first_line(&key).unwrap() - now) as f64);
        }
    });
    costs.sort_by(f64::total_cmp);
    println!("submission to first line, ms: {costs:?}");
    costs.iter().sum::<f64>() / costs.len() as f64
}

/// From the order that resizes a running job to the first line of the program on its new accelerators, milliseconds,
/// the mean of a few, one at a time; the steps on the way are printed. The engine is driven as a daemon drives it.
fn resize_cost<E: Engine, M>(site: &Site<M>, mut engine: E) -> f64 {
    let request = JobRequest {
        name: "resized".into(),
        gpus: 2,
        elasticity: Elasticity::Elastic { min: 1, max: 4 },
        ..JobRequest::default()
    };
    let job = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(86_400) } };
    let (mut left, mut empty, mut all) = (Vec::new(), Vec::new(), Vec::new());
    site::runtime().block_on(async {
        let key = engine.submit(&site.submission(&job, SPEEDUP)).await.unwrap();
        for round in 0..=RESIZES {
            let gpus = if round % 2 == 0 { 2 } else { 4 };
            let (began, mut order, mut held_until) = (site::now_ms(), None, None);
            let started = |site: &Site<M>| site.log(&key).iter().filter(|(what, _)| what == "start").count() > round;
            while !started(site) {
                let snapshot = engine.snapshot().await.unwrap();
                if let Some(seen) = snapshot.jobs.iter().find(|seen| seen.key == key) {
                    let order = order.get_or_insert_with(|| {
                        let node = snapshot.nodes[round % snapshot.nodes.len()].name.clone();
                        let placement = vec![OnNode { node, gpus, ..OnNode::default() }];
                        let action = match round {
                            0 => EngineAction::Place { placement, share: None },
                            _ => EngineAction::Resize { placement, grace_s: 5 },
                        };
                        Order::named(&format!("resize-{round}"), &key, seen.starts, action)
                    });
                    if !seen.phase.holds() {
                        held_until.get_or_insert_with(site::now_ms);
                    }
                    engine.apply(std::slice::from_ref(order)).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert!(began + 60_000 > site::now_ms(), "round {round}: {snapshot:?}");
            }
            let log = site.log(&key);
            let last = |word: &str| log.iter().rfind(|(what, _)| what == word).map_or(began, |(_, at)| *at);
            if round > 0 {
                left.push(last("stop") - began);
                empty.push(held_until.unwrap_or(began) - began);
                all.push(last("start") - began);
            }
            // The program works for a while, and its start is seen.
            for _ in 0..10 {
                engine.snapshot().await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        let cancel = Order::named("cancel", &key, RESIZES as u32 + 1, EngineAction::Cancel { grace_s: 5 });
        while engine.snapshot().await.unwrap().jobs.iter().any(|seen| seen.key == key && !seen.phase.is_over()) {
            engine.apply(std::slice::from_ref(&cancel)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    println!("a resize, ms: last line of the old attempt {left:?}, accelerators free {empty:?}, first line {all:?}");
    all.iter().sum::<i64>() as f64 / all.len() as f64
}

const MACHINES: [&str; 3] = ["slurm", "agents", "kubernetes"];

fn words() -> Vec<String> {
    std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect()
}

/// Whether a row is asked for: by machines and by policy, where either is named.
fn chosen(machines: &str, policy: &str) -> bool {
    let words = words();
    let among = |of: &[&str], this: &str| {
        !words.iter().any(|word| of.contains(&word.as_str())) || words.iter().any(|word| word == this)
    };
    let policies: Vec<&str> = POLICIES.into_iter().chain(["bundle"]).collect();
    among(&MACHINES, machines) && (policy.is_empty() || among(&policies, policy))
}

/// A row per policy: what simulation with the measured cost expects, and what was found.
fn compare(machines: &str, cost_ms: f64, jobs: &[JobSpec], mut found: impl FnMut(&str) -> Life) {
    let cost = SimTime::from_secs_f64(cost_ms * SPEEDUP / 1e3);
    println!("{machines}: an action costs {cost_ms:.0} ms, {:.1} s of the trace", cost.as_secs_f64());
    let bundle = std::env::var("GOODPUT_BUNDLE").ok();
    let policies = POLICIES.into_iter().map(|name| (name, Some(name)));
    for (row, name) in policies.chain([("bundle", bundle.as_deref())]) {
        let Some(name) = name.filter(|_| chosen(machines, row)) else { continue };
        let (free, expected) = (simulated(name, jobs, SimTime::ZERO), simulated(name, jobs, cost));
        let found = found(name);
        keep(&format!("{machines}-{row}.csv"), [("simulated", &expected), ("found", &found)]);
        println!(
            "| {machines} | {row} | {:.1} | {:.1} | {:.1} | {:+.1} % | {} | {} |",
            expected.mean_jct,
            free.mean_jct,
            found.mean_jct,
            100.0 * (found.mean_jct / expected.mean_jct - 1.0),
            expected.restarts,
            found.restarts
        );
    }
}

fn main() {
    let count = std::env::var("GOODPUT_JOBS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let known: Vec<&str> = MACHINES.into_iter().chain(POLICIES).chain(["bundle"]).collect();
    let unknown = words().into_iter().find(|word| !known.contains(&word.as_str()));
    assert_eq!(unknown, None, "rows are chosen by {}", known.join(", "));
    let jobs = trace(count);
    println!(
        "| machines | policy | simulator, mean JCT (s) | without cost (s) | found, mean JCT (s) | difference | restarts, simulator | restarts, found |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    if chosen("slurm", "") {
        let slurm = || Site::slurm(4, 8);
        let site = slurm();
        let cost_ms = action_cost(&site, site.engine());
        drop(site);
        compare("slurm", cost_ms, &jobs, |name| {
            let site = slurm();
            real(&site, site.engine(), name, &jobs)
        });
    }
    if chosen("agents", "") {
        let runtime = site::runtime();
        let site = Site::agents(&runtime);
        let cost_ms = action_cost(&site, site.engine());
        drop(site);
        compare("agents", cost_ms, &jobs, |name| {
            let site = Site::agents(&runtime);
            real(&site, site.engine(), name, &jobs)
        });
    }
    if chosen("kubernetes", "") {
        let runtime = site::runtime();
        let site = Site::kubernetes(&runtime);
        let cost_ms = action_cost(&site, site.engine());
        println!("kubernetes: a resize takes {:.0} ms", resize_cost(&site, site.engine()));
        drop(site);
        compare("kubernetes", cost_ms, &jobs, |name| {
            let site = Site::kubernetes(&runtime);
            real(&site, site.engine(), name, &jobs)
        });
    }
}
