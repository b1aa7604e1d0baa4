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

    /// Gives `job` a part of a card, which is `blank` where no job has a share of it yet. Returns the card.
    pub(crate) fn join(
        &mut self,
        node: NodeId,
        number: u16,
        job: JobId,
        part: ShareRequest,
        blank: Card,
    ) -> &SharedCard {
        if self.0.len() <= node.index() {
            self.0.resize_with(node.index() + 1, Vec::new);
        }
        let cards = &mut self.0[node.index()];
        let at = cards.binary_search_by_key(&number, |card| card.number).unwrap_or_else(|at| {
            cards.insert(at, SharedCard { number, card: blank, jobs: SmallVec::new(), opener: job });
            at
        });
        cards[at].card.take(&part);
        cards[at].jobs.push((job, part));
        &cards[at]
    }

    /// Takes the part of a card from `job`. Returns the part, the number of jobs that are left, and the job that opened
    /// the card; `None` where the job has no part of it.
    pub(crate) fn leave(&mut self, node: NodeId, number: u16, job: JobId) -> Option<(ShareRequest, u32, JobId)> {
        let cards = self.0.get_mut(node.index())?;
        let at = cards.binary_search_by_key(&number, |card| card.number).ok()?;
        let place = cards[at].jobs.iter().position(|(other, _)| *other == job)?;
        let (_, part) = cards[at].jobs.remove(place);
        cards[at].card.give_back(&part);
        let (left, opener) = (cards[at].jobs.len() as u32, cards[at].opener);
        if left == 0 {
            cards.remove(at);
        }
        Some((part, left, opener))
    }
}
