//! Sampling procedure of the Pollux artifact (`simulator/workload.py`).
//!
//! Of the Philly trace it keeps jobs of at least a minute and less than 1,000 GPU hours, subtracts
//! two hours, keeps jobs with an hour of the day below the duration, and samples without
//! replacement; a job is submitted at its *time of day* (days are folded together) and its GPU time
//! decides which application it is. Its own duration is not used.
//!
//! Without the trace the same is drawn from the counts below, aggregated by us from it: jobs of
//! each class by hour, and sizes by class. Random numbers are our own, so workloads have the
//! artifact's distribution, not its rows.

use std::collections::BTreeSet;
use std::path::PathBuf;

use goodput_env::job::WHOLE;
use goodput_env::time::SimTime;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choices, JobDraw, JobTask, Sizes, SynthError, check, check_jobs, cumulative, pick, realistic_batch};
use crate::catalog::Catalog;
use crate::error::DataError;
use crate::import;
use crate::jobs::JobRow;

/// GPU-seconds at which the next class begins.
const CLASS_LIMITS: [f64; 3] = [3_600.0, 36_000.0, 360_000.0];
/// Applications of each class, equally likely.
const CLASS_APPLICATIONS: [&[&str]; 4] = [&["cifar10", "ncf"], &["deepspeech2", "bert"], &["yolov3"], &["imagenet"]];
/// Jobs that are sampled from: at least a minute and less than 1,000 GPU hours.
const LEAST_SECS: f64 = 60.0;
const MOST_GPU_SECS: f64 = 3_600_000.0;
/// Subtracted from timestamps.
const SHIFT_SECS: i64 = 2 * 3600;

/// Jobs of each class by hour of the day, less two hours, in the Philly trace.
const JOBS_BY_HOUR: [[u32; 4]; 24] = [
    [2888, 429, 130, 103],
    [2883, 280, 145, 60],
    [1808, 211, 172, 49],
    [2974, 470, 230, 54],
    [4012, 865, 224, 68],
    [5019, 1304, 184, 78],
    [2560, 634, 204, 101],
    [2354, 578, 149, 73],
    [2129, 671, 59, 74],
    [1976, 496, 100, 31],
    [1430, 536, 49, 46],
    [1769, 321, 58, 37],
    [1431, 491, 93, 43],
    [1163, 784, 92, 59],
    [2066, 683, 99, 42],
    [1411, 407, 220, 63],
    [1591, 666, 190, 87],
    [1670, 326, 157, 49],
    [2451, 392, 94, 31],
    [2111, 356, 99, 71],
    [2405, 963, 138, 45],
    [2275, 439, 213, 97],
    [2910, 874, 229, 73],
    [2222, 631, 247, 104],
];
/// `(GPUs, jobs)` of each class in the Philly trace.
pub(super) const JOBS_BY_SIZE: [&[(u32, u32)]; 4] = [
    &[(1, 54695), (2, 148), (4, 433), (8, 214), (16, 17)],
    &[(1, 13175), (2, 29), (4, 282), (8, 272), (16, 26), (32, 12)],
    &[(1, 2308), (2, 185), (4, 633), (8, 402), (16, 26), (32, 17), (64, 3)],
    &[(1, 269), (2, 99), (4, 441), (8, 618), (16, 75), (32, 33), (64, 1)],
];

/// Settings of the Pollux generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "snake_case", deny_unknown_fields)]
pub struct PolluxSynth {
    /// Number of jobs.
    pub jobs: u32,
    /// Hours of the day over which they arrive, 1 to 24.
    pub hours: u32,
    /// Sizes and batch sizes that jobs ask for.
    pub sizes: Sizes,
    /// Standard deviation of the logarithm of a job's work relative to its application's; 0: every
    /// job of an application does the same, as published.
    pub work_spread: f64,
    /// The Philly trace to sample from (`data/philly/philly.csv`); without it, shipped figures.
    pub trace: Option<PathBuf>,
}

impl Default for PolluxSynth {
    fn default() -> Self {
        Self { jobs: 160, hours: 8, sizes: Sizes::Tuned, work_spread: 0.0, trace: None }
    }
}

/// The settings, checked.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    jobs: u32,
    work_spread: f64,
    /// Configurations of each application of each class.
    choices: [Vec<Choices>; 4],
    source: JobSource,
}

#[derive(Clone, Debug)]
enum JobSource {
    /// Cumulative counts over `hour * 4 + class`.
    Figures(Vec<f64>),
    /// Second of the day, class and GPUs of every usable job; the configuration is realistic or
    /// tuned.
    Trace(Vec<(u32, usize, u32)>, Sizes),
}

impl PolluxSynth {
    pub(super) fn sampler(&self, catalog: &Catalog) -> Result<Sampler, SynthError> {
        check_jobs(self.jobs)?;
        check("hours", f64::from(self.hours), 1.0..=24.0, "1 to 24")?;
        check("work_spread", self.work_spread, 0.0..=3.0, "0 to 3")?;
        let mut choices: [Vec<Choices>; 4] = Default::default();
        for (class, choices) in choices.iter_mut().enumerate() {
            for name in CLASS_APPLICATIONS[class] {
                choices.push(Choices::new(catalog, name, self.sizes, JOBS_BY_SIZE[class])?);
            }
        }
        let source = match &self.trace {
            None => JobSource::Figures(cumulative(
                JOBS_BY_HOUR.iter().take(self.hours as usize).flatten().map(|&count| f64::from(count)),
            )),
            Some(path) => {
                let bytes = std::fs::read(path).map_err(DataError::read(path))?;
                let usable = usable(&import::philly::parse(path, &bytes)?, self.hours);
                if usable.len() < self.jobs as usize {
                    return Err(SynthError::TooFew { path: path.clone(), found: usable.len(), wanted: self.jobs });
                }
                JobSource::Trace(usable, self.sizes)
            }
        };
        Ok(Sampler { jobs: self.jobs, work_spread: self.work_spread, choices, source })
    }
}

impl Sampler {
    pub(super) fn work_spread(&self) -> f64 {
        self.work_spread
    }

    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Vec<JobDraw> {
        match &self.source {
            JobSource::Figures(counts) => (0..self.jobs)
                .map(|_| {
                    let cell = pick(rng, counts);
                    let second = rng.random_range(0..3600) + (cell / 4) as u32 * 3600;
                    let choices = self.application(rng, cell % 4);
                    let (gpus, batch_size) = choices.draw(rng);
                    job(second, choices.index, gpus, batch_size)
                })
                .collect(),
            JobSource::Trace(rows, sizes) => {
                let mut taken = BTreeSet::new();
                // Rejection of repeats samples without replacement, and a sorted set keeps the
                // order of the trace.
                while taken.len() < self.jobs as usize {
                    taken.insert(rng.random_range(0..rows.len()));
                }
                let draw = |row: usize| {
                    let (second, class, gpus) = rows[row];
                    let choices = self.application(rng, class);
                    let (gpus, batch_size) = match sizes {
                        Sizes::Tuned => choices.draw(rng),
                        Sizes::Realistic => (gpus, realistic_batch(choices.limits, gpus)),
                    };
                    job(second, choices.index, gpus, batch_size)
                };
                taken.into_iter().map(draw).collect()
            }
        }
    }

    fn application(&self, rng: &mut ChaCha8Rng, class: usize) -> &Choices {
        let choices = &self.choices[class];
        &choices[rng.random_range(0..choices.len())]
    }
}

fn job(second: u32, index: u16, gpus: u32, batch_size: u32) -> JobDraw {
    let task = JobTask::Application { index, gpus, batch_size, work_milli: WHOLE };
    JobDraw { submit: SimTime::from_secs(i64::from(second)), tenant: 0, task }
}

/// Second of the day, class and GPUs of the jobs that the procedure keeps.
fn usable(trace: &import::Imported, hours: u32) -> Vec<(u32, usize, u32)> {
    let origin = trace.origin_unix_secs.unwrap_or(0) - SHIFT_SECS;
    let keep = |job: &JobRow| {
        let duration = job.duration?.as_secs_f64();
        let gpu_secs = duration * f64::from(job.gpus);
        // Days are folded together: only the time of day counts, as in the artifact.
        let second = (origin + job.submit.as_millis() / 1000).rem_euclid(86_400) as u32;
        let kept = duration >= LEAST_SECS && gpu_secs < MOST_GPU_SECS && second < hours * 3600;
        kept.then(|| (second, CLASS_LIMITS.partition_point(|&limit| limit <= gpu_secs), job.gpus))
    };
    trace.jobs.iter().filter_map(keep).collect()
}
