//! The public simulator of Tiresias (NSDI'19) on its own 60-job trace and on a generated one of 480
//! jobs: every schedule and placement scheme with which it completes all jobs, job by job.
//!
//! Its conventions: whole seconds, nothing costs anything, decisions at submissions, completions
//! and queue changes. Schedules run as the artifact behaves; where that differs from the rule, a
//! row `by the rule` says what the difference changes, and a row `placed by skew` what the paper's
//! placement costs in a simulator where placement never makes a job faster. Those that need its
//! sample of service times (`simulator/yarn-gput1000.csv` of the repository, to be put into
//! `data/tiresias`) are a table of their own.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::heuristic::fifo::Fifo;
use goodput_agents::heuristic::gittins::{ArtifactTable, GittinsHorizon, LengthSample, Serpt, SerptArtifact};
use goodput_agents::heuristic::srtf::{Shortest, Srtf};
use goodput_agents::heuristic::tiresias::{ReservedQueues, SIMULATOR_LIMITS, ServiceMeasure, Tiresias, TiresiasConfig};
use goodput_agents::placement::Yarn;
use goodput_datasets::import::tiresias_samples;
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Preset, Scenario};
use goodput_env::sim::{Outcome, SimError, Simulator};
use rayon::prelude::*;
use serde::Deserialize;

use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of the artifact's small trace: 60 jobs on 4 nodes of 4 accelerators.
pub const SMALL: Reproduction = Reproduction {
    name: "tiresias-60",
    about: "the Tiresias simulator's own 60-job trace, every schedule that completes; 4 nodes of 4 GPUs",
    source: "Gu et al., NSDI 2019; SymbioticLab/Tiresias, simulator, 959f9b0",
    files: &["reference/tiresias"],
    run: |data| run(data, &TRACES[0], SCHEDULES),
};

/// 480 generated jobs on 15 nodes of 4.
pub const LARGE: Reproduction = Reproduction {
    name: "tiresias-480",
    about: "480 generated jobs in the Tiresias simulator, every schedule that completes; 15 nodes of 4 GPUs",
    run: |data| run(data, &TRACES[1], SCHEDULES),
    ..SMALL
};

/// Reproduction of the policies that use a sample of service times, on both traces.
pub const SAMPLED: Reproduction = Reproduction {
    name: "tiresias-gittins",
    about: "Gittins index and expected remainder in the Tiresias simulator, on both traces",
    files: &["reference/tiresias", SAMPLES],
    run: |data| {
        let mut figures = run(data, &TRACES[0], SAMPLED_SCHEDULES)?;
        figures.append(&mut run(data, &TRACES[1], SAMPLED_SCHEDULES)?);
        Ok(figures)
    },
    ..SMALL
};

/// The artifact's sample of GPU-seconds of whole jobs.
const SAMPLES: &str = "data/tiresias/yarn-gput1000.csv";

/// First queue limit of the artifact, and the quantum of its index; GPU-seconds.
const QUANTUM: i64 = 3250;

/// A trace with its cluster.
struct TiresiasTrace {
    file: &'static str,
    prefix: &'static str,
    nodes: u32,
}

const TRACES: [TiresiasTrace; 2] = [
    TiresiasTrace { file: "60_job.csv", prefix: "60-n4g4", nodes: 4 },
    TiresiasTrace { file: "gen480_job.csv", prefix: "gen480-n15g4", nodes: 15 },
];

/// Facts of a run that a schedule may need.
struct ScheduleInputs<'a> {
    workload: &'a Workload,
    yarn: Yarn,
    samples: &'a [f64],
}

type Build = fn(&ScheduleInputs<'_>) -> Box<dyn Policy>;

/// One schedule of the artifact.
struct Schedule {
    name: &'static str,
    schemes: &'static [&'static str],
    /// As the artifact behaves.
    artifact: Build,
    /// By the rule where that differs, and as the paper has it and the artifact has not: how, and
    /// which policy.
    others: &'static [(&'static str, Build)],
}

const COUNT: &[&str] = &["count"];
const YARN: &[&str] = &["yarn"];
/// Schedules that ignore the scheme give the same results under both.
const BOTH: &[&str] = &["count", "yarn"];

/// Form of the schedules that have only the published one.
const AS_PUBLISHED: Schedule =
    Schedule { name: "fifo", schemes: COUNT, artifact: |_| Box::new(Fifo::strict()), others: &[] };

const SCHEDULES: &[Schedule] = &[
    AS_PUBLISHED,
    Schedule { schemes: YARN, artifact: |inputs| Box::new(Fifo::strict().placed_by(inputs.yarn)), ..AS_PUBLISHED },
    Schedule { name: "fjf", artifact: |_| Box::new(Fifo::backfill()), ..AS_PUBLISHED },
    Schedule {
        name: "fjf",
        schemes: YARN,
        artifact: |inputs| Box::new(Fifo::backfill().placed_by(inputs.yarn)),
        ..AS_PUBLISHED
    },
    Schedule { name: "sjf", artifact: |_| Box::new(Srtf::new(Shortest::Size)), ..AS_PUBLISHED },
    Schedule {
        name: "shortest",
        artifact: |_| Box::new(Srtf::artifact(Shortest::Time)),
        others: &[("by the rule", |_| Box::new(Srtf::new(Shortest::Time)))],
        ..AS_PUBLISHED
    },
    Schedule {
        name: "shortest-gpu",
        artifact: |_| Box::new(Srtf::artifact(Shortest::Service)),
        others: &[("by the rule", |_| Box::new(Srtf::new(Shortest::Service)))],
        ..AS_PUBLISHED
    },
    Schedule {
        name: "dlas",
        schemes: BOTH,
        artifact: |_| queues(TiresiasConfig::artifact(ServiceMeasure::Time)),
        others: &[("placed by skew", |_| queues(TiresiasConfig::simulator(ServiceMeasure::Time)))],
    },
    Schedule {
        name: "dlas-gpu",
        schemes: BOTH,
        artifact: |_| queues(TiresiasConfig::artifact(ServiceMeasure::GpuTime)),
        others: &[
            ("by the rule", |_| queues(TiresiasConfig::queues(&SIMULATOR_LIMITS, ServiceMeasure::GpuTime))),
            ("placed by skew", |_| queues(TiresiasConfig::simulator(ServiceMeasure::GpuTime))),
        ],
    },
    Schedule {
        name: "dlas-gpu-1",
        schemes: BOTH,
        artifact: |_| queues(promoting(1.0, TiresiasConfig::artifact(ServiceMeasure::GpuTime))),
        others: &[
            ("by the rule", |_| {
                queues(promoting(1.0, TiresiasConfig::queues(&SIMULATOR_LIMITS, ServiceMeasure::GpuTime)))
            }),
            ("placed by skew", |_| queues(promoting(1.0, TiresiasConfig::simulator(ServiceMeasure::GpuTime)))),
        ],
    },
    Schedule {
        name: "dlas-gpu-8",
        schemes: BOTH,
        artifact: |_| queues(promoting(8.0, TiresiasConfig::artifact(ServiceMeasure::GpuTime))),
        others: &[
            ("by the rule", |_| {
                queues(promoting(8.0, TiresiasConfig::queues(&SIMULATOR_LIMITS, ServiceMeasure::GpuTime)))
            }),
            ("placed by skew", |_| queues(promoting(8.0, TiresiasConfig::simulator(ServiceMeasure::GpuTime)))),
        ],
    },
    // Every model is set to fill an accelerator, so nothing is ever packed.
    Schedule {
        name: "dlas-gpu-pack",
        schemes: BOTH,
        artifact: |_| queues(TiresiasConfig::artifact(ServiceMeasure::GpuTime)),
        ..AS_PUBLISHED
    },
    Schedule {
        name: "multi-dlas-gpu",
        artifact: |inputs| Box::new(ReservedQueues::new(inputs.workload.jobs.iter().map(|job| job.request.gpus))),
        ..AS_PUBLISHED
    },
];

const SAMPLED_SCHEDULES: &[Schedule] = &[
    Schedule {
        name: "dlas-gpu-gittins",
        schemes: BOTH,
        artifact: |inputs| queues(TiresiasConfig::artifact_gittins(table(inputs))),
        others: &[
            ("by the rule", |inputs| queues(packed(gittins(inputs, GittinsHorizon::Quantum(QUANTUM as f64))))),
            ("supremum", |inputs| queues(packed(gittins(inputs, GittinsHorizon::Supremum)))),
            ("supremum placed by skew", |inputs| queues(gittins(inputs, GittinsHorizon::Supremum))),
        ],
    },
    Schedule {
        name: "shortest-expected",
        artifact: |inputs| Box::new(SerptArtifact::new(table(inputs))),
        others: &[("by the rule", |inputs| Box::new(Serpt::new(LengthSample::closed(inputs.samples.to_vec()))))],
        ..AS_PUBLISHED
    },
];

fn gittins(inputs: &ScheduleInputs<'_>, horizon: GittinsHorizon) -> TiresiasConfig {
    TiresiasConfig::gittins(LengthSample::closed(inputs.samples.to_vec()), horizon)
}

/// Placed as the artifact does, which only counts.
fn packed(config: TiresiasConfig) -> TiresiasConfig {
    TiresiasConfig { placing: TiresiasConfig::artifact(ServiceMeasure::GpuTime).placing, ..config }
}

fn promoting(starvation_knob: f64, config: TiresiasConfig) -> TiresiasConfig {
    TiresiasConfig { starvation_knob, ..config }
}

fn queues(config: TiresiasConfig) -> Box<dyn Policy> {
    Box::new(Tiresias::new(config))
}

fn table(inputs: &ScheduleInputs<'_>) -> ArtifactTable {
    ArtifactTable::new(inputs.samples.iter().copied(), QUANTUM)
}

fn run(data: &Path, trace: &TiresiasTrace, schedules: &[Schedule]) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let folder = data.join("reference/tiresias");
    let samples = if data.join(SAMPLES).exists() { tiresias_samples::read(&data.join(SAMPLES))? } else { Vec::new() };
    let workload = Arc::new(read_workload(&folder.join(trace.file), Catalog::shipped())?.workload);
    let inputs =
        ScheduleInputs { workload: &workload, yarn: Yarn { nodes_per_switch: trace.nodes }, samples: &samples };
    let figures: Result<Vec<Vec<ReproducedFigure>>, ReproduceError> = schedules
        .par_iter()
        .map(|schedule| {
            let artifact = simulate(trace, &workload, schedule, schedule.artifact, &inputs)?;
            let mut others = Vec::new();
            for &(how, build) in schedule.others {
                others.push((how, mean_jct(&simulate(trace, &workload, schedule, build, &inputs)?)));
            }
            let mut figures = Vec::new();
            for scheme in schedule.schemes {
                let path = folder.join(format!("{}-{scheme}-{}.jobs.json", trace.prefix, schedule.name));
                let theirs = published(&path)?;
                let case = format!("{} {scheme} {}", trace.prefix, schedule.name);
                figures.append(&mut compare(&case, &theirs, &artifact, &workload));
                let theirs = Some(mean(theirs.iter().map(|job| (job.end - job.submit) as f64)));
                figures.extend(others.iter().map(|&(how, ours)| {
                    let case = format!("{case}, {how}");
                    ReproducedFigure { case, metric: "jct_mean_secs", theirs, ours }
                }));
            }
            Ok(figures)
        })
        .collect();
    Ok(figures?.into_iter().flatten().collect())
}

fn simulate(
    trace: &TiresiasTrace,
    workload: &Arc<Workload>,
    schedule: &Schedule,
    build: Build,
    inputs: &ScheduleInputs<'_>,
) -> Result<Outcome, ReproduceError> {
    let mut policy = build(inputs);
    play(&Cluster::homogeneous(trace.nodes, 4), workload, &mut *policy)
        .map_err(|source| ReproduceError::Run { case: format!("{} {}", trace.prefix, schedule.name), source })
}

/// Runs a policy under the conventions of the Tiresias simulator.
///
/// # Errors
/// Where the policy breaks a rule or the run stalls.
pub fn play(cluster: &Cluster, workload: &Arc<Workload>, policy: &mut dyn Policy) -> Result<Outcome, SimError> {
    let options = Preset::TiresiasNsdi19.options_for(&*policy);
    let scenario = Scenario::new(Arc::new(cluster.clone()), workload.clone(), options, 0);
    Simulator::new(Arc::new(scenario)).run(policy)
}

/// One job of the artifact's result.
#[derive(Deserialize)]
struct PublishedSchedule {
    job_id: u64,
    submit: i64,
    end: i64,
}

fn published(path: &Path) -> Result<Vec<PublishedSchedule>, ReproduceError> {
    let reference = |problem: String| ReproduceError::Reference { path: path.to_owned(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| reference(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| reference(error.to_string()))
}

fn compare(case: &str, theirs: &[PublishedSchedule], ours: &Outcome, workload: &Workload) -> Vec<ReproducedFigure> {
    let ends = workload.jobs.iter().zip(&ours.jobs).filter_map(|(job, record)| {
        let id: u64 = job.request.name.parse().ok()?;
        Some((id, record.finish?.as_millis()))
    });
    let ends: std::collections::BTreeMap<u64, i64> = ends.collect();
    let exact = theirs.iter().filter(|job| ends.get(&job.job_id) == Some(&(job.end * 1000))).count();
    let figure = |metric, theirs, ours| ReproducedFigure { case: case.into(), metric, theirs: Some(theirs), ours };
    let makespan = ours.jobs.iter().filter_map(|job| job.finish).max().map_or(f64::NAN, |end| end.as_secs_f64());
    vec![
        figure("jct_mean_secs", mean(theirs.iter().map(|job| (job.end - job.submit) as f64)), mean_jct(ours)),
        figure("makespan_secs", theirs.iter().map(|job| job.end).max().unwrap_or(0) as f64, makespan),
        figure("exact_ends_percent", 100.0, 100.0 * exact as f64 / workload.jobs.len() as f64),
    ]
}

fn mean_jct(outcome: &Outcome) -> f64 {
    mean(outcome.jobs.iter().map(|job| job.jct().map_or(f64::NAN, |jct| jct.as_secs_f64())))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
