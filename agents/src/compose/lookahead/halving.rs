//! Sequential halving: the simulated events of a look go to the candidates that may still be the best.

use super::paired::chance_of_less;

/// Bounds of one look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Number of futures at which a look ends.
    pub futures: u32,
    /// Most events and decisions that are simulated.
    pub budget: u64,
    /// Level of the test by which a candidate has to be better than the first, shared by all candidates.
    pub level: f64,
}

/// Cost of a candidate in one future.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlayedFuture {
    /// Cost, the less the better.
    pub cost: f64,
    /// Events and decisions that were simulated.
    pub steps: u64,
}

/// The candidates of a look, as their futures show them.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The best candidate: number 0 unless another one costs less beyond chance.
    pub best: usize,
    /// Costs by candidate and future. A candidate that left early has met the first of the futures.
    pub costs: Vec<Vec<f64>>,
}

/// Judges `count` candidates. `play` plays a candidate in a future, and answers `None` where the candidate cannot be
/// played.
///
/// Candidates meet futures in one order, so that their costs are paired. After each of the rounds the worse half of
/// them goes (Karnin, Koren, Somekh, ICML 2013, algorithm 1), and the first stays to be compared with. Each round has
/// an equal part of the budget. The best of many is good by chance as well, so the level is divided by the number of
/// those that might have won (Bonferroni).
pub(super) fn judge(count: usize, bounds: Bounds, mut play: impl FnMut(usize, u32) -> Option<PlayedFuture>) -> Judged {
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); count];
    let mut left: Vec<usize> = (0..count).collect();
    let rounds = count.next_power_of_two().trailing_zeros().max(1);
    let (mut future, mut spent) = (0, 0);
    for round in 1..=rounds {
        let (most, until) = (bounds.budget * u64::from(round) / u64::from(rounds), bounds.futures * round / rounds);
        // Two futures are the fewest that say anything of chance.
        while left.len() > 1 && (future < 2 || (future < until && spent < most)) {
            left.retain(|&at| match play(at, future) {
                Some(played) => {
                    costs[at].push(played.cost);
                    spent += played.steps;
                    true
                }
                None => false,
            });
            future += 1;
        }
        if left.first() != Some(&0) {
            break;
        }
        let mean = |at: usize| costs[at].iter().sum::<f64>() / costs[at].len().max(1) as f64;
        left[1..].sort_by(|&one, &other| mean(one).total_cmp(&mean(other)));
        left.truncate(1 + (left.len() - 1).div_ceil(2));
    }
    let level = bounds.level / count.saturating_sub(1).max(1) as f64;
    let better = |&at: &usize| {
        let pairs = costs[at].iter().zip(&costs[0]).map(|(cost, first)| cost - first);
        chance_of_less(&pairs.collect::<Vec<f64>>()) < level
    };
    let best = match left.as_slice() {
        [0, best, ..] if better(best) => *best,
        // The first cannot be played in its own futures, so that nothing is known of it.
        _ => 0,
    };
    Judged { best, costs }
}

#[cfg(test)]
mod tests {
    use goodput_env::seed::{Stream, keyed};
    use rand::RngExt;

    use super::*;

    const BOUNDS: Bounds = Bounds { futures: 16, budget: 1_000_000, level: 0.05 };

    /// Cost of a candidate: that of the future, which all share, and its own.
    fn cost(own: f64, noise: f64, at: usize, future: u32) -> Option<PlayedFuture> {
        let shared = 100.0 * keyed(1, Stream::Futures, u64::from(future)).random::<f64>();
        let alone = keyed(2 + at as u64, Stream::Futures, u64::from(future)).random::<f64>() - 0.5;
        Some(PlayedFuture { cost: shared + own + noise * alone, steps: 10 })
    }

    #[test]
    fn the_best_is_found_where_it_is_better_beyond_chance() {
        let own = [5.0, 4.0, 6.0, 1.0, 5.0];
        let judged = judge(5, BOUNDS, |at, future| cost(own[at], 1.0, at, future));
        assert_eq!(judged.best, 3);
        // The first and the best met every future; the worst one left after a third of them.
        let met: Vec<usize> = judged.costs.iter().map(Vec::len).collect();
        assert!(met[0] == 16 && met[3] == 16 && met[2] < 8, "{met:?}");
        // Differences that the noise hides leave the first in its place.
        assert_eq!(judge(5, BOUNDS, |at, future| cost(5.0 - 0.01 * at as f64, 50.0, at, future)).best, 0);
        assert_eq!(judge(1, BOUNDS, |at, future| cost(5.0, 1.0, at, future)).best, 0);
    }

    #[test]
    fn candidates_that_cannot_be_played_go_and_the_budget_is_kept() {
        let mut spent = 0;
        let bounds = Bounds { budget: 200, ..BOUNDS };
        let found = judge(4, bounds, |at, future| {
            spent += 10;
            if at == 2 { None } else { cost([5.0, 4.0, 0.0, 3.0][at], 0.0, at, future) }
        });
        assert_eq!(found.best, 3, "it costs less than the first by an equal amount in every future");
        assert!(spent <= 240, "{spent}");
    }
}
