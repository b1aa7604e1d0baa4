//! Flexible workers on accelerators of other types, where the run lets jobs mix them: a T4 that inference lends
//! counts as the fraction of a V100 that it is for the job (normalised workers; Aryl, arXiv:2202.07896).
//!
//! The base demand stays on one type. A job mixes only where it is the faster for it: on several types it keeps a part
//! of the ideal speed.

use goodput_env::cluster::TypeId;
use goodput_env::placement::Placement;
use goodput_env::view::{ClusterView, JobView};

use super::{ArylServers, WorkerRole};

/// Workers that a job has: its accelerators, and normalised ones where they are of several types.
pub(super) fn size(job: &JobView<'_>) -> u32 {
    let placement = &job.state.placement;
    let mixed = job.is_mixed(placement).then(|| job.normalised_workers(placement)).flatten();
    mixed.map_or(job.gpus(), |workers| workers as u32)
}

/// Whether a job of several types may have further workers of `gpus` granted ones, a fraction of one at least.
pub(super) fn may_grow(view: &ClusterView<'_>, job: &JobView<'_>, gpus: u32) -> bool {
    let placement = &job.state.placement;
    let workers = view.mixing().filter(|_| job.is_mixed(placement)).and_then(|_| job.normalised_workers(placement));
    workers.is_some_and(|workers| workers < f64::from(gpus))
}

/// Adds flexible workers of slower types than `kind` up to `gpus` normalised ones, the fastest of them first, as many
/// as find a place. Adds none where the job would not be the faster for them.
pub(super) fn grow(
    view: &ClusterView<'_>,
    job: &JobView<'_>,
    servers: &mut ArylServers,
    placement: &mut Placement,
    kind: TypeId,
    gpus: u32,
) {
    if view.mixing().is_none() || job.min_gpus() == job.request().max_gpus() {
        return;
    }
    let Some(mut workers) = job.normalised_workers(placement) else { return };
    let before = placement.gpus();
    let rate = if job.is_mixed(placement) { job.mixed_rate(placement) } else { job.rate_on(kind, before) };
    let weight = |other: TypeId| Some((job.worker(other, kind)?, other));
    let others = view.cluster().type_ids().filter(|&other| other != kind && job.runs_on(other));
    let mut slower: Vec<(f64, TypeId)> = others.filter_map(weight).filter(|(weight, _)| *weight <= 1.0).collect();
    slower.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (weight, other) in slower {
        while workers + weight <= f64::from(gpus) + 1e-9 && servers.place(placement, other, WorkerRole::Flexible, &[1])
        {
            workers += weight;
        }
    }
    if placement.gpus() > before && job.mixed_rate(placement).is_none_or(|mixed| rate.is_some_and(|rate| mixed <= rate))
    {
        *placement = servers.scale_in(placement, before);
    }
}
