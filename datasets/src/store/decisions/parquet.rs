//! The columns of a log of decisions, one row a decision:
//!
//! | column | type | |
//! |---|---|---|
//! | `episode` | u32 | from 0, ascending |
//! | `seed` | u64 | of the episode's workload |
//! | `behaviour` | text, dictionary | name of the behaviour policy |
//! | `noise` | f32 | probability of a decision drawn from all allowed ones |
//! | `observation` | list of f32 | slots up to the last occupied one, slot by slot, then the features of the cluster |
//! | `mask` | bytes | one bit an action, the first action the lowest bit; 1: allowed |
//! | `action` | u32, null in a closing row | |
//! | `propensity` | f32, null in a closing row | probability of the action under the behaviour |
//! | `reward` | f32, null in a closing row | |
//! | `dt_secs` | f32, null in a closing row | time that passed |
//! | `end` | u8 | last decision: 1 terminated, 2 truncated and a closing row follows; 0 elsewhere |
//! | `episode_return` | f64 | sum of the episode's rewards |
//!
//! Shapes are in the metadata: `goodput.layout` (JSON), `goodput.schema_hash` and `goodput.types`
//! (JSON; names of the accelerator types told apart).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, Float32Array, Float32Builder, Float64Array, ListBuilder,
    RecordBatch, StringDictionaryBuilder, UInt8Array, UInt32Array, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Int32Type, UInt8Type, UInt32Type, UInt64Type};
use bytes::Bytes;
use goodput_env::gym::Layout;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::{Behaviour, DecisionLog, Episode, EpisodeEnd, NONE, mask_bytes};
use crate::error::{DataError, RowProblem};
use crate::store::writer::CREATED_BY;
use crate::store::{DataProvenance, Table, decode};

/// Rows of a row group.
const GROUP: usize = 16_384;
const LAYOUT: &str = "goodput.layout";
const SCHEMA: &str = "goodput.schema_hash";
const TYPES: &str = "goodput.types";

impl DecisionLog {
    /// Writes Parquet (zstd), the same bytes for the same log.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&self, path: &Path, provenance: &DataProvenance) -> Result<(), DataError> {
        let mut out = BufWriter::new(File::create(path).map_err(DataError::write(path))?);
        self.write_to(&mut out, provenance).map_err(DataError::parquet(path))?;
        out.flush().map_err(DataError::write(path))
    }

    fn write_to(&self, out: impl Write + Send, provenance: &DataProvenance) -> Result<(), ParquetError> {
        let external = |error: serde_json::Error| ParquetError::External(Box::new(error));
        let layout = serde_json::to_string(&self.layout).map_err(external)?;
        let types = serde_json::to_string(&self.types).map_err(external)?;
        let marked = provenance.on(Table::default()).with(LAYOUT, layout).with(SCHEMA, &*self.schema_hash);
        let marked = if self.types.is_empty() { marked } else { marked.with(TYPES, types) };
        let pairs = marked.metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(CREATED_BY.to_owned())
            .set_key_value_metadata(Some(pairs))
            .build();
        let by_row = self.by_row();
        let mut writer = ArrowWriter::try_new(out, self.batch(0..0, &by_row)?.schema(), Some(properties))?;
        // One row group at a time keeps the memory of the writer small, whatever the length of the
        // log.
        for first in (0..self.rows()).step_by(GROUP) {
            writer.write(&self.batch(first..self.rows().min(first + GROUP), &by_row)?)?;
            writer.flush()?;
        }
        writer.close().map(|_| ())
    }

    /// The episode of every row.
    fn by_row(&self) -> Vec<u32> {
        let counted = (0..).zip(&self.episodes);
        counted.flat_map(|(at, episode)| std::iter::repeat_n(at, self.after(episode) - episode.rows.start)).collect()
    }

    fn batch(&self, rows: std::ops::Range<usize>, by_row: &[u32]) -> Result<RecordBatch, ParquetError> {
        let of = |row: usize| &self.episodes[by_row[row] as usize];
        let mut behaviour = StringDictionaryBuilder::<Int32Type>::new();
        let mut observation = ListBuilder::new(Float32Builder::new());
        let width = mask_bytes(&self.layout);
        let mut mask = FixedSizeBinaryBuilder::new(width as i32);
        for row in rows.clone() {
            behaviour.append_value(&of(row).behaviour.name);
            observation.values().append_slice(&self.features[self.starts[row]..self.starts[row + 1]]);
            observation.append(true);
            mask.append_value(&self.masks[row * width..(row + 1) * width])?;
        }
        // A closing row has an observation only; its other columns are null in the file.
        let decided = |row: usize| self.actions[row] != NONE;
        let floats = |values: &[f32]| -> ArrayRef {
            Arc::new(rows.clone().map(|row| decided(row).then_some(values[row])).collect::<Float32Array>())
        };
        let end = |row: usize| match of(row) {
            episode if row + 1 != episode.rows.end => 0,
            Episode { end: EpisodeEnd::Terminated, .. } => 1,
            Episode { end: EpisodeEnd::Truncated, .. } => 2,
        };
        let columns: [(&str, ArrayRef); 12] = [
            ("episode", Arc::new(rows.clone().map(|row| by_row[row]).collect::<UInt32Array>())),
            ("seed", Arc::new(rows.clone().map(|row| of(row).seed).collect::<UInt64Array>())),
            ("behaviour", Arc::new(behaviour.finish())),
            ("noise", Arc::new(rows.clone().map(|row| Some(of(row).behaviour.noise)).collect::<Float32Array>())),
            ("observation", Arc::new(observation.finish())),
            ("mask", Arc::new(mask.finish())),
            (
                "action",
                Arc::new(rows.clone().map(|row| decided(row).then_some(self.actions[row])).collect::<UInt32Array>()),
            ),
            ("propensity", floats(&self.propensities)),
            ("reward", floats(&self.rewards)),
            ("dt_secs", floats(&self.dt_secs)),
            ("end", Arc::new(rows.clone().map(end).collect::<UInt8Array>())),
            ("episode_return", Arc::new(rows.clone().map(|row| Some(of(row).total)).collect::<Float64Array>())),
        ];
        Ok(RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))?)
    }

    /// Reads what [`Self::write`] wrote, row by row checked.
    ///
    /// # Errors
    /// Where the file cannot be read, is no log of decisions, or a row contradicts the layout.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = Bytes::from(std::fs::read(path).map_err(DataError::read(path))?);
        let (pairs, mut batches) = decode(path, || {
            let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
            let pairs = builder.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
            Ok((pairs, builder.with_batch_size(GROUP).build()?))
        })?;
        let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
        let no_log = |found: &str| DataError::ColumnType {
            path: path.to_owned(),
            column: LAYOUT.to_owned(),
            expected: "the layout of a log of decisions in the metadata".to_owned(),
            found: found.to_owned(),
        };
        let text = value(LAYOUT).ok_or_else(|| no_log("missing"))?;
        let layout: Layout = serde_json::from_str(&text).map_err(|error| no_log(&error.to_string()))?;
        let types = value(TYPES).map(|text| serde_json::from_str(&text)).transpose();
        let types = types.map_err(|error| no_log(&error.to_string()))?.unwrap_or_default();
        let log = Self::new(layout, value(SCHEMA).unwrap_or_default()).with_types(types);
        let mut reader = Reader { path, log, open: None, row: 0 };
        while let Some(batch) = decode(path, || batches.next().transpose().map_err(ParquetError::from))? {
            reader.batch(&batch)?;
        }
        if reader.open.is_some() {
            return Err(reader.problem("end", "0".into(), "1 or 2 in the last row"));
        }
        Ok(reader.log)
    }
}

/// A log as far as it is read.
struct Reader<'a> {
    path: &'a Path,
    log: DecisionLog,
    /// The episode under way: its number, behaviour, seed, first row; and whether only its closing
    /// row is missing.
    open: Option<(u32, Behaviour, u64, usize, bool)>,
    row: u64,
}

impl Reader<'_> {
    fn problem(&self, column: &'static str, value: String, expected: &'static str) -> DataError {
        let problem = RowProblem::Value { column, value, expected };
        DataError::Row { path: self.path.to_owned(), line: self.row, problem }
    }

    fn column(&self, batch: &RecordBatch, name: &str, kind: &DataType) -> Result<ArrayRef, DataError> {
        let array = batch.column_by_name(name).ok_or_else(|| DataError::MissingColumn {
            path: self.path.to_owned(),
            column: name.to_owned(),
            found: batch.schema().fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", "),
        })?;
        cast(array, kind).map_err(|_| DataError::ColumnType {
            path: self.path.to_owned(),
            column: name.to_owned(),
            expected: kind.to_string(),
            found: array.data_type().to_string(),
        })
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), DataError> {
        let list = DataType::new_list(DataType::Float32, true);
        let [episode, action] =
            [("episode", DataType::UInt32), ("action", DataType::UInt32)].map(|(n, k)| self.column(batch, n, &k));
        let (episode, action) = (episode?, action?);
        let (episode, action) = (episode.as_primitive::<UInt32Type>(), action.as_primitive::<UInt32Type>());
        let floats = |name| self.column(batch, name, &DataType::Float32);
        let (noise, propensity, reward, dt) =
            (floats("noise")?, floats("propensity")?, floats("reward")?, floats("dt_secs")?);
        let [noise, propensity, reward, dt] =
            [&noise, &propensity, &reward, &dt].map(|array| array.as_primitive::<Float32Type>());
        let (seed, end) =
            (self.column(batch, "seed", &DataType::UInt64)?, self.column(batch, "end", &DataType::UInt8)?);
        let (seed, end) = (seed.as_primitive::<UInt64Type>(), end.as_primitive::<UInt8Type>());
        let (behaviour, mask) =
            (self.column(batch, "behaviour", &DataType::Utf8)?, self.column(batch, "mask", &DataType::Binary)?);
        let (behaviour, mask) = (behaviour.as_string::<i32>(), mask.as_binary::<i32>());
        let observation = self.column(batch, "observation", &list)?;
        let observation = observation.as_list::<i32>();
        for at in 0..batch.num_rows() {
            self.row += 1;
            let given =
                [episode.is_valid(at), seed.is_valid(at), behaviour.is_valid(at), noise.is_valid(at), end.is_valid(at)];
            if given.contains(&false) || observation.is_null(at) || mask.is_null(at) {
                return Err(self.problem("episode", "a missing value".into(), "values in every row"));
            }
            let who = Behaviour { name: behaviour.value(at).to_owned(), noise: noise.value(at) };
            self.enter(episode.value(at), who, seed.value(at))?;
            self.seen(observation.value(at).as_primitive::<Float32Type>().values(), mask.value(at))?;
            let decided =
                action.is_valid(at).then(|| (action.value(at), propensity.value(at), reward.value(at), dt.value(at)));
            self.leave(decided, end.value(at))?;
        }
        Ok(())
    }

    /// Makes the row's episode the one under way.
    fn enter(&mut self, number: u32, behaviour: Behaviour, seed: u64) -> Result<(), DataError> {
        let expected = self.log.episodes.len() as u32;
        match &self.open {
            Some((open, ..)) if *open == number => Ok(()),
            None if number == expected => {
                self.open = Some((number, behaviour, seed, self.log.rows(), false));
                Ok(())
            }
            _ => Err(self.problem(
                "episode",
                number.to_string(),
                "episodes in order, each with its rows together up to its end",
            )),
        }
    }

    fn seen(&mut self, features: &[f32], mask: &[u8]) -> Result<(), DataError> {
        let Layout { slots, slot_features, globals, .. } = self.log.layout;
        let of_slots = features.len().checked_sub(globals);
        // Empty slots at the end are left out in the file, so any number of whole slots is valid.
        let fits = |n: usize| n <= slots * slot_features && (n == 0 || n.is_multiple_of(slot_features));
        if !of_slots.is_some_and(fits) || features.iter().any(|feature| !feature.is_finite()) {
            return Err(self.problem(
                "observation",
                format!("{} numbers", features.len()),
                "finite features of whole slots and the cluster",
            ));
        }
        if mask.len() != mask_bytes(&self.log.layout) || mask.iter().all(|&bits| bits == 0) {
            return Err(self.problem("mask", format!("{} bytes", mask.len()), "one bit an action, one of them 1"));
        }
        self.log.features.extend_from_slice(features);
        self.log.starts.push(self.log.features.len());
        self.log.masks.extend_from_slice(mask);
        Ok(())
    }

    fn leave(&mut self, decided: Option<(u32, f32, f32, f32)>, end: u8) -> Result<(), DataError> {
        let Some((_, behaviour, seed, first, closing)) = self.open.take() else { return Ok(()) };
        let row = self.log.rows();
        let (action, propensity, reward, dt) = decided.unwrap_or((NONE, 0.0, 0.0, 0.0));
        if decided.is_some() == closing {
            return Err(self.problem(
                "action",
                if closing { action.to_string() } else { "missing".into() },
                "one in every row but closing ones",
            ));
        }
        let bits = &self.log.masks[row * mask_bytes(&self.log.layout)..];
        // Learners divide by the probability of allowed actions, so a forbidden one must not pass.
        let allowed = bits.get(action as usize / 8).is_some_and(|bits| bits >> (action % 8) & 1 == 1);
        if decided.is_some() && !(allowed && (action as usize) < self.log.layout.actions()) {
            return Err(self.problem("action", action.to_string(), "an action that the mask allows"));
        }
        if !(propensity.is_finite() && reward.is_finite() && dt.is_finite() && dt >= 0.0) {
            return Err(self.problem("reward", format!("{reward} in {dt} s"), "finite numbers, no negative time"));
        }
        self.log.actions.push(action);
        self.log.propensities.push(propensity);
        self.log.rewards.push(reward);
        self.log.dt_secs.push(dt);
        let over = match (closing, end) {
            (true, 0) => Some(EpisodeEnd::Truncated),
            (false, 1) => Some(EpisodeEnd::Terminated),
            (false, 0 | 2) => None,
            _ => return Err(self.problem("end", end.to_string(), "0, 1 or 2")),
        };
        match over {
            None => self.open = Some((self.log.episodes.len() as u32, behaviour, seed, first, end == 2)),
            Some(end) => {
                let rows = first..row + usize::from(end == EpisodeEnd::Terminated);
                let total = self.log.rewards[rows.clone()].iter().map(|&reward| f64::from(reward)).sum();
                self.log.episodes.push(Episode { behaviour, seed, end, total, rows });
            }
        }
        Ok(())
    }
}
