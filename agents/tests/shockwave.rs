//! Shockwave's program against all ways to give jobs rounds.

use goodput_agents::heuristic::shockwave::counts::{RoundClaim, rounds_by_job};
use proptest::prelude::*;

const ROUNDS: usize = 3;

/// The best value over all numbers of rounds that fit, by trying them all; `None` where none fits.
fn best(claims: &[RoundClaim], capacity: u64, k: f64) -> Option<f64> {
    let choices = (ROUNDS + 1).pow(claims.len() as u32);
    let values = (0..choices).filter_map(|choice| {
        let rounds: Vec<usize> =
            (0..claims.len()).map(|job| choice / (ROUNDS + 1).pow(job as u32) % (ROUNDS + 1)).collect();
        let taken: u64 = claims.iter().zip(&rounds).map(|(claim, &rounds)| u64::from(claim.gpus) * rounds as u64).sum();
        let fits = taken <= capacity && claims.iter().zip(&rounds).all(|(claim, &rounds)| rounds >= claim.least);
        let utility: f64 = claims.iter().zip(&rounds).map(|(claim, &rounds)| claim.utility[rounds]).sum();
        let latest = claims.iter().zip(&rounds).map(|(claim, &rounds)| claim.left_secs[rounds]).fold(0.0, f64::max);
        fits.then_some(utility - k * latest)
    });
    values.reduce(f64::max)
}

/// Claims with concave utilities and falling times.
fn claims(sizes: impl Strategy<Value = u32>) -> impl Strategy<Value = Vec<RoundClaim>> {
    let claim = (sizes, 0_usize..2, prop::collection::vec(0.01..1.0_f64, ROUNDS), 10.0..900.0_f64, 50.0..300.0_f64);
    let claim = claim.prop_map(|(gpus, least, mut gains, left, round)| {
        gains.sort_by(|one, other| other.total_cmp(one));
        let mut utility = vec![-1.0];
        gains.iter().for_each(|gain| utility.push(utility[utility.len() - 1] + gain));
        let left_secs = (0..=ROUNDS).map(|rounds| (left - round * rounds as f64).max(0.0)).collect();
        RoundClaim { gpus, least, utility, left_secs }
    });
    prop::collection::vec(claim, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn jobs_of_one_accelerator_get_the_best_rounds(claims in claims(Just(1)), gpus in 1_u64..4, k in 0.0..0.01_f64) {
        let capacity = gpus * ROUNDS as u64;
        let ours = rounds_by_job(&claims, capacity, k).map(|counts| counts.value);
        match (ours, best(&claims, capacity, k)) {
            (Some(ours), Some(best)) => prop_assert!((ours - best).abs() < 1e-9, "{ours} against {best}"),
            (ours, best) => prop_assert_eq!(ours, best),
        }
    }

    #[test]
    fn jobs_of_several_are_within_one_round_of_the_best(
        claims in claims(prop::sample::select(vec![1_u32, 2, 4])),
        gpus in 4_u64..7,
        k in 0.0..0.01_f64,
    ) {
        let capacity = gpus * ROUNDS as u64;
        let ours = rounds_by_job(&claims, capacity, k).map(|counts| counts.value);
        match (ours, best(&claims, capacity, k)) {
            (Some(ours), Some(best)) => {
                prop_assert!(ours <= best + 1e-9 && ours >= best - 1.0, "{ours} against {best}");
            }
            (ours, best) => prop_assert_eq!(ours, best),
        }
    }
}
