//! Comma-separated rows with exact line numbers.
//!
//! Our formats are one line a row, so lines are split here, as the crate `csv` splits them: its reader does not count
//! the blank lines it skips, and it costs three times as much, which matters for profiles (ten thousand rows before a
//! simulation of milliseconds may start). A reader for each line with a quote took most of the time of an import.

use std::borrow::Cow;
use std::path::Path;

use crate::error::{DataError, RowProblem};

/// Longest excerpt of a file in a message.
const EXCERPT: usize = 60;

/// The rows of a file below its header.
pub(crate) struct CsvRows<'a> {
    rest: &'a [u8],
    header: CsvHeader,
    fields: Vec<Cow<'a, [u8]>>,
}

/// Header of a file and the place below it: what the next rows need where a file is read in pieces.
pub(crate) struct CsvHeader {
    /// Lines that were read.
    line: u64,
    /// Position in the file of each wanted column; `None` for an optional one that is not there.
    columns: Vec<Option<usize>>,
    /// Number of fields.
    width: usize,
    /// Byte between two fields.
    delimiter: u8,
}

/// One row; values by position in the wanted columns.
pub(crate) struct CsvRow<'r, 'a> {
    /// Line in the file, from 1.
    pub(crate) line: u64,
    names: &'static [&'static str],
    columns: &'r [Option<usize>],
    fields: &'r [Cow<'a, [u8]>],
}

impl<'a> CsvRows<'a> {
    /// Reads the header and finds `wanted` columns in any order among others.
    pub(crate) fn new(path: &Path, text: &'a [u8], wanted: &[&str]) -> Result<Self, DataError> {
        Self::begin(path, text, wanted, wanted.len(), b',')
    }

    /// As [`Self::new`], with fields between `delimiter`. Of the `wanted` columns the first `required` must be there.
    pub(crate) fn begin(
        path: &Path,
        text: &'a [u8],
        wanted: &[&str],
        required: usize,
        delimiter: u8,
    ) -> Result<Self, DataError> {
        let mut rows = Self::below(CsvHeader { line: 0, columns: Vec::new(), width: 0, delimiter }, without_mark(text));
        if !rows.advance() {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        let header: Vec<&[u8]> = rows.fields.iter().map(|field| field.trim_ascii()).collect();
        for (index, &column) in wanted.iter().enumerate() {
            match header.iter().position(|found| *found == column.as_bytes()) {
                None if index >= required => rows.header.columns.push(None),
                position @ Some(_) => rows.header.columns.push(position),
                None => {
                    let found = header.iter().map(|name| excerpt(name)).collect::<Vec<_>>().join(", ");
                    return Err(DataError::MissingColumn { path: path.to_owned(), column: column.to_owned(), found });
                }
            }
        }
        rows.header.width = header.len();
        Ok(rows)
    }

    /// The rows of the next piece of a file.
    pub(crate) fn below(header: CsvHeader, text: &'a [u8]) -> Self {
        Self { rest: text, header, fields: Vec::new() }
    }

    /// Header for the rows of the next piece.
    pub(crate) fn into_header(self) -> CsvHeader {
        self.header
    }

    /// The next row that is not blank; an error names its line. Call with the columns given at the
    /// start.
    pub(crate) fn next(
        &mut self,
        wanted: &'static [&'static str],
    ) -> Option<Result<CsvRow<'_, 'a>, (u64, RowProblem)>> {
        if !self.advance() {
            return None;
        }
        let CsvHeader { line, columns, width, .. } = &self.header;
        if self.fields.len() != *width {
            return Some(Err((*line, RowProblem::Fields { found: self.fields.len(), expected: *width })));
        }
        Some(Ok(CsvRow { line: *line, names: wanted, columns, fields: &self.fields }))
    }

    /// Splits the next line that is not blank; `false` at the end.
    fn advance(&mut self) -> bool {
        while !self.rest.is_empty() {
            let end = self.rest.iter().position(|&byte| byte == b'\n').unwrap_or(self.rest.len());
            let (line, rest) = (&self.rest[..end], self.rest.get(end + 1..).unwrap_or_default());
            self.rest = rest;
            self.header.line += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            split(line, self.header.delimiter, &mut self.fields);
            return true;
        }
        false
    }
}

impl<'r, 'a> CsvRow<'r, 'a> {
    /// A row of values that were made from another one; `columns` are their positions by name.
    pub(crate) fn of(
        line: u64,
        names: &'static [&'static str],
        columns: &'r [Option<usize>],
        fields: &'r [Cow<'a, [u8]>],
    ) -> Self {
        Self { line, names, columns, fields }
    }
}

impl CsvRow<'_, '_> {
    /// The value of wanted column `index` without surrounding blanks; empty where the column is not there.
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        self.columns[index].map_or(b"", |column| self.fields[column].trim_ascii())
    }

    /// A non-empty text.
    pub(crate) fn text(&self, index: usize) -> Result<&str, RowProblem> {
        match std::str::from_utf8(self.bytes(index)) {
            Ok(text) if !text.is_empty() => Ok(text),
            _ => Err(self.problem(index, "a name in UTF-8")),
        }
    }

    /// A finite number.
    pub(crate) fn float(&self, index: usize, expected: &'static str) -> Result<f64, RowProblem> {
        let value = std::str::from_utf8(self.bytes(index)).ok().and_then(|text| text.parse::<f64>().ok());
        value.filter(|value| value.is_finite()).ok_or_else(|| self.problem(index, expected))
    }

    /// A finite number of at least `least` and below 1e12 (thirty thousand years in seconds).
    pub(crate) fn at_least(&self, index: usize, least: f64, expected: &'static str) -> Result<f64, RowProblem> {
        let value = self.float(index, expected)?;
        if (least..1e12).contains(&value) { Ok(value) } else { Err(self.problem(index, expected)) }
    }

    /// A whole number of at least 1, also as pandas writes it: `20.0`.
    pub(crate) fn count(&self, index: usize) -> Result<u32, RowProblem> {
        let text = std::str::from_utf8(self.bytes(index)).ok();
        let value = text.and_then(|text| text.strip_suffix(".0").unwrap_or(text).parse::<u32>().ok());
        value.filter(|&value| value > 0).ok_or_else(|| self.problem(index, "a whole number of at least 1"))
    }

    /// The complaint about a value.
    pub(crate) fn problem(&self, index: usize, expected: &'static str) -> RowProblem {
        // A table of many like columns names the last one only.
        let column = self.names.get(index).or(self.names.last()).copied().unwrap_or_default();
        RowProblem::Value { column, value: excerpt(self.bytes(index)), expected }
    }
}

/// The first line, shortened, and whether it has all `wanted` columns.
pub(crate) fn header_has(text: &[u8], wanted: &[&str]) -> bool {
    let mut fields = Vec::new();
    split(first_line(text), b',', &mut fields);
    wanted.iter().all(|column| fields.iter().any(|field| field.trim_ascii() == column.as_bytes()))
}

/// The first line.
pub(crate) fn first_line(text: &[u8]) -> &[u8] {
    without_mark(text)
        .split(|&byte| byte == b'\n')
        .find(|line| !line.trim_ascii().is_empty())
        .unwrap_or_default()
        .trim_ascii()
}

/// Printable start of some bytes.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut short: String = text.chars().take(EXCERPT).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(EXCERPT).is_some() {
        short.push('…');
    }
    short
}

/// Without a byte order mark.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Splits a line into its fields.
pub(crate) fn split<'a>(line: &'a [u8], delimiter: u8, fields: &mut Vec<Cow<'a, [u8]>>) {
    fields.clear();
    if !line.contains(&b'"') {
        fields.extend(line.split(|&byte| byte == delimiter).map(Cow::Borrowed));
        return;
    }
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (field, after) = match text.strip_prefix(b"\"") {
            Some(text) => quoted(text, delimiter),
            None => unquoted(text, delimiter),
        };
        fields.push(field);
        rest = after;
    }
}

/// A field that does not begin with a quote, and the text behind the delimiter after it; `None` at the end of the line.
fn unquoted(text: &[u8], delimiter: u8) -> (Cow<'_, [u8]>, Option<&[u8]>) {
    let end = text.iter().position(|&byte| byte == delimiter).unwrap_or(text.len());
    (Cow::Borrowed(&text[..end]), text.get(end + 1..))
}

/// As [`unquoted`], of a field that begins with a quote, from the byte behind it (RFC 4180): the field ends at the
/// next quote that stands alone, and two quotes are one of its bytes. Bytes between the closing quote and the
/// delimiter count as part of the field, as the crate `csv` has it.
fn quoted(mut text: &[u8], delimiter: u8) -> (Cow<'_, [u8]>, Option<&[u8]>) {
    let mut field = Cow::Borrowed(&text[..0]);
    while let Some(quote) = text.iter().position(|&byte| byte == b'"') {
        append(&mut field, &text[..quote]);
        text = &text[quote + 1..];
        match text.first() {
            Some(b'"') => {
                append(&mut field, &text[..1]);
                text = &text[1..];
            }
            _ => {
                let (more, after) = unquoted(text, delimiter);
                if !more.is_empty() {
                    field.to_mut().extend_from_slice(&more);
                }
                return (field, after);
            }
        }
    }
    append(&mut field, text);
    (field, None)
}

/// Adds bytes of the line to a field, which is a copy only where it has more than one piece.
fn append<'a>(field: &mut Cow<'a, [u8]>, more: &'a [u8]) {
    if field.is_empty() {
        *field = Cow::Borrowed(more);
    } else if !more.is_empty() {
        field.to_mut().extend_from_slice(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[&str] = &["b", "a"];

    fn all(text: &str) -> Vec<Result<(u64, String, String), u64>> {
        let mut rows = CsvRows::new(Path::new("t"), text.as_bytes(), COLUMNS).unwrap();
        let mut out = Vec::new();
        while let Some(row) = rows.next(COLUMNS) {
            out.push(match row {
                Ok(row) => Ok((row.line, row.text(0).unwrap().to_owned(), row.text(1).unwrap().to_owned())),
                Err((line, _)) => Err(line),
            });
        }
        out
    }

    #[test]
    fn blank_lines_quotes_and_marks_keep_line_numbers_right() {
        let ok = |line, b: &str, a: &str| Ok((line, b.to_owned(), a.to_owned()));
        let found = all("\u{feff}a,b,c\r\n1, 2 ,3\r\n\r\n\n\"x,\"\"y\"\"\",5,6\n7,8\n9,10,11");
        assert_eq!(found, [ok(2, "2", "1"), ok(5, "5", "x,\"y\""), Err(6), ok(7, "10", "9")]);
    }

    /// Fields of a line by the crate `csv`.
    fn by_the_crate(line: &[u8]) -> Vec<Vec<u8>> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
        let mut record = csv::ByteRecord::new();
        assert!(reader.read_byte_record(&mut record).unwrap());
        record.iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn every_line_of_up_to_eight_bytes_is_split_as_by_the_crate_csv() {
        let mut lines = vec![Vec::new()];
        for _ in 0..8 {
            lines = lines.iter().flat_map(|line| b"a\",".map(|byte| [line.as_slice(), &[byte]].concat())).collect();
            let mut fields = Vec::new();
            for line in &lines {
                split(line, b',', &mut fields);
                let found: Vec<Vec<u8>> = fields.iter().map(|field| field.to_vec()).collect();
                assert_eq!(found, by_the_crate(line), "{}", String::from_utf8_lossy(line));
            }
        }
        assert_eq!(lines.len(), 3_usize.pow(8));
    }

    #[test]
    fn a_missing_column_is_named() {
        let error = CsvRows::new(Path::new("t"), b"a,c\n1,2", COLUMNS).err().unwrap();
        assert_eq!(error.to_string(), "t:1: column `b` is missing; found a, c");
    }
}
