//! Scores of nodes, kept for as long as a node does not change: between two decisions few nodes do.

use std::collections::BTreeMap;

use goodput_env::model::sharing::ShareRequest;
use goodput_env::view::JobView;

use super::nodes::{NodeOfCards, NodesOfCards};
use crate::placement::fractional::{Request, Strategy};

/// Most shapes of requests for which scores are kept. Published traces have about a hundred.
const MOST_SHAPES: usize = 512;

/// Request of a job, and the amounts where it is for a part of a card.
type AskedParts = (Request, Option<ShareRequest>);

/// Score of a node with the version of the node that it is of; `None` where the node does not fit.
type VersionedScore = (u64, Option<i32>);

/// Scores by shape of request and by node.
#[derive(Debug, Default)]
pub struct KeptScores(BTreeMap<(Request, [u32; 2]), Vec<VersionedScore>>);

impl KeptScores {
    /// The node with the best score that fits, the lowest on ties.
    pub fn best_of(
        &mut self,
        strategy: &dyn Strategy,
        nodes: &mut NodesOfCards,
        job: &JobView<'_>,
        shape: AskedParts,
    ) -> Option<usize> {
        if self.0.len() > MOST_SHAPES {
            self.0.clear();
        }
        let part = shape.1.map_or([0; 2], |part| [part.compute_percent + 1, part.memory_mib]);
        let kept = self.0.entry((shape.0, part)).or_default();
        // No node has the version zero.
        kept.resize(nodes.nodes.len(), (0, None));
        let mut best: Option<(i32, usize)> = None;
        for (at, (node, kept)) in nodes.nodes.iter_mut().zip(kept).enumerate() {
            if !job.runs_on(node.node.kind) {
                continue;
            }
            if kept.0 != node.version {
                *kept = (node.version, score(strategy, node, &shape));
            }
            let Some(score) = kept.1 else { continue };
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, at));
            }
        }
        best.map(|(_, at)| at)
    }
}

/// Score of a node; `None` where it does not fit.
fn score(strategy: &dyn Strategy, node: &mut NodeOfCards, (request, part): &AskedParts) -> Option<i32> {
    if !node.node.fits(request) {
        return None;
    }
    match part.and_then(|part| node.without_unfit(&part)) {
        Some(shown) => shown.fits(request).then(|| strategy.score(&shown, strategy.potential(&shown), request)),
        None => {
            let potential = *node.potential.get_or_insert_with(|| strategy.potential(&node.node));
            Some(strategy.score(&node.node, potential, request))
        }
    }
}
