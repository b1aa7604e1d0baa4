//! First tries of submissions that carry an idempotency key: a second try returns the job of the first one.

use rusqlite::{OptionalExtension, params};

use super::{Journal, JournalError};

/// Table of the tries.
pub(super) const SETUP: &str = "CREATE TABLE IF NOT EXISTS tries (
    who TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, submit_ms INTEGER NOT NULL, job TEXT,
    at_ms INTEGER NOT NULL, PRIMARY KEY (who, key)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS tries_age ON tries(at_ms);";

/// Time for which a key is remembered, milliseconds.
const REMEMBERED_MS: i64 = 7 * 24 * 3_600_000;

/// First try of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstTry {
    /// Digest of the submission.
    pub digest: String,
    /// Time of submission, milliseconds of the Unix epoch; it names the job.
    pub submit_ms: i64,
    /// The engine's key of the job; `None` where the try was cut off before the key was known.
    pub job: Option<String>,
    /// Time of the try, milliseconds of the Unix epoch.
    pub at_ms: i64,
}

impl Journal {
    /// First try of the caller `who` under the idempotency key `key`.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn first_try(&self, who: &str, key: &str) -> Result<Option<FirstTry>, JournalError> {
        let sql = "SELECT digest, submit_ms, job, at_ms FROM tries WHERE who = ? AND key = ?";
        let row = |row: &rusqlite::Row<'_>| {
            Ok(FirstTry { digest: row.get(0)?, submit_ms: row.get(1)?, job: row.get(2)?, at_ms: row.get(3)? })
        };
        self.database.query_row(sql, [who, key], row).optional().map_err(self.fault("read an idempotency key"))
    }

    /// Writes a try down, and has it on disk when it returns. Keys of more than a week ago are forgotten.
    ///
    /// # Errors
    /// [`JournalError::Database`]; nothing may be handed in then.
    pub fn keep_try(&mut self, who: &str, key: &str, first: &FirstTry) -> Result<(), JournalError> {
        let fault = self.fault("write an idempotency key down");
        let change = self.database.transaction().map_err(&fault)?;
        change.execute("DELETE FROM tries WHERE at_ms < ?", [first.at_ms - REMEMBERED_MS]).map_err(&fault)?;
        let sql = "INSERT OR REPLACE INTO tries (who, key, digest, submit_ms, job, at_ms) VALUES (?, ?, ?, ?, ?, ?)";
        let row = params![who, key, first.digest, first.submit_ms, first.job, first.at_ms];
        change.execute(sql, row).map_err(&fault)?;
        change.commit().map_err(&fault)
    }

    /// Forgets a try of which no job came.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be written.
    pub fn forget_try(&mut self, who: &str, key: &str) -> Result<(), JournalError> {
        let forgotten = self.database.execute("DELETE FROM tries WHERE who = ? AND key = ?", [who, key]);
        forgotten.map_err(self.fault("forget an idempotency key")).map(|_| ())
    }

    /// Gives the job of a time of submission, which was handed in again, its new key.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be written.
    pub fn rename_try(&mut self, submit_ms: i64, job: &str) -> Result<(), JournalError> {
        let renamed = self.database.execute("UPDATE tries SET job = ? WHERE submit_ms = ?", params![job, submit_ms]);
        renamed.map_err(self.fault("rename the job of an idempotency key")).map(|_| ())
    }
}
