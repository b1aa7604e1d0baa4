//! Number of rounds that each job gets in a window: Shockwave's program (section 6.1).
//!
//! The program maximises the sum of the jobs' utilities less `k` times the longest time that a job has left after the
//! window. The rounds that jobs get may take up at most all accelerators of all rounds. Sizes that are powers of two
//! always fit round by round when they fit in sum, so the order of rounds does not matter here.
//!
//! For a given longest time each job needs some least number of rounds. The utilities are concave, so the rest goes
//! round by round to the job that gains most for an accelerator, which is optimal up to the size of one job. Without
//! whole rounds the value of the program is concave in the longest time. So a search by thirds narrows the longest
//! times down, and the last ones are all looked at.

use std::collections::BinaryHeap;

/// Longest times that are all looked at.
const SCANNED: usize = 64;

/// A job of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundClaim {
    /// Accelerators of the job.
    pub gpus: u32,
    /// Fewest rounds that the job must get.
    pub least: usize,
    /// Utility of 0, 1, ... rounds; concave.
    pub utility: Vec<f64>,
    /// Run time left after 0, 1, ... rounds, seconds; never rises.
    pub left_secs: Vec<f64>,
}

/// Rounds by job, and the value of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundCounts {
    /// Rounds by job, in the order of the claims.
    pub rounds: Vec<usize>,
    /// Value of the objective.
    pub value: f64,
}

/// The best numbers of rounds in `capacity` rounds of one accelerator; `None` where the least numbers do not fit.
pub fn rounds_by_job(claims: &[RoundClaim], capacity: u64, k: f64) -> Option<RoundCounts> {
    let mut longest: Vec<f64> = claims.iter().flat_map(|claim| claim.left_secs.iter().copied()).collect();
    longest.sort_by(f64::total_cmp);
    longest.dedup();
    let solve = |at: usize| within(claims, capacity, k, longest[at]);
    // Longer times are never harder, so the shortest one that is feasible can be bisected for.
    let (mut low, mut high) = (0, longest.len().checked_sub(1)?);
    solve(high)?;
    let (mut infeasible, mut feasible) = (0, high);
    while infeasible < feasible {
        let middle = infeasible.midpoint(feasible);
        if solve(middle).is_some() { feasible = middle } else { infeasible = middle + 1 }
    }
    low = low.max(feasible);
    while high - low >= SCANNED {
        let third = (high - low) / 3;
        let value = |at| solve(at).map_or(f64::NEG_INFINITY, |counts| counts.value);
        if value(low + third) >= value(high - third) { high -= third } else { low += third }
    }
    (low..=high).filter_map(solve).reduce(|best, next| if next.value > best.value { next } else { best })
}

/// The best numbers of rounds with which no job has more than `longest` seconds left.
fn within(claims: &[RoundClaim], capacity: u64, k: f64, longest: f64) -> Option<RoundCounts> {
    let enough =
        |claim: &RoundClaim| (claim.least..claim.left_secs.len()).find(|&rounds| claim.left_secs[rounds] <= longest);
    let mut rounds: Vec<usize> = claims.iter().map(enough).collect::<Option<_>>()?;
    let taken: u64 = claims.iter().zip(&rounds).map(|(claim, &rounds)| u64::from(claim.gpus) * rounds as u64).sum();
    let mut left = capacity.checked_sub(taken)?;
    let gain = |job: usize, rounds: usize| {
        let claim = &claims[job];
        let more = claim.utility.get(rounds + 1)? - claim.utility[rounds];
        (more > 0.0).then(|| RoundGain { per_gpu: more / f64::from(claim.gpus), job })
    };
    let mut gains: BinaryHeap<RoundGain> = (0..claims.len()).filter_map(|job| gain(job, rounds[job])).collect();
    while let Some(RoundGain { job, .. }) = gains.pop() {
        let Some(rest) = left.checked_sub(u64::from(claims[job].gpus)) else { continue };
        left = rest;
        rounds[job] += 1;
        gains.extend(gain(job, rounds[job]));
    }
    let utility: f64 = claims.iter().zip(&rounds).map(|(claim, &rounds)| claim.utility[rounds]).sum();
    let latest = claims.iter().zip(&rounds).map(|(claim, &rounds)| claim.left_secs[rounds]).fold(0.0, f64::max);
    Some(RoundCounts { value: utility - k * latest, rounds })
}

/// Utility that one more round adds for each accelerator.
struct RoundGain {
    per_gpu: f64,
    job: usize,
}

impl Ord for RoundGain {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Of equal gains the older job comes first.
        self.per_gpu.total_cmp(&other.per_gpu).then(other.job.cmp(&self.job))
    }
}

impl PartialOrd for RoundGain {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RoundGain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RoundGain {}
