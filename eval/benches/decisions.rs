//! Cost of one decision of each policy, by the number of jobs it decides about. Run with `cargo
//! xtask bench decisions`; the picture goes to `target/decision-time.svg`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_agents::compose;
use goodput_agents::heuristic;
use goodput_datasets::Catalog;
use goodput_datasets::synth::{PolluxSynth, SynthConfig};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use goodput_eval::report::plots::{GrowthSeries, growth};

const JOBS: [u32; 5] = [64, 256, 1024, 4096, 16_384];
/// A policy that needs longer than this is not asked about larger queues.
const PATIENCE: Duration = Duration::from_secs(10);
/// Decisions of a run; the least costly but the first counts, for the first also sets the policy
/// up.
const DECISIONS: usize = 4;

fn main() {
    let columns: Vec<String> = JOBS.iter().map(|jobs| format!("{jobs:>12}")).collect();
    println!("seconds a decision, 64 nodes of 4 accelerators, by number of active jobs");
    println!("{:<24}{}", "policy", columns.join(""));
    let mut series = Vec::new();
    for policy in compose::policies() {
        let mut points = Vec::new();
        for jobs in JOBS {
            let Some(cost) = decision_secs(policy, jobs) else { break };
            points.push((f64::from(jobs), cost));
            if cost > PATIENCE.as_secs_f64() / DECISIONS as f64 {
                break;
            }
        }
        let cells: Vec<String> = points.iter().map(|(_, secs)| format!("{secs:>12.6}")).collect();
        println!("{:<24}{}", policy.name, cells.join(""));
        if !points.is_empty() {
            series.push(GrowthSeries { name: policy.name.into(), points });
        }
    }
    let picture = growth(&series, "active jobs", "time of one decision").standalone();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/decision-time.svg");
    std::fs::write(path, picture).expect("target can be written");
}

/// `None` where the policy cannot decide about such jobs.
fn decision_secs(policy: &heuristic::ListedPolicy, jobs: u32) -> Option<f64> {
    let catalog = Catalog::shipped();
    let synth = PolluxSynth { jobs, ..PolluxSynth::default() };
    let generator = SynthConfig::Pollux(synth).build(catalog).expect("settings in range");
    let drawn = generator.generate(1);
    // All at once: the queue is as long as the workload.
    let at_once = drawn.jobs.into_iter().map(|mut job| {
        job.request.submit = SimTime::ZERO;
        job
    });
    let workload = Workload::new(drawn.applications, at_once.collect());
    let mut policy = policy.build(1);
    let options =
        SimOptions { batching: policy.batching(), information: policy.information(), ..SimOptions::standard() };
    let cluster = Arc::new(Cluster::homogeneous(64, 4));
    let mut simulator = Simulator::new(Arc::new(Scenario::new(cluster, Arc::new(workload), options, 1)));
    let mut least: Option<f64> = None;
    for decision in 0..DECISIONS {
        if simulator.run_until_decision().ok()? != Status::Decision {
            break;
        }
        let start = Instant::now();
        let plan = policy.decide(&simulator.view());
        let secs = start.elapsed().as_secs_f64();
        if decision > 0 || secs > PATIENCE.as_secs_f64() {
            least = Some(least.map_or(secs, |least| least.min(secs)));
        }
        if secs > PATIENCE.as_secs_f64() {
            break;
        }
        simulator.apply(&plan).ok()?;
    }
    least
}
