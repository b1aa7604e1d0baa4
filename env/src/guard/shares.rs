//! Rules of the guard about cards that several jobs share: a share is what its job asks for, on cards that have room.

use smallvec::SmallVec;

use super::Violation;
use super::balance::Balance;
use crate::cluster::NodeId;
use crate::job::JobId;
use crate::model::sharing::Card;
use crate::placement::CardShare;
use crate::plan::Plan;
use crate::view::ClusterView;

/// Cards of one node by number, ascending.
type NumberedCards = SmallVec<[(u16, Card); 8]>;

/// Cards of the nodes that a plan's shares touch, as they are after it.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareCheck {
    nodes: Vec<(NodeId, NumberedCards)>,
}

impl ShareCheck {
    /// Checks the shares of a plan, and enters the cards that they take whole or leave whole into `balance`.
    pub(super) fn check(
        &mut self,
        view: &ClusterView<'_>,
        plan: &Plan,
        balance: &mut Balance,
        violations: &mut Vec<Violation>,
    ) {
        self.nodes.clear();
        // Every release comes before every allocation.
        for change in &plan.changes {
            let held = view.job(change.job).and_then(|job| job.state.placement.share());
            let Some((node, share)) = held else { continue };
            let cards = self.cards(view, node);
            for (number, part) in share.parts() {
                if let Ok(at) = cards.binary_search_by_key(&number, |(number, _)| *number) {
                    cards[at].1.give_back(&part);
                }
            }
        }
        for change in &plan.changes {
            let Some((node, share)) = change.placement.share() else { continue };
            if let Err(problem) = self.take(view, change.job, node, share) {
                violations.push(Violation::Share { job: change.job, node, problem });
            }
        }
        for (node, cards) in &self.nodes {
            let before = view.cards_on(*node).len() as i64;
            let after = cards.iter().filter(|(_, card)| card.jobs > 0).count() as i64;
            balance.add(*node, before - after);
        }
    }

    fn cards(&mut self, view: &ClusterView<'_>, node: NodeId) -> &mut NumberedCards {
        let at = self.nodes.iter().position(|(known, _)| *known == node).unwrap_or_else(|| {
            let cards = view.cards_on(node).iter().map(|card| (card.number, card.card));
            self.nodes.push((node, cards.collect()));
            self.nodes.len() - 1
        });
        &mut self.nodes[at].1
    }

    fn take(&mut self, view: &ClusterView<'_>, job: JobId, node: NodeId, share: &CardShare) -> Result<(), String> {
        let Some(machine) = view.cluster().nodes.get(node.index()) else {
            return Err("there is no such node".into());
        };
        let asked = view.job(job).and_then(|job| job.request().share);
        if asked != Some(share.amount) {
            return Err(match asked {
                Some(asked) => {
                    format!("it asks for {} % and {} MiB", asked.compute_percent, asked.memory_mib)
                }
                None => "it asks for whole accelerators".into(),
            });
        }
        let installed = view.scenario.cluster.nodes[node.index()].gpus.max(machine.gpus);
        let blank = view.blank_card(node);
        for (at, (number, part)) in share.parts().enumerate() {
            if u32::from(number) >= installed {
                return Err(format!("there is no card {number}"));
            }
            if share.cards[..at].contains(&number) {
                return Err(format!("card {number} is named twice"));
            }
            let cards = self.cards(view, node);
            let place = cards.binary_search_by_key(&number, |(number, _)| *number).unwrap_or_else(|place| {
                cards.insert(place, (number, blank));
                place
            });
            let card = &mut cards[place].1;
            card.fit(&part).map_err(|misfit| format!("card {number}: {misfit}"))?;
            card.take(&part);
        }
        Ok(())
    }
}
