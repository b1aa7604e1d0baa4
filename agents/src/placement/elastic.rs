//! New sizes for running jobs, packed where that costs no further restart.
//!
//! A job that keeps its size keeps its nodes. A job that changes its size restarts wherever it goes, so it is
//! placed anew on as few nodes as are free, unless it can stay on as few as it needs. Where elastic
//! resizes overlap with training ([`Resize`]), a job that keeps a share goes on without a pause. There a job
//! that shrinks keeps what it can, and only a job that would outgrow the fewest nodes moves.

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::Resize;
use goodput_env::view::{ClusterView, JobView};

use super::{Free, Packer};

/// Writes into `plan` what takes every job of `sizes` to its number of accelerators, 0 for none; a
/// job that keeps its size keeps its nodes. Jobs that can stay where they are come first. Then those
/// that start or move are placed in descending order of what they lose on one node more than they
/// need, then of size, then in the order of `sizes`. A job that finds less room on one type of
/// accelerator gets that, or is stopped where it cannot run on it. What makes a job no faster because it
/// is on a further node stays free.
pub fn resize(view: &ClusterView<'_>, free: &mut Free, sizes: &[(JobView<'_>, u32)], plan: &mut Plan) {
    free.reset(view);
    let cluster = view.cluster();
    let mut larger: Vec<&(JobView<'_>, u32)> = Vec::new();
    let mut moving: Vec<&(JobView<'_>, u32)> = Vec::new();
    for entry in sizes {
        let (job, gpus) = entry;
        if *gpus > job.gpus() {
            larger.push(entry);
        } else if *gpus < job.gpus() {
            let held = &job.state.placement;
            let kept = shrunk(held, *gpus);
            free.release(held);
            if view.resizing() != Resize::StopRestart || kept.nodes() <= fewest_nodes(cluster, held, *gpus) {
                take(free, &kept);
                plan.set(job.id(), kept);
            } else {
                moving.push(entry);
            }
        }
    }
    larger.sort_by_key(|(_, gpus)| std::cmp::Reverse(*gpus));
    for entry in larger {
        let (job, gpus) = entry;
        match grown(view, free, &job.state.placement, *gpus) {
            Some(placement) => plan.set(job.id(), placement),
            None => moving.push(entry),
        }
    }
    // What those hold that outgrow their nodes is free for all that move.
    let growing = moving.iter().filter(|(job, gpus)| *gpus > job.gpus());
    growing.for_each(|(job, _)| free.release(&job.state.placement));
    let mut moving: Vec<(f64, &(JobView<'_>, u32))> =
        moving.into_iter().map(|entry| (spread_loss(&entry.0, entry.1), entry)).collect();
    moving.sort_by(|(a_loss, a), (b_loss, b)| b_loss.total_cmp(a_loss).then(b.1.cmp(&a.1)));
    for (_, (job, gpus)) in moving {
        let held = &job.state.placement;
        // Where no more can be had than what the job held, the packer takes the same again.
        let placement = Packer::FewestNodes.place_most(cluster, free, held, *gpus, job.min_gpus());
        let placement = placement.map(|placement| useful(cluster, free, job, placement));
        plan.set(job.id(), placement.unwrap_or_else(Placement::none));
    }
}

/// The part of a free `placement` that makes the job faster: a slice on a further node is given back where
/// the job is as fast without it. The job stays on what it held where that is as fast.
fn useful(cluster: &Cluster, free: &mut Free, job: &JobView<'_>, mut placement: Placement) -> Placement {
    let rate = |placement: &Placement| {
        let more = placement.nodes().saturating_sub(fewest_nodes(cluster, placement, placement.gpus()));
        job.rate_over(job.kind(), placement.gpus(), more).unwrap_or(0.0)
    };
    let mut speed = rate(&placement);
    while placement.nodes() > 1 {
        let least = placement.slices().iter().map(|slice| slice.gpus).min().unwrap_or(0);
        let without = shrunk(&placement, placement.gpus() - least);
        let slower = without.gpus() < job.min_gpus() || rate(&without) < speed;
        if slower {
            break;
        }
        speed = rate(&without);
        free.release(&placement);
        take(free, &without);
        placement = without;
    }
    let held = &job.state.placement;
    if held.gpus() >= job.min_gpus() && held.gpus() <= placement.gpus() && rate(held) >= speed {
        free.release(&placement);
        if free.holds(held) {
            take(free, held);
            return held.clone();
        }
        take(free, &placement);
    }
    placement
}

/// Part of its packed speed that a job of this size loses on one node more than it needs, at most 1.
pub fn spread_loss(job: &JobView<'_>, gpus: u32) -> f64 {
    let (Some(packed), Some(spread)) = (job.rate(gpus), job.rate_over(job.kind(), gpus, 1)) else { return 0.0 };
    if packed > 0.0 { 1.0 - spread / packed } else { 0.0 }
}

fn take(free: &mut Free, placement: &Placement) {
    for slice in placement.slices() {
        free.take(slice.node, slice.gpus);
    }
}

/// Fewest nodes for `gpus` of the type that `held` is on.
fn fewest_nodes(cluster: &Cluster, held: &Placement, gpus: u32) -> u32 {
    let kind = held.slices().first().map(|slice| cluster.type_of(slice.node));
    kind.map_or(0, |kind| gpus.div_ceil(cluster.gpus_per_node_of(kind).max(1)))
}

/// `gpus` of what `held` holds: the largest slices whole, the first of equal ones, in their old
/// order.
fn shrunk(held: &Placement, gpus: u32) -> Placement {
    let mut order: Vec<usize> = (0..held.slices().len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(held.slices()[at].gpus));
    let mut keep = vec![0; order.len()];
    let mut left = gpus;
    for at in order {
        keep[at] = held.slices()[at].gpus.min(left);
        left -= keep[at];
    }
    held.slices().iter().zip(keep).map(|(slice, gpus)| (slice.node, gpus)).collect()
}

/// `held` and more up to `gpus`, if that spans no more nodes than it has to.
fn grown(view: &ClusterView<'_>, free: &mut Free, held: &Placement, gpus: u32) -> Option<Placement> {
    let cluster = view.cluster();
    let kind = cluster.type_of(held.slices().first()?.node);
    let mut left = gpus - held.gpus();
    let mut after: Vec<(NodeId, u32)> = Vec::with_capacity(held.slices().len());
    for slice in held.slices() {
        let more = free.on(slice.node).min(left);
        left -= more;
        after.push((slice.node, slice.gpus + more));
    }
    let room = (fewest_nodes(cluster, held, gpus) as usize).checked_sub(after.len())?;
    let more: Placement =
        after.iter().zip(held.slices()).map(|(&(node, now), slice)| (node, now - slice.gpus)).collect();
    take(free, &more);
    let rest = free.pack(kind, left);
    if rest.as_ref().is_none_or(|rest| rest.slices().len() > room) {
        // Nothing may be taken where the result spans too many nodes.
        free.release(&more);
        rest.iter().for_each(|rest| free.release(rest));
        return None;
    }
    after.extend(rest.iter().flat_map(|rest| rest.slices()).map(|slice| (slice.node, slice.gpus)));
    Some(after.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shrinking_job_keeps_its_largest_slices() {
        let held = Placement::from_iter([(NodeId(3), 1), (NodeId(1), 4), (NodeId(2), 2)]);
        assert_eq!(shrunk(&held, 5), Placement::from_iter([(NodeId(1), 4), (NodeId(2), 1)]));
        assert_eq!(shrunk(&held, 0), Placement::none());
        assert_eq!(shrunk(&held, 7), held);
    }
}
