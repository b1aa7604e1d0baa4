//! Rule for ties between nodes of the best score.

use serde::{Deserialize, Serialize};

/// Order among nodes that score the same.
///
/// Scores of published strategies are whole numbers from 0 to 100, so hundreds of nodes may share
/// the best. Any order that stays the same fills one node after the other; drawing anew for each
/// request scatters the work, which costs FGD five points of allocation on the openb trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieBreak {
    /// The lowest index: the order of the node list.
    #[default]
    LowestIndex,
    /// The first in one order, drawn at the start by the seed. The FGD artifact puts a random
    /// number before each node's name and takes the smallest name.
    FixedRandom,
    /// Drawn anew, evenly, for each request: what Kubernetes' own scheduler does.
    Random,
}

impl TieBreak {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LowestIndex, Self::FixedRandom, Self::Random];

    /// Name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::LowestIndex => "lowest-index",
            Self::FixedRandom => "fixed-random",
            Self::Random => "random",
        }
    }
}
