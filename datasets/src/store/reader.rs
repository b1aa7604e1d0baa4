//! Reader of Parquet: a table at once, or some rows of it at a time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::Field;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

use super::table::{Column, Table, Values};
use crate::error::DataError;

/// Rows that are read at once where a file is read in parts.
const BATCH: usize = 1 << 13;

/// Runs the Parquet library on what comes from outside. It asserts in places where damaged bytes
/// lead, so a panic of its is an error too; whatever `read` had in hand is dropped with it.
pub(crate) fn decode<T>(path: &Path, read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, DataError> {
    let result = catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("the file is damaged".to_owned())));
    result.map_err(DataError::parquet(path))
}

/// Metadata of a Parquet file, without its rows.
///
/// # Errors
/// Where the file cannot be read or is not Parquet.
pub(crate) fn metadata_of(path: &Path) -> Result<BTreeMap<String, String>, DataError> {
    let file = File::open(path).map_err(DataError::read(path))?;
    decode(path, || Ok(pairs(ParquetRecordBatchReaderBuilder::try_new(file)?.metadata())))
}

impl Table {
    /// Reads a Parquet file of columns that fit our four kinds; wider integers and nested columns
    /// are refused.
    ///
    /// # Errors
    /// Where the file cannot be read, is not Parquet, or has a column of another kind.
    pub fn read_parquet(path: &Path) -> Result<Self, DataError> {
        Self::from_parquet(path, fs::read(path).map_err(DataError::read(path))?)
    }

    /// As [`Self::read_parquet`] from the bytes of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`Self::read_parquet`].
    pub fn from_parquet(path: &Path, bytes: Vec<u8>) -> Result<Self, DataError> {
        let (batch, pairs) = decode(path, || {
            let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))?;
            let pairs = pairs(builder.metadata());
            let schema = builder.schema().clone();
            let batches = builder.build()?.collect::<Result<Vec<_>, _>>()?;
            Ok((concat_batches(&schema, &batches)?, pairs))
        })?;
        Ok(Self { metadata: pairs, ..of_batch(path, &batch)? })
    }

    /// Reads a Parquet file some rows at a time. `each` gets one table at least, which may be without rows.
    pub(super) fn batches(
        path: &Path,
        source: impl ChunkReader + 'static,
        mut each: impl FnMut(Self) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let (schema, mut reader) = decode(path, || {
            let builder = ParquetRecordBatchReaderBuilder::try_new(source)?.with_batch_size(BATCH);
            Ok((builder.schema().clone(), builder.build()?))
        })?;
        let mut next = || decode(path, || Ok(reader.next().transpose()?));
        let first = next()?.unwrap_or_else(|| RecordBatch::new_empty(schema));
        each(of_batch(path, &first)?)?;
        while let Some(batch) = next()? {
            each(of_batch(path, &batch)?)?;
        }
        Ok(())
    }

    /// Metadata of a Parquet file, without its rows.
    ///
    /// # Errors
    /// Where the file cannot be read or is not Parquet.
    pub fn read_metadata(path: &Path) -> Result<BTreeMap<String, String>, DataError> {
        let file = File::open(path).map_err(DataError::read(path))?;
        decode(path, || Ok(pairs(ParquetRecordBatchReaderBuilder::try_new(file)?.metadata())))
    }
}

/// Pairs of metadata of a file, without the schema that Arrow stores among them.
fn pairs(metadata: &ParquetMetaData) -> BTreeMap<String, String> {
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let pairs = pairs.filter(|pair| pair.key != "ARROW:schema");
    pairs.map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default())).collect()
}

fn of_batch(path: &Path, batch: &RecordBatch) -> Result<Table, DataError> {
    let column = |(field, array): (&Arc<Field>, &ArrayRef)| -> Result<Column, DataError> {
        let values = Values::from_array(array).ok_or_else(|| DataError::ColumnType {
            path: path.to_owned(),
            column: field.name().clone(),
            expected: "a number, a text or a boolean".to_owned(),
            found: array.data_type().to_string(),
        })?;
        Ok(Column::new(field.name(), values))
    };
    let columns = batch.schema_ref().fields().iter().zip(batch.columns()).map(column);
    Ok(Table::new(columns.collect::<Result<_, DataError>>()?))
}
