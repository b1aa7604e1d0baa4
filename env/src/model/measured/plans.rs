//! Step times of training by published execution plans, at one total batch size.
//!
//! A plan of data, tensor and pipeline parallelism is made for a number of accelerators, and it is measured on few
//! placements. On a measured placement a job runs its fastest plan there. Elsewhere it runs a plan that was measured on
//! at most as many accelerators, and leaves the others idle. No time between two measurements is made up, and below the
//! smallest plan a job cannot run.
//!
//! - On a placement that fills nodes as measured and has the rest on one more, a job runs the fastest plan that fits:
//!   parts of two nodes of the plan may be on one node, which is not slower.
//! - Of another placement the number of nodes and of accelerators count. A job runs the fastest of the plans that were
//!   measured on at least as many nodes, or that fit however the accelerators are spread. Numbers that were measured on
//!   several placements have the time of the slowest. Where there is no such plan, those on most nodes stand in.
//!
//! The published times do not tell the synchronisation. What a step takes beyond the fastest placement of at most as
//! many accelerators is counted as synchronisation.

use std::collections::BTreeMap;

use super::curve::{Curves, Point};
use super::{MOST_NODES, MeasuredStepTimes, ProfileError, StepTime, checked, count, placement_key};
use crate::placement::packed_shape;

/// One measurement of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSample {
    /// Accelerators on each node used, e.g. `[8, 8]`.
    pub shape: Vec<u32>,
    /// Seconds of a step at the total batch size.
    pub step_secs: f64,
}

/// Fastest plans by placement.
struct Plans<'a> {
    fastest: BTreeMap<&'a [u32], f64>,
    /// By nodes and replicas: the slowest placement, and the most accelerators that it has on one node.
    counts: BTreeMap<(u32, u32), (f64, u32)>,
    /// Accelerators of a full node.
    per_node: u32,
}

impl MeasuredStepTimes {
    /// Step times from measurements of plans at the total batch size `batch`, samples.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_plans(plans: &[PlanSample], batch: u32) -> Result<Self, ProfileError> {
        for plan in plans {
            checked(&plan.shape, batch, plan.step_secs, 0.0)?;
        }
        let plans = Plans::new(plans);
        // The time belongs to the total batch, whatever part of it a replica has.
        let ends = if batch == 1 { vec![1] } else { vec![1, batch] };
        let curve = |step_secs: f64, replicas: u32| -> Vec<Point> {
            let sync_secs = step_secs - plans.packed(replicas).unwrap_or(step_secs);
            ends.iter().map(|&local_bsz| Point { local_bsz, time: StepTime { step_secs, sync_secs } }).collect()
        };
        let most = plans.counts.keys().map(|&(_, replicas)| replicas).max().unwrap_or(0);
        let filled = (1..=most).map(|replicas| packed_shape(replicas, plans.per_node));
        let filled: Vec<_> = filled.filter_map(|shape| Some((plans.fitting(&shape)?, shape))).collect();
        let filled = filled.iter().map(|(secs, shape)| (shape.as_slice(), *secs));
        let measured = plans.fastest.iter().map(|(shape, secs)| (*shape, *secs));
        // What was measured takes the place of what fits.
        let placements: BTreeMap<u64, Vec<Point>> = filled
            .chain(measured)
            .filter_map(|(shape, secs)| Some((placement_key(shape)?, curve(secs, count(shape).1))))
            .collect();
        let pairs = (1..=MOST_NODES).flat_map(|nodes| (nodes..=most).map(move |replicas| (nodes, replicas)));
        let spreads: Vec<_> = pairs
            .filter_map(|(nodes, replicas)| Some(((nodes, replicas), curve(plans.spread(nodes, replicas)?, replicas))))
            .collect();
        Ok(Self { placements: Curves::new(placements), spreads: Curves::new(spreads), max_local: batch })
    }
}

impl<'a> Plans<'a> {
    fn new(plans: &'a [PlanSample]) -> Self {
        let mut fastest: BTreeMap<&[u32], f64> = BTreeMap::new();
        for plan in plans {
            let best = fastest.entry(&plan.shape).or_insert(f64::INFINITY);
            *best = best.min(plan.step_secs);
        }
        let mut counts = BTreeMap::new();
        for (&shape, &secs) in &fastest {
            let (slowest, widest) = counts.entry(count(shape)).or_insert((0.0_f64, 0));
            *slowest = slowest.max(secs);
            *widest = shape.iter().copied().max().unwrap_or(0).max(*widest);
        }
        let per_node = plans.iter().flat_map(|plan| plan.shape.iter().copied()).max().unwrap_or(1);
        Self { fastest, counts, per_node }
    }

    /// Seconds of a step on the fastest placement of at most `replicas`.
    fn packed(&self, replicas: u32) -> Option<f64> {
        let small = self.fastest.iter().filter(|(shape, _)| count(shape).1 <= replicas);
        small.map(|(_, secs)| *secs).reduce(f64::min)
    }

    /// Seconds of a step of the fastest plan that fits into these nodes.
    fn fitting(&self, nodes: &[u32]) -> Option<f64> {
        let fitting = self.fastest.iter().filter(|(shape, _)| fits(shape, nodes));
        fitting.map(|(_, secs)| *secs).reduce(f64::min)
    }

    /// Seconds of a step on `nodes` with `replicas` in total; `None` below the smallest plan.
    fn spread(&self, nodes: u32, replicas: u32) -> Option<f64> {
        let small = || self.counts.iter().filter(|((_, of), _)| *of <= replicas);
        let widest = small().map(|((of, _), _)| *of).max()?.min(nodes);
        // Of `nodes` with at most `per_node` each, so many have at least `part` accelerators, however they are spread.
        let with = |part: u32| {
            replicas.saturating_sub(nodes * (part - 1)).div_ceil(self.per_node.saturating_sub(part - 1).max(1))
        };
        let runs = |(of, _): &(u32, u32), part: u32| *of >= widest || with(part) >= *of;
        small().filter(|(key, (_, part))| runs(key, *part)).map(|(_, (secs, _))| *secs).reduce(f64::min)
    }
}

/// Whether the parts of a plan fit into `nodes`, the largest part first, each on the first node with room.
fn fits(parts: &[u32], nodes: &[u32]) -> bool {
    let descending = |values: &[u32]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(|a, b| b.cmp(a));
        values
    };
    let mut free = descending(nodes);
    descending(parts).into_iter().all(|part| match free.iter_mut().find(|free| **free >= part) {
        Some(node) => {
            *node -= part;
            true
        }
        None => false,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn times() -> MeasuredStepTimes {
        let plan = |shape: &[u32], step_secs| PlanSample { shape: shape.to_vec(), step_secs };
        let plans = [plan(&[4], 9.0), plan(&[8], 6.0), plan(&[8], 5.0), plan(&[4, 4], 7.0), plan(&[2, 6], 8.0)];
        let wide = [plan(&[8, 8], 3.0), plan(&[4, 4, 4, 4, 4, 4], 2.0)];
        MeasuredStepTimes::of_plans(&[&plans[..], &wide].concat(), 1000).unwrap()
    }

    #[test]
    fn a_placement_has_the_fastest_plan_that_it_covers() {
        let times = times();
        let secs = |shape: &[u32]| times.step_time(shape, 77).ok().map(|time| time.step_secs);
        // Measured placements, on every node and in every order.
        assert_eq!([secs(&[8]), secs(&[4, 4]), secs(&[6, 2]), secs(&[8, 8])], [5.0, 7.0, 8.0, 3.0].map(Some));
        // Filled nodes: surplus accelerators are idle, and six parts of four fit into three nodes of eight.
        assert_eq!([secs(&[5]), secs(&[8, 4]), secs(&[8, 8, 7]), secs(&[8, 8, 8])], [9.0, 5.0, 3.0, 2.0].map(Some));
        // Other placements: as many nodes or more, or a plan that fits in any case.
        assert_eq!([secs(&[7, 7]), secs(&[5, 5, 5]), secs(&[6, 6, 6, 6])], [8.0, 8.0, 2.0].map(Some));
        // No plan for nine accelerators was measured on three nodes, and one node has at least three.
        assert_eq!([secs(&[3, 3, 3]), secs(&[1, 1, 2])], [8.0, 9.0].map(Some));
        assert_eq!([secs(&[3]), secs(&[1, 1, 1])], [None, None]);
    }

    #[test]
    fn the_rest_of_a_step_is_synchronisation() {
        let sync = |shape: &[u32]| times().step_time(shape, 77).map(|time| time.sync_secs);
        assert_eq!([sync(&[8]), sync(&[4, 4]), sync(&[8, 8])], [0.0, 2.0, 0.0].map(Ok));
        assert_eq!((times().least_replicas(), times().max_local()), (4, 1000));
    }
}
