//! Flexible workers on accelerators of other types, where the run lets jobs mix them: a T4 that inference lends counts as
//! the fraction of a V100 that it is for the job (normalised workers; Aryl, arXiv:2202.07896).
//!
//! Slower accelerators are the last to be given and the first to go. At each decision those that jobs hold count as free
//! until all base demands, and all flexible workers of a job's own type, have their places. A job mixes only where it is
//! the faster for it, because on several types it keeps a part of the ideal speed.

use std::collections::BTreeMap;

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::placement::{Placement, Slice};
use goodput_env::plan::Plan;
use goodput_env::view::{ClusterView, JobView};

use super::{ArylServers, WorkerRole, is_elastic};

/// What a job holds of its own type, which is the type of its base demand; `None` where it holds no other.
pub(super) fn own(view: &ClusterView<'_>, job: &JobView<'_>) -> Option<Placement> {
    let placement = &job.state.placement;
    let of_own = |slice: &&Slice| view.cluster().type_of(slice.node) == job.kind();
    let own = || placement.slices().iter().filter(of_own).map(|slice| (slice.node, slice.gpus)).collect();
    job.is_mixed(placement).then(own)
}

/// Gives what is left of slower types to elastic jobs, in order of submission: first what they held, then more, up to
/// their `granted` workers. `plan` has what jobs are to hold of their own types where that changes.
pub(super) fn extend(
    view: &ClusterView<'_>,
    jobs: &[JobView<'_>],
    granted: &[u32],
    servers: &mut ArylServers,
    plan: &mut Plan,
) {
    if view.mixing().is_none() {
        return;
    }
    let mut planned: BTreeMap<JobId, Placement> =
        plan.changes.drain(..).map(|change| (change.job, change.placement)).collect();
    for (job, &gpus) in jobs.iter().zip(granted) {
        let own = planned.remove(&job.id()).or_else(|| own(view, job)).unwrap_or_else(|| job.state.placement.clone());
        let wanted = if own.is_empty() || !is_elastic(job) { own } else { extended(view, job, servers, own, gpus) };
        if wanted != job.state.placement {
            plan.set(job.id(), wanted);
        }
    }
}

/// `own` with slower accelerators up to `gpus` normalised workers; `own` alone where the job is no faster with them.
fn extended(
    view: &ClusterView<'_>,
    job: &JobView<'_>,
    servers: &mut ArylServers,
    own: Placement,
    gpus: u32,
) -> Placement {
    let Some(kind) = own.slices().first().map(|slice| view.cluster().type_of(slice.node)) else { return own };
    let weight = |other: TypeId| Some((job.worker(other, kind)?, other));
    let others = view.cluster().type_ids().filter(|&other| other != kind && job.runs_on(other));
    let mut slower: Vec<(f64, TypeId)> = others.filter_map(weight).filter(|(weight, _)| *weight <= 1.0).collect();
    slower.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (mut placement, mut workers) = (own.clone(), f64::from(own.gpus()));
    for (weight, other) in slower {
        let mut room = ((f64::from(gpus) - workers + 1e-9) / weight).max(0.0) as u32;
        let held = job.state.placement.slices().iter().filter(|slice| view.cluster().type_of(slice.node) == other);
        for slice in held {
            let taken = servers.take_flexible(slice.node, slice.gpus.min(room));
            placement.push(slice.node, taken);
            room -= taken;
        }
        while room > 0 && servers.place(&mut placement, other, WorkerRole::Flexible, &[1]) {
            room -= 1;
        }
        let of_other = placement.slices().iter().filter(|slice| view.cluster().type_of(slice.node) == other);
        workers += weight * of_other.map(|slice| f64::from(slice.gpus)).sum::<f64>();
    }
    let alone = job.rate_on(kind, own.gpus());
    let faster = job.mixed_rate(&placement).is_some_and(|mixed| alone.is_none_or(|alone| mixed > alone));
    if placement.gpus() > own.gpus() && !faster {
        servers.scale_in(&placement, own.gpus());
        return own;
    }
    placement
}
