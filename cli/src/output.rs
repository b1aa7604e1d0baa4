//! Rows on stdout: a table for people, csv and JSON for programs.

use std::io::{self, Write};

use crate::args::Format;
use crate::fault::Fault;
use crate::markdown::{code, inline, table};

/// A listing.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number, shown with at most this many decimals.
    Number(f64, usize),
    /// A whole number.
    Whole(i64),
    /// Unknown.
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
    /// Missing where there is nothing.
    pub fn option<T>(value: Option<T>, cell: impl Fn(T) -> Self) -> Self {
        value.map_or(Self::Missing, cell)
    }

    fn text(&self) -> String {
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

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Whole(value) => (*value).into(),
            Self::Number(..) => self.text().parse::<f64>().map_or(serde_json::Value::Null, Into::into),
            Self::Missing => serde_json::Value::Null,
        }
    }
}

impl Rows {
    /// A listing with these columns.
    pub fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Prints it to stdout.
    pub fn print(&self, format: Format) -> Result<(), Fault> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let written = match format {
            Format::Table => self.table(&mut out),
            Format::Json => self.json(&mut out),
            Format::Csv => self.csv(&mut out),
        };
        done(written.and_then(|()| out.flush()))
    }

    /// Markdown table of these columns, or of all where none are named. A row that repeats the row
    /// above it is left out.
    pub fn markdown(&self, columns: &[&str]) -> String {
        let shown: Vec<usize> = match columns {
            [] => (0..self.columns.len()).collect(),
            names => names.iter().filter_map(|name| self.columns.iter().position(|column| column == name)).collect(),
        };
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

    fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(self.columns.iter().map(|column| column.to_uppercase()));
        let numeric = |at: usize| self.rows.iter().any(|row| matches!(row[at], Cell::Number(..) | Cell::Whole(_)));
        for row in &self.rows {
            table.add_row(row.iter().map(Cell::text));
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if numeric(at) {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
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
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(Cell::text))?;
        }
        writer.flush()
    }
}

/// Prints text to stdout.
pub fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    done(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// A reader that went away, as `head` does, is not an error.
fn done(written: io::Result<()>) -> Result<(), Fault> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// A line for the person at the terminal.
pub fn say(text: &str) {
    #[expect(clippy::print_stderr, reason = "messages go to stderr")]
    {
        eprintln!("{text}");
    }
}
