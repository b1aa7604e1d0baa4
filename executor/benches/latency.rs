//! Latency of the daemon: decision, guard and journal at 512 accelerators and 1,000 jobs; from
//! submission to start on real Slurm; 200 placements in one round on 64 nodes. `GOODPUT_BUNDLE`
//! names a bundle to be asked beside the heuristics.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

#[path = "site/mod.rs"]
mod site;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose;
use goodput_configs::live::policy::RelianceConfig;
use goodput_configs::reader;
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use goodput_executor::daemon::Daemon;
use goodput_executor::daemon::decide::chooser::Chooser;
use goodput_executor::daemon::observe::{ClusterObserver, Setting};
use goodput_executor::engine::Engine;
use goodput_executor::engine::sim::SimEngine;
use rand::RngExt;
use site::Site;

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

/// Decision, guard and journal with about 1,000 jobs on 512 accelerators.
fn decisions(policy: &str) {
    let mut random = rng(512, Stream::Workload);
    let job = |index: u32| {
        let gpus = [1, 2, 4, 8][random.random_range(0..4)];
        let elasticity =
            if index.is_multiple_of(2) { Elasticity::Rigid } else { Elasticity::Elastic { min: 1, max: 16 } };
        // 1,000 at once, then one every ten seconds.
        let submit = SimTime::from_secs(i64::from(index.saturating_sub(1000)) * 10);
        let request = JobRequest { name: format!("job-{index}"), submit, gpus, elasticity, ..JobRequest::default() };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(random.random_range(600..7200)) } }
    };
    let jobs: Vec<JobSpec> = (0..1400).map(job).collect();
    let options = SimOptions { information: Information::Estimate { sigma: 0.0 }, ..SimOptions::standard() };
    let workload = Arc::new(Workload::new(Vec::new(), jobs));
    let scenario = Scenario::new(Arc::new(Cluster::parse("a100:64x8").unwrap()), workload.clone(), options.clone(), 1);
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\n[policy]\nname = {policy:?}\n[state]\ndirectory = {:?}\n[api]\nlisten = \"\"\n[guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\n",
        directory.path().display().to_string()
    );
    let settings = reader::parse("bench.toml", &text).unwrap();
    let setting = Setting {
        applications: Vec::new(),
        tenants: workload.tenants.clone(),
        options,
        speedup: 1.0,
        start: SimTime::ZERO,
    };
    let reliance = RelianceConfig { timeout_ms: 20_000, ..RelianceConfig::default() };
    let deciding: Box<dyn Policy> = match compose::by_name(policy, 0) {
        Some(heuristic) => heuristic,
        None => Box::new(PolicyBundle::load(Path::new(policy)).unwrap().playing().unwrap()),
    };
    let chooser = Chooser::new(reliance, (policy, deciding), compose::by_name("fifo", 0).unwrap(), None).unwrap();
    let mut daemon =
        Daemon::new(SimEngine::new(scenario), settings, ClusterObserver::new(setting).since(0), chooser).unwrap();
    let runtime = site::runtime();
    let (mut times, mut cycles, mut active) = (Vec::new(), Vec::new(), 0);
    while times.len() < 400 {
        let now = daemon.engine_mut().simulator().now();
        daemon.engine_mut().advance(now + SimTime::from_secs(60)).unwrap();
        let began = Instant::now();
        let report = runtime.block_on(daemon.cycle()).unwrap();
        if report.decided {
            times.push(1e3 * report.deciding.as_secs_f64());
            cycles.push(1e3 * began.elapsed().as_secs_f64());
            active += daemon.engine_mut().simulator().view().active();
        }
    }
    println!(
        "| {policy} | {} | {:.1} | {:.1} | {:.1} |",
        active / times.len(),
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99),
        quantile(&mut cycles, 0.99)
    );
}

/// From submission to the first line of the program with the daemon in between.
fn submit_to_start() {
    let site = Site::slurm(4, 8);
    let mut daemon = site.daemon(site.engine(), "[policy]\nname = \"fifo\"\n[cycle]\npoll_secs = 0.1\n");
    let runtime = site::runtime();
    let mut submitter = site.engine();
    let mut times = Vec::new();
    for index in 0..30 {
        let request = JobRequest { name: format!("job-{index}"), ..JobRequest::default() };
        let job = JobSpec { request, work: Work::Fixed { duration: SimTime::from_millis(50) } };
        runtime.block_on(async {
            let now = site::now_ms();
            let key = submitter.submit(&site.submission(&job, 1.0)).await.unwrap();
            while site.first_line(&key).is_none() {
                let _ = daemon.cycle().await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            times.push((site.first_line(&key).unwrap() - now) as f64);
        });
    }
    println!(
        "submission to first line on Slurm, 30 jobs: p50 {:.0} ms, p95 {:.0} ms",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.95)
    );
}

/// 200 jobs on 64 nodes, placed in one round.
fn placements() {
    let site = Site::slurm(64, 8);
    let mut daemon = site.daemon(site.engine(), "[policy]\nname = \"fifo\"\n[cycle]\npoll_secs = 0.1\n");
    let runtime = site::runtime();
    let mut submitter = site.engine();
    runtime.block_on(async {
        for index in 0..200 {
            let request = JobRequest { name: format!("job-{index}"), gpus: 1 + index % 3, ..JobRequest::default() };
            let job = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(60) } };
            submitter.submit(&site.submission(&job, 1.0)).await.unwrap();
        }
        let began = Instant::now();
        let report = daemon.cycle().await.unwrap();
        println!(
            "a round of {} placements on 64 nodes, journal and Slurm's answers included: {:.2} s",
            report.ordered,
            began.elapsed().as_secs_f64()
        );
        loop {
            let seen = submitter.snapshot().await.unwrap();
            let running =
                seen.jobs.iter().filter(|job| job.phase == goodput_executor::engine::JobPhase::Running).count();
            if running >= report.ordered {
                println!("all of them seen running after {:.2} s", began.elapsed().as_secs_f64());
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "only {running} run");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
}

fn main() {
    println!(
        "| policy | active jobs | decision, guard and journal p50 (ms) | p99 (ms) | whole cycle p99 (ms) |\n|---|---|---|---|---|"
    );
    for policy in ["fifo", "srtf", "tiresias"] {
        decisions(policy);
    }
    if let Ok(bundle) = std::env::var("GOODPUT_BUNDLE") {
        decisions(&bundle);
    }
    submit_to_start();
    placements();
}
