//! What changes now: the answer of a policy to a view.

use serde::{Deserialize, Serialize};

use crate::job::JobId;
use crate::placement::Placement;
use crate::request::Assign;

/// A job's new placement; an empty one takes its accelerators away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The job.
    pub job: JobId,
    /// Where it is to run from now on.
    pub placement: Placement,
    /// Another job that runs on the same accelerators at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<JobId>,
}

/// The changes of one decision. Jobs that are not named keep what they have. All changes take effect at once: capacity is
/// counted after every release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// At most one per job.
    pub changes: Vec<Change>,
    /// Inference requests that are answered from now on; each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assign: Vec<Assign>,
}

impl Plan {
    /// Nothing changes.
    pub fn keep() -> Self {
        Self::default()
    }

    /// Moves `job` to `placement`.
    pub fn set(&mut self, job: JobId, placement: Placement) {
        self.changes.push(Change { job, placement, partner: None });
    }

    /// Lets two jobs share `placement`: both run on all of it at once, which counts once. When one of them leaves, the other stays.
    pub fn share(&mut self, one: JobId, other: JobId, placement: Placement) {
        self.changes.push(Change { job: one, placement: placement.clone(), partner: Some(other) });
        self.changes.push(Change { job: other, placement, partner: Some(one) });
    }
}
