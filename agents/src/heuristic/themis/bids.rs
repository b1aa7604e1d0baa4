//! Bids with placement sensitivity: a job values accelerators that it has together more than such that are spread.
//!
//! The paper's bid table has a valuation for each subset of the machines on offer, since `rho` falls with the
//! speed on exactly these. Here a bid has two valuations for each number of accelerators: *packed* on the fewest nodes,
//! and *spread* over one node more. The packed one stands as long as the offer has room for that many together.
//! Winners are placed in the order of what spreading costs them. A winner for which nothing is left together
//! has bid too high for its number, so its bid is corrected to the spread value, and the auction is held again.

use goodput_env::cluster::Cluster;
use goodput_env::placement::Placement;

use super::standing::AgentStanding;

/// Offered accelerators by node.
pub struct AcceleratorOffer<'a> {
    cluster: &'a Cluster,
    free: Vec<u32>,
}

impl<'a> AcceleratorOffer<'a> {
    /// Offer of the `free` accelerators by node, and of what `ended` placements give back.
    pub fn new<'p>(cluster: &'a Cluster, free: &[u32], ended: impl Iterator<Item = &'p Placement>) -> Self {
        let mut free = free.to_vec();
        // A part of a card frees nothing: other jobs may hold the rest of the card.
        for slice in ended.filter(|placement| placement.share().is_none()).flat_map(Placement::slices) {
            free[slice.node.index()] += slice.gpus;
        }
        Self { cluster, free }
    }

    /// Whether `gpus` of one type are on offer on the fewest nodes that they can be on, what the job `keeps` included.
    pub fn has_together(&self, gpus: u32, keeps: Option<&Placement>) -> bool {
        let slices = keeps.map_or(&[][..], Placement::slices);
        let kept = |node: usize| slices.iter().find(|slice| slice.node.index() == node).map_or(0, |slice| slice.gpus);
        self.cluster.type_ids().any(|kind| {
            let of_kind = (0..self.free.len()).filter(|&node| self.cluster.nodes[node].accelerator == kind);
            let mut room: Vec<u32> = of_kind.map(|node| self.free[node] + kept(node)).collect();
            room.sort_unstable_by(|one, other| other.cmp(one));
            let fewest = gpus.div_ceil(self.cluster.gpus_per_node_of(kind)) as usize;
            room.iter().take(fewest).sum::<u32>() >= gpus
        })
    }
}

/// Bid of one job by number of further accelerators.
pub struct ThemisBid {
    /// Valuation on the fewest nodes.
    packed: Vec<f64>,
    /// Valuation on one node more.
    spread: Vec<f64>,
    /// Whether the job cannot have so many together.
    apart: Vec<bool>,
}

impl ThemisBid {
    /// Bid of a job for up to `most` further accelerators of the offer.
    pub fn new(standing: &AgentStanding<'_>, most: u32, offer: &AcceleratorOffer<'_>) -> Self {
        let keeps = standing.keeps();
        let sizes = standing.leased..=standing.leased + most.min(standing.max.saturating_sub(standing.leased));
        let value = |gpus: u32, more: u32| match gpus >= standing.job.min_gpus() {
            true => standing.rho(gpus, more).recip(),
            false => 0.0,
        };
        Self {
            packed: sizes.clone().map(|gpus| value(gpus, 0)).collect(),
            spread: sizes.clone().map(|gpus| value(gpus, 1)).collect(),
            // What the job has already is where it is.
            apart: sizes.map(|gpus| gpus > standing.leased && !offer.has_together(gpus, keeps)).collect(),
        }
    }

    /// Valuations by number of further accelerators, some of which the job may leave idle.
    pub fn values(&self) -> Vec<f64> {
        let mut best = 0.0_f64;
        let each = self.packed.iter().zip(&self.spread).zip(&self.apart);
        each.map(|((packed, spread), apart)| {
            best = best.max(if *apart { *spread } else { *packed });
            best
        })
        .collect()
    }

    /// Whether the job cannot have `more` further accelerators together.
    pub fn is_apart(&self, more: u32) -> bool {
        self.apart.get(more as usize).is_some_and(|apart| *apart)
    }

    /// Corrects the bid for `more` further accelerators, which the job could not have together; false where
    /// the bid has said so already.
    pub fn correct(&mut self, more: u32) -> bool {
        let known = self.apart.get_mut(more as usize);
        known.is_some_and(|apart| !std::mem::replace(apart, true))
    }
}
