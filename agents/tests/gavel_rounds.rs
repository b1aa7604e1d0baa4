//! Gavel's round mechanism: time received approaches the shares, and a round breaks no rule.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::heuristic::gavel::rounds::{Combination, MayRun, OpeningCredit, RoundLedger, place_round};
use goodput_env::cluster::{Cluster, TypeId};
use goodput_env::job::JobId;
use proptest::prelude::*;

const ROUND: f64 = 360.0;

/// Ledger with the given shares and sizes, where every job runs on every type.
fn ledger(shares: &[Vec<f64>], gpus: &[u32]) -> RoundLedger {
    let kinds = shares[0].len();
    let mut ledger = RoundLedger::new(kinds, ROUND);
    for (job, &gpus) in gpus.iter().enumerate() {
        ledger.open(Combination::single(JobId(job as u32)), gpus, vec![true; kinds], OpeningCredit::HalfRound);
    }
    ledger.reset(0.0);
    for (job, share) in shares.iter().enumerate() {
        ledger.set_share(job, share);
    }
    ledger
}

/// Fraction of `rounds` rounds that each job gets on each type.
fn received(shares: &[Vec<f64>], counts: &[u32], rounds: u32) -> Vec<Vec<f64>> {
    let mut ledger = ledger(shares, &vec![1; shares.len()]);
    let order: Vec<TypeId> = TypeId::first(counts.len()).collect();
    let mut parts = vec![vec![0.0; counts.len()]; shares.len()];
    for _ in 0..rounds {
        for chosen in ledger.choose(&order, counts.to_vec(), MayRun::All) {
            ledger.receive(chosen.combination, chosen.kind, ROUND);
            parts[chosen.combination.younger.index()][chosen.kind.index()] += 1.0 / f64::from(rounds);
        }
    }
    parts
}

#[test]
fn time_received_approaches_the_shares() {
    let shares = [vec![5.0 / 11.0, 0.0], vec![5.0 / 11.0, 1.0 / 11.0], vec![1.0 / 11.0, 10.0 / 11.0]];
    let parts = received(&shares, &[1, 1], 2000);
    for (parts, shares) in parts.iter().zip(&shares) {
        for (part, share) in parts.iter().zip(shares) {
            assert!((part - share).abs() < 0.05, "{parts:?}, allocated {shares:?}");
        }
    }
}

#[test]
fn the_account_behind_its_share_wins_ties() {
    let mut ledger = ledger(&[vec![0.5], vec![0.5]], &[1, 1]);
    // Both have equal shares, but the first received all of the time: after a reset only the
    // deficits differ.
    ledger.receive(Combination::single(JobId(0)), TypeId(0), ROUND);
    ledger.reset(ROUND);
    assert_eq!(ledger.accounts()[0].deficit, [-180.0]);
    assert_eq!(ledger.accounts()[1].deficit, [180.0]);
    assert_eq!(ledger.choose(&[TypeId(0)], vec![1], MayRun::All)[0].combination, Combination::single(JobId(1)));
}

#[test]
fn a_pair_excludes_its_jobs() {
    let mut ledger = ledger(&[vec![0.2], vec![0.3]], &[1, 1]);
    let pair = Combination::pair(JobId(1), JobId(0));
    ledger.open(pair, 1, vec![true], OpeningCredit::HalfRound);
    let at = ledger.accounts().iter().position(|account| account.combination == pair).unwrap();
    ledger.set_share(at, &[0.5]);
    let chosen = ledger.choose(&[TypeId(0)], vec![2], MayRun::All);
    assert_eq!(chosen.len(), 1);
    assert_eq!(pair.jobs().collect::<Vec<_>>(), [JobId(0), JobId(1)]);
    assert_eq!(chosen[0].combination, pair);
    ledger.close(|job| job != JobId(0));
    assert_eq!(ledger.accounts().len(), 1, "a job that is gone takes its pairs with it");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_type_gives_exactly_its_shares(weights in prop::collection::vec(0.05..1.0_f64, 3..9), count in 1_u32..3) {
        // Shares that use the type up, none above 1.
        let sum: f64 = weights.iter().sum();
        let shares: Vec<Vec<f64>> = weights.iter().map(|weight| vec![weight / sum * f64::from(count)]).collect();
        prop_assume!(shares.iter().all(|share| share[0] < 1.0));
        for (parts, share) in received(&shares, &[count], 3000).iter().zip(&shares) {
            prop_assert!((parts[0] - share[0]).abs() < 0.02, "{parts:?}, allocated {share:?}");
        }
    }

    #[test]
    fn a_round_breaks_no_rule(
        jobs in prop::collection::vec((1_u32..5, 0.0..1.0_f64, 0.0..1.0_f64), 1..30),
        nodes in 1_u32..5,
    ) {
        let shares: Vec<Vec<f64>> = jobs.iter().map(|&(_, share, _)| vec![share]).collect();
        let gpus: Vec<u32> = jobs.iter().map(|&(gpus, ..)| gpus).collect();
        let mut ledger = ledger(&shares, &gpus);
        for (job, &(_, _, part)) in jobs.iter().enumerate() {
            ledger.receive(Combination::single(JobId(job as u32)), TypeId(0), part * ROUND);
        }
        let cluster = Cluster::homogeneous(nodes, 4);
        let chosen = ledger.choose(&[TypeId(0)], vec![4 * nodes], MayRun::All);
        let placed = place_round(&chosen, |_| None, &cluster, vec![4; nodes as usize]);
        prop_assert_eq!(placed.len(), chosen.len(), "what fits by number fits by node");
        let mut held = vec![0; nodes as usize];
        for (chosen, placement) in &placed {
            prop_assert_eq!(placement.gpus(), gpus[chosen.combination.younger.index()]);
            placement.slices().iter().for_each(|slice| held[slice.node.index()] += slice.gpus);
        }
        prop_assert!(held.iter().all(|&held| held <= 4));
        // Work conservation: a job that is left out does not fit.
        let left = 4 * nodes - held.iter().sum::<u32>();
        let out = (0..jobs.len()).filter(|job| chosen.iter().all(|chosen| chosen.combination.younger.index() != *job));
        prop_assert!(out.into_iter().all(|job| gpus[job] > left));
        // On the next round every job stays where it was.
        let again = place_round(&chosen, |combination| {
            let at = placed.iter().find(|(chosen, _)| chosen.combination == combination);
            at.map(|(chosen, placement)| (chosen.kind, placement.clone()))
        }, &cluster, vec![4; nodes as usize]);
        for (chosen, placement) in &placed {
            prop_assert!(again.iter().any(|(other, kept)| other == chosen && kept == placement));
        }
    }
}
