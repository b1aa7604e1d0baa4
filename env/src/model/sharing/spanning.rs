//! A request in "compute % + MiB" over as many cards as it needs.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{Card, ShareRequest};

/// Which cards are filled first; the lowest index on ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// The fullest that fits (HAMi's binpack).
    Fullest,
    /// The emptiest (HAMi's spread).
    Emptiest,
}

/// A part of a request on one card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The card, by its index.
    pub card: usize,
    /// What of the request is there.
    pub part: ShareRequest,
}

/// Splits a request over the fewest cards that can hold it, as evenly as whole numbers allow; `None` where no number of cards does. The parts add up to
/// the request exactly. Whoever needs less than a card gets one card or none: nobody is split for want of room alone.
pub fn place(cards: &[Card], request: &ShareRequest, spread: Spread) -> Option<Vec<Grant>> {
    let largest = cards.iter().map(|card| card.total_mib).max()?.max(1);
    let fewest = request.compute_percent.div_ceil(100).max(request.memory_mib.div_ceil(largest)).max(1);
    let most = if fewest == 1 { 1 } else { cards.len() as u32 };
    (fewest..=most).find_map(|count| over(cards, request, spread, count))
}

/// The same over exactly `count` cards. Parts descend in both amounts, so a card that holds one holds the next, and taking any card for
/// the first never spoils the second.
fn over(cards: &[Card], request: &ShareRequest, spread: Spread, count: u32) -> Option<Vec<Grant>> {
    let part = |whole: u32, at: u32| whole / count + u32::from(at < whole % count);
    let mut grants: Vec<Grant> = Vec::with_capacity(count as usize);
    for at in 0..count {
        let part = ShareRequest {
            compute_percent: part(request.compute_percent, at),
            memory_mib: part(request.memory_mib, at),
        };
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
