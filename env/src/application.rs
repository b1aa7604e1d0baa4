//! Training applications as measured: limits of the batch size, progress per epoch, gradient
//! statistics, step times.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{
    BatchConfig, BatchLimits, GradientStats, MeasuredStepTimes, OutsideProfile, StepTime, TensorSizes, ThroughputParams,
};

/// Training application. The unit of work is the scale-invariant iteration: one iteration at the
/// initial batch size makes progress 1, one iteration at a larger batch makes progress
/// [`GradientStats::gain`].
#[derive(Clone, Debug)]
pub struct Application {
    /// Name of the application, for example `cifar10`.
    pub name: String,
    /// Limits of the batch size, samples.
    pub limits: BatchLimits,
    /// Most replicas that the application can use.
    pub max_replicas: u32,
    /// Total batch size under policies that otherwise adapt it; `None`: adapted.
    pub fixed_batch: Option<u32>,
    /// Sizes of the model's tensors; `None` where they are unknown.
    pub tensors: Option<TensorSizes>,
    /// Cumulative progress at the end of each epoch, ascending; the last value completes the job.
    pub epochs: Vec<f64>,
    /// Gradient statistics by epoch and batch size.
    pub gradients: GradientTable,
    /// Measured iterations by epoch and batch size, where available.
    pub iterations: Option<IterationTable>,
    /// Accelerator type that gives the speed on a type called `gpu`.
    pub reference: String,
    /// Fitted parameters by accelerator type.
    pub params: BTreeMap<String, ThroughputParams>,
    /// Most samples per replica in one pass by accelerator type, where it differs from `limits`.
    pub local_limits: BTreeMap<String, u32>,
    /// Measured step times by accelerator type. Where present they are the ground truth, and
    /// `params` only the estimate of a policy.
    pub measured: BTreeMap<String, Arc<MeasuredStepTimes>>,
}

/// Speed of an application on one type of accelerator.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Limits of the batch size; the limits of a replica follow the memory of this accelerator type
    /// where it was measured.
    pub limits: BatchLimits,
    /// Fitted parameters of the step time, which policies use as an estimate.
    pub params: ThroughputParams,
    /// Measured step times, the ground truth; `None`: the fitted parameters are exact.
    pub measured: Option<Arc<MeasuredStepTimes>>,
}

impl Pace {
    /// Batch limits on a placement with `shape` replicas per node: the profile may have smaller
    /// batches there than elsewhere.
    pub fn limits_on(&self, shape: &[u32]) -> BatchLimits {
        let most = self.measured.as_ref().and_then(|measured| measured.max_local_on(shape)).unwrap_or(u32::MAX);
        let most = most.max(self.limits.min_local);
        BatchLimits { max_local: self.limits.max_local.min(most), ..self.limits }
    }

    /// Samples per second of one accelerator at the largest batch that fits it.
    pub fn single_throughput(&self) -> f64 {
        let measured = self.measured.as_ref().and_then(|measured| measured.points(&[1]).last());
        match measured {
            Some((batch, time)) => f64::from(batch) / time.step_secs,
            None => f64::from(self.limits.max_local) / self.params.optim_time(1, 1, self.limits.max_local),
        }
    }

    /// Throughput of one accelerator as the Sia artifact compares types: the largest measured batch
    /// over the longest step, which need not be the step of that batch.
    pub fn largest_over_slowest(&self) -> f64 {
        let points = self.measured.iter().flat_map(|measured| measured.points(&[1]));
        let most =
            points.fold((0, 0.0_f64), |(most, slowest), (batch, time)| (most.max(batch), slowest.max(time.step_secs)));
        if most.0 == 0 { self.single_throughput() } else { f64::from(most.0) / most.1 }
    }

    /// Step and synchronisation time with `shape` replicas per node and `atomic` samples per
    /// replica: measured if there are measurements, otherwise by the fitted parameters.
    ///
    /// # Errors
    /// [`OutsideProfile`] where the measurements do not cover the placement or the batch size.
    pub fn step_time(&self, shape: &[u32], atomic: u32) -> Result<StepTime, OutsideProfile> {
        match &self.measured {
            Some(measured) => measured.step_time(shape, atomic),
            None => {
                let replicas = shape.iter().sum();
                let step_secs = self.params.optim_time(shape.len() as u32, replicas, atomic);
                Ok(StepTime { step_secs, sync_secs: step_secs - self.params.grad_time(atomic) })
            }
        }
    }

    /// Step and synchronisation time where synchronisation between nodes takes `factor` times as
    /// long.
    ///
    /// Measurements do not give the part of the synchronisation that is hidden behind compute, so
    /// with measurements only the visible part grows.
    ///
    /// # Errors
    /// [`OutsideProfile`] where the measurements do not cover the placement or the batch size.
    pub fn step_time_slowed(&self, shape: &[u32], atomic: u32, factor: f64) -> Result<StepTime, OutsideProfile> {
        if factor == 1.0 {
            return self.step_time(shape, atomic);
        }
        if self.measured.is_some() {
            let StepTime { step_secs, sync_secs } = self.step_time(shape, atomic)?;
            return Ok(StepTime { step_secs: step_secs + (factor - 1.0) * sync_secs, sync_secs: factor * sync_secs });
        }
        let (alpha_n, beta_n) = (factor * self.params.alpha_n, factor * self.params.beta_n);
        let params = ThroughputParams { alpha_n, beta_n, ..self.params };
        Self { params, measured: None, limits: self.limits }.step_time(shape, atomic)
    }
}

impl Application {
    /// Progress that completes the application, scale-invariant iterations.
    pub fn total_work(&self) -> f64 {
        self.epochs.last().copied().unwrap_or(0.0)
    }

    /// Fewest replicas that the application runs on: those of the smallest placement that was measured.
    pub fn min_replicas(&self) -> u32 {
        self.measured.values().map(|measured| measured.least_replicas()).min().unwrap_or(1)
    }

    /// Progress at the end of epoch number `epoch`, from 0. Epochs beyond the last measured one
    /// have the length of that one.
    pub fn epoch_end(&self, epoch: u32) -> f64 {
        let (epoch, known) = (epoch as usize, self.epochs.len());
        match self.epochs.get(epoch) {
            Some(&end) => end,
            None => self.total_work() + (epoch + 1 - known) as f64 * self.last_epoch(),
        }
    }

    /// Number of epochs that are complete at the given progress.
    pub fn epochs_by(&self, progress: f64) -> u32 {
        let complete = self.epochs.partition_point(|&end| end <= progress);
        let beyond = if complete == self.epochs.len() && self.last_epoch() > 0.0 {
            ((progress - self.total_work()) / self.last_epoch()).floor().max(0.0)
        } else {
            0.0
        };
        complete as u32 + beyond as u32
    }

    fn last_epoch(&self) -> f64 {
        match self.epochs[..] {
            [.., before, last] => last - before,
            [last] => last,
            [] => 0.0,
        }
    }

    /// Speed on an accelerator type; `None` where it is unknown. The type name `gpu` stands for the
    /// reference type.
    pub fn pace(&self, accelerator: &str) -> Option<Pace> {
        let known = self.params.get_key_value(accelerator);
        let reference = || self.params.get_key_value(&self.reference).filter(|_| accelerator == "gpu");
        let (name, params) = known.or_else(reference)?;
        let measured = self.measured.get(name).cloned();
        let stated = self.local_limits.get(name).copied().unwrap_or(self.limits.max_local);
        let most = measured.as_ref().map_or(u32::MAX, |measured| measured.max_local());
        let limits = BatchLimits { max_local: stated.min(most).max(self.limits.min_local), ..self.limits };
        Some(Pace { limits, params: *params, measured })
    }

    /// Scale-invariant iterations per second at total batch `batch` in `epoch`, given the time of
    /// one step.
    pub fn progress_rate(&self, step: StepTime, replicas: u32, batch: BatchConfig, epoch: u32) -> f64 {
        let total = batch.total(replicas) as f64;
        let gain = self.gradients.at(total, epoch).gain(total / f64::from(self.limits.init));
        gain / (step.step_secs + f64::from(batch.accumulation) * (step.step_secs - step.sync_secs))
    }
}

/// Table of values by epoch (rows) and total batch size (columns), interpolated linearly between
/// batch sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochTable {
    batch_sizes: Vec<f64>,
    /// Values in row-major order: `values[epoch * batch_sizes.len() + column]`.
    values: Vec<f64>,
}

/// Error in a table of an application.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TableError {
    /// The table has no batch size or no epoch.
    #[error("the table is empty")]
    Empty,
    /// The batch sizes do not ascend.
    #[error("batch sizes must be positive and strictly ascending")]
    BatchOrder,
    /// The values do not fill a rectangle.
    #[error("{values} values do not fill rows of {columns} batch sizes")]
    Ragged {
        /// Number of values.
        values: usize,
        /// Number of batch sizes.
        columns: usize,
    },
    /// A value is NaN or infinite.
    #[error("value {index} is not a finite number")]
    NotFinite {
        /// Position of the value in row-major order.
        index: usize,
    },
}

impl EpochTable {
    /// Checks and builds a table from row-major `values` of shape epochs x batch sizes.
    ///
    /// # Errors
    /// [`TableError`] where the table is empty, ragged, unordered or not finite.
    pub fn new(batch_sizes: Vec<f64>, values: Vec<f64>) -> Result<Self, TableError> {
        if batch_sizes.is_empty() || values.is_empty() {
            return Err(TableError::Empty);
        }
        if batch_sizes[0] <= 0.0 || batch_sizes.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(TableError::BatchOrder);
        }
        if !values.len().is_multiple_of(batch_sizes.len()) {
            return Err(TableError::Ragged { values: values.len(), columns: batch_sizes.len() });
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(TableError::NotFinite { index });
        }
        Ok(Self { batch_sizes, values })
    }

    /// Table with one value for all batch sizes and epochs.
    pub fn constant(value: f64) -> Self {
        Self { batch_sizes: vec![1.0], values: vec![value] }
    }

    /// Number of rows, one per epoch.
    pub fn epochs(&self) -> u32 {
        (self.values.len() / self.batch_sizes.len()) as u32
    }

    /// Batch sizes of the columns.
    pub fn batch_sizes(&self) -> &[f64] {
        &self.batch_sizes
    }

    /// Row of an epoch; the last row for later epochs.
    pub fn row(&self, epoch: u32) -> &[f64] {
        let columns = self.batch_sizes.len();
        let epoch = epoch.min(self.epochs() - 1) as usize;
        &self.values[epoch * columns..(epoch + 1) * columns]
    }

    /// Value at total batch size `batch`, held constant outside the measured sizes.
    pub fn at(&self, batch: f64, epoch: u32) -> f64 {
        let row = self.row(epoch);
        let upper = self.batch_sizes.partition_point(|&size| size < batch);
        if upper == 0 {
            return row[0];
        }
        if upper == row.len() {
            return row[upper - 1];
        }
        let (low, high) = (self.batch_sizes[upper - 1], self.batch_sizes[upper]);
        // At a measured size the value is exact, without the rounding of an interpolation.
        if batch == high {
            return row[upper];
        }
        let share = (batch - low) / (high - low);
        row[upper - 1] + (row[upper] - row[upper - 1]) * share
    }
}

/// Gradient statistics at the initial batch size, by epoch and total batch size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradientTable {
    /// Squared norm of the true gradient.
    pub sqr: EpochTable,
    /// Variance of the gradient.
    pub var: EpochTable,
}

impl GradientTable {
    /// Statistics at total batch size `batch` in `epoch`.
    pub fn at(&self, batch: f64, epoch: u32) -> GradientStats {
        GradientStats { sqr: self.sqr.at(batch, epoch), var: self.var.at(batch, epoch) }
    }
}

/// Cumulative measured iterations after each epoch, by total batch size: the oracle that the
/// literature gives to Optimus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IterationTable(pub EpochTable);

impl IterationTable {
    /// Iterations left at `batch` after `epoch` complete epochs; 1 in the last epoch (convention of
    /// the Pollux artifact).
    pub fn remaining(&self, batch: f64, epoch: u32) -> f64 {
        let last = self.0.epochs() - 1;
        if epoch >= last { 1.0 } else { self.0.at(batch, last) - self.0.at(batch, epoch) }
    }
}
