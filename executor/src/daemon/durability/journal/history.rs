//! Jobs that came, and the work of those that have ended: the past that predictions of starts go by.

use std::path::Path;

use goodput_env::job::JobRequest;
use rusqlite::{Connection, OpenFlags, params};
use serde::{Deserialize, Serialize};

use super::{Journal, JournalError};

/// Table of the jobs.
pub(super) const SETUP: &str = "CREATE TABLE IF NOT EXISTS history (
    submit_ms INTEGER NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, ran_secs REAL, PRIMARY KEY (submit_ms, key)) WITHOUT ROWID;";

/// Jobs that are kept.
const KEPT: u32 = 5000;

/// Job that came while a daemon led.
#[derive(Clone, Debug, PartialEq)]
pub struct PastJob {
    /// Time of submission, milliseconds of the engine's clock.
    pub submit_ms: i64,
    /// The engine's key.
    pub key: String,
    /// Request of the job with its tenant.
    pub asked: JobAsked,
    /// Work of the job: seconds of the policy's clock on the accelerators that it asked for. `None` while the job is
    /// not over, and where it never ran.
    pub ran_secs: Option<f64>,
}

/// Request of a job, with the name of its tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobAsked {
    /// Name of the tenant.
    pub tenant: String,
    /// Request of the job. Its limit is the run time that its user stated, where there is one.
    pub request: JobRequest,
}

impl Journal {
    /// Writes down jobs that came and jobs that have ended. Of many that have ended, and of many that have not, those
    /// submitted last are kept.
    ///
    /// # Errors
    /// [`JournalError::Database`]; nothing has changed then.
    pub fn keep_history(&mut self, jobs: &[PastJob]) -> Result<(), JournalError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let fault = self.fault("write down the history of jobs");
        let write = |database: &mut Connection| {
            let transaction = database.transaction()?;
            for PastJob { submit_ms, key, asked, ran_secs } in jobs {
                let body = serde_json::to_string(asked).unwrap_or_default();
                let sql = "INSERT INTO history (submit_ms, key, body, ran_secs) VALUES (?, ?, ?, ?)
                    ON CONFLICT (submit_ms, key) DO UPDATE SET ran_secs = coalesce(excluded.ran_secs, ran_secs)";
                transaction.prepare_cached(sql)?.execute(params![submit_ms, key, body, ran_secs])?;
            }
            // Jobs that have ended have a limit of their own: a long queue does not push them out.
            for ended in ["ran_secs IS NOT NULL", "ran_secs IS NULL"] {
                let sql = format!(
                    "DELETE FROM history WHERE {ended} AND submit_ms <
                        (SELECT submit_ms FROM history WHERE {ended} ORDER BY submit_ms DESC LIMIT 1 OFFSET ?)"
                );
                transaction.prepare_cached(&sql)?.execute([KEPT])?;
            }
            transaction.commit()
        };
        write(&mut self.database).map_err(fault)
    }

    /// The jobs of the journal at `path` in the order of their submission, read beside the daemon that writes it. An
    /// entry that cannot be read is left out.
    ///
    /// # Errors
    /// [`JournalError::Database`] where the file cannot be read.
    pub fn history_at(path: &Path) -> Result<Vec<PastJob>, JournalError> {
        let read = || -> Result<Vec<PastJob>, rusqlite::Error> {
            let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let mut query =
                database.prepare("SELECT submit_ms, key, body, ran_secs FROM history ORDER BY submit_ms, key")?;
            let rows = query.query_map([], |row| {
                let asked = serde_json::from_str(&row.get::<_, String>(2)?).ok();
                let (submit_ms, key, ran_secs) = (row.get(0)?, row.get(1)?, row.get(3)?);
                Ok(asked.map(|asked| PastJob { submit_ms, key, asked, ran_secs }))
            })?;
            rows.filter_map(Result::transpose).collect()
        };
        read().map_err(|source| JournalError::Database {
            path: path.into(),
            action: "read the history of jobs",
            source,
        })
    }
}
