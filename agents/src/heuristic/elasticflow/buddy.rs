//! Buddy placement with migration (ElasticFlow, section 4.3): sizes are powers of two, so jobs that are placed in
//! descending order of size never leave holes, and every job is on as few nodes as it needs.

use std::cmp::Reverse;

use goodput_env::cluster::Cluster;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::view::{ClusterView, JobView};

use crate::placement::{Free, Packer};

/// Writes the changes into `plan` that take every job of `sizes` to its number of accelerators, 0 for none. A job that
/// keeps its size moves only where another job would be spread over more nodes than it needs otherwise. On nodes with a
/// number of accelerators that is no power of two, a job may be spread, and gets what one type has left. A job on parts
/// of cards stays.
pub fn place(view: &ClusterView<'_>, free: &mut Free, sizes: &[(JobView<'_>, u32)], plan: &mut Plan) {
    // What a job on parts of cards holds is not free for another job when the job moves.
    let on_parts = |job: &JobView<'_>| job.state.placement.share().is_some();
    let placed = |(job, gpus): &&(JobView<'_>, u32)| *gpus > 0 && !(on_parts(job) && *gpus == job.gpus());
    let mut order: Vec<&(JobView<'_>, u32)> = sizes.iter().filter(placed).collect();
    order.sort_by_key(|(job, gpus)| (Reverse(*gpus), *gpus != job.gpus()));
    let changed: Vec<&(JobView<'_>, u32)> = order.iter().copied().filter(|(job, gpus)| *gpus != job.gpus()).collect();
    free.reset(view);
    sizes.iter().filter(|(job, gpus)| *gpus != job.gpus()).for_each(|(job, _)| free.release(&job.state.placement));
    let placed = packed(view.cluster(), free, &changed).unwrap_or_else(|| {
        free.reset(view);
        sizes.iter().for_each(|(job, _)| free.release(&job.state.placement));
        spread(view.cluster(), free, &order)
    });
    for (job, gpus) in sizes {
        if *gpus == 0 && job.gpus() > 0 {
            plan.set(job.id(), Placement::none());
        }
    }
    for (job, placement) in placed {
        if placement != job.state.placement {
            plan.set(job.id(), placement);
        }
    }
}

/// Placements on as few nodes as each job needs; `None` where one of them finds no such place.
fn packed<'a>(
    cluster: &Cluster,
    free: &mut Free,
    order: &[&(JobView<'a>, u32)],
) -> Option<Vec<(JobView<'a>, Placement)>> {
    let place = |(job, gpus): &&(JobView<'a>, u32)| {
        let placement = Packer::FewestNodes.place(cluster, free, *gpus)?;
        is_packed(cluster, &placement).then_some((*job, placement))
    };
    order.iter().map(place).collect()
}

/// Placements in the given order; a job that keeps its size stays where nothing is in its way.
fn spread<'a>(cluster: &Cluster, free: &mut Free, order: &[&(JobView<'a>, u32)]) -> Vec<(JobView<'a>, Placement)> {
    let place = |(job, gpus): &&(JobView<'a>, u32)| {
        let held = &job.state.placement;
        if held.gpus() == *gpus && free.holds(held) && is_packed(cluster, held) {
            held.slices().iter().for_each(|slice| free.take(slice.node, slice.gpus));
            return (*job, held.clone());
        }
        let placement = Packer::FewestNodes.place_most(cluster, free, held, *gpus, job.min_gpus());
        (*job, placement.unwrap_or_else(Placement::none))
    };
    order.iter().map(place).collect()
}

/// Whether a placement is on as few nodes as its size needs.
fn is_packed(cluster: &Cluster, placement: &Placement) -> bool {
    let Some(first) = placement.slices().first() else { return true };
    let node = cluster.gpus_per_node_of(cluster.type_of(first.node)).max(1);
    placement.nodes() <= placement.gpus().div_ceil(node)
}
