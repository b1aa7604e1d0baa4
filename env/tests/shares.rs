//! Parts of accelerators: HAMi's fit and score tables, requests over several cards, exact
//! accounting, isolation.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_env::model::sharing::{Card, Grant, Isolation, MigProfile, Misfit, ShareRequest, Spread, place};
use goodput_env::seed::{Stream, rng};
use proptest::prelude::*;
use rand::RngExt;

fn ask(compute_percent: u32, memory_mib: u32) -> ShareRequest {
    ShareRequest { compute_percent, memory_mib }
}

fn used(compute_percent: u32, memory_mib: u32, total_mib: u32) -> Card {
    let mut card = Card::new(total_mib, 10);
    if (compute_percent, memory_mib) != (0, 0) {
        card.take(&ask(compute_percent, memory_mib));
    }
    card
}

#[test]
fn scores_of_hami() {
    let cards = [used(10, 2000, 8000), used(70, 6000, 8000)];
    let request = ask(20, 1000);
    assert_eq!(cards.map(|card| card.score(&request).value()), [6.75, 17.75]);
    assert_eq!(place(&cards, &request, Spread::Fullest).unwrap()[0].card, 1);
    assert_eq!(place(&cards, &request, Spread::Emptiest).unwrap()[0].card, 0);
}

/// One percent and one MiB are the grain.
#[test]
fn fits_of_hami() {
    let card = used(99, 24_575, 24_576);
    assert_eq!(card.fit(&ask(1, 1)), Ok(()));
    assert_eq!(card.fit(&ask(1, 2)), Err(Misfit::Memory));
    assert_eq!(card.fit(&ask(2, 1)), Err(Misfit::Compute));
    assert_eq!(used(0, 5, 8000).fit(&ask(100, 1)), Err(Misfit::Shared));
    assert_eq!(used(100, 5, 8000).fit(&ask(0, 1)), Err(Misfit::Full));
    assert_eq!(used(0, 0, 8000).fit(&ask(150, 1)), Ok(()), "150 % of one card is all of it");
    let mut full = Card::new(8000, 1);
    full.take(&ask(1, 1));
    assert_eq!(full.fit(&ask(1, 1)), Err(Misfit::Slots));
}

#[test]
fn a_request_spans_as_few_cards_as_hold_it() {
    let cards = [used(0, 0, 16_000), used(40, 1000, 16_000), used(0, 0, 16_000)];
    let grants = place(&cards, &ask(150, 30_001), Spread::Fullest).unwrap();
    assert_eq!(
        grants,
        [Grant { card: 0, part: ask(75, 15_001) }, Grant { card: 2, part: ask(75, 15_000) },],
        "the card in use has only 60 % left"
    );
    assert_eq!(place(&cards, &ask(150, 3000), Spread::Fullest).unwrap().len(), 2);
    assert_eq!(place(&cards, &ask(180, 40_000), Spread::Emptiest).unwrap().len(), 3, "60 % and 13,333 MiB on each");
    assert_eq!(place(&cards, &ask(261, 0), Spread::Emptiest), None);
    assert_eq!(place(&[], &ask(1, 1), Spread::Emptiest), None);
}

#[test]
fn a_hundred_thousand_requests_leave_nothing_behind() {
    let mut rng = rng(1, Stream::Policy);
    let empty = vec![Card::new(24_576, 16); 8];
    let (mut cards, mut held) = (empty.clone(), Vec::new());
    for _ in 0..100_000 {
        if rng.random_range(0..3) == 0 && !held.is_empty() {
            let grants: Vec<Grant> = held.swap_remove(rng.random_range(0..held.len()));
            grants.iter().for_each(|grant| cards[grant.card].give_back(&grant.part));
            continue;
        }
        let request = ask(rng.random_range(0..250), rng.random_range(0..50_000));
        let spread = if rng.random_range(0..2) == 0 { Spread::Fullest } else { Spread::Emptiest };
        if let Some(grants) = place(&cards, &request, spread) {
            assert_eq!(grants.iter().map(|grant| grant.part.compute_percent).sum::<u32>(), request.compute_percent);
            assert_eq!(grants.iter().map(|grant| grant.part.memory_mib).sum::<u32>(), request.memory_mib);
            grants.iter().for_each(|grant| cards[grant.card].take(&grant.part));
            held.push(grants);
        }
        assert!(cards.iter().all(|card| card.compute_percent <= 100 && card.memory_mib <= card.total_mib));
    }
    for grants in held {
        grants.iter().for_each(|grant| cards[grant.card].give_back(&grant.part));
    }
    assert_eq!(cards, empty);
}

#[test]
fn isolation_kinds() {
    assert_eq!(Isolation::TimeSlice.speed(10, &[]), 1.0);
    assert_eq!(Isolation::TimeSlice.speed(10, &[90]), 0.5, "nobody keeps the others to what they asked for");
    let mps = Isolation::Mps { contention: 0.1 };
    assert_eq!((mps.speed(50, &[]), mps.speed(50, &[50])), (0.5, 0.5 * 0.95));
    assert_eq!(Isolation::Mig.speed(50, &[43]), Isolation::Mig.speed(50, &[]));
    assert_eq!(MigProfile::of(&ask(30, 0), 80_000), Some(MigProfile { compute: 3, memory: 4 }));
    assert_eq!(MigProfile::of(&ask(1, 10_001), 80_000), Some(MigProfile { compute: 2, memory: 2 }));
    assert_eq!(MigProfile::of(&ask(101, 0), 80_000), None);
}

proptest! {
    /// Greedy choice finds a place whenever there is one: all subsets of cards are tried.
    #[test]
    fn placing_is_complete(
        state in prop::collection::vec((0_u32..=100, 0_u32..=1000, 0_u32..3), 1..6),
        compute in 0_u32..420, memory in 0_u32..4200,
    ) {
        let cards: Vec<Card> = state.iter().map(|&(compute, memory, jobs)| {
            let card = Card::new(1000, 3);
            if jobs == 0 { card } else { Card { jobs, compute_percent: compute, memory_mib: memory, ..card } }
        }).collect();
        let request = ask(compute, memory);
        let fewest = compute.div_ceil(100).max(memory.div_ceil(1000)).max(1);
        let most = if fewest == 1 { 1 } else { cards.len() as u32 };
        let possible = (fewest..=most).any(|count| {
            let parts: Vec<ShareRequest> = (0..count).map(|at| ask(
                compute / count + u32::from(at < compute % count), memory / count + u32::from(at < memory % count),
            )).collect();
            assignable(&cards, &parts, 0)
        });
        for spread in [Spread::Fullest, Spread::Emptiest] {
            prop_assert_eq!(place(&cards, &request, spread).is_some(), possible);
        }
    }
}

/// Whether the parts can be put on different cards, by trying everything.
fn assignable(cards: &[Card], parts: &[ShareRequest], taken: u32) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    (0..cards.len()).any(|card| {
        taken & (1 << card) == 0 && cards[card].fit(part).is_ok() && assignable(cards, rest, taken | 1 << card)
    })
}
