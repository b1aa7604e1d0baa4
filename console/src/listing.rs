//! Listings on standard output: a table for people, csv and JSON for programs.

use std::cmp::Ordering;
use std::io::{self, Write};

use crate::aligned::AlignedTable;
use crate::markdown::{code, inline, table};
use crate::{CommandError, OutputFormat, written};

/// Named columns and their rows.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    columns: Vec<&'static str>,
    /// Columns of a table that is not wide; empty for all columns.
    brief: Vec<&'static str>,
    /// Headings in tables of columns that have another one there than in csv and JSON.
    headings: Vec<(&'static str, &'static str)>,
    rows: Vec<Vec<Cell>>,
}

/// Value in one column of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text as it is shown.
    Text(String),
    /// Number, shown with at most this many decimals.
    Number(f64, usize),
    /// Whole number, shown with all digits.
    Whole(i64),
    /// Unknown value: an empty cell, or null in JSON.
    Missing,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Cell {
    /// Cell of a value, or a missing one.
    pub fn option<T>(value: Option<T>, cell: impl Fn(T) -> Self) -> Self {
        value.map_or(Self::Missing, cell)
    }

    /// Cell as it is shown.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Whole(value) => value.to_string(),
            Self::Missing => String::new(),
            Self::Number(value, decimals) => {
                let text = format!("{value:.decimals$}");
                let text = match text.contains('.') {
                    true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                    false => text,
                };
                if text == "-0" { "0".into() } else { text }
            }
        }
    }

    /// Order of two cells of a column: numbers by value, text by letters, unknown values last.
    pub fn order(&self, other: &Self) -> Ordering {
        let number = |cell: &Self| match cell {
            Self::Number(value, _) => Some(*value),
            Self::Whole(value) => Some(*value as f64),
            Self::Text(_) | Self::Missing => None,
        };
        match (number(self), number(other)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => (*self == Self::Missing, self.text()).cmp(&(*other == Self::Missing, other.text())),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Whole(value) => (*value).into(),
            Self::Number(..) => self.text().parse::<f64>().map_or(serde_json::Value::Null, Into::into),
            Self::Missing => serde_json::Value::Null,
        }
    }
}

impl Listing {
    /// Listing with these columns and no rows.
    pub fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), ..Self::default() }
    }

    /// Listing with a short table: these columns alone, unless the user asks for a wide table.
    #[must_use]
    pub fn brief(mut self, columns: &[&'static str]) -> Self {
        self.brief = columns.to_vec();
        self
    }

    /// Listing with another `heading` above a column of its tables. csv and JSON keep the name of the column.
    #[must_use]
    pub fn headed(mut self, column: &'static str, heading: &'static str) -> Self {
        self.headings.push((column, heading));
        self
    }

    fn heading(&self, at: usize) -> &'static str {
        let column = self.columns[at];
        self.headings.iter().find(|(of, _)| *of == column).map_or(column, |(_, heading)| heading)
    }

    /// Adds a row, which has one cell for each column.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Prints the listing to standard output.
    ///
    /// # Errors
    /// A write that fails, other than by a closed pipe.
    pub fn print(&self, format: OutputFormat) -> Result<(), CommandError> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let done = match format {
            OutputFormat::Table => self.table(&self.positions(&self.brief), &mut out),
            OutputFormat::Wide => self.table(&self.positions(&[]), &mut out),
            OutputFormat::Json => self.json(&mut out),
            OutputFormat::Csv => self.csv(&mut out),
        };
        written(done.and_then(|()| out.flush()))
    }

    /// Markdown table of these columns, or of all where none are named. A row that repeats the row
    /// above it is left out.
    pub fn markdown(&self, columns: &[&str]) -> String {
        let shown = self.positions(columns);
        let cell = |at: usize, cell: &Cell| match cell {
            // The first column is the name that is typed.
            Cell::Text(text) if at == 0 => code(text),
            cell => inline(&cell.text()),
        };
        let rows = self.rows.iter().map(|row| shown.iter().map(|&at| cell(at, &row[at])).collect::<Vec<_>>());
        let mut rows: Vec<_> = rows.collect();
        rows.dedup();
        let names: Vec<&str> = shown.iter().map(|&at| self.columns[at]).collect();
        table(&names, &rows)
    }

    /// Positions of the named columns, or of all columns where none are named.
    fn positions(&self, names: &[&str]) -> Vec<usize> {
        match names {
            [] => (0..self.columns.len()).collect(),
            names => names.iter().filter_map(|name| self.columns.iter().position(|column| column == name)).collect(),
        }
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[&'static str] {
        &self.columns
    }

    /// Rows, each with one cell for each column.
    pub fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// Whether the listing has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    fn table(&self, shown: &[usize], out: &mut impl Write) -> io::Result<()> {
        // A column in which no row has a value says nothing.
        let says = |at: usize| self.rows.is_empty() || self.rows.iter().any(|row| !row[at].text().is_empty());
        let shown: Vec<usize> = shown.iter().copied().filter(|&at| says(at)).collect();
        let numeric = |at: usize| self.rows.iter().any(|row| matches!(row[at], Cell::Number(..) | Cell::Whole(_)));
        let table = AlignedTable {
            names: shown.iter().map(|&at| self.heading(at)).collect(),
            numeric: shown.iter().map(|&at| numeric(at)).collect(),
            rows: self.rows.iter().map(|row| shown.iter().map(|&at| row[at].text()).collect()).collect(),
        };
        let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        for line in table.lines(terminal) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let object = |row: &Vec<Cell>| -> serde_json::Value {
            let pairs = self.columns.iter().zip(row);
            pairs.map(|(column, cell)| ((*column).to_string(), cell.json())).collect::<serde_json::Map<_, _>>().into()
        };
        let rows: Vec<_> = self.rows.iter().map(object).collect();
        serde_json::to_writer_pretty(&mut *out, &rows)?;
        writeln!(out)
    }

    fn csv(&self, out: &mut impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(&self.columns).map_err(io_error)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(Cell::text)).map_err(io_error)?;
        }
        writer.flush()
    }
}

/// The error of the writer behind csv, so that a closed pipe is known as one.
fn io_error(error: csv::Error) -> io::Error {
    if !error.is_io_error() {
        return io::Error::other(error);
    }
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        _ => io::ErrorKind::Other.into(),
    }
}
