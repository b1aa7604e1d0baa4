//! Spool: a search that many machines share through a file system.
//!
//! The **coordinator** searches. It posts each generation, plays runs, and adds up the costs in their order.
//! **Workers** play runs of what is posted. A run is a player on an episode, and costs equal bits everywhere, so any
//! process may play any run: a worker may come late, or be killed at any moment.
//!
//! The folder `spool` of the run directory:
//!
//! | file | content |
//! |---|---|
//! | `now.json` | what the coordinator does; a number that counts up says that it is alive |
//! | `sample/` | two runs of the coordinator, which a worker plays first, to find out whether it computes alike |
//! | `KEY/generation.json` | a generation; the key is the hash of this file |
//! | `KEY/RUN.claim.N` | a process has begun a run, for the time `N` |
//! | `KEY/RUN.json` | cost of a run |
//!
//! Files, each of which uses only those above it: `error`, `posted` (a generation as a file), `pulse` (`now.json`),
//! `board` (claims and costs), `play` (the runs of a generation), `coordinator`, `worker`.

mod board;
mod coordinator;
mod error;
mod play;
mod posted;
mod pulse;
mod worker;

use std::time::Duration;

pub use coordinator::SearchCoordinator;
pub use error::SpoolError;
pub use pulse::CoordinatorWatch;
pub use worker::work;

/// Folder of the spool in the run directory.
const FOLDER: &str = "spool";

/// Folder of the sample in the spool.
const SAMPLE: &str = "sample";

/// Time until a process that has waited for `waited` looks again. So it notices a change an eighth late at most, and
/// does not burden the file system while there is nothing to do.
fn pause(waited: Duration) -> Duration {
    (waited / 8).clamp(Duration::from_millis(5), Duration::from_secs(1))
}
