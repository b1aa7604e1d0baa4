//! A running job between two sizes: which part of it makes progress, and what it waits for.

use smallvec::SmallVec;

use crate::placement::Placement;
use crate::time::SimTime;

/// A job between two sizes.
#[derive(Clone, Debug)]
pub(crate) struct Reconfiguration {
    /// Part of the placement that makes progress meanwhile.
    pub share: Placement,
    /// The end of the iteration at which the share leaves what was taken from it; never where
    /// nothing was.
    pub leave_at: SimTime,
    /// Share after that. The new owner of the rest counts on it, so a later command cannot take a
    /// leave back.
    pub stay: Placement,
    /// Targets of commands not yet carried out; the first is under way.
    pub targets: SmallVec<[Placement; 1]>,
    /// Moment at which the workers of the first command are up, then the end of the iteration after
    /// that.
    pub ready_at: SimTime,
    /// Whether `ready_at` is the end of an iteration.
    pub aligned: bool,
}

impl Reconfiguration {
    pub fn share(&self) -> &Placement {
        &self.share
    }
}
