//! Fit of the shipped catalog from public measurements: `goodput data fit --profiles DIR -o FILE`.
//!
//! What is shipped are figures fitted or aggregated here, never rows of the measurements.
//!
//! - Gradient noise: epochs are grouped into at most [`MOST_PHASES`] phases, chosen by dynamic
//!   programming so that epochs of a phase are alike at every batch size; the noise of a phase is
//!   the one that takes as many iterations through it as were measured. A whole training run
//!   therefore needs the measured number of iterations at every validated batch size.
//! - Step times: the seven parameters fitted to placements on as few nodes as possible, which is
//!   where schedulers put jobs, of the sizes that jobs have. The published fit to all placements
//!   alike is up to twice as far off there.
//! - Tuned configurations: for each size the batch size that completes soonest, where the size is
//!   used to 50 to 80 % and the run takes less than 12 hours (the rule of the Pollux artifact,
//!   `workload.py`).

pub mod llm;
mod throughput;

use std::path::Path;

use goodput_env::application::Application;
use goodput_env::model::{Sample, ThroughputParams};
use goodput_env::placement::packed_shape;

use crate::accelerators::Accelerators;
use crate::catalog::{ACCELERATOR, ApplicationEntry, CatalogFile, Tuned};
use crate::error::DataError;
use crate::import::pollux_profiles::{self, ApplicationProfile};
use crate::import::sia_profiles;
use crate::language_models;

/// Phases of a training run at most.
pub const MOST_PHASES: usize = 20;
/// Noise over init batch size beyond which a batch of any size is worth its samples to 1e-4.
const MOST_NOISE: f64 = 1e6;
/// Accelerators of a node in the measurements.
const GPUS_PER_NODE: u32 = 4;
/// Sizes at which step times are fitted and checked.
pub const SIZES: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Agreement of the catalog with the measurements of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Fidelity {
    /// Name of the application.
    pub application: String,
    /// Completion time of an undisturbed run by the catalog relative to the measured one, less 1,
    /// by size and batch size.
    pub errors: Vec<(u32, u32, f64)>,
}

impl Fidelity {
    /// Mean of the absolute errors.
    pub fn mean_abs(&self) -> f64 {
        self.errors.iter().map(|error| error.2.abs()).sum::<f64>() / self.errors.len().max(1) as f64
    }

    /// Mean error: how much longer jobs take by the catalog.
    pub fn bias(&self) -> f64 {
        self.errors.iter().map(|error| error.2).sum::<f64>() / self.errors.len().max(1) as f64
    }

    /// The largest error and where.
    pub fn worst(&self) -> Option<(u32, u32, f64)> {
        self.errors.iter().copied().max_by(|a, b| a.2.abs().total_cmp(&b.2.abs()))
    }
}

/// Fits every application below `profiles`.
///
/// # Errors
/// Where a profile is not usable.
pub fn fit_catalog(profiles: &Path) -> Result<CatalogFile, DataError> {
    let applications = pollux_profiles::read(profiles)?.into_iter().map(application).collect::<Result<_, _>>()?;
    Ok(CatalogFile { application: applications })
}

/// Names of accelerator types in the Sia artifact, and what they are.
const TYPES: [(&str, &str); 4] = [("rtx", "rtx-2080-ti"), ("quad", "rtx-6000"), ("azure", "v100"), ("dgx-ext", "a100")];

/// Applications with a model that MLPerf has trained, and the name of the model in MLPerf.
const BENCHMARKED: [(&str, &str); 2] = [("bert", "bert"), ("imagenet", "resnet-50")];
/// Types for which there are no profiles: the type, the type with known speeds that MLPerf has trained on in one
/// round with it, and that round. Later rows stand on earlier ones.
const COMPARED: [(&str, &str, &str); 5] = [
    ("tpu-v3", "v100", "training-0.7"),
    ("tpu-v4", "v100", "training-0.7"),
    ("h100", "a100", "training-2.1"),
    ("h200", "h100", "training-4.0"),
    ("l40s", "h100", "training-4.0"),
];

/// Adds throughput and memory of the applications in `file` on more accelerator types, from
/// measurements as the Sia artifact keeps them below `profiles`. The parameters are those an agent
/// would fit to all of them. On TPUs and on later GPUs they are derived: those of an earlier type over how much faster
/// MLPerf's training of the model is in one round, of whole systems of four to sixteen chips. Without such a
/// publication, as for every other application and for FPGAs, there are no parameters, and such a job does not run
/// there.
///
/// # Errors
/// Where a profile is not usable.
pub fn add_types(file: &mut CatalogFile, profiles: &Path) -> Result<(), DataError> {
    let measured = sia_profiles::catalog(profiles)?;
    for entry in &mut file.application {
        let Some(application) = measured.get(&entry.name) else { continue };
        for (from, name) in TYPES {
            let (Some(params), Some(times)) = (application.params.get(from), application.measured.get(from)) else {
                continue;
            };
            entry.params.insert(name.into(), rounded(*params));
            entry.local_limits.insert(name.into(), times.max_local().max(entry.limits.min_local));
        }
    }
    add_benchmarked(file);
    Ok(())
}

fn add_benchmarked(file: &mut CatalogFile) {
    let known = Accelerators::shipped();
    for entry in &mut file.application {
        let Some((_, model)) = BENCHMARKED.into_iter().find(|(name, _)| *name == entry.name) else { continue };
        for (name, base, benchmark) in COMPARED {
            let rate = |of: &str| known.get(of).and_then(|of| of.rate(benchmark, model));
            let (Some(here), Some(there)) = (rate(name), rate(base)) else { continue };
            let (Some(&params), Some(&most)) = (entry.params.get(base), entry.local_limits.get(base)) else { continue };
            let faster = here / there;
            let ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma } = params;
            let [alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r] =
                [alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r].map(|secs| secs / faster);
            let params = ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma };
            entry.params.insert(name.into(), rounded(params));
            entry.local_limits.insert(name.into(), most);
        }
    }
}

/// Compares completion times by `fitted` with those by the measurements of `truth`, at every size
/// and validated batch size that both can run.
pub fn fidelity(truth: &Application, fitted: &Application) -> Fidelity {
    let mut errors = Vec::new();
    for replicas in SIZES.into_iter().filter(|&replicas| replicas <= truth.max_replicas) {
        for &batch in truth.gradients.sqr.batch_sizes() {
            let ideal = |application: &Application| ideal_secs(application, replicas, batch as u32);
            if let (Some(measured), Some(modelled)) = (ideal(truth), ideal(fitted)) {
                errors.push((replicas, batch as u32, modelled / measured - 1.0));
            }
        }
    }
    Fidelity { application: truth.name.clone(), errors }
}

/// Seconds of an undisturbed run on packed accelerators at a constant total batch size; `None`
/// where the application cannot.
pub fn ideal_secs(application: &Application, replicas: u32, batch_size: u32) -> Option<f64> {
    let limits = application.limits;
    let batch = limits.split(batch_size, replicas);
    if !(limits.min_local..=limits.max_local).contains(&batch.atomic) {
        return None;
    }
    let (kind, per_node) = match application.params.contains_key(ACCELERATOR) {
        true => (ACCELERATOR, GPUS_PER_NODE),
        false => (application.reference.as_str(), language_models::GPUS_PER_NODE),
    };
    let step = application.pace(kind)?.step_time(&packed_shape(replicas, per_node), batch.atomic).ok()?;
    let mut secs = 0.0;
    let mut before = 0.0;
    for (epoch, &progress) in application.epochs.iter().enumerate() {
        // The rate changes with the gradient noise, which is constant within an epoch only.
        secs += (progress - before) / application.progress_rate(step, replicas, batch, epoch as u32);
        before = progress;
    }
    Some(secs)
}

fn application(profile: ApplicationProfile) -> Result<ApplicationEntry, DataError> {
    let start = packed_fit(&profile)?;
    let mut application = profile.application(start, &[])?;
    let params = throughput::refine(start, &targets(&application));
    application.params.insert(ACCELERATOR.to_owned(), params);
    let batch_sizes: Vec<u32> = application.gradients.sqr.batch_sizes().iter().map(|&size| size as u32).collect();
    let phases = phases(&application);
    let ends: Vec<u32> = phases.iter().map(|phase| phase.end as u32).collect();
    let pgns = batch_sizes
        .iter()
        .map(|&batch| phases.iter().map(|phase| noise(&application, batch, phase.clone())).collect())
        .collect();
    Ok(ApplicationEntry {
        reference: ACCELERATOR.into(),
        local_limits: Default::default(),
        name: application.name.clone(),
        limits: application.limits,
        max_replicas: application.max_replicas,
        fixed_batch: application.fixed_batch,
        tensors: application.tensors,
        progress: ends.iter().map(|&end| round(application.epochs[end as usize - 1], 8)).collect(),
        phases: ends,
        tuned: tuned(&application),
        batch_sizes,
        pgns,
        params: application.params.into_iter().map(|(kind, params)| (kind, rounded(params))).collect(),
    })
}

/// Parameters by the published loss, from placements on few nodes and allowed batch sizes.
fn packed_fit(profile: &ApplicationProfile) -> Result<ThroughputParams, DataError> {
    let limits = profile.limits()?;
    let matters = |sample: &Sample| {
        // Beyond 16 replicas there are only even spreads, whether packed or not.
        let packed = sample.nodes == sample.replicas.div_ceil(GPUS_PER_NODE) || sample.replicas > 16;
        let allowed = sample.atomic <= limits.max_local
            && u64::from(sample.atomic) * u64::from(sample.replicas) <= u64::from(limits.max);
        packed && allowed
    };
    let samples: Vec<Sample> = profile.samples().into_iter().filter(matters).collect();
    Ok(goodput_env::model::fit(&samples))
}

/// Steps of whole runs at every size and validated batch size. Sizes beyond 16 count half; a batch
/// size counts by the square of how close its run comes to the fastest of that size, and little
/// where policies always use another.
fn targets(application: &Application) -> Vec<throughput::FitTarget> {
    let batch_sizes: Vec<u32> = application.gradients.sqr.batch_sizes().iter().map(|&size| size as u32).collect();
    let mut targets = Vec::new();
    for replicas in SIZES.into_iter().filter(|&replicas| replicas <= application.max_replicas) {
        let runs: Vec<(u32, f64)> =
            batch_sizes.iter().filter_map(|&batch| Some((batch, ideal_secs(application, replicas, batch)?))).collect();
        let fastest = runs.iter().map(|run| run.1).fold(f64::INFINITY, f64::min);
        for (batch_size, secs) in runs {
            let batch = application.limits.split(batch_size, replicas);
            let shape = packed_shape(replicas, GPUS_PER_NODE);
            let Some(Ok(step)) = application.pace(ACCELERATOR).map(|pace| pace.step_time(&shape, batch.atomic)) else {
                continue;
            };
            // A pass that accumulates computes as any other does and leaves out the
            // synchronisation.
            let iter_secs = step.step_secs + f64::from(batch.accumulation) * (step.step_secs - step.sync_secs);
            let usual = application.fixed_batch.is_none_or(|fixed| fixed == batch_size);
            // Policies avoid slow batch sizes, and never leave a fixed one, so errors there cost
            // less.
            let weight =
                (fastest / secs).powi(2) * if replicas > 16 { 0.5 } else { 1.0 } * if usual { 1.0 } else { 0.1 };
            targets.push(throughput::FitTarget { nodes: shape.len() as u32, replicas, batch, iter_secs, weight });
        }
    }
    targets
}

/// Iterations per unit of progress at batch size `batch` in `epoch`.
fn effort(application: &Application, batch: u32, epoch: usize) -> f64 {
    let scale = f64::from(batch) / f64::from(application.limits.init);
    application.gradients.at(f64::from(batch), epoch as u32).gain(scale).recip()
}

/// Progress within an epoch.
fn weight(application: &Application, epoch: usize) -> f64 {
    application.epochs[epoch] - if epoch == 0 { 0.0 } else { application.epochs[epoch - 1] }
}

/// Noise scale, samples, at which `batch` takes the measured number of iterations through a phase.
/// At the initial batch size that is any; there it is the geometric mean, by which policies choose
/// batch sizes.
fn noise(application: &Application, batch: u32, phase: std::ops::Range<usize>) -> f64 {
    let init = f64::from(application.limits.init);
    let scale = f64::from(batch) / init;
    let total: f64 = phase.clone().map(|epoch| weight(application, epoch)).sum();
    let mean = |value: &dyn Fn(usize) -> f64| {
        phase.clone().map(|epoch| weight(application, epoch) * value(epoch)).sum::<f64>() / total
    };
    // At the initial batch size every noise gives the measured iterations, so they cannot tell it.
    let noise = if batch == application.limits.init {
        mean(&|epoch| {
            let stats = application.gradients.at(init, epoch as u32);
            (stats.var / stats.sqr).clamp(1.0 / MOST_NOISE, MOST_NOISE).ln()
        })
        .exp()
    } else {
        // effort = (noise / scale + 1) / (noise + 1), solved for the noise.
        let effort = mean(&|epoch| effort(application, batch, epoch));
        let above_least = effort - scale.recip();
        if above_least > 0.0 { ((1.0 - effort) / above_least).clamp(0.0, MOST_NOISE) } else { MOST_NOISE }
    };
    round(noise * init, 4)
}

/// Splits the epochs into at most [`MOST_PHASES`] ranges with the least squared deviation of log
/// effort within them, summed over batch sizes.
fn phases(application: &Application) -> Vec<std::ops::Range<usize>> {
    let epochs = application.epochs.len();
    let batch_sizes = application.gradients.sqr.batch_sizes();
    // Sums and sums of squares up to each epoch, by batch size.
    let mut sums = vec![vec![(0.0, 0.0)]; batch_sizes.len()];
    for (column, &batch) in sums.iter_mut().zip(batch_sizes) {
        for epoch in 0..epochs {
            let value = effort(application, batch as u32, epoch).ln();
            let (sum, squares) = column[epoch];
            column.push((sum + value, squares + value * value));
        }
    }
    let deviation = |from: usize, to: usize| -> f64 {
        let each = sums.iter().map(|column| {
            let (sum, squares) = (column[to].0 - column[from].0, column[to].1 - column[from].1);
            // Rounding may make the difference of equal sums slightly negative.
            (squares - sum * sum / (to - from) as f64).max(0.0)
        });
        each.sum()
    };
    let count = MOST_PHASES.min(epochs);
    // best[k][e]: least deviation of the first e epochs in k + 1 phases, and where the last phase
    // starts.
    let mut best =
        vec![(0..=epochs).map(|end| (if end == 0 { 0.0 } else { deviation(0, end) }, 0)).collect::<Vec<_>>()];
    for k in 1..count {
        let before = &best[k - 1];
        let row = (0..=epochs).map(|end| {
            let starts = k..end;
            starts
                .map(|start| (before[start].0 + deviation(start, end), start))
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .unwrap_or((f64::INFINITY, 0))
        });
        let row = row.collect();
        best.push(row);
    }
    let mut phases = Vec::new();
    let mut end = epochs;
    for k in (0..count).rev() {
        let start = best[k][end].1;
        phases.push(start..end);
        end = start;
    }
    phases.reverse();
    phases
}

/// For each size the batch size that completes soonest, where that uses the size to 50 to 80 % and
/// takes less than 12 hours.
fn tuned(application: &Application) -> Vec<Tuned> {
    const SIZES: [u32; 10] = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48];
    let best = |replicas: u32| {
        let batch_sizes = application.gradients.sqr.batch_sizes().iter().map(|&size| size as u32);
        let runs = batch_sizes.filter_map(|batch_size| {
            let ideal_secs = round(measured_secs(application, replicas, batch_size)?, 5);
            Some(Tuned { replicas, batch_size, ideal_secs })
        });
        runs.min_by(|a, b| a.ideal_secs.total_cmp(&b.ideal_secs))
    };
    let Some(one) = best(1) else { return Vec::new() };
    let good = |tuned: &Tuned| {
        let share = one.ideal_secs / (tuned.ideal_secs * f64::from(tuned.replicas));
        (0.5..0.8).contains(&share) && tuned.ideal_secs < 12.0 * 3600.0
    };
    match application.fixed_batch {
        Some(_) => vec![one],
        None => {
            SIZES.into_iter().filter(|&size| size <= application.max_replicas).filter_map(best).filter(good).collect()
        }
    }
}

/// Seconds of the run that was measured at a validated batch size, were each of its iterations made
/// on packed accelerators.
fn measured_secs(application: &Application, replicas: u32, batch_size: u32) -> Option<f64> {
    let limits = application.limits;
    let local = batch_size.div_ceil(replicas);
    let passes = local.div_ceil(limits.max_local);
    let atomic = local.div_ceil(passes);
    if atomic < limits.min_local {
        return None;
    }
    let shape = packed_shape(replicas, GPUS_PER_NODE);
    let step = application.pace(ACCELERATOR)?.step_time(&shape, atomic).ok()?;
    let iterations = &application.iterations.as_ref()?.0;
    let count = iterations.at(f64::from(batch_size), iterations.epochs() - 1);
    // A pass that accumulates computes as any other does and leaves out the synchronisation.
    Some(count * (step.step_secs + f64::from(passes - 1) * (step.step_secs - step.sync_secs)))
}

fn rounded(params: ThroughputParams) -> ThroughputParams {
    let ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma } = params;
    let [alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma] =
        [alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma].map(|value| round(value, 5));
    ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma: gamma.max(1.0) }
}

/// To `digits` significant decimal digits.
fn round(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}
