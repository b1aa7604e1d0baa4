//! Provenance of a table, kept in its metadata.

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
}

impl DataProvenance {
    /// Provenance of a table imported from `bytes` of the file `source` by the importer of
    /// `format`.
    pub fn imported(source: &Path, bytes: &[u8], format: &str, licence: &str, report: &ImportReport) -> Self {
        Self {
            source: source.display().to_string(),
            sha256: sha256(bytes),
            licence: licence.to_owned(),
            importer: format!("{format} {}", env!("CARGO_PKG_VERSION")),
            rows: [report.kept, report.repaired.count, report.refused.count],
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
        }
    }
}

/// SHA-256 of some bytes, hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
