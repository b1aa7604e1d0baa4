//! Measurements of applications as the Pollux artifact keeps them
//! (`simulator/traces/<application>/`), made on nodes with four T4 GPUs each.
//!
//! - `placements.csv` (`placement,local_bsz,step_time,sync_time`): step times on up to 4 nodes of
//!   up to 4 GPUs.
//! - `scalability.csv` (`num_nodes,num_replicas,local_bsz,step_time,sync_time`), optional: larger
//!   even spreads.
//! - `validation-<B>.csv` (`progress,iteration,metric,grad_sqr,grad_var`): one run to the end at
//!   total batch `B`, a row an epoch.
//!
//! Unlike a workload, a profile is one measurement: any bad row is an error. A hole is found by
//! what its neighbours imply: runs of unequal length, an epoch with far more iterations than the
//! median, a batch size missing from the geometric grid, or a local batch size missing between two
//! others of the same placement.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_env::application::{Application, EpochTable, GradientTable, IterationTable};
use goodput_env::model::{
    BatchLimits, InterpolatedSample, MeasuredStepTimes, PlacementSample, Sample, ScalabilitySample, ThroughputParams,
};

use crate::catalog::{ACCELERATOR, Catalog};
use crate::csv_rows::CsvRows;
use crate::error::{DataError, RowProblem};
use crate::tensors::tensor_sizes;

/// Most replicas of any job in the published simulators.
const MOST_REPLICAS: u32 = 64;
/// An epoch with this many times the median progress has swallowed a row.
const EPOCH_GAP: f64 = 1.5;

const PLACEMENTS: &[&str] = &["placement", "local_bsz", "step_time", "sync_time"];
const SCALABILITY: &[&str] = &["num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"];
const VALIDATION: &[&str] = &["progress", "iteration", "grad_sqr", "grad_var"];

/// Constants that the published simulators set in code rather than in data.
struct Exception {
    application: &'static str,
    /// Largest batch of a replica, where the profile's grid goes beyond it.
    max_local: Option<u32>,
    /// Most replicas and the total batch under every policy.
    fixed: Option<(u32, u32)>,
}

const EXCEPTIONS: [Exception; 2] = [
    Exception { application: "yolov3", max_local: Some(8), fixed: None },
    Exception { application: "ncf", max_local: None, fixed: Some((1, 32_768)) },
];

/// One application as measured.
#[derive(Clone, Debug)]
pub struct ApplicationProfile {
    /// Directory that the profiles were read from.
    pub path: PathBuf,
    /// Name of the directory.
    pub name: String,
    /// Step times by exact placement.
    pub placements: Vec<PlacementSample>,
    /// Step times by even spread.
    pub scalability: Vec<ScalabilitySample>,
    /// Runs to the end in ascending order of batch size, all with as many epochs.
    pub runs: Vec<MeasuredRun>,
}

/// A training run at one total batch size; vectors by epoch.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// Total batch size, samples.
    pub batch_size: u32,
    /// Scale-invariant iterations since the start.
    pub progress: Vec<f64>,
    /// Iterations since the start.
    pub iterations: Vec<f64>,
    /// Squared norm of the gradient at the initial batch size.
    pub grad_sqr: Vec<f64>,
    /// Variance of the gradient at the initial batch size.
    pub grad_var: Vec<f64>,
}

/// Reads every application below `dir` into a catalog with the measured step times, and with
/// `step_times` (see [`super::step_times`]) where they apply. The parameters that policies go by
/// (`params`) come from the shipped catalog for applications in it, and are fitted to all
/// measurements for others. Configurations known to be tuned are the shipped ones.
///
/// # Errors
/// At the first file, row or table that is not usable.
pub fn catalog(dir: &Path, step_times: Option<&Path>) -> Result<Catalog, DataError> {
    let shipped = Catalog::shipped();
    let profiles = read(dir)?;
    let limits = profiles
        .iter()
        .map(|profile| Ok((profile.name.as_str(), profile.limits()?)))
        .collect::<Result<Vec<_>, DataError>>()?;
    let largest = |name: &str| limits.iter().find(|(known, _)| *known == name).map_or(0, |(_, limits)| limits.max);
    let mut exact = step_times.map(|path| super::step_times::read(path, largest)).transpose()?.unwrap_or_default();
    let mut catalog = Catalog::default();
    for profile in profiles {
        let known = shipped.get(&profile.name).and_then(|application| application.params.get(ACCELERATOR));
        let params = known.copied().unwrap_or_else(|| goodput_env::model::fit(&profile.samples()));
        let interpolated = exact.remove(&profile.name).unwrap_or_default();
        let tuned = shipped.tuned(&profile.name).to_vec();
        catalog.push(profile.application(params, &interpolated)?, tuned);
    }
    Ok(catalog)
}

/// Catalog as [`catalog`] makes it, with the measurements that DeepBoot's simulator has beside these: to every
/// placement it adds one with four more accelerators on each node, and says that it is as fast.
///
/// # Errors
/// As [`catalog`].
pub fn deepboot_catalog(dir: &Path) -> Result<Catalog, DataError> {
    let shipped = Catalog::shipped();
    let mut catalog = Catalog::default();
    for mut profile in read(dir)? {
        let more: Vec<PlacementSample> = profile
            .placements
            .iter()
            .map(|row| PlacementSample { shape: row.shape.iter().map(|gpus| gpus + 4).collect(), ..row.clone() })
            .collect();
        profile.placements.extend(more);
        let known = shipped.get(&profile.name).and_then(|app| app.params.get(ACCELERATOR));
        let params = known.copied().unwrap_or_else(|| goodput_env::model::fit(&profile.samples()));
        let tuned = shipped.tuned(&profile.name).to_vec();
        catalog.push(profile.application(params, &[])?, tuned);
    }
    Ok(catalog)
}

/// Reads every application below `dir`, in order of name.
///
/// # Errors
/// At the first file or row that is not usable.
pub fn read(dir: &Path) -> Result<Vec<ApplicationProfile>, DataError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(DataError::read(dir))? {
        let path = entry.map_err(DataError::read(dir))?.path();
        if path.join("placements.csv").is_file() {
            names.push(path);
        }
    }
    if names.is_empty() {
        return Err(DataError::NoProfiles { path: dir.to_owned() });
    }
    names.sort();
    names.iter().map(|path| profile(path)).collect()
}

impl ApplicationProfile {
    /// Limits of the batch size: validated totals and profiled local sizes.
    ///
    /// # Errors
    /// Where they contradict each other.
    pub fn limits(&self) -> Result<BatchLimits, DataError> {
        let local = self.placements.iter().map(|row| row.local_bsz);
        let (min_local, max_local) = (local.clone().min().unwrap_or(0), local.max().unwrap_or(0));
        let max_local = self.exception().and_then(|exception| exception.max_local).unwrap_or(max_local);
        self.limits_of(min_local, max_local)
    }

    /// Limits with the given sizes of a replica's batch.
    pub(super) fn limits_of(&self, min_local: u32, max_local: u32) -> Result<BatchLimits, DataError> {
        let total = |run: Option<&MeasuredRun>| run.map_or(0, |run| run.batch_size);
        BatchLimits::new(total(self.runs.first()), total(self.runs.last()), min_local, max_local)
            .map_err(|source| DataError::Limits { path: self.path.clone(), source })
    }

    /// Progress that ends each epoch: the least over all batch sizes.
    pub fn epochs(&self) -> Vec<f64> {
        let epochs = self.runs.first().map_or(0, |run| run.progress.len());
        (0..epochs).map(|epoch| self.runs.iter().map(|run| run.progress[epoch]).fold(f64::INFINITY, f64::min)).collect()
    }

    /// Every measurement as the fit sees it.
    pub fn samples(&self) -> Vec<Sample> {
        let placed = self.placements.iter().map(|row| Sample {
            nodes: row.shape.len() as u32,
            replicas: row.shape.iter().sum(),
            atomic: row.local_bsz,
            step_secs: row.step_secs,
            sync_secs: row.sync_secs,
        });
        let spread = self.scalability.iter().map(|row| Sample {
            nodes: row.nodes,
            replicas: row.replicas,
            atomic: row.local_bsz,
            step_secs: row.step_secs,
            sync_secs: row.sync_secs,
        });
        placed.chain(spread).collect()
    }

    /// The application with measured step times, believed to behave by `params`.
    ///
    /// # Errors
    /// Where the measurements contradict themselves.
    pub fn application(
        self,
        params: ThroughputParams,
        interpolated: &[InterpolatedSample],
    ) -> Result<Application, DataError> {
        let limits = self.limits()?;
        let measured = MeasuredStepTimes::new(&self.placements, &self.scalability, interpolated)
            .map_err(|source| DataError::Profile { path: self.path.clone(), source })?;
        let params = BTreeMap::from([(ACCELERATOR.to_owned(), params)]);
        self.application_on(limits, params, BTreeMap::from([(ACCELERATOR.to_owned(), Arc::new(measured))]))
    }

    /// The application with fitted parameters and measured step times by accelerator type.
    ///
    /// # Errors
    /// Where the runs contradict themselves.
    pub(super) fn application_on(
        self,
        limits: BatchLimits,
        params: BTreeMap<String, ThroughputParams>,
        measured: BTreeMap<String, Arc<MeasuredStepTimes>>,
    ) -> Result<Application, DataError> {
        let fixed = self.exception().and_then(|exception| exception.fixed);
        Ok(Application {
            limits,
            max_replicas: fixed.map_or(limits.most_replicas().min(MOST_REPLICAS), |(replicas, _)| replicas),
            fixed_batch: fixed.map(|(_, batch_size)| batch_size),
            tensors: tensor_sizes(&self.name),
            epochs: self.epochs(),
            gradients: GradientTable { sqr: self.table(|run| &run.grad_sqr)?, var: self.table(|run| &run.grad_var)? },
            iterations: Some(IterationTable(self.table(|run| &run.iterations)?)),
            reference: params.keys().next().cloned().unwrap_or_default(),
            params,
            local_limits: BTreeMap::new(),
            measured,
            name: self.name,
        })
    }

    fn exception(&self) -> Option<&'static Exception> {
        EXCEPTIONS.iter().find(|exception| exception.application == self.name)
    }

    fn table(&self, values: impl Fn(&MeasuredRun) -> &[f64]) -> Result<EpochTable, DataError> {
        let columns: Vec<&[f64]> = self.runs.iter().map(values).collect();
        let epochs = columns.first().map_or(0, |column| column.len());
        let rows = (0..epochs).flat_map(|epoch| columns.iter().map(move |column| column[epoch])).collect();
        let batch_sizes = self.runs.iter().map(|run| f64::from(run.batch_size)).collect();
        EpochTable::new(batch_sizes, rows).map_err(|source| DataError::Table { path: self.path.clone(), source })
    }
}

fn profile(dir: &Path) -> Result<ApplicationProfile, DataError> {
    let scalability = dir.join("scalability.csv");
    Ok(ApplicationProfile {
        path: dir.to_owned(),
        name: dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        placements: load(&dir.join("placements.csv"), placements)?,
        scalability: if scalability.is_file() { load(&scalability, spreads)? } else { Vec::new() },
        runs: runs(dir)?,
    })
}

/// Runs to the end of one application, ascending in batch size.
pub(super) fn runs(dir: &Path) -> Result<Vec<MeasuredRun>, DataError> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(dir).map_err(DataError::read(dir))? {
        let name = entry.map_err(DataError::read(dir))?.file_name();
        let batch_size =
            name.to_str().and_then(|name| name.strip_prefix("validation-")?.strip_suffix(".csv")?.parse::<u32>().ok());
        if let Some(batch_size) = batch_size {
            runs.push(load(&dir.join(&name), |path, text| run(path, text, batch_size))?);
        }
    }
    runs.sort_by_key(|run| run.batch_size);
    check_runs(dir, &runs)?;
    Ok(runs)
}

pub(super) fn load<T>(path: &Path, parse: impl FnOnce(&Path, &[u8]) -> Result<T, DataError>) -> Result<T, DataError> {
    parse(path, &fs::read(path).map_err(DataError::read(path))?)
}

/// Reads the bytes of `placements.csv`.
///
/// # Errors
/// At the first row that is no measurement, or where a placement lacks a local batch size between
/// two others.
pub fn placements(path: &Path, text: &[u8]) -> Result<Vec<PlacementSample>, DataError> {
    let (samples, lines) = placement_rows(path, text)?;
    check_grid(path, &samples, &lines)?;
    Ok(samples)
}

/// Rows of a table of placements, which may have different grids of batch sizes, and their lines.
pub(super) fn placement_rows(path: &Path, text: &[u8]) -> Result<(Vec<PlacementSample>, Vec<u64>), DataError> {
    const TIME: &str = "seconds above 0";
    let at = |(line, problem)| DataError::Row { path: path.to_owned(), line, problem };
    let mut rows = CsvRows::new(path, text, PLACEMENTS)?;
    let (mut samples, mut lines) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next(PLACEMENTS) {
        let row = row.map_err(at)?;
        let sample = || -> Result<PlacementSample, RowProblem> {
            let digits = row.bytes(0);
            // A placement has one digit a node: nodes of the measurements hold at most nine
            // replicas.
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) || digits.len() > 16 {
                return Err(row.problem(0, "one digit a node"));
            }
            let step_secs = row.at_least(2, f64::MIN_POSITIVE, TIME)?;
            let sync_secs = sync(row.at_least(3, 0.0, "seconds of at least 0")?, step_secs)
                .ok_or_else(|| row.problem(3, "at most step_time"))?;
            Ok(PlacementSample {
                shape: digits.iter().map(|digit| u32::from(digit - b'0')).collect(),
                local_bsz: row.count(1)?,
                step_secs,
                sync_secs,
            })
        };
        lines.push(row.line);
        samples.push(sample().map_err(|problem| at((row.line, problem)))?);
    }
    if samples.is_empty() {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    Ok((samples, lines))
}

/// Each placement must have the smallest local batch sizes of all placements, without a gap.
fn check_grid(path: &Path, samples: &[PlacementSample], lines: &[u64]) -> Result<(), DataError> {
    let mut grid: Vec<u32> = samples.iter().map(|sample| sample.local_bsz).collect();
    grid.sort_unstable();
    grid.dedup();
    let mut by_placement: BTreeMap<&[u32], Vec<(u32, u64)>> = BTreeMap::new();
    for (sample, line) in samples.iter().zip(lines) {
        by_placement.entry(&sample.shape).or_default().push((sample.local_bsz, *line));
    }
    for (shape, sizes) in &mut by_placement {
        sizes.sort_unstable();
        if let Some((&missing, &(_, line))) =
            grid.iter().zip(sizes.iter()).find(|(expected, (found, _))| *expected != found)
        {
            let what =
                format!("replicas per node {shape:?} lack local batch size {missing}, which other placements have");
            return Err(DataError::Hole { path: path.to_owned(), line, what });
        }
    }
    Ok(())
}

/// Reads the bytes of `scalability.csv`.
///
/// # Errors
/// At the first row that is no measurement.
pub fn spreads(path: &Path, text: &[u8]) -> Result<Vec<ScalabilitySample>, DataError> {
    let at = |(line, problem)| DataError::Row { path: path.to_owned(), line, problem };
    let mut rows = CsvRows::new(path, text, SCALABILITY)?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next(SCALABILITY) {
        let row = row.map_err(at)?;
        let sample = || -> Result<ScalabilitySample, RowProblem> {
            let step_secs = row.at_least(3, f64::MIN_POSITIVE, "seconds above 0")?;
            let sync_secs = sync(row.at_least(4, 0.0, "seconds of at least 0")?, step_secs)
                .ok_or_else(|| row.problem(4, "at most step_time"))?;
            Ok(ScalabilitySample {
                nodes: row.count(0)?,
                replicas: row.count(1)?,
                local_bsz: row.count(2)?,
                step_secs,
                sync_secs,
            })
        };
        let line = row.line;
        samples.push(sample().map_err(|problem| at((line, problem)))?);
    }
    Ok(samples)
}

/// Synchronisation is a part of the step.
fn sync(sync_secs: f64, step_secs: f64) -> Option<f64> {
    (sync_secs <= step_secs).then_some(sync_secs)
}

/// Reads the bytes of `validation-<batch_size>.csv`.
///
/// # Errors
/// At the first row that is no epoch, or where one is missing.
pub fn run(path: &Path, text: &[u8], batch_size: u32) -> Result<MeasuredRun, DataError> {
    let at = |(line, problem)| DataError::Row { path: path.to_owned(), line, problem };
    let mut rows = CsvRows::new(path, text, VALIDATION)?;
    let mut run = MeasuredRun {
        batch_size,
        progress: Vec::new(),
        iterations: Vec::new(),
        grad_sqr: Vec::new(),
        grad_var: Vec::new(),
    };
    let mut lines = Vec::new();
    while let Some(row) = rows.next(VALIDATION) {
        let row = row.map_err(at)?;
        let mut read = || -> Result<(), RowProblem> {
            // The next float: progress and iterations grow strictly, and the first epoch makes
            // some.
            let after = |values: &[f64]| values.last().copied().unwrap_or(0.0).next_up();
            run.progress.push(row.at_least(0, after(&run.progress), "more than in the row before")?);
            run.iterations.push(row.at_least(1, after(&run.iterations), "more than in the row before")?);
            run.grad_sqr.push(row.float(2, "a finite number")?);
            run.grad_var.push(row.float(3, "a finite number")?);
            Ok(())
        };
        read().map_err(|problem| at((row.line, problem)))?;
        lines.push(row.line);
    }
    if lines.is_empty() {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    match epoch_with_missing_row(&run.progress) {
        None => Ok(run),
        Some(epoch) => {
            let what = format!(
                "epoch {epoch} has more than {EPOCH_GAP} times the progress of the median epoch; a row is missing before it"
            );
            Err(DataError::Hole { path: path.to_owned(), line: lines[epoch], what })
        }
    }
}

/// The first epoch with so much progress that a row must be missing: whatever the batch, epochs are
/// of equal progress.
fn epoch_with_missing_row(progress: &[f64]) -> Option<usize> {
    let each = || std::iter::once(&0.0).chain(progress).zip(progress).map(|(before, after)| after - before);
    let mut sorted: Vec<f64> = each().collect();
    sorted.sort_by(f64::total_cmp);
    // The median, because an epoch that swallowed a row must not raise the measure it is held
    // against.
    let median = sorted[(sorted.len() - 1) / 2];
    each().position(|gain| gain > EPOCH_GAP * median)
}

/// Runs must be as long as each other and their batch sizes a geometric grid without gaps.
fn check_runs(dir: &Path, runs: &[MeasuredRun]) -> Result<(), DataError> {
    let Some(first) = runs.first() else {
        return Err(DataError::Hole {
            path: dir.to_owned(),
            line: 0,
            what: "no file validation-<batch size>.csv".to_owned(),
        });
    };
    let file = |run: &MeasuredRun| dir.join(format!("validation-{}.csv", run.batch_size));
    let most = runs.iter().map(|run| run.progress.len()).max().unwrap_or(0);
    if let Some(short) = runs.iter().find(|run| run.progress.len() < most) {
        let epochs = short.progress.len();
        let what = format!("{epochs} epochs, but {most} at other batch sizes");
        return Err(DataError::Hole { path: file(short), line: epochs as u64 + 1, what });
    }
    // The grid is geometric up to rounding, so a gap is a factor far above the least one.
    let factor = |pair: &[MeasuredRun]| f64::from(pair[1].batch_size) / f64::from(pair[0].batch_size);
    let least = runs.windows(2).map(factor).fold(f64::INFINITY, f64::min);
    if let Some(gap) = runs.windows(2).find(|pair| factor(pair) > 1.5 * least) {
        let what = format!(
            "batch sizes {} and {} are further apart than others; is a file between them missing?",
            gap[0].batch_size, gap[1].batch_size
        );
        return Err(DataError::Hole { path: file(&gap[1]), line: 0, what });
    }
    if first.batch_size == 0 {
        return Err(DataError::Hole { path: file(first), line: 0, what: "a batch size of 0".to_owned() });
    }
    Ok(())
}
