//! A table of named columns, and the table as CSV.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray, TimestampMillisecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMillisecondType};

use super::choice::TextChoice;
use crate::error::DataError;

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
    /// Moments, milliseconds since 1970, UTC without a zone.
    Moments(Vec<Option<i64>>),
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
            Self::Moments(values) => values.len(),
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
            Self::Moments(_) => "moments",
        }
    }

    fn rows_of(&self, rows: &[usize]) -> Self {
        match self {
            Self::Int64(values) => Self::Int64(rows.iter().map(|&row| values[row]).collect()),
            Self::Float64(values) => Self::Float64(rows.iter().map(|&row| values[row]).collect()),
            Self::Utf8(values) => Self::Utf8(rows.iter().map(|&row| values[row].clone()).collect()),
            Self::TextChoice(choice) => Self::TextChoice(choice.rows_of(rows)),
            Self::Boolean(values) => Self::Boolean(rows.iter().map(|&row| values[row]).collect()),
            Self::Moments(values) => Self::Moments(rows.iter().map(|&row| values[row]).collect()),
        }
    }

    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Int64(_) => DataType::Int64,
            Self::Float64(_) => DataType::Float64,
            Self::Utf8(_) => DataType::Utf8,
            Self::TextChoice(_) => TextChoice::data_type(),
            Self::Boolean(_) => DataType::Boolean,
            Self::Moments(_) => DataType::Timestamp(TimeUnit::Millisecond, None),
        }
    }

    pub(super) fn array(&self) -> ArrayRef {
        match self {
            Self::Int64(values) => Arc::new(values.iter().copied().collect::<Int64Array>()),
            Self::Float64(values) => Arc::new(values.iter().copied().collect::<Float64Array>()),
            Self::Utf8(values) => Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>()),
            Self::TextChoice(choice) => choice.array(),
            Self::Boolean(values) => Arc::new(values.iter().copied().collect::<BooleanArray>()),
            Self::Moments(values) => Arc::new(values.iter().copied().collect::<TimestampMillisecondArray>()),
        }
    }

    /// From an array of a type that fits losslessly into one of ours; `None` for others.
    pub(super) fn from_array(array: &dyn Array) -> Option<Self> {
        let target = match array.data_type() {
            DataType::Boolean => DataType::Boolean,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
            DataType::Dictionary(..) => return TextChoice::from_array(array).map(Self::TextChoice),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
                DataType::Timestamp(TimeUnit::Millisecond, None)
            }
            kind if kind.is_integer() && *kind != DataType::UInt64 => DataType::Int64,
            _ => return None,
        };
        let array = cast(array, &target).ok()?;
        Some(match target {
            DataType::Boolean => Self::Boolean(array.as_boolean().iter().collect()),
            DataType::Float64 => Self::Float64(array.as_primitive::<Float64Type>().iter().collect()),
            DataType::Int64 => Self::Int64(array.as_primitive::<Int64Type>().iter().collect()),
            DataType::Timestamp(..) => Self::Moments(array.as_primitive::<TimestampMillisecondType>().iter().collect()),
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
            Self::Moments(values) => values[row].map(|value| write!(out, "{}", date_text(value))),
        };
    }
}

/// A moment as `2014-07-01 00:30:00`, with thousandths of a second where there are some.
fn date_text(epoch_millis: i64) -> String {
    let date = jiff::Timestamp::from_millisecond(epoch_millis);
    date.map_or_else(|_| epoch_millis.to_string(), |date| date.to_zoned(jiff::tz::TimeZone::UTC).datetime().to_string())
        .replace('T', " ")
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

    /// The rows with these numbers, in this order, each below the number of rows.
    #[must_use]
    pub fn rows_of(&self, rows: &[usize]) -> Self {
        let column = |column: &Column| Column { name: column.name.clone(), values: column.values.rows_of(rows) };
        Self { columns: self.columns.iter().map(column).collect(), metadata: self.metadata.clone() }
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
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

    pub(super) fn check(&self, path: &Path) -> Result<(), DataError> {
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
