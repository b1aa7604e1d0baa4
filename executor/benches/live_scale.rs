//! Time of a whole cycle on a large cluster: 1,000 nodes and 20,000 queued jobs beside 64 nodes and
//! 2,000, over the simulated engine, by part. `GOODPUT_BUNDLE` names a bundle to be asked beside the
//! heuristics.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::reader;
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use goodput_executor::daemon::decide::cycle::CycleReport;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::sim::SimEngine;
use rand::RngExt;

/// Minutes of simulated time after the first decision.
const MINUTES: usize = 30;

/// Jobs of 1 to 8 accelerators, half of them elastic, all there at once.
fn scenario(nodes: u32, jobs: u32) -> Scenario {
    let mut random = rng(u64::from(nodes), Stream::Workload);
    let job = |index: u32| {
        let gpus = [1, 2, 4, 8][random.random_range(0..4)];
        let elasticity =
            if index.is_multiple_of(2) { Elasticity::Rigid } else { Elasticity::Elastic { min: 1, max: 16 } };
        let request = JobRequest { name: format!("job-{index}"), gpus, elasticity, ..JobRequest::default() };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(random.random_range(600..7200)) } }
    };
    let workload = Workload::new(Vec::new(), (0..jobs).map(job).collect());
    let options = SimOptions { information: Information::Estimate { sigma: 0.0 }, ..SimOptions::standard() };
    Scenario::new(Arc::new(Cluster::parse(&format!("a100:{nodes}x8")).unwrap()), Arc::new(workload), options, 1)
}

fn open(scenario: Scenario, policy: &str, directory: &std::path::Path) -> Daemon<SimEngine> {
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\n[policy]\n{policy}\n[reliance]\ntimeout_ms = 60000\nfallback = \"fifo\"\n[state]\ndirectory = {:?}\n[api]\nlisten = \"\"\n[guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\n",
        directory.display().to_string()
    );
    let settings = reader::parse::<Deployment>("bench.toml", &text).unwrap();
    let tenants = scenario.workload.tenants.clone();
    daemon::open(SimEngine::new(scenario), settings, Vec::new(), tenants).unwrap()
}

/// One cycle: its whole time and its parts.
struct Timed {
    whole: Duration,
    report: CycleReport,
}

fn cycle(daemon: &mut Daemon<SimEngine>, runtime: &tokio::runtime::Runtime) -> Timed {
    let began = Instant::now();
    let report = runtime.block_on(daemon.cycle()).unwrap();
    Timed { whole: began.elapsed(), report }
}

/// Largest and median whole time, milliseconds, and the parts of the median cycle.
fn row(what: &str, mut cycles: Vec<Timed>) -> f64 {
    cycles.sort_by_key(|timed| timed.whole);
    let ms = |time: Duration| 1e3 * time.as_secs_f64();
    let (median, largest) = (&cycles[cycles.len() / 2], &cycles[cycles.len() - 1]);
    let CycleReport { looking, deciding, showing, acting, .. } = median.report;
    let rest = median.whole.saturating_sub(looking + deciding + showing + acting);
    println!(
        "| {what} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
        cycles.len(),
        ms(largest.whole),
        ms(median.whole),
        ms(looking),
        ms(deciding),
        ms(acting),
        ms(showing),
        ms(rest)
    );
    ms(median.whole)
}

fn measure(policy: &str, (nodes, jobs): (u32, u32)) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let name = policy.split('"').nth(1).unwrap_or(policy);
    let mut daemon = open(scenario(nodes, jobs), policy, directory.path());
    let size = format!("{name}, {nodes} nodes, {jobs} jobs");
    let first = cycle(&mut daemon, &runtime);
    let (ordered, mut decided, mut quiet) = (first.report.ordered, Vec::new(), Vec::new());
    row(&format!("{size}: first, {ordered} orders"), vec![first]);
    for _ in 0..MINUTES {
        quiet.push(cycle(&mut daemon, &runtime));
        let now = daemon.engine_mut().simulator().now();
        daemon.engine_mut().advance(now + SimTime::from_secs(60)).unwrap();
        let timed = cycle(&mut daemon, &runtime);
        if timed.report.decided { &mut decided } else { &mut quiet }.push(timed);
    }
    let fallback = daemon.status().lock().unwrap().fallback.clone();
    if !fallback.is_empty() {
        println!("| {size}: decided by the fallback ({fallback}) | | | | | | | | |");
    }
    row(&format!("{size}: without a decision"), quiet);
    row(&format!("{size}: with a decision"), decided)
}

fn main() {
    println!(
        "| cycles | number | largest (ms) | median (ms) | looking | deciding | acting | showing | rest |\n|---|---|---|---|---|---|---|---|---|"
    );
    let mut policies = vec!["name = \"fifo\"".to_owned(), "name = \"pollux-fast\"".to_owned()];
    policies.push("bundle = \"zoo:elastic\"".to_owned());
    if let Ok(bundle) = std::env::var("GOODPUT_BUNDLE") {
        policies.push(format!("bundle = {bundle:?}"));
    }
    let mut ratios = Vec::new();
    for policy in &policies {
        let (small, large) = (measure(policy, (64, 2000)), measure(policy, (1000, 20_000)));
        ratios.push(format!("{}: {:.1}", policy.split('"').nth(1).unwrap_or_default(), large / small));
    }
    println!("\n10 times the jobs on 16 times the nodes take longer by: {}", ratios.join(", "));
}
