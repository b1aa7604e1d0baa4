//! Training of language models, at one batch size, by published measurements of execution plans.
//!
//! A plan divides a model over accelerators by data, tensor and pipeline parallelism and by ZeRO. Each row of
//! `catalog/language-models.csv` is the published time of one step of one plan on one placement. An application takes
//! the fastest plan of a placement ([`MeasuredStepTimes::of_plans`]). Its batch size is fixed, so every step makes the
//! progress of one step, and goodput is throughput: nothing is assumed of what another batch size would be worth. Its
//! smallest size is that of its smallest published plan.
//!
//! Policies that estimate speeds go by [`ThroughputParams`] fitted to the fastest plans, as for any application.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::model::measured::PlanSample;
use goodput_env::model::{BatchLimits, MeasuredStepTimes, Sample, StepTime, ThroughputParams, fit};
use goodput_env::placement::packed_shape;
use serde::Deserialize;

use crate::catalog::Tuned;
use crate::error::DataError;

/// Steps of one whole run of an application. A thousandth of the run, the unit of `work_milli` of a job, is one step.
pub const RUN_STEPS: u32 = 1000;
/// Accelerators of a full node in the published measurements.
pub(crate) const GPUS_PER_NODE: u32 = 8;
/// Throughput of one accelerator at a tuned size, relative to the size at which it is greatest.
const TUNED_SHARE: f64 = 0.5;

/// File of the applications, and file of the measurements; for messages.
const FILES: [&str; 2] = ["datasets/catalog/language-models.toml", "datasets/catalog/language-models.csv"];

/// Published measurements and the applications that they are of.
#[derive(Clone, Debug)]
pub struct LanguageModels {
    file: LanguageModelsFile,
    /// Measurements in the order of the file.
    pub rows: Vec<PlanRow>,
}

/// Measurement of one plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRow {
    /// Name of the application.
    pub application: String,
    /// Accelerator type of the measurement.
    pub accelerator: String,
    /// Name of the plan as published.
    pub plan: String,
    /// Accelerators on each node, and seconds of a step at the application's batch size.
    pub sample: PlanSample,
    /// Key of the source.
    pub source: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageModelsFile {
    sources: BTreeMap<String, String>,
    derived: Vec<DerivedType>,
    application: Vec<LanguageModel>,
}

/// Type without measurements, on which every step takes less time by one factor.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DerivedType {
    /// Name of the type.
    pub accelerator: String,
    /// Type of the measurements.
    pub from: String,
    /// Speed relative to `from`.
    pub faster: f64,
    /// Key of the source of the factor.
    pub source: String,
}

/// Application as its file describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageModel {
    /// Name of the application.
    pub name: String,
    /// Meaning of a sample: `token` or `image`.
    pub sample: String,
    /// Samples of a step.
    pub batch: u32,
    /// Accelerator type that stands for an unknown type.
    pub reference: String,
    /// Parameters fitted to the fastest plans, by accelerator type with measurements.
    #[serde(default)]
    pub params: BTreeMap<String, ThroughputParams>,
}

impl LanguageModels {
    /// Measurements that ship with the product.
    ///
    /// # Errors
    /// Where the files contradict each other; a test reads them.
    pub fn shipped() -> Result<Self, DataError> {
        let (toml, csv) =
            (include_str!("../catalog/language-models.toml"), include_str!("../catalog/language-models.csv"));
        Self::parse(toml, csv)
    }

    fn parse(text: &str, csv: &str) -> Result<Self, DataError> {
        let wrong = |what: String| wrong("-", what);
        let file: LanguageModelsFile = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let rows = csv.lines().enumerate().skip(1).map(|(at, line)| {
            plan_row(line).ok_or_else(|| wrong(format!("{}:{}: `{line}` is no measurement", FILES[1], at + 1)))
        });
        let rows = rows.collect::<Result<_, _>>()?;
        let models = Self { file, rows };
        let known = |source: &str| models.file.sources.contains_key(source);
        let mut sources =
            models.rows.iter().map(|row| &row.source).chain(models.file.derived.iter().map(|of| &of.source));
        match sources.find(|source| !known(source)) {
            Some(source) => Err(wrong(format!("source {source:?} is not among [sources]"))),
            None => Ok(models),
        }
    }

    /// Applications as their file describes them.
    pub fn models(&self) -> &[LanguageModel] {
        &self.file.application
    }

    /// Types with speeds that are derived from those of other types.
    pub fn derived(&self) -> &[DerivedType] {
        &self.file.derived
    }

    /// Sources of the figures of an application, as citations.
    pub fn sources(&self, application: &str) -> Vec<&str> {
        let keys: BTreeSet<&str> =
            self.rows.iter().filter(|row| row.application == application).map(|row| row.source.as_str()).collect();
        keys.into_iter().filter_map(|key| self.file.sources.get(key)).map(String::as_str).collect()
    }

    /// Measurements of an application by accelerator type.
    pub fn plans(&self, application: &str) -> BTreeMap<&str, Vec<PlanSample>> {
        let mut plans: BTreeMap<&str, Vec<PlanSample>> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.application == application) {
            plans.entry(&row.accelerator).or_default().push(row.sample.clone());
        }
        plans
    }

    /// Parameters fitted to the fastest plan of each placement on one type. A replica has its part of the batch.
    ///
    /// # Errors
    /// Where a measurement is no step time.
    pub fn fitted(model: &LanguageModel, plans: &[PlanSample]) -> Result<ThroughputParams, String> {
        let times = times(plans, model.batch)?;
        let shapes: BTreeSet<&[u32]> = plans.iter().map(|plan| plan.shape.as_slice()).collect();
        let sample = |shape: &[u32]| {
            let (nodes, replicas) = (shape.len() as u32, shape.iter().sum::<u32>());
            let atomic = model.batch.div_ceil(replicas);
            let StepTime { step_secs, sync_secs } = times.step_time(shape, atomic).ok()?;
            Some(Sample { nodes, replicas, atomic, step_secs, sync_secs })
        };
        Ok(fit(&shapes.into_iter().filter_map(sample).collect::<Vec<_>>()))
    }

    /// Applications with their tuned configurations, in the order of the file.
    ///
    /// # Errors
    /// Where an application lacks measurements or parameters, or its smallest sizes differ between types.
    pub fn applications(&self) -> Result<Vec<(Application, Vec<Tuned>)>, DataError> {
        let build = |model| self.application(model).map_err(|what| wrong(&model.name, what));
        self.file.application.iter().map(build).collect()
    }

    fn application(&self, model: &LanguageModel) -> Result<(Application, Vec<Tuned>), String> {
        let LanguageModel { name, batch, reference, .. } = model;
        let mut params = model.params.clone();
        let mut measured = BTreeMap::new();
        let mut most = 0;
        for (kind, mut plans) in self.plans(name) {
            let fitted = params.get(kind).copied().ok_or_else(|| format!("params.{kind} is missing"))?;
            let sizes = plans.iter().map(|plan| plan.shape.iter().sum::<u32>());
            most = sizes.max().unwrap_or(0).max(most);
            measured.insert(kind.to_owned(), times(&plans, *batch)?);
            for derived in self.file.derived.iter().filter(|derived| derived.from == kind) {
                plans.iter_mut().for_each(|plan| plan.step_secs /= derived.faster);
                measured.insert(derived.accelerator.clone(), times(&plans, *batch)?);
                params.insert(derived.accelerator.clone(), sped_up(fitted, derived.faster));
            }
        }
        let least: BTreeSet<u32> = measured.values().map(|times| times.least_replicas()).collect();
        if least.len() != 1 || !measured.contains_key(reference) || params.len() != measured.len() {
            return Err(format!("smallest sizes {least:?}: types must have one in common, and {reference} rows"));
        }
        let limits = BatchLimits::new(*batch, *batch, 1, *batch).map_err(|error| error.to_string())?;
        let steps = f64::from(RUN_STEPS);
        // Without variance of the gradient a step makes one step of progress, whatever the rounding of the batch.
        let gradients = GradientTable { sqr: EpochTable::constant(1.0), var: EpochTable::constant(0.0) };
        let application = Application {
            name: name.clone(),
            limits,
            max_replicas: most,
            fixed_batch: Some(*batch),
            tensors: None,
            epochs: vec![steps],
            gradients,
            iterations: None,
            reference: reference.clone(),
            local_limits: BTreeMap::new(),
            params,
            measured,
        };
        let tuned = self.tuned(&application);
        Ok((application, tuned))
    }

    /// Published sizes on the reference type that are faster than every smaller one, and at which an accelerator has at
    /// least [`TUNED_SHARE`] of its greatest throughput.
    fn tuned(&self, application: &Application) -> Vec<Tuned> {
        let Some(pace) = application.pace(&application.reference) else { return Vec::new() };
        let batch_size = application.limits.init;
        let plans = self.plans(&application.name).remove(application.reference.as_str()).unwrap_or_default();
        let sizes: BTreeSet<u32> = plans.iter().map(|plan| plan.shape.iter().sum()).collect();
        let runs = sizes.into_iter().filter_map(|replicas| {
            let step = pace.step_time(&packed_shape(replicas, GPUS_PER_NODE), batch_size).ok()?;
            Some(Tuned { replicas, batch_size, ideal_secs: step.step_secs * f64::from(RUN_STEPS) })
        });
        let mut fastest = f64::INFINITY;
        let runs = runs.filter(|run| {
            let faster = run.ideal_secs < fastest;
            fastest = fastest.min(run.ideal_secs);
            faster
        });
        let runs: Vec<Tuned> = runs.collect();
        let cost = |run: &Tuned| run.ideal_secs * f64::from(run.replicas);
        let least = runs.iter().map(cost).fold(f64::INFINITY, f64::min);
        runs.into_iter().filter(|run| least / cost(run) >= TUNED_SHARE).collect()
    }
}

fn times(plans: &[PlanSample], batch: u32) -> Result<Arc<MeasuredStepTimes>, String> {
    MeasuredStepTimes::of_plans(plans, batch).map(Arc::new).map_err(|error| error.to_string())
}

fn sped_up(params: ThroughputParams, faster: f64) -> ThroughputParams {
    let ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma } = params;
    let [alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r] =
        [alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r].map(|secs| secs / faster);
    ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma }
}

/// Measurement of a line: application, accelerator, plan, one digit for each node, seconds, source.
fn plan_row(line: &str) -> Option<PlanRow> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[application, accelerator, plan, placement, step_secs, source] = fields.as_slice() else { return None };
    let shape: Vec<u32> = placement.chars().map(|digit| digit.to_digit(10)).collect::<Option<_>>()?;
    let sample = PlanSample { shape, step_secs: step_secs.parse().ok()? };
    let [application, accelerator, plan, source] = [application, accelerator, plan, source].map(str::to_owned);
    Some(PlanRow { application, accelerator, plan, sample, source })
}

fn wrong(application: &str, what: String) -> DataError {
    DataError::Application { path: FILES[0].into(), application: application.to_owned(), what }
}
