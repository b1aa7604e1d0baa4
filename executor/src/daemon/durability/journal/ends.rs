//! Jobs that were seen to be over while the engine may yet forget it.

use std::collections::BTreeMap;

use rusqlite::params;

use super::{Journal, JournalError};

/// Names a job that is over: numbers are given anew after the engine has forgotten them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobEnd {
    /// Time of submission, milliseconds of the Unix epoch.
    pub submit_ms: i64,
    /// The engine's key.
    pub key: String,
}

impl Journal {
    /// The ends that are kept in mind, and when they were seen, milliseconds of the Unix epoch.
    ///
    /// # Errors
    /// [`JournalError::Database`] where they cannot be read.
    pub fn ends(&self) -> Result<BTreeMap<JobEnd, i64>, JournalError> {
        let fault = self.fault("read ends");
        let mut query = self.database.prepare_cached("SELECT submit_ms, key, seen_ms FROM ends").map_err(&fault)?;
        let row = |row: &rusqlite::Row<'_>| Ok((JobEnd { submit_ms: row.get(0)?, key: row.get(1)? }, row.get(2)?));
        query.query_map([], row).and_then(Iterator::collect).map_err(&fault)
    }

    /// Writes down ends that are `new` and forgets those that are `old`, in one step; it is on disk
    /// when it returns.
    ///
    /// # Errors
    /// [`JournalError::Database`]; nothing has changed then.
    pub fn keep_ends(&mut self, new: &[(JobEnd, i64)], old: &[JobEnd]) -> Result<(), JournalError> {
        if new.is_empty() && old.is_empty() {
            return Ok(());
        }
        let fault = self.fault("write down ends");
        let write = |database: &mut rusqlite::Connection| {
            let transaction = database.transaction()?;
            for (JobEnd { submit_ms, key }, seen_ms) in new {
                let sql = "INSERT OR REPLACE INTO ends (submit_ms, key, seen_ms) VALUES (?, ?, ?)";
                transaction.prepare_cached(sql)?.execute(params![submit_ms, key, seen_ms])?;
            }
            for JobEnd { submit_ms, key } in old {
                let sql = "DELETE FROM ends WHERE submit_ms = ? AND key = ?";
                transaction.prepare_cached(sql)?.execute(params![submit_ms, key])?;
            }
            transaction.commit()
        };
        write(&mut self.database).map_err(fault)
    }
}
