//! Journal of orders, on disk before they are carried out: intent, fsync, act, verify, done.
//!
//! SQLite in WAL mode with `synchronous=FULL`: a transaction that has returned survives a crash of
//! the process and of the machine, and an administrator can look at it with `sqlite3`. After a
//! restart the journal says what was wanted and the engine's snapshot says what is; orders that are
//! open are applied again, which engines make harmless.

mod ends;
mod history;
mod policies;
mod promises;
mod starts;
mod tries;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use thiserror::Error;

use crate::daemon::observe::AttainedService;
use crate::engine::{Order, OrderId};
use crate::private;
pub use ends::JobEnd;
pub use history::{JobAsked, PastJob};
pub use policies::{ChangeVerb, PolicyChange};
pub use promises::AcknowledgedSubmission;
pub use starts::JobStart;
pub use tries::{FirstTry, KeyedTry, REMEMBERED_MS};

/// Format of the journal that this program writes, and the last one that it reads. SQLite keeps the number as
/// `user_version`; journals of before formats were numbered have 0.
const FORMAT: i64 = 1;

/// Finished orders kept for the audit; older ones are dropped.
const KEPT: u32 = 20_000;

/// A journal that cannot be read or written. Nothing is done without it.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The database refused: the disk is full, or broken.
    #[error("journal {path}: cannot {action}: {source}; free space or name another file under [state] directory")]
    Database {
        /// Path of the journal.
        path: PathBuf,
        /// Action that failed.
        action: &'static str,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// An entry is damaged.
    #[error(
        "journal {path}: order {id} cannot be read: {source}; restore the file from a backup or remove the entry with sqlite3"
    )]
    Damaged {
        /// Path of the journal.
        path: PathBuf,
        /// Order that cannot be read.
        id: String,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// A later program wrote it.
    #[error(
        "journal {path} has format {found}, and this program reads formats up to {FORMAT}: run the program that wrote it or a later one, or restore the state from before the upgrade"
    )]
    Newer {
        /// Path of the journal.
        path: PathBuf,
        /// Format of the journal.
        found: i64,
    },
    /// Another daemon leads by now.
    #[error("term {term} is over: another daemon leads since; nothing was done")]
    Deposed {
        /// The term of this daemon.
        term: u64,
    },
}

/// The state of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Written, and maybe under way.
    Open,
    /// Seen to be carried out.
    Done,
    /// Not carried out, and never will be.
    Lost,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::Lost => "lost",
        }
    }
}

/// An order as the journal has it.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    /// Order of the entry.
    pub order: Order,
    /// The plan it belongs to.
    pub plan: String,
    /// Time of the entry, milliseconds of the Unix epoch.
    pub at_ms: i64,
}

/// Lease of the leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRow {
    /// Grows with each change of leader.
    pub term: u64,
    /// Name of the daemon that holds the lease.
    pub holder: String,
    /// Grows with each renewal.
    pub beat: u64,
}

/// Journal of one daemon, or of several that take turns.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    database: Connection,
}

impl Journal {
    /// Opens or makes it.
    ///
    /// # Errors
    /// [`JournalError::Database`] where the file cannot be used.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let fault = |action| move |source| JournalError::Database { path: path.into(), action, source };
        // SQLite gives its other files the mode of this one. Where it cannot be made, SQLite says why.
        let _ = private::options().append(true).create(true).open(path);
        let database = Connection::open(path).map_err(fault("open it"))?;
        // Nothing of a later program's file is changed, so its format is looked at first.
        let found: i64 =
            database.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(fault("read its format"))?;
        if found > FORMAT {
            return Err(JournalError::Newer { path: path.into(), found });
        }
        let setup = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=5000;
            CREATE TABLE IF NOT EXISTS orders (
                seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, plan TEXT NOT NULL, job TEXT NOT NULL,
                verb TEXT NOT NULL, body TEXT NOT NULL, stage TEXT NOT NULL, note TEXT NOT NULL DEFAULT '',
                at_ms INTEGER NOT NULL, closed_ms INTEGER);
            CREATE INDEX IF NOT EXISTS orders_open ON orders(stage) WHERE stage = 'open';
            CREATE INDEX IF NOT EXISTS orders_job ON orders(job, seq);
            CREATE TABLE IF NOT EXISTS lease (
                one INTEGER PRIMARY KEY CHECK (one = 1), term INTEGER NOT NULL, holder TEXT NOT NULL, beat INTEGER NOT NULL);
            CREATE TABLE IF NOT EXISTS promises (
                submit_ms INTEGER PRIMARY KEY, key TEXT NOT NULL, acked_ms INTEGER NOT NULL, body TEXT NOT NULL);
            CREATE TABLE IF NOT EXISTS ends (
                submit_ms INTEGER NOT NULL, key TEXT NOT NULL, seen_ms INTEGER NOT NULL, PRIMARY KEY (submit_ms, key)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS past (job TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;";
        for setup in [setup, history::SETUP, policies::SETUP, starts::SETUP, tries::SETUP] {
            database.execute_batch(setup).map_err(fault("set it up"))?;
        }
        if found < FORMAT {
            // Each later format only added tables so far, so the number is all that changes.
            database.pragma_update(None, "user_version", FORMAT).map_err(fault("number its format"))?;
        }
        Ok(Self { path: path.into(), database })
    }

    /// Path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fault(&self, action: &'static str) -> impl Fn(rusqlite::Error) -> JournalError + use<> {
        let path = self.path.clone();
        move |source| JournalError::Database { path: path.clone(), action, source }
    }

    /// Writes the intents of a plan, all or none, and has them on disk when it returns. Refuses
    /// where `term` is over. An order that is known already is not written again.
    ///
    /// # Errors
    /// [`JournalError`]; nothing may be done then.
    pub fn intend(&mut self, term: u64, plan: &str, orders: &[Order], at_ms: i64) -> Result<(), JournalError> {
        let (fault, path) = (self.fault("write intents"), self.path.clone());
        // The write lock is held from here on, so no other daemon takes the lease between check and commit.
        let change = self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&fault)?;
        hold_term(&change, term, &fault)?;
        {
            let sql = "INSERT INTO orders (id, plan, job, verb, body, stage, at_ms) VALUES (?, ?, ?, ?, ?, 'open', ?)
                ON CONFLICT (id) DO NOTHING";
            let mut insert = change.prepare_cached(sql).map_err(&fault)?;
            for order in orders {
                let damaged = |source| JournalError::Damaged { path: path.clone(), id: order.id.0.clone(), source };
                let body = serde_json::to_string(order).map_err(damaged)?;
                let row = params![order.id.0, plan, order.job, order.action.verb(), body, at_ms];
                insert.execute(row).map_err(&fault)?;
            }
        }
        change.commit().map_err(&fault)
    }

    /// Orders that are not closed, oldest first.
    ///
    /// # Errors
    /// [`JournalError`] where it cannot be read.
    pub fn open_orders(&self) -> Result<Vec<JournalEntry>, JournalError> {
        let fault = self.fault("read open orders");
        let sql = "SELECT id, plan, body, at_ms FROM orders WHERE stage = 'open' ORDER BY seq";
        let mut query = self.database.prepare_cached(sql).map_err(&fault)?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get(3)?));
        let rows: Vec<(String, String, String, i64)> =
            query.query_map([], row).and_then(Iterator::collect).map_err(&fault)?;
        let entry = |(id, plan, body, at_ms): (String, String, String, i64)| match serde_json::from_str(&body) {
            Ok(order) => Ok(JournalEntry { order, plan, at_ms }),
            Err(source) => Err(JournalError::Damaged { path: self.path.clone(), id, source }),
        };
        rows.into_iter().map(entry).collect()
    }

    /// Closes orders, with a word on each.
    ///
    /// # Errors
    /// [`JournalError::Database`]; they stay open then, and are verified again.
    pub fn close(&mut self, closed: &[(OrderId, Stage, String)], at_ms: i64) -> Result<(), JournalError> {
        if closed.is_empty() {
            return Ok(());
        }
        let fault = self.fault("close orders");
        let change = self.database.transaction().map_err(&fault)?;
        {
            // Only an open order is closed, so a later verdict does not overwrite the first.
            let sql = "UPDATE orders SET stage = ?, note = ?, closed_ms = ? WHERE id = ? AND stage = 'open'";
            let mut update = change.prepare_cached(sql).map_err(&fault)?;
            for (id, stage, note) in closed {
                update.execute(params![stage.name(), note, at_ms, id.0]).map_err(&fault)?;
            }
            let sql = "DELETE FROM orders WHERE stage <> 'open' AND seq <= (SELECT max(seq) FROM orders) - ?";
            change.prepare_cached(sql).and_then(|mut drop| drop.execute([KEPT])).map_err(&fault)?;
        }
        change.commit().map_err(&fault)
    }

    /// The last orders of a job, newest first: verb, stage, note and time.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn orders_of(&self, job: &str) -> Result<Vec<(String, String, String, i64)>, JournalError> {
        let fault = self.fault("read the orders of a job");
        let sql = "SELECT verb, stage, note, at_ms FROM orders WHERE job = ? ORDER BY seq DESC LIMIT 20";
        let mut query = self.database.prepare_cached(sql).map_err(&fault)?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        query.query_map([job], row).and_then(Iterator::collect).map_err(&fault)
    }

    /// Orders written so far, and how many of them are of each stage.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn counts(&self) -> Result<[u64; 3], JournalError> {
        let fault = self.fault("count orders");
        let count = |stage: Stage| {
            let sql = "SELECT count(*) FROM orders WHERE stage = ?";
            self.database.prepare_cached(sql)?.query_row([stage.name()], |row| row.get::<_, i64>(0))
        };
        let count = |stage| count(stage).map(|n| n as u64).map_err(&fault);
        Ok([count(Stage::Open)?, count(Stage::Done)?, count(Stage::Lost)?])
    }

    /// Lease as it is now.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn lease(&self) -> Result<LeaseRow, JournalError> {
        read_lease(&self.database).map_err(self.fault("read the lease"))
    }

    /// Takes the lease over from what it was when `seen` was read. `None` where another daemon was
    /// faster.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be written.
    pub fn take_over(&mut self, seen: &LeaseRow, holder: &str) -> Result<Option<LeaseRow>, JournalError> {
        let fault = self.fault("take the lease");
        let change = self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&fault)?;
        // The row is read again under the write lock, because another daemon may have been faster.
        if read_lease(&change).map_err(&fault)? != *seen {
            return Ok(None);
        }
        let taken = LeaseRow { term: seen.term + 1, holder: holder.into(), beat: 0 };
        let sql = "INSERT OR REPLACE INTO lease (one, term, holder, beat) VALUES (1, ?, ?, 0)";
        change.execute(sql, params![taken.term as i64, holder]).map_err(&fault)?;
        change.commit().map_err(&fault)?;
        Ok(Some(taken))
    }

    /// Renews the lease.
    ///
    /// # Errors
    /// [`JournalError::Deposed`] where it is another's by now.
    pub fn renew(&mut self, term: u64) -> Result<(), JournalError> {
        // With the term in the condition a deposed daemon changes no row.
        let sql = "UPDATE lease SET beat = beat + 1 WHERE term = ?";
        let changed = self.database.execute(sql, [term as i64]).map_err(self.fault("renew the lease"))?;
        if changed == 1 { Ok(()) } else { Err(JournalError::Deposed { term }) }
    }

    /// Writes down a term that a lease outside the host gave to `holder`, so that terms are checked
    /// here as those of one host are.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be written.
    pub fn hold(&mut self, term: u64, holder: &str) -> Result<(), JournalError> {
        let sql = "INSERT OR REPLACE INTO lease (one, term, holder, beat) VALUES (1, ?, ?, 0)";
        let written = self.database.execute(sql, params![term as i64, holder]);
        written.map_err(self.fault("write down the term")).map(|_| ())
    }

    /// Closes all open orders as lost, with a word on each: they are not to be taken up again.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be written.
    pub fn void_open(&mut self, note: &str) -> Result<(), JournalError> {
        let sql = "UPDATE orders SET stage = ?, note = ?, closed_ms = ? WHERE stage = ?";
        let row = params![Stage::Lost.name(), note, crate::machine::wall_ms(), Stage::Open.name()];
        self.database.execute(sql, row).map_err(self.fault("void orders")).map(|_| ())
    }

    /// Goes on with the lease of `term` in the later term `raised`.
    ///
    /// # Errors
    /// [`JournalError::Deposed`] where the lease is another's by now.
    pub fn raise(&mut self, term: u64, raised: u64) -> Result<u64, JournalError> {
        let sql = "UPDATE lease SET term = ?, beat = beat + 1 WHERE term = ?";
        let row = params![raised as i64, term as i64];
        let changed = self.database.execute(sql, row).map_err(self.fault("raise the term"))?;
        if changed == 1 { Ok(raised) } else { Err(JournalError::Deposed { term }) }
    }

    /// Gives the lease up, so that another daemon need not wait.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be written.
    pub fn resign(&mut self, term: u64) -> Result<(), JournalError> {
        let sql = "UPDATE lease SET holder = '' WHERE term = ?";
        self.database.execute(sql, [term as i64]).map_err(self.fault("give the lease up")).map(|_| ())
    }

    /// Makes sure that `term` still holds.
    ///
    /// # Errors
    /// [`JournalError::Deposed`] where it does not.
    pub fn check_term(&self, term: u64) -> Result<(), JournalError> {
        hold_term(&self.database, term, &self.fault("read the lease"))
    }

    /// Keeps what jobs have attained.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be written.
    pub fn keep_pasts<'a>(
        &mut self,
        pasts: impl Iterator<Item = (&'a str, &'a AttainedService)>,
    ) -> Result<(), JournalError> {
        let fault = self.fault("keep attained service");
        let change = self.database.transaction().map_err(&fault)?;
        {
            change.execute("DELETE FROM past", []).map_err(&fault)?;
            let mut insert = change.prepare_cached("INSERT INTO past (job, body) VALUES (?, ?)").map_err(&fault)?;
            for (job, past) in pasts {
                let body = serde_json::to_string(past).unwrap_or_default();
                insert.execute(params![job, body]).map_err(&fault)?;
            }
        }
        change.commit().map_err(&fault)
    }

    /// Attained service of jobs. An entry that cannot be read is left out: the history of that job
    /// begins anew.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn pasts(&self) -> Result<Vec<(String, AttainedService)>, JournalError> {
        let fault = self.fault("read attained service");
        let mut query = self.database.prepare("SELECT job, body FROM past").map_err(&fault)?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).map_err(&fault)?;
        let rows: Vec<(String, String)> = rows.collect::<Result<_, _>>().map_err(&fault)?;
        Ok(rows.into_iter().filter_map(|(job, body)| Some((job, serde_json::from_str(&body).ok()?))).collect())
    }

    /// A remembered fact.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be read.
    pub fn fact(&self, name: &str) -> Result<Option<String>, JournalError> {
        let read =
            self.database.query_row("SELECT value FROM facts WHERE name = ?", [name], |row| row.get(0)).optional();
        read.map_err(self.fault("read a fact"))
    }

    /// Remembers a fact.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be written.
    pub fn remember(&mut self, name: &str, value: &str) -> Result<(), JournalError> {
        let sql = "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)";
        self.database.execute(sql, params![name, value]).map_err(self.fault("remember a fact")).map(|_| ())
    }

    /// Bounds the size of the file, as a full disk does; for drills.
    ///
    /// # Errors
    /// [`JournalError::Database`] where it cannot be set.
    pub fn bound_size(&self, pages: Option<u32>) -> Result<(), JournalError> {
        let fault = self.fault("bound its size");
        let used: u32 = self.database.query_row("PRAGMA page_count", [], |row| row.get(0)).map_err(&fault)?;
        // Without a bound this is SQLite's own limit.
        let bound = pages.map_or(u32::MAX - 1, |pages| used + pages);
        self.database.query_row(&format!("PRAGMA max_page_count={bound}"), [], |_| Ok(())).map_err(&fault)
    }
}

fn read_lease(database: &Connection) -> Result<LeaseRow, rusqlite::Error> {
    let row = |row: &rusqlite::Row<'_>| {
        Ok(LeaseRow { term: row.get::<_, i64>(0)? as u64, holder: row.get(1)?, beat: row.get::<_, i64>(2)? as u64 })
    };
    let lease = database.query_row("SELECT term, holder, beat FROM lease WHERE one = 1", [], row).optional()?;
    Ok(lease.unwrap_or_default())
}

fn hold_term(
    database: &Connection,
    term: u64,
    fault: &impl Fn(rusqlite::Error) -> JournalError,
) -> Result<(), JournalError> {
    let lease = read_lease(database).map_err(fault)?;
    if lease.term == term { Ok(()) } else { Err(JournalError::Deposed { term }) }
}
