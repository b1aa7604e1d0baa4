//! Catalog of the applications that jobs train: shipped with the product, read from a file, or
//! measured.
//!
//! The file holds fitted and aggregated figures only (see [`crate::fit`]); its first lines say from
//! what and how to make it again. It is TOML so that a researcher can read it, change a figure and
//! see what that does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use goodput_env::application::{Application, EpochTable, GradientTable, IterationTable};
use goodput_env::job::{JobSpec, WHOLE, Work};
use goodput_env::model::{BatchLimits, TensorSizes, ThroughputParams};
use goodput_env::time::SimTime;
use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::language_models::LanguageModels;

/// Accelerator type of the public measurements: nodes with four T4 GPUs each.
pub const ACCELERATOR: &str = "t4";

/// Name of the shipped catalog in messages.
const SHIPPED: &str = "datasets/catalog/applications.toml";

/// Applications, and for each the configurations known to be tuned.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Applications; jobs refer to them by index.
    pub applications: Vec<Arc<Application>>,
    tuned: Vec<Vec<Tuned>>,
    /// Whether jobs are as long as their duration says, and not as the training of the application.
    by_duration: bool,
    /// Number of applications at the end that train language models by published plans.
    language_models: usize,
}

/// A size and batch size at which a careful user would submit an application.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuned {
    /// Number of replicas.
    pub replicas: u32,
    /// Total batch size, samples.
    pub batch_size: u32,
    /// Seconds from start to end when undisturbed.
    pub ideal_secs: f64,
}

/// Catalog in the form of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogFile {
    /// Applications in the order of the file.
    pub application: Vec<ApplicationEntry>,
}

/// Application in the form of its file. A phase is a range of epochs over which gradient noise is
/// taken as constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationEntry {
    /// Name of the application.
    pub name: String,
    /// Limits of the batch size, samples.
    pub limits: BatchLimits,
    /// Greatest number of replicas.
    pub max_replicas: u32,
    /// Total batch size under every policy, where it is not adapted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_batch: Option<u32>,
    /// Sizes of the model's tensors, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensors: Option<TensorSizes>,
    /// Epochs complete at the end of each phase, ascending.
    pub phases: Vec<u32>,
    /// Scale-invariant iterations complete at the end of each phase; linear in epochs between.
    pub progress: Vec<f64>,
    /// Total batch sizes at which the noise was measured, ascending.
    pub batch_sizes: Vec<u32>,
    /// Gradient noise scale, samples: a list by phase for each batch size.
    pub pgns: Vec<Vec<f64>>,
    /// Tuned configurations, in ascending order of replicas.
    pub tuned: Vec<Tuned>,
    /// Accelerator type that `limits` and `tuned` are of. The speed on this type stands for the
    /// speed on an unknown type.
    pub reference: String,
    /// Most samples per replica in one pass on other types.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub local_limits: BTreeMap<String, u32>,
    /// Fitted throughput by accelerator type.
    pub params: BTreeMap<String, ThroughputParams>,
}

/// Error of a parser with its place in a text.
pub(crate) fn fault(path: &Path, text: &str, error: &toml::de::Error) -> DataError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() as u64 + 1;
    DataError::Catalog { path: path.to_owned(), line, column, message: error.message().to_owned() }
}

impl Catalog {
    /// Catalog that ships with the product.
    pub fn shipped() -> &'static Self {
        static CATALOG: OnceLock<Catalog> = OnceLock::new();
        CATALOG.get_or_init(|| {
            let parsed = Self::parse(Path::new(SHIPPED), include_str!("../catalog/applications.toml"));
            let mut catalog = parsed.expect("the shipped catalog is valid: a test reads it");
            let models = LanguageModels::shipped().and_then(|models| models.applications());
            for (application, tuned) in models.expect("the shipped measurements are valid: a test reads them") {
                catalog.push(application, tuned);
                catalog.language_models += 1;
            }
            catalog
        })
    }

    /// An empty catalog of applications that have no length of their own: a job does as much work as its duration says.
    pub fn by_duration() -> Self {
        Self { by_duration: true, ..Self::default() }
    }

    /// Work of a job of application `index`, in thousandths of the application's, where its duration on `gpus`
    /// accelerators of the reference type at this batch size says how much it is.
    pub fn work_by_duration(&self, index: u16, gpus: u32, batch_size: Option<u32>, duration: SimTime) -> Option<u32> {
        let application = self.applications.get(usize::from(index)).filter(|_| self.by_duration)?;
        let pace = application.pace(&application.reference)?;
        let batch = pace.limits.split(batch_size.unwrap_or(application.limits.init), gpus);
        // The speeds of such applications do not depend on the number of nodes.
        let step = pace.step_time(&[gpus], batch.atomic).ok()?;
        let work = application.progress_rate(step, gpus, batch, 0) * duration.as_secs_f64();
        Some((work / application.total_work() * f64::from(WHOLE)).round().clamp(1.0, f64::from(u32::MAX)) as u32)
    }

    /// Reads a catalog file.
    ///
    /// # Errors
    /// Where it cannot be read, is not TOML of the right shape, or contradicts itself.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::parse(path, &fs::read_to_string(path).map_err(DataError::read(path))?)
    }

    /// As [`Self::read`] from the text of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, DataError> {
        let file: CatalogFile = toml::from_str(text).map_err(|error| fault(path, text, &error))?;
        file.catalog(path)
    }

    /// Position of an application; its name is matched without regard to case.
    pub fn index(&self, name: &str) -> Option<u16> {
        self.applications
            .iter()
            .position(|application| application.name.eq_ignore_ascii_case(name))
            .map(|index| index as u16)
    }

    /// Application by its name, without regard to case.
    pub fn get(&self, name: &str) -> Option<&Arc<Application>> {
        self.applications.iter().find(|application| application.name.eq_ignore_ascii_case(name))
    }

    /// Tuned configurations of an application, in ascending order of replicas; none if unknown.
    pub fn tuned(&self, name: &str) -> &[Tuned] {
        self.index(name).and_then(|index| self.tuned.get(usize::from(index))).map_or(&[], Vec::as_slice)
    }

    /// Applications without those at the end that train language models by published plans.
    pub fn adaptive(&self) -> &[Arc<Application>] {
        &self.applications[..self.applications.len() - self.language_models]
    }

    /// Fewest and most accelerators that a job of application `index` may ask for: those of published plans, without
    /// limit for others.
    pub fn sizes(&self, index: u16) -> (u32, u32) {
        match self.applications.get(usize::from(index)) {
            Some(of) if usize::from(index) >= self.adaptive().len() => (of.min_replicas(), of.max_replicas),
            _ => (1, u32::MAX),
        }
    }

    /// Applications of a workload: all where one of `jobs` trains a language model, otherwise [`Self::adaptive`], so
    /// that the charts of other workloads do not list language models.
    pub fn applications_of(&self, jobs: &[JobSpec]) -> Vec<Arc<Application>> {
        let adaptive = self.adaptive();
        let beyond = |job: &JobSpec| match job.work {
            Work::Application { index, .. } => usize::from(index) >= adaptive.len(),
            Work::Fixed { .. } | Work::Steps { .. } => false,
        };
        if jobs.iter().any(beyond) { self.applications.clone() } else { adaptive.to_vec() }
    }

    /// Names of all applications.
    pub fn names(&self) -> Vec<&str> {
        self.applications.iter().map(|application| application.name.as_str()).collect()
    }

    /// Adds an application with its tuned configurations.
    pub fn push(&mut self, application: Application, tuned: Vec<Tuned>) {
        self.applications.push(Arc::new(application));
        self.tuned.push(tuned);
    }
}

impl CatalogFile {
    /// The catalog that is described; `path` is for messages.
    ///
    /// # Errors
    /// Where an application contradicts itself.
    pub fn catalog(&self, path: &Path) -> Result<Catalog, DataError> {
        let mut catalog = Catalog::default();
        for entry in &self.application {
            let application = match catalog.get(&entry.name) {
                Some(_) => Err("is there twice".to_owned()),
                None => entry.application(),
            };
            let wrong = |what| DataError::Application { path: path.to_owned(), application: entry.name.clone(), what };
            catalog.push(application.map_err(wrong)?, entry.tuned.clone());
        }
        Ok(catalog)
    }

    /// The text of the file: the same bytes for the same figures.
    pub fn to_toml(&self) -> String {
        let mut out = String::from(HEADER);
        for entry in &self.application {
            entry.write(&mut out);
        }
        out
    }
}

/// First lines of the file.
const HEADER: &str = "\
# The applications shipped with goodput. Made by `goodput data fit --profiles DIR --by-type DIR -o FILE`; do not edit the
# shipped copy.
#
# Every figure is fitted to or aggregated from public measurements of the Pollux artifact (petuum/adaptdl, branch
# osdi21-artifact, simulator/traces; Apache-2.0), made on nodes with four T4 GPUs each; throughput and memory of other types
# to those of the Sia artifact (siasosp23/artifacts, sia-simulator/traces). None of their files is included. TPUs are derived:
# V100 figures over the ratio of MLPerf training v0.7 (accelerators.toml), of models that have both. So are the H100 from the
# A100 (v2.1), and the H200 and the L40S from the H100 (v4.0).
#
# limits: total batch size tuned by the user and largest valid one; smallest and largest batch of one replica; samples.
# phases: epochs complete at the end of each phase of training; progress: scale-invariant iterations complete by then.
# pgns: gradient noise scale in samples, a list by phase for each total batch size of batch_sizes.
# tuned: sizes and total batch sizes a careful user would submit, with the undisturbed run time in seconds.
# reference: the accelerator type that limits and tuned are of; local_limits: largest batch of one replica on other types.
# params: throughput model (Pollux, OSDI'21, section 3.2) in seconds, by accelerator type.
# tensors: largest parameter tensor and all together, MiB of 32-bit floats, worked out of the layer shapes of the published
# models as the Pollux artifact trains them (benchmark/models); Tiresias (NSDI'19) places by them.
";

impl ApplicationEntry {
    fn application(&self) -> Result<Application, String> {
        let phases = self.phases.len();
        let ascending = |values: &[f64]| {
            values.first().is_some_and(|&first| first > 0.0) && values.windows(2).all(|pair| pair[0] < pair[1])
        };
        let ends: Vec<f64> = self.phases.iter().map(|&end| f64::from(end)).collect();
        if !ascending(&ends) || ends[phases - 1] > 1e6 {
            return Err("phases must be positive, ascending and at most a million epochs".to_owned());
        }
        if self.progress.len() != phases || !ascending(&self.progress) || !self.progress[phases - 1].is_finite() {
            return Err(format!("progress must be {phases} positive ascending numbers, one a phase"));
        }
        if self.pgns.len() != self.batch_sizes.len() || self.pgns.iter().any(|column| column.len() != phases) {
            return Err(format!(
                "pgns must be {} lists, one a batch size, of {phases} numbers, one a phase",
                self.batch_sizes.len()
            ));
        }
        if self.pgns.iter().flatten().any(|noise| !noise.is_finite() || *noise < 0.0) {
            return Err("pgns must be finite and at least 0".to_owned());
        }
        if self.max_replicas == 0 || self.params.is_empty() {
            return Err("max_replicas and params must not be empty".to_owned());
        }
        if self.tensors.is_some_and(|sizes| !sizes.is_sound()) {
            return Err("tensors must be positive, and largest_mib at most total_mib".to_owned());
        }
        if let Some((kind, _)) = self.params.iter().find(|(_, params)| !usable(params)) {
            return Err(format!("params.{kind} must be finite and positive, with gamma of at least 1"));
        }
        if !self.params.contains_key(&self.reference) {
            return Err(format!("params.{} is missing: it is the reference type", self.reference));
        }
        if let Some((kind, _)) = self.local_limits.iter().find(|(_, most)| **most < self.limits.min_local) {
            return Err(format!("local_limits.{kind} is below limits.min_local"));
        }
        let epochs = self.epochs();
        let batch_sizes: Vec<f64> = self.batch_sizes.iter().map(|&size| f64::from(size)).collect();
        let table = |value: &dyn Fn(usize, usize) -> f64| {
            let rows =
                self.phase_of_epochs().flat_map(|phase| (0..batch_sizes.len()).map(move |column| value(phase, column)));
            EpochTable::new(batch_sizes.clone(), rows.collect()).map_err(|error| format!("batch_sizes: {error}"))
        };
        let init = f64::from(self.limits.init);
        let gradients =
            GradientTable { sqr: table(&|_, _| 1.0)?, var: table(&|phase, column| self.pgns[column][phase] / init)? };
        let iterations = IterationTable(iterations(&epochs, &gradients, init).map_err(|error| error.to_string())?);
        Ok(Application {
            name: self.name.clone(),
            limits: self.limits,
            max_replicas: self.max_replicas,
            fixed_batch: self.fixed_batch,
            tensors: self.tensors,
            epochs,
            gradients,
            iterations: Some(iterations),
            reference: self.reference.clone(),
            local_limits: self.local_limits.clone(),
            params: self.params.clone(),
            measured: BTreeMap::new(),
        })
    }

    /// Progress at the end of each epoch.
    fn epochs(&self) -> Vec<f64> {
        let mut epochs = Vec::new();
        let (mut start, mut done) = (0, 0.0);
        for (&end, &progress) in self.phases.iter().zip(&self.progress) {
            let count = end - start;
            // Within a phase the noise is constant, so progress is linear in epochs.
            epochs.extend((1..=count).map(|epoch| done + (progress - done) * f64::from(epoch) / f64::from(count)));
            (start, done) = (end, progress);
        }
        epochs
    }

    /// Phase of each epoch.
    fn phase_of_epochs(&self) -> impl Iterator<Item = usize> + '_ {
        let starts = std::iter::once(0).chain(self.phases.iter().copied());
        starts.zip(&self.phases).enumerate().flat_map(|(phase, (start, &end))| (start..end).map(move |_| phase))
    }

    fn write(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let BatchLimits { init, max, min_local, max_local } = self.limits;
        let _ = writeln!(out, "\n[[application]]\nname = {:?}", self.name);
        let _ = writeln!(
            out,
            "limits = {{ init = {init}, max = {max}, min_local = {min_local}, max_local = {max_local} }}"
        );
        let _ = writeln!(out, "reference = {:?}", self.reference);
        if !self.local_limits.is_empty() {
            let pairs: Vec<String> =
                self.local_limits.iter().map(|(kind, most)| format!("{kind:?} = {most}")).collect();
            let _ = writeln!(out, "local_limits = {{ {} }}", pairs.join(", "));
        }
        let _ = writeln!(out, "max_replicas = {}", self.max_replicas);
        if let Some(batch) = self.fixed_batch {
            let _ = writeln!(out, "fixed_batch = {batch}");
        }
        if let Some(TensorSizes { largest_mib, total_mib }) = self.tensors {
            let _ = writeln!(out, "tensors = {{ largest_mib = {largest_mib:?}, total_mib = {total_mib:?} }}");
        }
        let _ = writeln!(out, "phases = {:?}", self.phases);
        let _ = writeln!(out, "progress = {}", numbers(&self.progress));
        let _ = writeln!(out, "batch_sizes = {:?}\npgns = [", self.batch_sizes);
        for column in &self.pgns {
            let _ = writeln!(out, "  {},", numbers(column));
        }
        let _ = writeln!(out, "]\ntuned = [");
        for Tuned { replicas, batch_size, ideal_secs } in &self.tuned {
            let _ = writeln!(
                out,
                "  {{ replicas = {replicas}, batch_size = {batch_size}, ideal_secs = {} }},",
                number(*ideal_secs)
            );
        }
        let _ = writeln!(out, "]");
        for (kind, p) in &self.params {
            let _ = writeln!(out, "\n[application.params.{kind:?}]");
            let pairs = [
                ("alpha_c", p.alpha_c),
                ("beta_c", p.beta_c),
                ("alpha_n", p.alpha_n),
                ("beta_n", p.beta_n),
                ("alpha_r", p.alpha_r),
                ("beta_r", p.beta_r),
                ("gamma", p.gamma),
            ];
            for (name, value) in pairs {
                let _ = writeln!(out, "{name} = {}", number(value));
            }
        }
    }
}

/// Iterations until the end of each epoch at each batch size: the time an oracle predicts is the
/// one that will pass.
fn iterations(
    epochs: &[f64],
    gradients: &GradientTable,
    init: f64,
) -> Result<EpochTable, goodput_env::application::TableError> {
    let batch_sizes = gradients.sqr.batch_sizes().to_vec();
    let mut done = vec![0.0; batch_sizes.len()];
    let mut rows = Vec::with_capacity(epochs.len() * batch_sizes.len());
    let mut before = 0.0;
    for (epoch, &progress) in epochs.iter().enumerate() {
        for (done, &batch) in done.iter_mut().zip(&batch_sizes) {
            *done += (progress - before) / gradients.at(batch, epoch as u32).gain(batch / init);
            rows.push(*done);
        }
        before = progress;
    }
    EpochTable::new(batch_sizes, rows)
}

fn usable(p: &ThroughputParams) -> bool {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    [p.alpha_c, p.beta_c, p.alpha_n, p.beta_n, p.alpha_r, p.beta_r].into_iter().all(positive)
        && p.gamma.is_finite()
        && p.gamma >= 1.0
}

fn numbers(values: &[f64]) -> String {
    let texts: Vec<String> = values.iter().map(|&value| number(value)).collect();
    format!("[{}]", texts.join(", "))
}

/// The shortest text that TOML reads back as the same float.
fn number(value: f64) -> String {
    format!("{value:?}")
}
