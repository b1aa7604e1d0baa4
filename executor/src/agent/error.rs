//! Errors of an agent, with the HTTP status of each.

use std::io;

use thiserror::Error;

use super::record::RecordError;
use crate::http::identity::IdentityError;
use crate::job::{ProgramError, Refusal};

/// Reason why an agent did not do as it was asked, or could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// An order to start came when it was void.
    #[error(
        "the order to start came too late: its sender counts on it that nothing began; ask for the state of the node, and order anew"
    )]
    TooLate,
    /// The caller's term is over: another daemon leads.
    #[error("term {term} is over: term {current} leads; stop acting and read the lease again")]
    OldTerm {
        /// Term of the caller.
        term: u64,
        /// Highest term seen.
        current: u64,
    },
    /// Jobs die here without the daemon, and it has not been heard of.
    #[error("the lease is over: renew it before jobs are started")]
    NoLease,
    /// No such attempt on this node.
    #[error("attempt {0} is not on this node")]
    NoAttempt(String),
    /// The name is taken by an attempt with another fence.
    #[error("attempt {0} is already on this node with another fence: forget it first, or use the next number")]
    Taken(String),
    /// The attempt still runs.
    #[error("attempt {0} has not ended: stop it first")]
    NotEnded(String),
    /// The process of the attempt is not known yet.
    #[error("attempt {0} has no process yet: ask again in a second")]
    NotStarted(String),
    /// The program writes no checkpoints: a stop would end it.
    #[error("attempt {0} does not handle SIGUSR1: stop it to get a checkpoint, or have the job handle it")]
    NoCheckpoint(String),
    /// No such accelerator.
    #[error("accelerator {0} is not on this node")]
    NoAccelerator(String),
    /// An accelerator cannot be given now.
    #[error("accelerator {uuid} cannot be given: {why}")]
    Unavailable {
        /// UUID of the accelerator.
        uuid: String,
        /// Reason why the accelerator cannot be used, and until when.
        why: String,
    },
    /// The program of the launch makes no sense.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A report is not believed.
    #[error(transparent)]
    JobReport(#[from] Refusal),
    /// The disk of the node takes no writes, so nothing that is begun could be written down.
    #[error("{0}")]
    NoRoom(String),
    /// The attempt is to be kept to processors or memory, and the node cannot do that.
    #[error("limits on processors and memory are not kept on this node: its control groups have no such controllers")]
    NoLimits,
    /// A record on disk cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Setup is wrong.
    #[error("{0}")]
    Setup(String),
    /// A certificate or a key cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The machine does not let it.
    #[error("cannot {action}: {source}")]
    Io {
        /// Action that failed.
        action: String,
        /// Error of the system.
        source: io::Error,
    },
}

impl AgentError {
    /// Error of the system, with the action that failed.
    pub(super) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| AgentError::Io { action: action.into(), source }
    }

    /// Status of HTTP that says the same.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            AgentError::NoAttempt(_) | AgentError::NoAccelerator(_) => 404,
            AgentError::OldTerm { .. }
            | AgentError::TooLate
            | AgentError::NoLease
            | AgentError::Taken(_)
            | AgentError::NotEnded(_)
            | AgentError::NotStarted(_)
            | AgentError::NoCheckpoint(_)
            | AgentError::Unavailable { .. }
            | AgentError::NoLimits
            | AgentError::JobReport(Refusal::OldFence | Refusal::Stranger) => 409,
            AgentError::Program(_) | AgentError::JobReport(_) => 400,
            AgentError::NoRoom(_) => 507,
            AgentError::Setup(_) | AgentError::Identity(_) | AgentError::Record(_) | AgentError::Io { .. } => 500,
        }
    }

    /// One word for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            AgentError::OldTerm { .. } => "old_term",
            AgentError::TooLate => "too_late",
            AgentError::NoLease => "no_lease",
            AgentError::NoAttempt(_) => "no_attempt",
            AgentError::Taken(_) => "taken",
            AgentError::NotEnded(_) => "not_ended",
            AgentError::NotStarted(_) => "not_started",
            AgentError::NoCheckpoint(_) => "no_checkpoint",
            AgentError::NoAccelerator(_) => "no_accelerator",
            AgentError::Unavailable { .. } => "unavailable",
            AgentError::Program(_) => "program",
            AgentError::JobReport(Refusal::OldFence) => "old_fence",
            AgentError::JobReport(Refusal::Stranger) => "stranger",
            AgentError::JobReport(_) => "report",
            AgentError::NoRoom(_) => "no_room",
            AgentError::NoLimits => "no_limits",
            AgentError::Record(_) => "record",
            AgentError::Setup(_) | AgentError::Identity(_) => "setup",
            AgentError::Io { .. } => "io",
        }
    }
}
