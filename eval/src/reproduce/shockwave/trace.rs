//! Shockwave's trace and published results.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use goodput_datasets::import::batch_schedules::{BatchMode, BatchSchedule, Regimes};
use goodput_datasets::import::{gavel, staged_jobs};
use goodput_env::job::{JobClass, JobId, Work, Workload};
use goodput_env::sim::Outcome;
use serde::Deserialize;

use super::{FILES, ReproduceError};

/// Type of the accelerators in the file of throughputs.
pub const KIND: &str = "v100";

/// The trace of 120 jobs.
#[derive(Clone, Debug)]
pub struct ShockwaveTrace {
    /// Jobs over classes that change their batch size as the artifact's simulator has it.
    pub workload: Arc<Workload>,
    /// Run time of each job alone by its profile in the artifact, seconds.
    pub profiled_secs: Vec<f64>,
}

impl ShockwaveTrace {
    /// Reads the trace below `data`.
    ///
    /// # Errors
    /// Where a file cannot be read or used.
    pub fn read(data: &Path) -> Result<Self, ReproduceError> {
        let workload = gavel::read(&data.join(FILES[0]), &data.join(FILES[1]))?;
        let speeds = gavel::read_speeds(&data.join(FILES[1]))?;
        let profiled = (0..workload.jobs.len()).map(|job| profiled_secs(&workload, JobId::at(job), &speeds));
        let profiled_secs = profiled.collect::<Option<_>>().ok_or_else(|| ReproduceError::Reference {
            path: data.join(FILES[1]),
            problem: format!("no speed on {KIND} of a batch size that a job of the trace changes to"),
        })?;
        Ok(Self { workload: Arc::new(workload), profiled_secs })
    }
}

/// Way in which the jobs of a class choose their batch size, from its name.
pub fn mode_of(class: &JobClass) -> BatchMode {
    match class.name.rsplit_once(", ") {
        Some((_, "accordion)")) => BatchMode::Accordion,
        Some((_, "gns)")) => BatchMode::NoiseScale,
        _ => BatchMode::Static,
    }
}

/// Schedule of batch sizes of a class of the trace.
pub fn schedule(class: &JobClass) -> Option<BatchSchedule> {
    staged_jobs::schedule_of(&class.name, class.gpus, mode_of(class))
}

/// Run time of a job alone by its profile, whole seconds: epochs of all samples, at the batch sizes of the profile.
fn profiled_secs(workload: &Workload, job: JobId, speeds: &[JobClass]) -> Option<f64> {
    let Work::Steps { steps, .. } = workload.jobs[job.index()].work else { return None };
    let class = workload.class(job)?;
    let schedule = schedule(class)?;
    let epochs = (steps / class.steps_per_epoch?).ceil() as u32;
    let secs = (0..epochs).map(|epoch| {
        let batch = schedule.batch(epoch, epochs, Regimes::Profiled);
        let name = format!("{} (batch size {batch})", schedule.model.name);
        let measured = speeds.iter().find(|speed| speed.name == name && speed.gpus == class.gpus)?;
        Some(f64::from(schedule.model.samples) / f64::from(batch) / measured.steps_per_sec.get(KIND)?)
    });
    Some(secs.sum::<Option<f64>>()?.floor())
}

/// Run of one policy: submission and completion time of each job, seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ShockwaveRun {
    jobs: Vec<(f64, f64)>,
}

/// A result of the artifact.
#[derive(Deserialize)]
struct PublishedRun {
    jct_list: Vec<f64>,
}

impl ShockwaveRun {
    /// The published run called `key` in the file of results.
    ///
    /// # Errors
    /// Where the file is not what it should be, or has no such run of all jobs of `workload`.
    pub fn published(data: &Path, key: &str, workload: &Workload) -> Result<Self, ReproduceError> {
        let path = data.join(FILES[2]);
        let wrong = |problem: String| ReproduceError::Reference { path: path.clone(), problem };
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let mut runs: BTreeMap<String, PublishedRun> =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let run = runs.remove(key).ok_or_else(|| wrong(format!("has no run {key:?}")))?;
        if run.jct_list.len() != workload.jobs.len() {
            return Err(wrong(format!("{key:?} has {} jobs, the trace {}", run.jct_list.len(), workload.jobs.len())));
        }
        let submitted = workload.jobs.iter().map(|job| job.request.submit.as_secs_f64());
        Ok(Self { jobs: submitted.zip(run.jct_list).collect() })
    }

    /// Jobs of a run of ours; jobs that are not done are left out.
    pub fn of(outcome: &Outcome) -> Self {
        let times = outcome.jobs.iter().filter_map(|job| Some((job.submit, job.jct()?)));
        Self { jobs: times.map(|(submit, jct)| (submit.as_secs_f64(), jct.as_secs_f64())).collect() }
    }

    /// Mean completion time, seconds.
    pub fn mean_jct(&self) -> f64 {
        self.jobs.iter().map(|(_, jct)| jct).sum::<f64>() / self.jobs.len() as f64
    }

    /// Time when the last job is done, seconds. The artifact's own figure of a run on machines counts from a clock that
    /// daylight saving may turn back.
    pub fn makespan(&self) -> f64 {
        self.jobs.iter().map(|(submit, jct)| submit + jct).fold(0.0, f64::max)
    }

    /// Part of the jobs that are done later than with an equal part of `gpus` accelerators, percent: completion time
    /// over `profiled` times the jobs per accelerator.
    pub fn unfair_percent(&self, profiled: &[f64], gpus: usize) -> f64 {
        let contention = (self.jobs.len() as f64 / gpus as f64).max(1.0);
        let unfair = self.jobs.iter().zip(profiled).filter(|((_, jct), alone)| *jct > **alone * contention);
        100.0 * unfair.count() as f64 / self.jobs.len() as f64
    }
}
