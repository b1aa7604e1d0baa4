//! Observation of the changes of a plan: ratios and logarithms of order one, none of them a constant of an
//! application.

use goodput_env::cluster::TypeId;
use goodput_env::gym::Layout;
use goodput_env::placement::Placement;
use goodput_env::plan::{Change, Plan};
use goodput_env::state::Phase;
use goodput_env::view::{ClusterView, JobView};

use crate::nets::slots::{self, slot_layout};

/// Features of a change. Times are logarithms of hours, with a minute as the shortest time that matters.
pub const CHANGE_FEATURES: [&str; 18] = [
    // 1 for every change.
    "present",
    // Length of a restart.
    "log_restart_secs",
    "log_age_secs",
    // Time with accelerators.
    "log_executed_secs",
    "log_attained_gpu_secs",
    // Time since the last change of the job.
    "log_unchanged_secs",
    "log_restarts",
    // Restarts of the job so far over the time that it ran: the share that restarts have of its life.
    "log_restart_share",
    "log_gpus",
    // Logarithm of the accelerators after the change over those before it; 0 where the job stops.
    "log_growth",
    // 1 where the job loses all of its accelerators.
    "stops",
    // 1 where their number stays.
    "moves",
    // 1 where their type changes.
    "changes_type",
    // 1 while the job restarts already.
    "starting",
    // Logarithm of the speed after the change over that before it; 0 where one of them is not known.
    "log_speedup",
    "speedup_unknown",
    // Time until completion at the present size; 0 where it is not known.
    "log_remaining_secs",
    "remaining_unknown",
];

/// Features of the cluster and of the plan as a whole.
pub const GLOBALS: [&str; 5] = ["log_pressure", "waiting_share", "free_share", "started_share", "changed_share"];

/// Layout of an observation with room for so many changes. The one verb is to hold a change back.
pub const fn layout(changes: usize) -> Layout {
    slot_layout(changes, CHANGE_FEATURES.len(), GLOBALS.len())
}

/// SHA-256, in hexadecimal, of the names of the features.
pub fn schema_hash() -> String {
    slots::schema_hash("hold", &CHANGE_FEATURES, &GLOBALS)
}

fn hours(secs: f64) -> f64 {
    ((secs.clamp(0.0, 1e12) + 60.0) / 3600.0).ln()
}

fn flag(on: bool) -> f64 {
    f64::from(u8::from(on))
}

/// Writes the features of the changes at `places` of the plan, change by change, and then those of the cluster.
pub(super) fn observe(view: &ClusterView<'_>, plan: &Plan, places: &[usize], into: &mut Vec<f32>) {
    into.clear();
    for &place in places {
        let change = &plan.changes[place];
        let Some(job) = view.job(change.job) else { continue };
        into.extend(of_change(view, &job, change).map(|feature| feature as f32));
    }
    into.extend(of_cluster(view, plan, places.len()).map(|feature| feature as f32));
}

fn of_change(view: &ClusterView<'_>, job: &JobView<'_>, change: &Change) -> [f64; CHANGE_FEATURES.len()] {
    let (held, wanted) = (job.gpus(), change.placement.gpus());
    let (from, to) = (job.kind(), type_of(view, &change.placement).unwrap_or(job.kind()));
    let executed = job.executed().as_secs_f64();
    let restart = job.restart_secs();
    let restarts = f64::from(job.state.restarts);
    let speeds = job.rate_on(from, held).zip(job.rate_on(to, wanted)).filter(|(one, other)| *one > 0.0 && *other > 0.0);
    let remaining = job.remaining_secs(held).filter(|secs| secs.is_finite());
    [
        1.0,
        hours(restart),
        hours(job.age().as_secs_f64()),
        hours(executed),
        hours(job.attained_gpu_millis() as f64 / 1e3),
        hours((view.now - job.state.changed).as_secs_f64()),
        restarts.ln_1p(),
        ((restarts * restart + 60.0) / (executed + 60.0)).ln(),
        f64::from(held.max(1)).ln(),
        if wanted == 0 { 0.0 } else { (f64::from(wanted) / f64::from(held.max(1))).ln() },
        flag(wanted == 0),
        flag(wanted == held),
        flag(from != to),
        flag(matches!(job.state.phase, Phase::Starting { .. })),
        speeds.map_or(0.0, |(before, after)| (after / before).ln().clamp(-5.0, 5.0)),
        flag(speeds.is_none() && wanted > 0),
        remaining.map_or(0.0, hours),
        flag(remaining.is_none()),
    ]
}

/// Type of the accelerators of a placement; `None` for an empty one.
fn type_of(view: &ClusterView<'_>, placement: &Placement) -> Option<TypeId> {
    placement.slices().first().map(|slice| view.cluster().nodes[slice.node.index()].accelerator)
}

fn of_cluster(view: &ClusterView<'_>, plan: &Plan, changed: usize) -> [f64; GLOBALS.len()] {
    let (jobs, nodes) = (view.active().max(1) as f64, view.cluster().nodes.len().max(1) as f64);
    let waiting = view.jobs().filter(|job| !job.state.is_allocated()).count() as f64;
    let starts = |change: &&Change| {
        view.job(change.job).is_some_and(|job| !job.state.is_allocated()) && !change.placement.is_empty()
    };
    let started = plan.changes.iter().filter(starts).count() as f64;
    let gpus = f64::from(view.cluster().total_gpus().max(1));
    [(jobs / nodes).ln(), waiting / jobs, f64::from(view.total_free()) / gpus, started / jobs, changed as f64 / jobs]
}
