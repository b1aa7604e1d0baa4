//! History of the policy that decides: every change, with its author, its time and its reason.

use goodput_configs::live::policy::PolicyConfig;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::{Journal, JournalError};

/// Table of the changes.
pub(super) const SETUP: &str = "CREATE TABLE IF NOT EXISTS policies (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, body TEXT NOT NULL);";

/// Cause of a change of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeVerb {
    /// The deployment file names the policy.
    File,
    /// An operator set the policy.
    Set,
    /// An operator went back to the policy before.
    Rollback,
    /// The daemon went back to the policy before, because jobs waited longer.
    Regression,
}

/// Change of the policy that decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyChange {
    /// Number of the change, from 1; 0 before it is written down.
    #[serde(default)]
    pub number: i64,
    /// Time of the change, milliseconds of the Unix epoch.
    pub at_ms: i64,
    /// Time of the change on the engine's clock, milliseconds.
    pub engine_ms: i64,
    /// Name of the token, or `daemon`.
    pub by: String,
    /// Reason, as it was given.
    pub reason: String,
    /// Cause of the change.
    pub verb: ChangeVerb,
    /// Name of the policy: a heuristic, `zoo:NAME` or the path of a bundle as it was given.
    pub name: String,
    /// SHA-256 of the bundle; empty for a heuristic.
    #[serde(default)]
    pub sha256: String,
    /// Policy as it is opened: a bundle from the copy in the state directory.
    pub policy: PolicyConfig,
    /// Number of the change to which a rollback goes; `None` where there is none.
    pub before: Option<i64>,
}

impl Journal {
    /// Writes a change down and gives it with its number; it is on disk when it returns.
    ///
    /// # Errors
    /// [`JournalError`]; nothing has changed then.
    pub fn change_policy(&mut self, change: PolicyChange) -> Result<PolicyChange, JournalError> {
        let fault = self.fault("write down a change of the policy");
        let body = serde_json::to_string(&change).map_err(|source| JournalError::Damaged {
            path: self.path.clone(),
            id: "policy".into(),
            source,
        })?;
        let sql = "INSERT INTO policies (at_ms, body) VALUES (?, ?)";
        self.database.execute(sql, params![change.at_ms, body]).map_err(fault)?;
        Ok(PolicyChange { number: self.database.last_insert_rowid(), ..change })
    }

    /// Has `changes` as the history, under the numbers that they have outside the host.
    ///
    /// # Errors
    /// [`JournalError`]; nothing has changed then.
    pub fn replace_policy_changes(&mut self, changes: &[PolicyChange]) -> Result<(), JournalError> {
        let fault = self.fault("write down changes of the policy");
        let path = self.path.clone();
        let all = self.database.transaction().map_err(&fault)?;
        all.execute("DELETE FROM policies", []).map_err(&fault)?;
        for change in changes {
            let damaged = |source| JournalError::Damaged { path: path.clone(), id: "policy".into(), source };
            let body = serde_json::to_string(change).map_err(damaged)?;
            let sql = "INSERT INTO policies (number, at_ms, body) VALUES (?, ?, ?)";
            all.execute(sql, params![change.number, change.at_ms, body]).map_err(&fault)?;
        }
        all.commit().map_err(&fault)
    }

    /// The latest changes, newest first. A change that this program cannot read is left out.
    ///
    /// # Errors
    /// [`JournalError::Database`] where they cannot be read.
    pub fn policy_changes(&self, most: usize) -> Result<Vec<PolicyChange>, JournalError> {
        let fault = self.fault("read changes of the policy");
        let sql = "SELECT number, body FROM policies ORDER BY number DESC LIMIT ?";
        let mut query = self.database.prepare_cached(sql).map_err(&fault)?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
        let rows: Vec<(i64, String)> =
            query.query_map([most as i64], row).and_then(Iterator::collect).map_err(&fault)?;
        Ok(rows.into_iter().filter_map(|(number, body)| read(number, &body)).collect())
    }

    /// Change of this number.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn policy_change(&self, number: i64) -> Result<Option<PolicyChange>, JournalError> {
        let sql = "SELECT body FROM policies WHERE number = ?";
        let body = self.database.query_row(sql, [number], |row| row.get::<_, String>(0)).optional();
        let body = body.map_err(self.fault("read changes of the policy"))?;
        Ok(body.and_then(|body| read(number, &body)))
    }

    /// Number of the last change; 0 where there is none.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn last_policy_change(&self) -> Result<i64, JournalError> {
        let sql = "SELECT coalesce(max(number), 0) FROM policies";
        let mut query = self.database.prepare_cached(sql).map_err(self.fault("read changes of the policy"))?;
        query.query_row([], |row| row.get(0)).map_err(self.fault("read changes of the policy"))
    }
}

fn read(number: i64, body: &str) -> Option<PolicyChange> {
    let change = serde_json::from_str::<PolicyChange>(body);
    Some(PolicyChange { number, ..change.ok()? })
}
