//! Cards that jobs share, by node. A card that no job has a share of is not here: a whole accelerator, free or taken,
//! is a number in the books of its node.

use smallvec::SmallVec;

use crate::cluster::NodeId;
use crate::job::JobId;
use crate::model::sharing::{Card, ShareRequest};

/// A card on which at least one job has a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedCard {
    /// Number of the card on its node.
    pub number: u16,
    /// Amounts that are taken.
    pub card: Card,
    /// Jobs with a share and the part of each, in the order of their coming.
    pub jobs: SmallVec<[(JobId, ShareRequest); 4]>,
    /// First job of the card, under which its time is booked until the last job has left.
    pub(crate) opener: JobId,
}

/// Shared cards by node, as far as the last node that ever had one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedCards(Vec<Vec<SharedCard>>);

impl SharedCards {
    /// Shared cards of `node`, ascending by number.
    pub fn on(&self, node: NodeId) -> &[SharedCard] {
        self.0.get(node.index()).map_or(&[], |cards| cards)
    }

    /// A card of `node`, where it is shared.
    pub fn get(&self, node: NodeId, number: u16) -> Option<&SharedCard> {
        let cards = self.on(node);
        Some(&cards[cards.binary_search_by_key(&number, |card| card.number).ok()?])
    }

    /// Gives `job` a part of a card, which is `blank` where no job has a share of it yet. Returns whether it was.
    pub(crate) fn join(&mut self, node: NodeId, number: u16, job: JobId, part: ShareRequest, blank: Card) -> bool {
        if self.0.len() <= node.index() {
            self.0.resize_with(node.index() + 1, Vec::new);
        }
        let cards = &mut self.0[node.index()];
        let (at, opened) = match cards.binary_search_by_key(&number, |card| card.number) {
            Ok(at) => (at, false),
            Err(at) => {
                cards.insert(at, SharedCard { number, card: blank, jobs: SmallVec::new(), opener: job });
                (at, true)
            }
        };
        cards[at].card.take(&part);
        cards[at].jobs.push((job, part));
        opened
    }

    /// Takes the part of a card from `job`. Returns the job that opened the card where no job is left on it.
    pub(crate) fn leave(&mut self, node: NodeId, number: u16, job: JobId) -> Option<JobId> {
        let cards = self.0.get_mut(node.index())?;
        let at = cards.binary_search_by_key(&number, |card| card.number).ok()?;
        let place = cards[at].jobs.iter().position(|(other, _)| *other == job)?;
        let (_, part) = cards[at].jobs.remove(place);
        cards[at].card.give_back(&part);
        cards[at].jobs.is_empty().then(|| cards.remove(at).opener)
    }
}
