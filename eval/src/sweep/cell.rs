//! Cell: the file of a finished run.
//!
//! It is a Parquet file with a row per job, as in `jobs.parquet`. Its metadata hold the head of the run, the picture
//! that figures show, and the rows of the run in the other tables as small Parquet files in base64.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use goodput_datasets::store::Table;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::SweepError;
use crate::report::rows::{RunRows, SideTable};
use crate::run::RunHead;

/// Key of the metadata with the head of the run.
const HEAD: &str = "goodput.head";

/// Key of the metadata with the picture of the run.
const PICTURE: &str = "goodput.picture";

/// A finished run, as its file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedCell {
    /// Part of the run that statistics take.
    pub head: RunHead,
    /// Part of the run that tables and figures take.
    pub rows: RunRows,
}

impl FinishedCell {
    /// Bytes of the file; `path` is for messages.
    pub(super) fn to_bytes(&self, path: &Path) -> Result<Vec<u8>, SweepError> {
        let mut table = self.rows.jobs.clone().with(HEAD, json(path, &self.head)?);
        if let Some(picture) = &self.rows.picture {
            table = table.with(PICTURE, json(path, picture)?);
        }
        let sides = SideTable::ALL.into_iter().zip(&self.rows.sides).filter(|(_, rows)| !rows.columns.is_empty());
        for (side, rows) in sides {
            table = table.with(key(side), STANDARD.encode(rows.to_parquet(path)?));
        }
        Ok(table.to_parquet(path)?)
    }

    /// Reads the head alone.
    pub(super) fn read_head(path: &Path) -> Result<RunHead, SweepError> {
        parsed(path, HEAD, Table::read_metadata(path)?.get(HEAD))
    }

    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, SweepError> {
        let mut jobs = Table::read_parquet(path)?;
        let metadata = std::mem::take(&mut jobs.metadata);
        let side = |side: SideTable| -> Result<Table, SweepError> {
            let text = match metadata.get(&key(side)) {
                Some(text) => text.as_str(),
                // Only runs with language models have this table.
                None if side == SideTable::Services => return Ok(Table::new(Vec::new())),
                None => "",
            };
            let bytes = STANDARD.decode(text).map_err(|error| damaged(path, &error.to_string()))?;
            Ok(Table::from_parquet(path, bytes)?)
        };
        let [tenants, events, timeseries, usage, services] = SideTable::ALL;
        let sides = [side(tenants)?, side(events)?, side(timeseries)?, side(usage)?, side(services)?];
        let picture = metadata.get(PICTURE).map(|text| parsed(path, PICTURE, Some(text))).transpose()?;
        Ok(Self { head: parsed(path, HEAD, metadata.get(HEAD))?, rows: RunRows { jobs, sides, picture } })
    }
}

fn key(side: SideTable) -> String {
    format!("goodput.{}", side.name())
}

fn json(path: &Path, value: &impl Serialize) -> Result<String, SweepError> {
    serde_json::to_string(value).map_err(|error| damaged(path, &error.to_string()))
}

fn parsed<T: DeserializeOwned>(path: &Path, key: &str, text: Option<&String>) -> Result<T, SweepError> {
    let text = text.ok_or_else(|| damaged(path, &format!("its metadata lack {key}")))?;
    serde_json::from_str(text).map_err(|error| damaged(path, &format!("{key}: {error}")))
}

fn damaged(path: &Path, problem: &str) -> SweepError {
    SweepError::Damaged { path: path.to_owned(), problem: problem.to_owned() }
}
