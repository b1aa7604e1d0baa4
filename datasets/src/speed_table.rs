//! Applications of which the speed was measured by number of accelerators, and nothing else is known.
//!
//! A trace that names such models says how long each job ran on the accelerators that it asked for. The table says how
//! fast the job is on others. A step of twice the batch is worth two steps, so a job does one amount of work whatever
//! its size, and no batch size is statistically better than another.
//!
//! The file is of this form, and [`ShippedSpeeds`] names the ones that ship:
//!
//! ```toml
//! accelerator = "a100"
//! gpus_per_node = 8
//! gpus = [1, 2, 4]
//!
//! [[model]]
//! name = "elasticflow-bert"
//!
//! [model.steps_per_sec]
//! 64 = [6.03, 8.64, 10.36]
//! ```
//!
//! Between measured numbers of accelerators steps per second are linear. The table does not tell placements apart: its
//! speeds are those of packed accelerators, and are taken for every placement.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::job::WHOLE;
use goodput_env::model::{BatchLimits, MeasuredStepTimes, Sample, ScalabilitySample, StepTime, fit};
use goodput_env::placement::packed_shape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;

/// Steps of the largest batch size in a thousandth of the work that an application is counted in.
const STEPS: f64 = 10.0;

/// Nodes up to which placements are told apart by the environment.
const MOST_NODES: u32 = 16;

/// A table of measured speeds that ships with the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShippedSpeeds {
    /// The six models of microsoft/elasticflow-traces on one to 64 A100 (Gu et al., ASPLOS 2023; pkusys/ElasticFlow,
    /// Apache-2.0).
    ElasticFlow,
}

impl ShippedSpeeds {
    /// Place from which a user gets the traces of these models, as a remedy.
    pub fn place(self) -> &'static str {
        match self {
            Self::ElasticFlow => {
                "the traces do not ship: unpack data/elasticflow-traces.tar.gz of \
                 https://github.com/microsoft/elasticflow-traces (MIT) into the folder in which the command runs"
            }
        }
    }

    /// Catalog of the models of the table. A job of such a model does as much work as its duration says.
    pub fn catalog(self) -> &'static Catalog {
        static ELASTICFLOW: OnceLock<Catalog> = OnceLock::new();
        let (cell, text) = match self {
            Self::ElasticFlow => (&ELASTICFLOW, include_str!("../catalog/elasticflow.toml")),
        };
        cell.get_or_init(|| SpeedTable::parse(text).and_then(|table| table.catalog()).expect("a test reads the table"))
    }
}

/// Speeds of models by number of accelerators, in the form of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpeedTable {
    accelerator: String,
    gpus_per_node: u32,
    gpus: Vec<u32>,
    model: Vec<ModelSpeeds>,
}

/// Speeds of one model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelSpeeds {
    name: String,
    /// By total batch size, then as `gpus` of the table.
    steps_per_sec: BTreeMap<String, Vec<f64>>,
}

impl SpeedTable {
    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    fn catalog(&self) -> Result<Catalog, String> {
        let mut catalog = Catalog::by_duration();
        for model in &self.model {
            let application = self.application(model).map_err(|problem| format!("{}: {problem}", model.name))?;
            catalog.push(application, Vec::new());
        }
        Ok(catalog)
    }

    fn application(&self, model: &ModelSpeeds) -> Result<Application, String> {
        let mut curves = BTreeMap::new();
        for (batch, speeds) in &model.steps_per_sec {
            let batch: u32 = batch.parse().map_err(|_| format!("{batch} is no batch size"))?;
            curves.insert(batch, self.curve(speeds).ok_or_else(|| format!("no speeds at batch size {batch}"))?);
        }
        let (&largest, _) = curves.last_key_value().ok_or("no batch size")?;
        let max_replicas = curves.values().map(|curve| curve.len() as u32).max().unwrap_or(1);
        let limits = BatchLimits { init: largest, max: largest, min_local: 1, max_local: largest };
        let measured = MeasuredStepTimes::new(&[], &[], &step_times(&curves)).map_err(|error| error.to_string())?;
        let samples: Vec<Sample> = curves.iter().flat_map(|(&batch, curve)| self.samples(batch, curve)).collect();
        let kind = || self.accelerator.clone();
        Ok(Application {
            name: model.name.clone(),
            limits,
            max_replicas,
            fixed_batch: None,
            tensors: None,
            epochs: vec![STEPS * f64::from(WHOLE)],
            // With noise alone a step is worth its samples.
            gradients: GradientTable { sqr: EpochTable::constant(0.0), var: EpochTable::constant(1.0) },
            iterations: None,
            reference: kind(),
            params: BTreeMap::from([(kind(), fit(&samples))]),
            local_limits: BTreeMap::new(),
            measured: BTreeMap::from([(kind(), Arc::new(measured))]),
        })
    }

    /// Steps per second on 1, 2, 3, ... accelerators, as far as they were measured; `None` where nothing was.
    fn curve(&self, speeds: &[f64]) -> Option<Vec<f64>> {
        let known: Vec<(u32, f64)> =
            self.gpus.iter().copied().zip(speeds.iter().copied()).filter(|(_, speed)| *speed > 0.0).collect();
        let last = known.last()?.0;
        let at = |gpus: u32| {
            let above = known.iter().position(|point| point.0 >= gpus)?;
            let (high, fast) = known[above];
            let Some(&(low, slow)) = above.checked_sub(1).and_then(|below| known.get(below)) else { return Some(fast) };
            Some(slow + (fast - slow) * f64::from(gpus - low) / f64::from(high - low))
        };
        (1..=last).map(at).collect()
    }

    /// Measurements to which the parameters of policies are fitted. A pass without synchronisation is taken to
    /// divide the step of one accelerator.
    fn samples(&self, batch: u32, curve: &[f64]) -> Vec<Sample> {
        let sizes = self.gpus.iter().copied().filter(|&gpus| gpus as usize <= curve.len() && gpus <= batch);
        let sample = |gpus: u32| {
            let StepTime { step_secs, sync_secs } = step_time(curve, gpus, 1.0);
            let nodes = packed_shape(gpus, self.gpus_per_node).len() as u32;
            Sample { nodes, replicas: gpus, atomic: batch.div_ceil(gpus), step_secs, sync_secs }
        };
        sizes.map(sample).collect()
    }
}

/// Step time of `part` of a batch on `gpus` accelerators.
fn step_time(curve: &[f64], gpus: u32, part: f64) -> StepTime {
    let step_secs = part / curve[gpus as usize - 1];
    let pass = part / (curve[0] * f64::from(gpus));
    StepTime { step_secs, sync_secs: (step_secs - pass).max(0.0) }
}

/// Step times on every number of accelerators and nodes, at the batch sizes per replica that the total batch sizes
/// give.
fn step_times(curves: &BTreeMap<u32, Vec<f64>>) -> Vec<ScalabilitySample> {
    let most = curves.values().map(Vec::len).max().unwrap_or(0) as u32;
    let mut samples = Vec::new();
    for replicas in 1..=most {
        let mut by_local = BTreeMap::new();
        let rounded: [fn(u32, u32) -> u32; 2] = [u32::div_ceil, |batch, replicas| batch / replicas];
        for local in rounded {
            for (&batch, curve) in curves.iter().filter(|(_, curve)| replicas as usize <= curve.len()) {
                let local_bsz = local(batch, replicas).max(1);
                // A batch that does not divide by the replicas is a little larger or smaller, and takes as much longer.
                let part = f64::from(local_bsz * replicas) / f64::from(batch);
                by_local.entry(local_bsz).or_insert(step_time(curve, replicas, part));
            }
        }
        for nodes in 1..=replicas.min(MOST_NODES) {
            let each = by_local.iter().map(|(&local_bsz, &StepTime { step_secs, sync_secs })| ScalabilitySample {
                nodes,
                replicas,
                local_bsz,
                step_secs,
                sync_secs,
            });
            samples.extend(each);
        }
    }
    samples
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use goodput_env::time::SimTime;

    use super::*;
    use crate::jobs::{JobRow, into_workload};

    fn rate(name: &str, batch: u32, gpus: u32) -> f64 {
        let application = ShippedSpeeds::ElasticFlow.catalog().get(name).unwrap();
        let pace = application.pace("a100").unwrap();
        let split = pace.limits.split(batch, gpus);
        let step = pace.step_time(&packed_shape(gpus, 8), split.atomic).unwrap();
        application.progress_rate(step, gpus, split, 0) * f64::from(application.limits.init) / f64::from(batch)
    }

    /// The rates are the rows of the artifact's table, in steps of the batch size in question.
    #[test]
    fn speeds_are_those_of_the_table() {
        let close = |found: f64, table: f64| assert!((found / table - 1.0).abs() < 1e-6, "{found} {table}");
        close(rate("elasticflow-bert", 64, 8), 11.060173);
        close(rate("elasticflow-bert", 128, 1), 3.574926);
        close(rate("elasticflow-resnet50", 256, 64), 18.845304);
        close(rate("elasticflow-vgg16", 64, 64), 29.533561);
        // Seven accelerators are three quarters of the way from four to eight.
        close(rate("elasticflow-vgg16", 64, 7), 14.755024 + 0.75 * (19.329856 - 14.755024));
    }

    #[test]
    fn a_job_lasts_as_long_as_in_the_trace() {
        let row = JobRow {
            job_id: "j".into(),
            application: Some("elasticflow-inception3".into()),
            gpus: 8,
            batch_size: Some(64),
            duration: Some(SimTime::from_secs(3604)),
            ..JobRow::default()
        };
        let catalog = ShippedSpeeds::ElasticFlow.catalog();
        let (workload, _) = into_workload(vec![row], catalog).unwrap();
        let goodput_env::job::Work::Application { index, work_milli } = workload.jobs[0].work else {
            panic!("unknown")
        };
        let application = &workload.applications[usize::from(index)];
        // The trace counts 48,266 steps of 64 samples; work counts steps of 128.
        let steps = application.total_work() * f64::from(work_milli) / 1000.0 * 2.0;
        assert!((steps - 48_266.0).abs() <= 20.0, "{steps}");
        assert_eq!(workload.jobs[0].request.max_gpus(), 64);
    }
}
