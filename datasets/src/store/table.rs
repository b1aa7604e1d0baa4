//! A table of named columns, as Parquet or CSV.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;

use super::choice::TextChoice;
use crate::error::DataError;

/// Written into every file instead of the version of the Parquet library.
pub(super) const CREATED_BY: &str = concat!("goodput-datasets ", env!("CARGO_PKG_VERSION"));

/// Rows of a row group: what a writer and a reader hold at a time.
const ROW_GROUP: usize = 1 << 17;

/// Runs the Parquet library on what comes from outside. It asserts in places where damaged bytes
/// lead, so a panic of its is an error too; whatever `read` had in hand is dropped with it.
pub(crate) fn decode<T>(path: &Path, read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, DataError> {
    let result = catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("the file is damaged".to_owned())));
    result.map_err(DataError::parquet(path))
}

/// Properties of every file that goodput writes.
pub(super) fn properties(metadata: &BTreeMap<String, String>) -> WriterProperties {
    let pairs = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(CREATED_BY.to_owned())
        .set_key_value_metadata(Some(pairs))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .build()
}

/// Pairs of metadata of a file, without the schema that Arrow stores among them.
fn pairs(metadata: &ParquetMetaData) -> BTreeMap<String, String> {
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let pairs = pairs.filter(|pair| pair.key != "ARROW:schema");
    pairs.map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default())).collect()
}

/// A named column. Units belong in the name: `submit_secs`, `gpus`, `jct_secs`.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Values by row.
    pub values: Values,
}

/// Values of one column; `None` is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers of 64 bits.
    Int64(Vec<Option<i64>>),
    /// Floating-point numbers of 64 bits.
    Float64(Vec<Option<f64>>),
    /// Texts in UTF-8.
    Utf8(Vec<Option<String>>),
    /// Texts of which there are few, such as names of policies.
    TextChoice(TextChoice),
    /// Truth values, true or false.
    Boolean(Vec<Option<bool>>),
}

/// Columns of equal length with metadata of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Key-value metadata, written in order of key; Parquet only.
    pub metadata: BTreeMap<String, String>,
}

impl Column {
    /// A column of any of the vectors that [`Values`] is made from.
    pub fn new(name: impl Into<String>, values: impl Into<Values>) -> Self {
        Self { name: name.into(), values: values.into() }
    }
}

macro_rules! values_from {
    ($variant:ident, $type:ty) => {
        impl From<Vec<$type>> for Values {
            fn from(values: Vec<$type>) -> Self {
                Self::$variant(values.into_iter().map(Some).collect())
            }
        }

        impl From<Vec<Option<$type>>> for Values {
            fn from(values: Vec<Option<$type>>) -> Self {
                Self::$variant(values)
            }
        }
    };
}

values_from!(Int64, i64);
values_from!(Float64, f64);
values_from!(Utf8, String);
values_from!(Boolean, bool);

impl From<TextChoice> for Values {
    fn from(choice: TextChoice) -> Self {
        Self::TextChoice(choice)
    }
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Int64(values) => values.len(),
            Self::Float64(values) => values.len(),
            Self::Utf8(values) => values.len(),
            Self::TextChoice(choice) => choice.len(),
            Self::Boolean(values) => values.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of the kind of values.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Int64(_) => "whole numbers",
            Self::Float64(_) => "numbers",
            Self::Utf8(_) | Self::TextChoice(_) => "text",
            Self::Boolean(_) => "true or false",
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Int64(_) => DataType::Int64,
            Self::Float64(_) => DataType::Float64,
            Self::Utf8(_) => DataType::Utf8,
            Self::TextChoice(_) => TextChoice::data_type(),
            Self::Boolean(_) => DataType::Boolean,
        }
    }

    fn array(&self) -> ArrayRef {
        match self {
            Self::Int64(values) => Arc::new(values.iter().copied().collect::<Int64Array>()),
            Self::Float64(values) => Arc::new(values.iter().copied().collect::<Float64Array>()),
            Self::Utf8(values) => Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>()),
            Self::TextChoice(choice) => choice.array(),
            Self::Boolean(values) => Arc::new(values.iter().copied().collect::<BooleanArray>()),
        }
    }

    /// From an array of a type that fits losslessly into one of ours; `None` for others.
    fn from_array(array: &dyn Array) -> Option<Self> {
        let target = match array.data_type() {
            DataType::Boolean => DataType::Boolean,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
            DataType::Dictionary(..) => return TextChoice::from_array(array).map(Self::TextChoice),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
            kind if kind.is_integer() && *kind != DataType::UInt64 => DataType::Int64,
            _ => return None,
        };
        let array = cast(array, &target).ok()?;
        Some(match target {
            DataType::Boolean => Self::Boolean(array.as_boolean().iter().collect()),
            DataType::Float64 => Self::Float64(array.as_primitive::<Float64Type>().iter().collect()),
            DataType::Int64 => Self::Int64(array.as_primitive::<Int64Type>().iter().collect()),
            _ => Self::Utf8(array.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect()),
        })
    }

    /// One value for CSV: empty where missing, floats in the shortest form that reads back to the
    /// same bits.
    fn write_csv(&self, row: usize, out: &mut String) {
        use std::fmt::Write as _;
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Int64(values) => values[row].map(|value| write!(out, "{value}")),
            Self::Float64(values) => values[row].map(|value| write!(out, "{value}")),
            Self::Utf8(values) => values[row].as_ref().map(|value| write!(out, "{value}")),
            Self::TextChoice(choice) => choice.get(row).map(|value| write!(out, "{value}")),
            Self::Boolean(values) => values[row].map(|value| write!(out, "{value}")),
        };
    }
}

impl Table {
    /// A table without metadata.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, metadata: BTreeMap::new() }
    }

    /// Table with one more pair of metadata.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
    }

    /// Writes Parquet (zstd), the same bytes for the same table.
    ///
    /// # Errors
    /// Where columns differ in length or the file cannot be written.
    pub fn write_parquet(&self, path: &Path) -> Result<(), DataError> {
        let bytes = self.to_parquet(path)?;
        fs::write(path, bytes).map_err(DataError::write(path))
    }

    /// The bytes of [`Self::write_parquet`]; `path` is for messages.
    ///
    /// # Errors
    /// Where columns differ in length.
    pub fn to_parquet(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        let batch = self.batch(path)?;
        let write = || {
            let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties(&self.metadata)))?;
            if !self.columns.is_empty() {
                writer.write(&batch)?;
            }
            writer.into_inner()
        };
        write().map_err(DataError::parquet(path))
    }

    /// The rows as Arrow holds them; `path` is for messages.
    pub(super) fn batch(&self, path: &Path) -> Result<RecordBatch, DataError> {
        self.check(path)?;
        let arrays: Vec<ArrayRef> = self.columns.iter().map(|column| column.values.array()).collect();
        let rows = RecordBatchOptions::new().with_row_count(Some(self.rows()));
        RecordBatch::try_new_with_options(self.schema(), arrays, &rows)
            .map_err(|error| DataError::parquet(path)(error.into()))
    }

    fn schema(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(&column.name, column.values.data_type(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

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
        let mut table = Self::default();
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            let values = Values::from_array(array).ok_or_else(|| DataError::ColumnType {
                path: path.to_owned(),
                column: field.name().clone(),
                expected: "a number, a text or a boolean".to_owned(),
                found: array.data_type().to_string(),
            })?;
            table.columns.push(Column::new(field.name(), values));
        }
        table.metadata = pairs;
        Ok(table)
    }

    /// Metadata of a Parquet file, without its rows.
    ///
    /// # Errors
    /// Where the file cannot be read or is not Parquet.
    pub fn read_metadata(path: &Path) -> Result<BTreeMap<String, String>, DataError> {
        let file = fs::File::open(path).map_err(DataError::read(path))?;
        decode(path, || Ok(pairs(ParquetRecordBatchReaderBuilder::try_new(file)?.metadata())))
    }

    /// Writes comma-separated values with a header; missing values are empty, metadata is left out.
    ///
    /// # Errors
    /// Where columns differ in length or `out` (named `path` in messages) does not take more.
    pub fn write_csv(&self, path: &Path, mut out: impl Write) -> Result<(), DataError> {
        let mut header = csv::Writer::from_writer(&mut out);
        let failed = |error: csv::Error| DataError::Write { path: path.to_owned(), source: error.into() };
        header.write_record(self.columns.iter().map(|column| &column.name)).map_err(failed)?;
        header.flush().map_err(DataError::write(path))?;
        drop(header);
        self.write_csv_rows(path, out)
    }

    /// As [`Self::write_csv`] without the header.
    ///
    /// # Errors
    /// As [`Self::write_csv`].
    pub fn write_csv_rows(&self, path: &Path, out: impl Write) -> Result<(), DataError> {
        self.check(path)?;
        let mut writer = csv::Writer::from_writer(out);
        let failed = |error: csv::Error| DataError::Write { path: path.to_owned(), source: error.into() };
        let mut text = String::new();
        for row in 0..self.rows() {
            for column in &self.columns {
                text.clear();
                column.values.write_csv(row, &mut text);
                writer.write_field(&text).map_err(failed)?;
            }
            writer.write_record(None::<&[u8]>).map_err(failed)?;
        }
        writer.flush().map_err(DataError::write(path))
    }

    fn check(&self, path: &Path) -> Result<(), DataError> {
        let expected = self.rows();
        match self.columns.iter().find(|column| column.values.len() != expected) {
            None => Ok(()),
            Some(column) => Err(DataError::Ragged {
                path: path.to_owned(),
                column: column.name.clone(),
                expected,
                found: column.values.len(),
            }),
        }
    }
}
