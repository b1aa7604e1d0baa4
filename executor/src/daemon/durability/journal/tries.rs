//! First tries of submissions that carry an idempotency key: a second try returns the job of the first one.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::{Journal, JournalError};

/// Table of the tries.
pub(super) const SETUP: &str = "CREATE TABLE IF NOT EXISTS tries (
    who TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, submit_ms INTEGER NOT NULL, job TEXT,
    at_ms INTEGER NOT NULL, PRIMARY KEY (who, key)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS tries_age ON tries(at_ms);";

const PUT: &str = "INSERT OR REPLACE INTO tries (who, key, digest, submit_ms, job, at_ms) VALUES (?, ?, ?, ?, ?, ?)";

/// Time for which a key is remembered, milliseconds.
pub const REMEMBERED_MS: i64 = 7 * 24 * 3_600_000;

/// First try of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// First try with its caller and its idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedTry {
    /// Name of the caller's token.
    pub who: String,
    /// Key that the caller gave; all tries of one submission have it.
    pub key: String,
    /// Digest, time and job of the submission.
    pub first: FirstTry,
}

fn keyed(row: &rusqlite::Row<'_>) -> rusqlite::Result<KeyedTry> {
    let first = FirstTry { digest: row.get(2)?, submit_ms: row.get(3)?, job: row.get(4)?, at_ms: row.get(5)? };
    Ok(KeyedTry { who: row.get(0)?, key: row.get(1)?, first })
}

impl Journal {
    /// Tries of all callers that are remembered.
    ///
    /// # Errors
    /// [`JournalError::Database`] where they cannot be read.
    pub fn tries(&self) -> Result<Vec<KeyedTry>, JournalError> {
        let fault = self.fault("read idempotency keys");
        let sql = "SELECT who, key, digest, submit_ms, job, at_ms FROM tries";
        let mut query = self.database.prepare_cached(sql).map_err(&fault)?;
        query.query_map([], keyed).and_then(Iterator::collect).map_err(&fault)
    }

    /// Has `tries` in the place of all that there are.
    ///
    /// # Errors
    /// [`JournalError::Database`] where they cannot be written; those from before stay then.
    pub fn replace_tries(&mut self, tries: &[KeyedTry]) -> Result<(), JournalError> {
        let fault = self.fault("write idempotency keys down");
        let change = self.database.transaction().map_err(&fault)?;
        change.execute("DELETE FROM tries", []).map_err(&fault)?;
        for KeyedTry { who, key, first } in tries {
            let row = params![who, key, first.digest, first.submit_ms, first.job, first.at_ms];
            change.execute(PUT, row).map_err(&fault)?;
        }
        change.commit().map_err(&fault)
    }

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
        let row = params![who, key, first.digest, first.submit_ms, first.job, first.at_ms];
        change.execute(PUT, row).map_err(&fault)?;
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

    /// The try of which the job of a time of submission came; `None` where it was handed in without a key.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn try_of(&self, submit_ms: i64) -> Result<Option<KeyedTry>, JournalError> {
        let sql = "SELECT who, key, digest, submit_ms, job, at_ms FROM tries WHERE submit_ms = ?";
        self.database.query_row(sql, [submit_ms], keyed).optional().map_err(self.fault("read an idempotency key"))
    }
}
