//! Job protocol v1: what a job is told, what it says, and what its end means.
//!
//! Any program is a job. One that reads the environment of [`contract`], writes checkpoints and
//! exits 143 when it is told to stop loses no work when it is resized; one that also sends a
//! [`JobReport`] now and then lets policies learn how fast it is.
//!
//! - [`Program`]: what is run.
//! - [`contract`]: environment variables and signals.
//! - [`exit`]: what an exit code means, and [`retry`]: whether and when the job is started again.
//! - [`adaptdl`]: the same for jobs written for AdaptDL.
//! - [`MembersPlan`]: how an elastic job is told which of its processes join and leave.
//! - [`JobReport`]: what a running job says about itself, [`Intake`]: which of it is believed, and
//!   [`Learned`]: what it teaches.

pub mod adaptdl;
pub mod contract;
pub mod exit;
mod fence;
mod intake;
mod learned;
mod members;
mod program;
mod report;
pub mod retry;

pub use contract::{AcceleratorGrant, GangPlan, GrantIsolation, Launch, NodeLimits};
pub use exit::{EndCause, Exit, ExitMeaning};
pub use fence::Fence;
pub use intake::{Intake, LONGEST_LINE, Refusal, Silence};
pub use learned::{Learned, SpeedMeasurement};
pub use members::{MemberLaunch, MembersPlan, PlannedMember, ReportedMembers};
pub use program::{Program, ProgramError};
pub use report::{JobReport, Serving};
pub use retry::{RetryBudget, RetryDecision, RetryHistory};
