//! First starts of jobs: how long jobs have waited lately.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use super::{Journal, JournalError};

/// Table of the starts.
pub(super) const SETUP: &str = "CREATE TABLE IF NOT EXISTS starts (
    submit_ms INTEGER NOT NULL, key TEXT NOT NULL, start_ms INTEGER NOT NULL, PRIMARY KEY (submit_ms, key)) WITHOUT ROWID;";

/// Starts that are kept.
const KEPT: u32 = 5000;

/// First start of a job. Times are milliseconds of the engine's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStart {
    /// Time of submission.
    pub submit_ms: i64,
    /// The engine's key.
    pub key: String,
    /// Time of the start.
    pub start_ms: i64,
}

impl Journal {
    /// Writes starts down; the first one of a job counts. Of many, the jobs submitted last are kept.
    ///
    /// # Errors
    /// [`JournalError::Database`]; nothing has changed then.
    pub fn keep_starts(&mut self, starts: &[JobStart]) -> Result<(), JournalError> {
        if starts.is_empty() {
            return Ok(());
        }
        let fault = self.fault("write down starts");
        let write = |database: &mut rusqlite::Connection| {
            let transaction = database.transaction()?;
            for JobStart { submit_ms, key, start_ms } in starts {
                let sql = "INSERT OR IGNORE INTO starts (submit_ms, key, start_ms) VALUES (?, ?, ?)";
                transaction.prepare_cached(sql)?.execute(params![submit_ms, key, start_ms])?;
            }
            let sql = "DELETE FROM starts WHERE submit_ms < (SELECT submit_ms FROM starts ORDER BY submit_ms DESC LIMIT 1 OFFSET ?)";
            transaction.prepare_cached(sql)?.execute([KEPT])?;
            transaction.commit()
        };
        write(&mut self.database).map_err(fault)
    }

    /// Times of the first starts in the journal at `path`, read beside the daemon that writes it: by time of submission
    /// and key.
    ///
    /// # Errors
    /// [`JournalError::Database`] where the file cannot be read.
    pub fn starts_at(path: &Path) -> Result<BTreeMap<(i64, String), i64>, JournalError> {
        let read = || -> Result<BTreeMap<(i64, String), i64>, rusqlite::Error> {
            let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let mut query = database.prepare("SELECT submit_ms, key, start_ms FROM starts")?;
            query.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?.collect()
        };
        read().map_err(|source| JournalError::Database { path: path.into(), action: "read starts", source })
    }

    /// Starts of jobs that were submitted from `from_ms` on and before `to_ms`, the latest `most` of them.
    ///
    /// # Errors
    /// [`JournalError::Database`] where they cannot be read.
    pub fn starts(&self, from_ms: i64, to_ms: i64, most: usize) -> Result<Vec<JobStart>, JournalError> {
        let fault = self.fault("read starts");
        let sql = "SELECT submit_ms, key, start_ms FROM starts WHERE submit_ms >= ? AND submit_ms < ? ORDER BY submit_ms DESC LIMIT ?";
        let mut query = self.database.prepare_cached(sql).map_err(&fault)?;
        let row =
            |row: &rusqlite::Row<'_>| Ok(JobStart { submit_ms: row.get(0)?, key: row.get(1)?, start_ms: row.get(2)? });
        query.query_map(params![from_ms, to_ms, most as i64], row).and_then(Iterator::collect).map_err(&fault)
    }
}
