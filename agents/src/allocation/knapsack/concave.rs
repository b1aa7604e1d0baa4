//! Knapsack groups in which no step gains more than the step before, in steps of one unit a group.
//!
//! Where all units are equal, taking the largest gains first is exact. Units of 1, 2, 4 and 8
//! accelerators are not equal but divide one another, and then it stays exact to settle the
//! smallest unit first: what the larger units cannot use of the capacity goes to the best small
//! steps, and the other small steps are tied, best first, into bundles as large as the next unit
//! (sequential knapsack; Hartmann and Olmstead 1993).

use std::cmp::Ordering;

/// One group: a job that can grow by steps of `unit` accelerators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GainLadder<'a> {
    /// Weight of each step, at least 1.
    pub unit: u32,
    /// Gain of each step, none more than the step before. Steps that gain nothing are not taken.
    pub gains: &'a [f64],
}

/// Number of steps that each group climbs for the largest sum of gains within `capacity`; `None`
/// where units do not divide one another, or a gain grows.
///
/// Of equal gains the later group's comes first, as in [`super::Knapsack::solve`].
pub fn concave(groups: &[GainLadder<'_>], capacity: u32) -> Option<Vec<u32>> {
    let grows = |gains: &[f64]| gains.windows(2).any(|pair| pair[1] > pair[0]);
    let mut units: Vec<u32> = groups.iter().map(|group| group.unit).collect();
    units.sort_unstable();
    units.dedup();
    let nested = units.first().is_none_or(|&unit| unit > 0) && units.windows(2).all(|pair| pair[1] % pair[0] == 0);
    if !nested || groups.iter().any(|group| grows(group.gains)) {
        return None;
    }
    let mut steps = vec![0; groups.len()];
    if let [unit] = units[..] {
        best_steps(groups, capacity / unit, &mut steps);
        return Some(steps);
    }
    let mut left = capacity;
    let mut bundles: Vec<Bundle> = Vec::new();
    for (at, &unit) in units.iter().enumerate() {
        // Groups are taken in reverse because of equal gains the later group's comes first.
        bundles.extend(groups.iter().enumerate().rev().filter(|(_, group)| group.unit == unit).flat_map(
            |(index, group)| {
                let gains = group.gains.iter().take_while(|gain| **gain > 0.0);
                gains.map(move |&gain| Bundle { gain, groups: vec![index] })
            },
        ));
        // The sort is stable, so that the steps of one group and equal gains keep their order.
        bundles.sort_by(|one, other| other.gain.partial_cmp(&one.gain).unwrap_or(Ordering::Equal));
        let Some(&next) = units.get(at + 1) else {
            take(&mut bundles, left / unit, &mut steps);
            break;
        };
        // What the next unit cannot divide is of use to this unit alone.
        let spare = left % next / unit;
        left -= left % next;
        take(&mut bundles, spare, &mut steps);
        // Bundles descend by gain here, so the best steps are tied together.
        bundles = bundles.chunks(next.div_euclid(unit) as usize).map(Bundle::tie).collect();
    }
    Some(steps)
}

/// All units equal: the `count` largest gains, found without sorting the rest.
fn best_steps(groups: &[GainLadder<'_>], count: u32, steps: &mut [u32]) {
    let mut all: Vec<(f64, u32, u32)> = Vec::new();
    for (index, group) in groups.iter().enumerate().rev() {
        let gains = group.gains.iter().take_while(|gain| **gain > 0.0);
        // The place makes all keys distinct, so the unordered selection has one result.
        all.extend(gains.zip(all.len() as u32..).map(|(&gain, place)| (gain, place, index as u32)));
    }
    let count = all.len().min(count as usize);
    if count < all.len() {
        all.select_nth_unstable_by(count, |one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    }
    all[..count].iter().for_each(|(_, _, group)| steps[*group as usize] += 1);
}

/// Steps of one or more groups that are taken together.
#[derive(Clone, Debug)]
struct Bundle {
    gain: f64,
    groups: Vec<usize>,
}

impl Bundle {
    fn tie(parts: &[Self]) -> Self {
        Self {
            gain: parts.iter().map(|part| part.gain).sum(),
            groups: parts.iter().flat_map(|part| part.groups.iter().copied()).collect(),
        }
    }
}

fn take(bundles: &mut Vec<Bundle>, count: u32, steps: &mut [u32]) {
    let count = bundles.len().min(count as usize);
    for bundle in bundles.drain(..count) {
        for group in bundle.groups {
            steps[group] += 1;
        }
    }
}
