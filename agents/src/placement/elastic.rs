//! New sizes for running jobs with as little moving as possible.
//!
//! A job that shrinks keeps a part of what it has, and one that grows keeps all of it where the
//! result spans no more nodes than packing it anew could at best. Moving costs a restart under
//! every model of switching costs, and where elastic resizes overlap with training
//! (`goodput_env::scenario::Resize`) only a job that keeps a share goes on without a pause.

use goodput_env::cluster::NodeId;
use goodput_env::placement::{Placement, pack};
use goodput_env::plan::Plan;
use goodput_env::view::{ClusterView, JobView};

use super::{Free, Packer};

/// Writes into `plan` what takes every job of `sizes` to its number of accelerators, 0 for none; a
/// job that keeps its size keeps its nodes. Stops and shrinks come first, then growing and starting
/// jobs in ascending order of size, then of `sizes`. A job that finds less room on one type of
/// accelerator gets that, or is stopped where it cannot run on it.
pub fn resize(view: &ClusterView<'_>, free: &mut Free, sizes: &[(JobView<'_>, u32)], plan: &mut Plan) {
    free.reset(view.free());
    let mut larger: Vec<&(JobView<'_>, u32)> = Vec::new();
    for entry in sizes {
        let (job, gpus) = entry;
        if *gpus > job.gpus() {
            larger.push(entry);
        } else if *gpus < job.gpus() {
            free.release(&job.state.placement);
            let kept = shrunk(&job.state.placement, *gpus);
            take(free, &kept);
            plan.set(job.id(), kept);
        }
    }
    larger.sort_by_key(|(_, gpus)| *gpus);
    for (job, gpus) in larger {
        let held = &job.state.placement;
        let placement = grown(view, free, held, *gpus).or_else(|| {
            // A move gives up what is held; where no more can be had, the packer takes the same
            // again.
            free.release(held);
            Packer::FewestNodes.place_most(view.cluster(), free, held, *gpus, job.min_gpus())
        });
        plan.set(job.id(), placement.unwrap_or_else(Placement::none));
    }
}

fn take(free: &mut Free, placement: &Placement) {
    for slice in placement.slices() {
        free.take(slice.node, slice.gpus);
    }
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
    let kind = cluster.nodes[held.slices().first()?.node.index()].accelerator;
    let mut left = gpus - held.gpus();
    let mut after: Vec<(NodeId, u32)> = Vec::with_capacity(held.slices().len());
    for slice in held.slices() {
        let more = free.on(slice.node).min(left);
        left -= more;
        after.push((slice.node, slice.gpus + more));
    }
    let fewest = gpus.div_ceil(cluster.gpus_per_node_of(kind).max(1)) as usize;
    let room = fewest.checked_sub(after.len())?;
    // This is a copy, because nothing may be taken where the result spans too many nodes.
    let mut nodes = free.nodes().to_vec();
    for (&(node, now), slice) in after.iter().zip(held.slices()) {
        nodes[node.index()] -= now - slice.gpus;
    }
    if left > 0 {
        let rest = pack(cluster, &mut nodes, kind, left)?;
        if rest.slices().len() > room {
            return None;
        }
        after.extend(rest.slices().iter().map(|slice| (slice.node, slice.gpus)));
    }
    free.reset(&nodes);
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
