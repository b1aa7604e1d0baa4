//! Writer of Parquet: a table at once, or in parts of which one is in memory at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::table::{Column, Table};
use crate::error::DataError;

/// Written into every file instead of the version of the Parquet library.
pub(super) const CREATED_BY: &str = concat!("goodput-datasets ", env!("CARGO_PKG_VERSION"));

/// Rows of a row group: what a writer holds at a time. A table that is written in parts of this many rows gives the
/// bytes of a table that is written at once.
pub(crate) const ROW_GROUP: usize = 1 << 17;

/// Parquet (zstd) that grows by whole tables of equal columns. Equal parts give equal bytes.
pub struct TableWriter<W: Write + Send = File> {
    path: PathBuf,
    writer: ArrowWriter<W>,
}

impl<W: Write + Send> std::fmt::Debug for TableWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// File with the columns and the metadata of `first`, and its rows.
    ///
    /// # Errors
    /// Where columns differ in length or the file cannot be written.
    pub fn create(path: &Path, first: &Table) -> Result<Self, DataError> {
        first.check(path)?;
        Self::new(File::create(path).map_err(DataError::write(path))?, path, first)
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// As [`TableWriter::create`], into `out`; `path` is for messages.
    fn new(out: W, path: &Path, first: &Table) -> Result<Self, DataError> {
        let batch = batch(path, first)?;
        let writer = ArrowWriter::try_new(out, batch.schema(), Some(properties(&first.metadata)));
        let mut writer = writer.map_err(DataError::write_parquet(path))?;
        writer.write(&batch).map_err(DataError::write_parquet(path))?;
        Ok(Self { path: path.to_owned(), writer })
    }

    /// Appends the rows of a table with the columns of the first.
    ///
    /// # Errors
    /// Where columns differ in length, name or kind, or the file cannot be written.
    pub fn write(&mut self, table: &Table) -> Result<(), DataError> {
        let batch = batch(&self.path, table)?;
        self.writer.write(&batch).map_err(DataError::write_parquet(&self.path))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn finish(self) -> Result<(), DataError> {
        self.writer.close().map(drop).map_err(DataError::write_parquet(&self.path))
    }
}

impl Table {
    /// Writes Parquet (zstd), equal bytes for equal tables.
    ///
    /// # Errors
    /// Where columns differ in length or the file cannot be written.
    pub fn write_parquet(&self, path: &Path) -> Result<(), DataError> {
        TableWriter::create(path, self)?.finish()
    }

    /// The bytes of [`Self::write_parquet`]; `path` is for messages.
    ///
    /// # Errors
    /// Where columns differ in length.
    pub fn to_parquet(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        TableWriter::new(&mut bytes, path, self)?.finish()?;
        Ok(bytes)
    }
}

/// The rows as Arrow holds them; `path` is for messages.
fn batch(path: &Path, table: &Table) -> Result<RecordBatch, DataError> {
    table.check(path)?;
    let field = |column: &Column| Field::new(&column.name, column.values.data_type(), true);
    let schema = Schema::new(table.columns.iter().map(field).collect::<Vec<_>>());
    let arrays: Vec<ArrayRef> = table.columns.iter().map(|column| column.values.array()).collect();
    let rows = RecordBatchOptions::new().with_row_count(Some(table.rows()));
    RecordBatch::try_new_with_options(Arc::new(schema), arrays, &rows)
        .map_err(|error| DataError::parquet(path)(error.into()))
}

/// Properties of every file that goodput writes.
fn properties(metadata: &BTreeMap<String, String>) -> WriterProperties {
    let pairs = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(CREATED_BY.to_owned())
        .set_key_value_metadata(Some(pairs))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .build()
}
