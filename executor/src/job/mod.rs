//! Job protocol v1: what a job is told, what it says, and what its end means.
//!
//! Any program is a job. One that reads the environment of [`contract`], writes checkpoints and exits 143 when it is told to stop loses no work when it is
//! resized; one that also sends a [`Report`] now and then lets policies learn how fast it is.
//!
//! - [`JobSpec`]: what a user submits.
//! - [`contract`]: environment variables and signals.
//! - [`exit`]: what an exit code means, and [`retry`]: whether and when the job is started again.
//! - [`Report`]: what a running job says about itself, and [`Intake`]: which of it is believed.

pub mod contract;
pub mod exit;
mod fence;
mod intake;
mod jobspec;
mod name;
mod report;
pub mod retry;

pub use contract::{Gang, Grant, Isolation, Launch};
pub use exit::{Cause, Exit, Meaning};
pub use fence::Fence;
pub use intake::{Intake, Refusal, Silence};
pub use jobspec::{JobSpec, Kind, Share, SpecError};
pub use name::{JobName, NameError};
pub use report::{Report, Serving};
pub use retry::{RetryBudget, RetryHistory, Verdict};
