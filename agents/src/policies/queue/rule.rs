//! Rules of batch scheduling that a learned order serves.

use goodput_env::policy::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::backfill::{ArtifactQueue, Backfill, BatchQueue, QueueClock, QueueOrder};

/// Rule of a batch queue, which says what an order decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum QueueRule {
    /// No job passes one that does not fit.
    StrictOrder,
    /// Jobs pass the first one where that does not put it off (Lifka, JSSPP 1995).
    #[default]
    Easy,
    /// Jobs pass others where that puts none of them off (Mu'alem and Feitelson, TPDS 2001).
    Conservative,
    /// The queue of RLScheduler's simulator, without backfill: for comparison with its figures.
    Artifact,
    /// The queue of RLScheduler's simulator, with its backfill.
    ArtifactBackfill,
}

impl QueueRule {
    /// Rules by name, for listings and messages.
    pub const ALL: [Self; 5] =
        [Self::StrictOrder, Self::Easy, Self::Conservative, Self::Artifact, Self::ArtifactBackfill];

    /// Name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StrictOrder => "strict-order",
            Self::Easy => "easy",
            Self::Conservative => "conservative",
            Self::Artifact => "artifact",
            Self::ArtifactBackfill => "artifact-backfill",
        }
    }

    /// Policy of this rule with the given order.
    pub fn policy<O: QueueOrder + 'static>(self, order: O) -> Box<dyn Policy> {
        match self {
            Self::StrictOrder => Box::new(BatchQueue::new(order, Backfill::None)),
            Self::Easy => Box::new(BatchQueue::new(order, Backfill::First)),
            Self::Conservative => Box::new(BatchQueue::new(order, Backfill::Every)),
            Self::Artifact => Box::new(ArtifactQueue::new(order, false, QueueClock::Running)),
            Self::ArtifactBackfill => Box::new(ArtifactQueue::new(order, true, QueueClock::Running)),
        }
    }
}
