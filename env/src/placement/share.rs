//! Part of one accelerator, or of several of one node: compute in percent, memory in MiB.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Share of one accelerator, or of several: compute in percent of one, memory in MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareRequest {
    /// Percent of one accelerator's compute; 0 takes the compute that other jobs leave idle. On a
    /// single card more than 100 counts as 100.
    pub compute_percent: u32,
    /// Device memory, MiB.
    pub memory_mib: u32,
}

impl ShareRequest {
    /// Part number `at` of `count` parts, as even as whole numbers allow. Both amounts descend from part to part, and
    /// the parts add up to the whole.
    pub fn part(&self, count: u32, at: u32) -> Self {
        let of = |whole: u32| whole / count + u32::from(at < whole % count);
        Self { compute_percent: of(self.compute_percent), memory_mib: of(self.memory_mib) }
    }
}

/// Cards of one node that a job holds a share of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardShare {
    /// Numbers of the cards on their node, in the order of the parts; each once.
    pub cards: SmallVec<[u16; 4]>,
    /// Amount of all cards together.
    pub amount: ShareRequest,
}

impl CardShare {
    /// Cards and the part of the amount that is held on each.
    pub fn parts(&self) -> impl Iterator<Item = (u16, ShareRequest)> {
        let count = self.cards.len() as u32;
        self.cards.iter().zip(0..).map(move |(&card, at)| (card, self.amount.part(count, at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_descend() {
        let amount = ShareRequest { compute_percent: 250, memory_mib: 10_001 };
        let share = CardShare { cards: [5, 0, 2].into_iter().collect(), amount };
        let parts: Vec<_> = share.parts().collect();
        assert_eq!(parts.iter().map(|(card, _)| *card).collect::<Vec<_>>(), [5, 0, 2]);
        assert_eq!(parts.iter().map(|(_, part)| part.compute_percent).collect::<Vec<_>>(), [84, 83, 83]);
        assert_eq!(parts.iter().map(|(_, part)| part.memory_mib).sum::<u32>(), 10_001);
    }
}
