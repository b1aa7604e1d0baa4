//! Step times that the Pollux artifact's own interpolation gave for placements on 5 to 16 nodes, as
//! Parquet.
//!
//! Columns `application, num_nodes, num_replicas, local_bsz, step_time_s, sync_time_s`. The
//! artifact triangulates a degenerate grid, so its figures depend on how Qhull breaks ties; with
//! this file they are reproduced, without it our own scheme (`goodput_env::model::measured`) stands
//! in.
//!
//! The table has a row for every batch size, half a million of them. Most are beyond what the
//! application's largest total batch allows, so the caller says which can matter; and most of those
//! lie on a line between their neighbours, as interpolated values do, so only the corners are kept.
//! What is left loads in milliseconds and gives the same step times to twelve digits.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type, UInt32Type};
use goodput_env::model::InterpolatedSample;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::DataError;
use crate::store::{Column, Table, decode};

/// Columns of the table.
pub(super) const COLUMNS: &[&str] =
    &["application", "num_nodes", "num_replicas", "local_bsz", "step_time_s", "sync_time_s"];

const APPLICATION: &str = "application";
const COUNTS: [&str; 3] = ["num_nodes", "num_replicas", "local_bsz"];
const TIMES: [&str; 2] = ["step_time_s", "sync_time_s"];
/// Relative distance from the line between its neighbours at which a row is no corner.
const ON_LINE: f64 = 1e-12;
/// Rows decoded at a time: few enough to stay in the cache.
const BATCH: usize = 1 << 13;

/// Rows by application, in the order of the file, as far as its largest total batch of
/// `largest_batch(application)` samples reaches: no job exceeds that, up to rounding up per
/// replica. 0 leaves an application out.
///
/// # Errors
/// Where the file is not readable, not Parquet, or lacks a column or a value.
pub fn read(
    path: &Path,
    largest_batch: impl Fn(&str) -> u32,
) -> Result<BTreeMap<String, Vec<InterpolatedSample>>, DataError> {
    let file = File::open(path).map_err(DataError::read(path))?;
    decode(path, || {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let names = std::iter::once(APPLICATION).chain(COUNTS).chain(TIMES);
        let mask = ProjectionMask::columns(builder.parquet_schema(), names);
        let mut rows = BTreeMap::new();
        for batch in builder.with_projection(mask).with_batch_size(BATCH).build()? {
            if let Err(error) = gather(path, &batch?, &largest_batch, &mut rows) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(rows))
    })?
}

/// Rows as a table that loads in a fraction of the time, and from which [`read`] gives equal step
/// times.
pub fn table(rows: &BTreeMap<String, Vec<InterpolatedSample>>) -> Table {
    let all = || rows.iter().flat_map(|(name, samples)| samples.iter().map(move |sample| (name, sample)));
    let count =
        |get: &dyn Fn(&InterpolatedSample) -> u32| all().map(|(_, sample)| i64::from(get(sample))).collect::<Vec<_>>();
    let time = |get: &dyn Fn(&InterpolatedSample) -> f64| all().map(|(_, sample)| get(sample)).collect::<Vec<_>>();
    Table::new(vec![
        Column::new(APPLICATION, all().map(|(name, _)| name.clone()).collect::<Vec<_>>()),
        Column::new(COUNTS[0], count(&|sample| sample.nodes)),
        Column::new(COUNTS[1], count(&|sample| sample.replicas)),
        Column::new(COUNTS[2], count(&|sample| sample.local_bsz)),
        Column::new(TIMES[0], time(&|sample| sample.step_secs)),
        Column::new(TIMES[1], time(&|sample| sample.sync_secs)),
    ])
}

/// Adds a row; the one before goes if a line between its neighbours of the same nodes and replicas
/// gives it as well.
fn push_corner(corners: &mut Vec<InterpolatedSample>, sample: InterpolatedSample) {
    if let [.., before, last] = corners.as_mut_slice()
        && on_line(before, last, &sample)
    {
        *last = sample;
    } else {
        corners.push(sample);
    }
}

fn on_line(before: &InterpolatedSample, sample: &InterpolatedSample, after: &InterpolatedSample) -> bool {
    let same = |a: &InterpolatedSample, b: &InterpolatedSample| {
        (a.nodes, a.replicas) == (b.nodes, b.replicas) && a.local_bsz < b.local_bsz
    };
    if !same(before, sample) || !same(sample, after) {
        return false;
    }
    // The artifact interpolates linearly in the local batch size, so points on a line are
    // redundant.
    let share = f64::from(sample.local_bsz - before.local_bsz) / f64::from(after.local_bsz - before.local_bsz);
    let line = |before: f64, after: f64| before + share * (after - before);
    let step_off = line(before.step_secs, after.step_secs) - sample.step_secs;
    let sync_off = line(before.sync_secs, after.sync_secs) - sample.sync_secs;
    step_off.abs().max(sync_off.abs()) <= ON_LINE * sample.step_secs
}

fn gather(
    path: &Path,
    batch: &RecordBatch,
    largest_batch: impl Fn(&str) -> u32,
    rows: &mut BTreeMap<String, Vec<InterpolatedSample>>,
) -> Result<(), DataError> {
    let applications =
        column(path, batch, APPLICATION, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)))?;
    let applications = applications.as_dictionary::<Int32Type>();
    let names = applications.values().as_string::<i32>();
    let keys = applications.keys().values();
    let [nodes, replicas, local] = COUNTS.map(|name| column(path, batch, name, &DataType::UInt32));
    let [nodes, replicas, local] = [nodes?, replicas?, local?];
    let [nodes, replicas, local] = [&nodes, &replicas, &local].map(|array| array.as_primitive::<UInt32Type>().values());
    let [step, sync] = TIMES.map(|name| column(path, batch, name, &DataType::Float64));
    let [step, sync] = [step?, sync?];
    let [step, sync] = [&step, &sync].map(|array| array.as_primitive::<Float64Type>().values());

    // Rows of an application lie together.
    let mut row = 0;
    for run in keys.chunk_by(|a, b| a == b) {
        let name = names.value(run[0] as usize);
        let end = row + run.len();
        let samples = match rows.get_mut(name) {
            Some(samples) => samples,
            None => rows.entry(name.to_owned()).or_default(),
        };
        let largest = u64::from(largest_batch(name));
        let reachable = |row: &usize| u64::from(local[*row].saturating_sub(1)) * u64::from(replicas[*row]) < largest;
        for row in (row..end).filter(reachable) {
            let sample = InterpolatedSample {
                nodes: nodes[row],
                replicas: replicas[row],
                local_bsz: local[row],
                step_secs: step[row],
                sync_secs: sync[row],
            };
            push_corner(samples, sample);
        }
        row = end;
    }
    Ok(())
}

/// A column of a batch as `kind`, without missing values.
fn column(path: &Path, batch: &RecordBatch, name: &str, kind: &DataType) -> Result<ArrayRef, DataError> {
    let wrong = |found: String| DataError::ColumnType {
        path: path.to_owned(),
        column: name.to_owned(),
        expected: kind.to_string(),
        found,
    };
    let array = batch.column_by_name(name).ok_or_else(|| {
        let found = batch.schema().fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        DataError::MissingColumn { path: path.to_owned(), column: name.to_owned(), found }
    })?;
    let array = cast(array, kind).map_err(|_| wrong(array.data_type().to_string()))?;
    if array.logical_null_count() > 0 { Err(wrong("partly empty or out of range".to_owned())) } else { Ok(array) }
}
