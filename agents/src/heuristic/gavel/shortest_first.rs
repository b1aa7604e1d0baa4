//! Shortest job first over accelerators that differ (Gavel, section 4.3).
//!
//! The paper minimises the time of the job that is done first: the minimum over jobs of the steps left over the
//! speed under the shares. That leaves the shares of all other jobs open. Here this rule gives them too: with
//! the speed of the first job kept, the time of the next is least, and so on.
//!
//! Each of these programs is a fractional knapsack, for one job has one unit of time and each type some
//! accelerators left, so it is solved by taking the fastest type first. Types of equal speed are filled in their
//! order. Unlike the least sum of completion times, which as a static program gives every job a share in
//! proportion to the square root of its work, this serves short jobs first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::instance::{GavelInstance, TimeShares};

/// Shares of time under which the shortest job is done soonest, then the next with the speed of that one kept,
/// and so on. Jobs do not share accelerators.
pub fn shortest_first(instance: &GavelInstance) -> TimeShares {
    let mut room: Vec<f64> = instance.counts.iter().map(|&count| f64::from(count)).collect();
    let mut allocation = TimeShares::zero(instance);
    let mut waiting: BinaryHeap<Reverse<(u64, usize)>> =
        (0..instance.jobs.len()).map(|job| Reverse((bits(fastest(instance, &room, job).secs), job))).collect();
    while let Some(Reverse((secs, job))) = waiting.pop() {
        let found = fastest(instance, &room, job);
        let now = bits(found.secs);
        if now > secs && waiting.peek().is_some_and(|Reverse(next)| *next < (now, job)) {
            // Room only shrinks, so times only grow. A job with a longer time than before waits for its new turn.
            waiting.push(Reverse((now, job)));
            continue;
        }
        for (kind, share) in found.shares {
            room[kind] -= share * f64::from(instance.jobs[job].gpus);
            allocation.row_mut(job)[kind] = share;
        }
    }
    allocation
}

/// Best shares of one job in what is left.
struct Fastest {
    /// Time for the steps left, seconds; infinite where nothing is left.
    secs: f64,
    shares: Vec<(usize, f64)>,
}

fn fastest(instance: &GavelInstance, room: &[f64], job: usize) -> Fastest {
    let gpus = instance.jobs[job].gpus;
    let runs = |&(kind, _): &(usize, f64)| gpus <= instance.counts[kind];
    let rates = instance.rates(job).enumerate().filter_map(|(kind, rate)| Some((kind, rate?)));
    let mut kinds: Vec<(usize, f64)> = rates.filter(runs).collect();
    kinds.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let (mut time, mut speed) = (1.0_f64, 0.0);
    let mut shares = Vec::with_capacity(kinds.len());
    for (kind, rate) in kinds {
        let share = time.min(room[kind].max(0.0) / f64::from(gpus));
        if share > 0.0 {
            time -= share;
            speed += share * rate;
            shares.push((kind, share));
        }
    }
    Fastest { secs: instance.jobs[job].steps_left / speed, shares }
}

/// Bits of a time, which order as the times do.
fn bits(secs: f64) -> u64 {
    secs.max(0.0).to_bits()
}
