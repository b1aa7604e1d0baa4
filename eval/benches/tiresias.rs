//! CPU time of the Tiresias simulator's schedules against what its own program was measured to
//! take: on its two traces, and on 2,000 jobs for 128 GPUs. Needs the public data in ../shared. Run
//! with `cargo xtask bench tiresias`.
//!
//! The traces are those of the measurement, except for the 2,000 jobs: theirs were generated and
//! not kept, ours are the 480 jobs four times over and a bit, arriving faster by 128/60 so that the
//! load stays what it was. One thread; ours includes reading the trace.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use goodput_agents::heuristic::fifo::Fifo;
use goodput_agents::heuristic::gittins::{ArtifactTable, GittinsHorizon, LengthSample, SerptArtifact};
use goodput_agents::heuristic::srtf::{Shortest, Srtf};
use goodput_agents::heuristic::tiresias::{ReservedQueues, ServiceMeasure, Tiresias, TiresiasConfig};
use goodput_datasets::import::tiresias_samples;
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobSpec, Workload};
use goodput_env::policy::Policy;
use goodput_env::time::SimTime;
use goodput_eval::reproduce::tiresias::play;

fn shared(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path)
}

/// CPU seconds of the original on 2,000 jobs and 128 GPUs (`reference/speed.md`).
const RECORDED: [(&str, f64); 3] = [("fifo", 2.1), ("dlas-gpu", 4.4), ("dlas-gpu-gittins", 23.8)];

fn main() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tiresias_gpu_time_samples.csv");
    let samples = tiresias_samples::read(samples.as_ref()).expect("the samples");
    println!("{:>22} {:>6} {:>12} {:>12} {:>14}", "schedule", "jobs", "original_s", "ours_ms", "times faster");
    let summary = std::fs::read_to_string(shared("reference/tiresias/summary.json")).expect("the summary");
    let summary: Vec<serde_json::Value> = serde_json::from_str(&summary).expect("the summary");
    for (file, nodes) in [("60_job.csv", 4), ("gen480_job.csv", 15)] {
        let path = shared("reference/tiresias").join(file);
        let read = || Arc::new(read_workload(&path, Catalog::shipped()).expect("the trace").workload);
        let count = |run: &&serde_json::Value| run["trace"] == file && run["scheme"] == "count" && run["rc"] == 0;
        for run in summary.iter().filter(count) {
            let (schedule, original) = (run["schedule"].as_str().unwrap_or_default(), run["user_s"].as_f64());
            let secs = best(|| simulate(&read(), nodes, schedule, &samples));
            report(schedule, read().jobs.len(), original.unwrap_or(f64::NAN), secs);
        }
    }
    let trace =
        read_workload(&shared("reference/tiresias/gen480_job.csv"), Catalog::shipped()).expect("the trace").workload;
    let many =
        Arc::new(Workload { models: trace.models.clone(), ..Workload::new(Vec::new(), repeated(&trace.jobs, 2000)) });
    for (schedule, original) in RECORDED {
        report(schedule, 2000, original, best(|| simulate(&many, 32, schedule, &samples)));
    }
    for schedule in ["tiresias-l", "tiresias-g"] {
        report(schedule, 2000, f64::NAN, best(|| simulate(&many, 32, schedule, &samples)));
    }
}

fn report(schedule: &str, jobs: usize, original: f64, secs: f64) {
    println!("{schedule:>22} {jobs:>6} {original:>12.3} {:>12.3} {:>14.0}", secs * 1e3, original / secs);
}

fn simulate(workload: &Arc<Workload>, nodes: u32, schedule: &str, samples: &[f64]) {
    let queues = |config| -> Box<dyn Policy> { Box::new(Tiresias::new(config)) };
    let promoting =
        |knob| TiresiasConfig { starvation_knob: knob, ..TiresiasConfig::artifact(ServiceMeasure::GpuTime) };
    let table = || ArtifactTable::new(samples.iter().copied(), 3250);
    let mut policy: Box<dyn Policy> = match schedule {
        "fifo" => Box::new(Fifo::strict()),
        "fjf" => Box::new(Fifo::backfill()),
        "sjf" => Box::new(Srtf::new(Shortest::Size)),
        "shortest" => Box::new(Srtf::artifact(Shortest::Time)),
        "shortest-gpu" => Box::new(Srtf::artifact(Shortest::Service)),
        "shortest-expected" => Box::new(SerptArtifact::new(table())),
        "dlas" => queues(TiresiasConfig::artifact(ServiceMeasure::Time)),
        "dlas-gpu" | "dlas-gpu-pack" => queues(TiresiasConfig::artifact(ServiceMeasure::GpuTime)),
        "dlas-gpu-1" => queues(promoting(1.0)),
        "dlas-gpu-8" => queues(promoting(8.0)),
        "dlas-gpu-gittins" => queues(TiresiasConfig::artifact_gittins(table())),
        "multi-dlas-gpu" => Box::new(ReservedQueues::new(workload.jobs.iter().map(|job| job.request.gpus))),
        "tiresias-l" => queues(TiresiasConfig::simulator(ServiceMeasure::GpuTime)),
        "tiresias-g" => queues(TiresiasConfig::gittins(LengthSample::default(), GittinsHorizon::Supremum)),
        other => panic!("{other} is none of the schedules"),
    };
    black_box(play(&Cluster::homogeneous(nodes, 4), workload, &mut *policy).expect("a run"));
}

/// Shortest of several times, seconds: what the work costs when nothing else runs.
fn best(work: impl Fn()) -> f64 {
    let once = || {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    once();
    (0..20).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn repeated(jobs: &[JobSpec], count: usize) -> Vec<JobSpec> {
    let span = jobs.last().map_or(0, |job| job.request.submit.as_millis()) + 1000;
    let copy = |at: usize| {
        let mut job = jobs[at % jobs.len()].clone();
        let submit = job.request.submit.as_millis() + span * (at / jobs.len()) as i64;
        job.request.submit = SimTime::from_millis(submit * 60 / 128 / 1000 * 1000);
        job.request.name = format!("{}-{}", job.request.name, at / jobs.len());
        job
    };
    (0..count).map(copy).collect()
}
