//! Submissions that were acknowledged to their users while the engine may yet forget them.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::{Journal, JournalError};
use crate::engine::Submission;

/// A job that its user was told is handed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcknowledgedSubmission {
    /// Submission; its time of submission names it for good.
    pub job: Submission,
    /// The engine's key.
    pub key: String,
    /// Time of the engine's acknowledgement, milliseconds of the Unix epoch.
    pub acked_ms: i64,
}

impl AcknowledgedSubmission {
    /// Time of submission, milliseconds of the Unix epoch: no two promises have the same.
    pub fn submit_ms(&self) -> i64 {
        self.job.spec.request.submit.as_millis()
    }
}

impl Journal {
    /// Writes a promise, or its new key, and has it on disk when it returns.
    ///
    /// # Errors
    /// [`JournalError`]; nothing was promised then.
    pub fn promise(&mut self, promise: &AcknowledgedSubmission) -> Result<(), JournalError> {
        let id = format!("submission {}", promise.key);
        let body = serde_json::to_string(&promise.job);
        let body = body.map_err(|source| JournalError::Damaged { path: self.path.clone(), id, source })?;
        let sql = "INSERT OR REPLACE INTO promises (submit_ms, key, acked_ms, body) VALUES (?, ?, ?, ?)";
        let row = params![promise.submit_ms(), promise.key, promise.acked_ms, body];
        self.database.execute(sql, row).map_err(self.fault("write down a submission")).map(|_| ())
    }

    /// The promises that are kept in mind, oldest first, and the keys of jobs of which the promise is damaged.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn promises(&self) -> Result<(Vec<AcknowledgedSubmission>, Vec<String>), JournalError> {
        let fault = self.fault("read submissions");
        let sql = "SELECT key, acked_ms, body FROM promises ORDER BY submit_ms";
        let mut query = self.database.prepare_cached(sql).map_err(&fault)?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?));
        let rows: Vec<(String, i64, String)> = query.query_map([], row).and_then(Iterator::collect).map_err(&fault)?;
        let (mut promises, mut damaged) = (Vec::new(), Vec::new());
        for (key, acked_ms, body) in rows {
            match serde_json::from_str(&body) {
                Ok(job) => promises.push(AcknowledgedSubmission { job, key, acked_ms }),
                Err(_) => damaged.push(key),
            }
        }
        Ok((promises, damaged))
    }

    /// Forgets promises: the engine no longer can.
    ///
    /// # Errors
    /// [`JournalError::Database`]; they are settled again later.
    pub fn settle(&mut self, submitted_ms: &[i64]) -> Result<(), JournalError> {
        for submit_ms in submitted_ms {
            let settled = self.database.execute("DELETE FROM promises WHERE submit_ms = ?", [submit_ms]);
            settled.map_err(self.fault("settle a submission"))?;
        }
        Ok(())
    }
}
