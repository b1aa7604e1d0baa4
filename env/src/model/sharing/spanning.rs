//! Placement of a request in "compute % + MiB" over several cards.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{Card, ShareRequest};

/// Order in which cards are filled; the lowest index wins ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// Fullest card that fits (HAMi's binpack).
    Fullest,
    /// Emptiest card that fits (HAMi's spread).
    Emptiest,
}

/// Part of a request on one card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Index of the card.
    pub card: usize,
    /// Part of the request on this card.
    pub part: ShareRequest,
}

/// Splits a request over the fewest cards that can hold it, as evenly as whole numbers allow;
/// `None` where no number of cards can.
///
/// The parts add up to the request exactly. A request of less than a card gets one card or none: it
/// is not split merely because no card has enough room.
pub fn place(cards: &[Card], request: &ShareRequest, spread: Spread) -> Option<Vec<Grant>> {
    let largest = cards.iter().map(|card| card.total_mib).max()?.max(1);
    let fewest = request.compute_percent.div_ceil(100).max(request.memory_mib.div_ceil(largest)).max(1);
    // A request of less than a card is never split.
    let most = if fewest == 1 { 1 } else { cards.len() as u32 };
    (fewest..=most).find_map(|count| place_on(cards, request, spread, count))
}

/// Splits a request over exactly `count` cards; `None` where they cannot hold the request. Both amounts descend from
/// part to part, so a card that holds one part would hold the next, and no choice of card for a part can make the next
/// part impossible.
pub fn place_on(cards: &[Card], request: &ShareRequest, spread: Spread, count: u32) -> Option<Vec<Grant>> {
    let mut grants: Vec<Grant> = Vec::with_capacity(count as usize);
    for at in 0..count {
        let part = request.part(count, at);
        let unused = |card: &usize| grants.iter().all(|grant| grant.card != *card);
        let fitting = (0..cards.len()).filter(|&card| unused(&card) && cards[card].fit(&part).is_ok());
        let card = match spread {
            Spread::Fullest => fitting.max_by_key(|&card| (cards[card].score(&part), Reverse(card))),
            Spread::Emptiest => fitting.min_by_key(|&card| (cards[card].score(&part), card)),
        }?;
        grants.push(Grant { card, part });
    }
    Some(grants)
}
