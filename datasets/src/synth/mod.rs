//! Workload generators by seed.
//!
//! A generator is checked once and then called at every reset of an environment, so making a
//! workload of 160 jobs costs microseconds. All draws come from the workload stream of the master
//! seed: equal seeds give equal workloads under every policy. Arrival curves use plain arithmetic
//! rather than the platform's sine, so they are the same bits everywhere.

pub mod diurnal;
pub mod lengths;
pub mod load;
pub mod pollux;
pub mod tokens;
mod work;

use std::path::{Path, PathBuf};

use goodput_env::application::Application;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, WHOLE, Work, Workload};
use goodput_env::model::BatchLimits;
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::catalog::Catalog;
use crate::error::DataError;
use crate::jobs::{JobRow, application_elasticity};

pub use diurnal::DiurnalSynth;
use lengths::Length;
pub use lengths::{CardPart, Lengths};
pub use load::LoadSynth;
pub use pollux::PolluxSynth;
pub use tokens::{TokenLengths, TokenTrace};

/// Most jobs of a generated workload.
const MOST_JOBS: u32 = 10_000_000;

/// A generator and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SynthConfig {
    /// The sampling procedure of the Pollux artifact.
    Pollux(PolluxSynth),
    /// Daily and weekly cycles, bursts and a mix of applications.
    Diurnal(DiurnalSynth),
}

/// Sizes and batch sizes that jobs ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// One of the application's tuned configurations, equally likely.
    #[default]
    Tuned,
    /// As many accelerators as such jobs asked for in the Philly trace, at the initial batch size
    /// for each.
    Realistic,
}

/// Settings that make no workload.
#[derive(Debug, Error)]
pub enum SynthError {
    /// A number out of range.
    #[error("{setting} is {value}, expected {expected}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Value that was given.
        value: String,
        /// Description of a valid value.
        expected: &'static str,
    },
    /// An application that the catalog does not have.
    #[error("application `{name}` is not in the catalog ({known})")]
    UnknownApplication {
        /// Name of the application.
        name: String,
        /// Names that are.
        known: String,
    },
    /// An application without a tuned configuration.
    #[error("application `{name}` has no tuned configuration in the catalog; use realistic sizes")]
    NotTuned {
        /// Name of the application.
        name: String,
    },
    /// The trace to sample from has too few usable jobs.
    #[error("{}: {found} jobs are usable, {wanted} are wanted", path.display())]
    TooFew {
        /// Path of the trace.
        path: PathBuf,
        /// Number of usable jobs.
        found: usize,
        /// Number of jobs that are wanted.
        wanted: u32,
    },
    /// The trace to sample from cannot be read.
    #[error(transparent)]
    Trace(#[from] DataError),
}

/// A checked generator over the applications of a catalog.
#[derive(Clone, Debug)]
pub struct Generator {
    applications: Applications,
    draws: JobSampler,
}

#[derive(Clone, Debug)]
enum JobSampler {
    Pollux(pollux::Sampler),
    Diurnal(diurnal::Process),
}

/// Draw of one job: its submission, tenant and task.
#[derive(Clone, Copy, Debug)]
struct JobDraw {
    submit: SimTime,
    tenant: u32,
    task: JobTask,
}

/// Work of a job.
#[derive(Clone, Copy, Debug)]
enum JobTask {
    /// Trains an application of the catalog.
    Application { index: u16, gpus: u32, batch_size: u32, work_milli: u32 },
    /// Only its duration is known.
    Timed(lengths::Length),
}

impl SynthConfig {
    /// Checks the settings and prepares a generator over the applications of `catalog`. Reads the
    /// trace, if one is set.
    ///
    /// # Errors
    /// Where a setting is out of range, an application is unknown or not tuned, or the trace is
    /// unusable.
    pub fn build(&self, catalog: &Catalog) -> Result<Generator, SynthError> {
        let applications = Applications { catalog: catalog.clone() };
        let draws = match self {
            Self::Pollux(settings) => JobSampler::Pollux(settings.sampler(catalog)?),
            Self::Diurnal(settings) => JobSampler::Diurnal(settings.process(catalog)?),
        };
        Ok(Generator { applications, draws })
    }

    /// The workload of `seed`; prefer [`Self::build`] once and [`Generator::generate`] often.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn generate(&self, catalog: &Catalog, seed: u64) -> Result<Workload, SynthError> {
        Ok(self.build(catalog)?.generate(seed))
    }

    /// Name of the generator.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pollux(_) => "pollux",
            Self::Diurnal(_) => "diurnal",
        }
    }

    /// File that the generator samples from, if any.
    pub fn trace(&self) -> Option<&Path> {
        match self {
            Self::Pollux(settings) => settings.trace.as_deref(),
            Self::Diurnal(_) => None,
        }
    }
}

impl Generator {
    /// The workload of `seed`: jobs in order of submission, named `application-index`.
    ///
    /// # Example
    /// ```
    /// use goodput_datasets::Catalog;
    /// use goodput_datasets::synth::{PolluxSynth, SynthConfig};
    ///
    /// let settings = SynthConfig::Pollux(PolluxSynth { jobs: 20, ..PolluxSynth::default() });
    /// let generator = settings.build(Catalog::shipped())?;
    /// let workload = generator.generate(7);
    /// assert_eq!(workload.jobs.len(), 20);
    /// assert!(workload.jobs.is_sorted_by_key(|job| job.request.submit));
    ///
    /// // Equal seeds give equal workloads.
    /// assert_eq!(generator.generate(7).jobs, workload.jobs);
    /// # Ok::<(), goodput_datasets::synth::SynthError>(())
    /// ```
    pub fn generate(&self, seed: u64) -> Workload {
        let jobs = self.draws(seed).into_iter().enumerate().map(|(index, draw)| {
            let mut share = None;
            let (work, gpus, batch_size, elasticity) = match draw.task {
                JobTask::Application { index, gpus, batch_size, work_milli } => {
                    let elasticity = application_elasticity(self.application(index), gpus);
                    (Work::Application { index, work_milli }, gpus, Some(batch_size), elasticity)
                }
                JobTask::Timed(length) => {
                    share = length.share;
                    (Work::Fixed { duration: length.duration }, length.gpus, None, length.elasticity)
                }
            };
            let (name, tenant, submit) = (self.name(&draw, index), draw.tenant, draw.submit);
            let request =
                JobRequest { name, tenant, submit, gpus, batch_size, elasticity, share, ..JobRequest::default() };
            JobSpec { request, work }
        });
        let jobs: Vec<JobSpec> = jobs.collect();
        let applications = self.applications.catalog.applications_of(&jobs);
        Workload { applications, jobs, ..Workload::default() }
    }

    /// Jobs of `seed` as rows of the job table.
    pub fn rows(&self, seed: u64) -> Vec<JobRow> {
        let row = |(index, draw): (usize, JobDraw)| {
            let blank = JobRow {
                line: index as u64 + 1,
                job_id: self.name(&draw, index),
                submit: draw.submit,
                // Zero-padded so that names sort as indices do.
                tenant: Some(format!("tenant-{:03}", draw.tenant)),
                ..JobRow::default()
            };
            match draw.task {
                JobTask::Application { index, gpus, batch_size, work_milli } => {
                    let application = Some(self.application(index).name.clone());
                    let work_milli = (work_milli != WHOLE).then_some(work_milli);
                    JobRow { gpus, batch_size: Some(batch_size), application, work_milli, ..blank }
                }
                JobTask::Timed(Length { duration, gpus, elasticity, share }) => {
                    let (gpu_min, gpu_max) = match elasticity {
                        Elasticity::Rigid => (None, None),
                        Elasticity::Elastic { min, max } => (Some(min), Some(max)),
                    };
                    JobRow { duration: Some(duration), gpus, gpu_min, gpu_max, share, ..blank }
                }
            }
        };
        self.draws(seed).into_iter().enumerate().map(row).collect()
    }

    /// Applications that jobs may train; none where jobs have a duration alone. Beside language models, these are the
    /// applications of the mix only.
    pub fn trained(&self) -> impl Iterator<Item = &Application> {
        let catalog = &self.applications.catalog;
        let adaptive = catalog.adaptive().len();
        let (trains, mixed) = match &self.draws {
            JobSampler::Pollux(_) => (true, Vec::new()),
            JobSampler::Diurnal(process) => (process.trains(), process.mixed()),
        };
        let plans = mixed.iter().any(|&index| usize::from(index) >= adaptive);
        let used = move |index: usize| if plans { mixed.contains(&(index as u16)) } else { index < adaptive };
        let all = catalog.applications.iter().map(|application| &**application).enumerate();
        all.filter(move |(index, _)| trains && used(*index)).map(|(_, application)| application)
    }

    /// Parts of an accelerator that jobs may ask for.
    pub fn parts(&self) -> &[CardPart] {
        match &self.draws {
            JobSampler::Pollux(_) => &[],
            JobSampler::Diurnal(process) => process.parts(),
        }
    }

    fn application(&self, index: u16) -> &Application {
        &self.applications.catalog.applications[usize::from(index)]
    }

    fn name(&self, draw: &JobDraw, index: usize) -> String {
        match draw.task {
            JobTask::Application { index: application, .. } => {
                format!("{}-{index}", self.application(application).name)
            }
            JobTask::Timed(_) => format!("job-{index}"),
        }
    }

    /// Names of the tenants that the jobs of [`Self::generate`] index.
    pub fn tenants(&self) -> Vec<String> {
        let count = match &self.draws {
            JobSampler::Pollux(_) => 1,
            JobSampler::Diurnal(process) => process.tenants(),
        };
        (0..count).map(|index| format!("tenant-{index:03}")).collect()
    }

    /// Draws in order of submission.
    fn draws(&self, seed: u64) -> Vec<JobDraw> {
        let mut rng = rng(seed, Stream::Workload);
        let mut draws = match &self.draws {
            JobSampler::Pollux(sampler) => sampler.draw(&mut rng),
            JobSampler::Diurnal(process) => process.draw(&mut rng),
        };
        // The sort is stable, so jobs of one moment keep the order in which they were drawn.
        draws.sort_by_key(|draw| draw.submit);
        let spread = match &self.draws {
            JobSampler::Pollux(sampler) => sampler.work_spread(),
            JobSampler::Diurnal(process) => process.work_spread(),
        };
        if spread > 0.0 {
            work::randomise(&mut draws, spread, seed);
        }
        draws
    }
}

/// The catalog a generator draws from.
#[derive(Clone, Debug)]
struct Applications {
    catalog: Catalog,
}

/// The configurations one application is submitted in.
#[derive(Clone, Debug)]
struct Choices {
    index: u16,
    limits: BatchLimits,
    /// Configurations as triples `(gpus, batch size, cumulative weight)`.
    configurations: Vec<(u32, u32, f64)>,
}

impl Choices {
    /// Configurations of an application; realistic ones of `gpus` with their weights.
    fn new(catalog: &Catalog, name: &str, sizes: Sizes, gpus: &[(u32, u32)]) -> Result<Self, SynthError> {
        let unknown = || SynthError::UnknownApplication { name: name.to_owned(), known: catalog.names().join(", ") };
        let index = catalog.index(name).ok_or_else(unknown)?;
        let limits = catalog.applications[usize::from(index)].limits;
        let weighted: Vec<(u32, u32, f64)> = match sizes {
            Sizes::Tuned => catalog.tuned(name).iter().map(|tuned| (tuned.replicas, tuned.batch_size, 1.0)).collect(),
            Sizes::Realistic => {
                let (least, most) = catalog.sizes(index);
                let within = |&&(gpus, _): &&(u32, u32)| (least..=most).contains(&gpus);
                let sizes = gpus.iter().filter(within);
                sizes.map(|&(gpus, count)| (gpus, realistic_batch(limits, gpus), f64::from(count))).collect()
            }
        };
        if weighted.is_empty() {
            return Err(SynthError::NotTuned { name: name.to_owned() });
        }
        let mut total = 0.0;
        let configurations = weighted.into_iter().map(|(gpus, batch, weight)| {
            total += weight;
            (gpus, batch, total)
        });
        Ok(Self { index, limits, configurations: configurations.collect() })
    }

    /// A configuration by its weight.
    fn draw(&self, rng: &mut ChaCha8Rng) -> (u32, u32) {
        let total = self.configurations.last().map_or(0.0, |last| last.2);
        let at = rng.random::<f64>() * total;
        let chosen = self.configurations.partition_point(|configuration| configuration.2 <= at);
        // Rounding may bring the draw up to the total, which is beyond the last weight.
        let (gpus, batch_size, _) = self.configurations[chosen.min(self.configurations.len() - 1)];
        (gpus, batch_size)
    }
}

/// The initial batch size for each accelerator, as far as the application allows.
fn realistic_batch(limits: BatchLimits, gpus: u32) -> u32 {
    limits.init.saturating_mul(gpus).min(limits.max)
}

/// An index by cumulative weights.
fn pick(rng: &mut ChaCha8Rng, cumulative: &[f64]) -> usize {
    let at = rng.random::<f64>() * cumulative.last().copied().unwrap_or(0.0);
    cumulative.partition_point(|&weight| weight <= at).min(cumulative.len().saturating_sub(1))
}

/// Running sums of the weights.
fn cumulative(weights: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut total = 0.0;
    let add = |weight| {
        total += weight;
        total
    };
    weights.into_iter().map(add).collect()
}

/// Refuses a setting outside `range`.
fn check(
    setting: &'static str,
    value: f64,
    range: std::ops::RangeInclusive<f64>,
    expected: &'static str,
) -> Result<(), SynthError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(SynthError::Setting { setting, value: value.to_string(), expected })
    }
}

/// Refuses an unusable number of jobs.
fn check_jobs(jobs: u32) -> Result<(), SynthError> {
    check("jobs", f64::from(jobs), 1.0..=f64::from(MOST_JOBS), "1 to 10000000")
}
