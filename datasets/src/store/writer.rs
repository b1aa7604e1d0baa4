//! Writer of a table that comes in parts: a row group is in memory at a time.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use parquet::arrow::ArrowWriter;

use super::table::{Table, properties};
use crate::error::DataError;

/// Parquet file (zstd) that grows by whole tables of equal columns. Equal parts give equal bytes.
pub struct TableWriter {
    path: PathBuf,
    writer: ArrowWriter<BufWriter<File>>,
}

impl std::fmt::Debug for TableWriter {
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
        let batch = first.batch(path)?;
        let file = BufWriter::new(File::create(path).map_err(DataError::write(path))?);
        let writer = ArrowWriter::try_new(file, batch.schema(), Some(properties(&first.metadata)));
        let mut writer = Self { path: path.to_owned(), writer: writer.map_err(DataError::parquet(path))? };
        writer.write(first)?;
        Ok(writer)
    }

    /// Appends the rows of a table with the columns of the first.
    ///
    /// # Errors
    /// Where columns differ in length, name or kind, or the file cannot be written.
    pub fn write(&mut self, table: &Table) -> Result<(), DataError> {
        let batch = table.batch(&self.path)?;
        self.writer.write(&batch).map_err(DataError::parquet(&self.path))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn finish(self) -> Result<(), DataError> {
        self.writer.close().map(drop).map_err(DataError::parquet(&self.path))
    }
}
