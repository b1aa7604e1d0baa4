//! Statements of the survey of cluster scheduling about workloads and schedulers, tested in the
//! models here.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose::by_name;
use goodput_datasets::synth::{DiurnalSynth, SynthConfig};
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::state::Phase;
use goodput_env::time::SimTime;

fn scenario(jobs_per_hour: f64, options: SimOptions) -> Arc<Scenario> {
    let synth = DiurnalSynth { jobs: 80, jobs_per_hour, ..DiurnalSynth::default() };
    let workload = SynthConfig::Diurnal(synth).build(Catalog::shipped()).unwrap().generate(1);
    Arc::new(Scenario::new(Arc::new(Cluster::homogeneous(16, 4)), Arc::new(workload), options, 1))
}

fn outcome(policy: &str, sigma: f64) -> Outcome {
    let options = SimOptions { information: Information::Estimate { sigma }, ..SimOptions::standard() };
    Simulator::new(scenario(30.0, options)).run(&mut *by_name(policy, 0).unwrap()).unwrap()
}

/// Durations are hard to predict: what goes by them changes with the error, what goes by attained
/// service does not.
#[test]
fn errors_of_estimates_reach_only_those_who_read_them() {
    for policy in ["afs-l", "srtf"] {
        assert_ne!(outcome(policy, 0.0).jobs, outcome(policy, 1.5).jobs, "{policy}");
    }
    for policy in ["tiresias", "afs-p"] {
        assert_eq!(outcome(policy, 0.0).jobs, outcome(policy, 1.5).jobs, "{policy}");
    }
}

/// Total batch sizes of running jobs over their initial ones, mean over jobs and decisions.
fn mean_batch_scale(jobs_per_hour: f64) -> f64 {
    let options = SimOptions { batching: Batching::Catalog, ..SimOptions::standard() };
    let mut simulator = Simulator::new(scenario(jobs_per_hour, options));
    let mut policy = by_name("pollux-fast", 0).unwrap();
    let (mut sum, mut count) = (0.0, 0_u32);
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        for job in simulator.view().jobs().filter(|job| job.state.phase == Phase::Running) {
            let init = job.application().unwrap().limits.init;
            sum += job.state.batch.total(job.state.share().gpus()) as f64 / f64::from(init);
            count += 1;
        }
    }
    sum / f64::from(count)
}

/// A busy cluster runs small batches, an idle one gives more accelerators and larger batches.
#[test]
fn batches_shrink_with_load() {
    let (idle, busy) = (mean_batch_scale(20.0), mean_batch_scale(120.0));
    assert!(idle > 1.2 * busy, "batch over initial batch: {idle} where idle, {busy} where busy");
}

/// Gradients grow noisier as training goes on, so larger batches pay late.
#[test]
fn statistical_efficiency_rises_through_training() {
    let catalog = Catalog::shipped();
    let app = catalog.applications.iter().find(|app| app.name == "imagenet").unwrap();
    let pgns = |epoch: u32| app.gradients.at(f64::from(app.limits.init), epoch).pgns(app.limits.init);
    let epochs = app.epochs.len() as u32;
    assert!(pgns(epochs - 2) > 2.0 * pgns(1), "{} late, {} early", pgns(epochs - 2), pgns(1));
}

/// Completion of a 95th of 100 jobs with sizes guessed by users, seconds, where the workload of a day comes `times`
/// as fast. Every policy runs the batch sizes that the users asked for.
fn p95_secs(policy: &str, times: i64) -> i64 {
    let path =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/pollux/workloads-realistic/workload-1.csv"));
    assert!(path.exists(), "{} is absent: this test needs the public data in it", path.display());
    let mut workload = read_workload(path, Catalog::shipped()).unwrap().workload;
    for job in &mut workload.jobs {
        job.request.submit = SimTime::from_millis(job.request.submit.as_millis() / times);
    }
    let options =
        SimOptions { information: Information::Oracle, batching: Batching::Requested, ..SimOptions::standard() };
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(16, 4)), Arc::new(workload), options, 0);
    let outcome = Simulator::new(Arc::new(scenario)).run(&mut *by_name(policy, 0).unwrap()).unwrap();
    let mut secs: Vec<i64> = outcome.jobs.iter().map(|job| job.jct().unwrap().as_millis() / 1000).collect();
    secs.sort_unstable();
    secs[secs.len() * 95 / 100]
}

/// Shortest remaining time cannot change sizes that were guessed badly, and an adaptive scheduler can. That is so in
/// a burst, where the jobs of a day come within half an hour, and without one: the burst is not the cause.
#[test]
fn poor_sizes_are_worse_under_shortest_remaining_time_with_a_burst_and_without() {
    for times in [1, 16] {
        let (srtf, adaptive) = (p95_secs("srtf", times), p95_secs("pollux-fast", times));
        assert!(srtf > adaptive, "{times} times: {srtf} s under srtf, {adaptive} s under pollux-fast");
    }
}
