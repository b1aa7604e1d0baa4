//! Provenance of a table, kept in its metadata.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::table::Table;
use crate::import::ImportReport;

/// Origin of a table; written as metadata `goodput.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataProvenance {
    /// File or generator it was made from.
    pub source: String,
    /// SHA-256 of the source's bytes, hexadecimal; empty for a generator.
    pub sha256: String,
    /// Licence of the data, where known.
    pub licence: String,
    /// Importer or generator and its version.
    pub importer: String,
    /// Rows kept, repaired and refused.
    pub rows: [u64; 3],
    /// Assumption about jobs of unknown applications; empty where there is none.
    pub assumption: String,
}

impl DataProvenance {
    /// Provenance of a table imported from the file `source` by the importer of `format`; `sha256` is of the file.
    pub fn imported(source: &Path, sha256: String, format: &str, licence: &str, report: &ImportReport) -> Self {
        Self {
            source: source.display().to_string(),
            sha256,
            licence: licence.to_owned(),
            importer: format!("{format} {}", env!("CARGO_PKG_VERSION")),
            rows: [report.kept, report.repaired.count, report.refused.count],
            assumption: String::new(),
        }
    }

    /// Provenance of a table made by `generator`; `description` gives, for example, its settings
    /// and seed.
    pub fn generated(generator: &str, description: &str, rows: u64) -> Self {
        Self {
            source: description.to_owned(),
            importer: format!("{generator} {}", env!("CARGO_PKG_VERSION")),
            rows: [rows, 0, 0],
            ..Self::default()
        }
    }

    /// Provenance of a table that rests on an assumption.
    #[must_use]
    pub fn assuming(self, assumption: String) -> Self {
        Self { assumption, ..self }
    }

    /// The table with this provenance in its metadata; unknown parts are left out.
    #[must_use]
    pub fn on(&self, mut table: Table) -> Table {
        let [kept, repaired, refused] = self.rows.map(|count| count.to_string());
        let pairs = [
            ("source", &self.source),
            ("sha256", &self.sha256),
            ("licence", &self.licence),
            ("importer", &self.importer),
            ("rows_kept", &kept),
            ("rows_repaired", &repaired),
            ("rows_refused", &refused),
            ("assumption", &self.assumption),
        ];
        for (key, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
            table.metadata.insert(format!("goodput.{key}"), value.clone());
        }
        table
    }

    /// The provenance in a table's metadata; empty where there is none.
    pub fn of(table: &Table) -> Self {
        let get = |key: &str| table.metadata.get(&format!("goodput.{key}")).cloned().unwrap_or_default();
        let count = |key: &str| get(key).parse().unwrap_or(0);
        Self {
            source: get("source"),
            sha256: get("sha256"),
            licence: get("licence"),
            importer: get("importer"),
            rows: [count("rows_kept"), count("rows_repaired"), count("rows_refused")],
            assumption: get("assumption"),
        }
    }
}

/// SHA-256 of some bytes, hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// SHA-256 of what `source` gives, hexadecimal.
pub(crate) fn sha256_of(source: impl Read) -> io::Result<String> {
    let (mut source, mut digest) = (BufReader::with_capacity(1 << 20, source), Sha256::new());
    loop {
        let piece = source.fill_buf()?;
        if piece.is_empty() {
            return Ok(hexadecimal(&digest.finalize()));
        }
        digest.update(piece);
        let used = piece.len();
        source.consume(used);
    }
}

/// Bytes in hexadecimal digits.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
