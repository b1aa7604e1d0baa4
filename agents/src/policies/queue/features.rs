//! Observation of a queue: features of each waiting job, then those of the cluster.

use goodput_env::gym::Layout;

use crate::heuristic::backfill::{OrderedJob, QueueMoment};
use crate::nets::slots::{self, slot_layout};

/// Features of a waiting job. Times are in seconds; a logarithm is that of one more than the number, to the base 10,
/// divided by 6, so that a million seconds is 1.
pub const JOB_FEATURES: [&str; 9] = [
    // 1 for every job.
    "present",
    // Run time that the job is expected to need.
    "log_requested",
    // Logarithm of the accelerators over that of the cluster's.
    "log_width",
    // Accelerators over the cluster's.
    "width_share",
    "log_wait",
    // Logarithm of the wait over the expected run time, at least 10 s, which is what the wait has cost so far in
    // bounded slowdown.
    "log_slowdown",
    // 1 where the job fits into what is free.
    "fits",
    // Time until so many accelerators are expected to be free.
    "log_delay",
    // That time, times the share of the cluster that is free now: what the wait of the job would leave idle.
    "log_idle",
];

/// Features of the cluster and of the queue as a whole.
pub const GLOBALS: [&str; 5] = ["free_share", "log_waiting", "log_running", "log_backlog", "fitting_share"];

/// Layout of an observation with room for `slots` waiting jobs. The one verb is to come first; to wait is never
/// allowed.
pub const fn layout(slots: usize) -> Layout {
    slot_layout(slots, JOB_FEATURES.len(), GLOBALS.len())
}

/// SHA-256, in hexadecimal, of the names of the features.
pub fn schema_hash() -> String {
    slots::schema_hash("queue", &JOB_FEATURES, &GLOBALS)
}

/// Logarithm of a number that is at least 0, about 1 for a million.
fn log(number: f64) -> f64 {
    (1.0 + number.clamp(0.0, 1e12)).log10() / 6.0
}

/// Writes the features of `jobs`, job by job, and then those of the cluster.
pub(super) fn observe(moment: &QueueMoment<'_>, jobs: &[OrderedJob<'_>], into: &mut Vec<f32>) {
    into.clear();
    let (gpus, free) = (f64::from(moment.gpus.max(1)), f64::from(moment.free));
    let mut running = moment.running.to_vec();
    running.sort_unstable();
    let mut available = moment.free;
    // By number of accelerators, the time until so many are expected to be free.
    let steps: Vec<(u32, f64)> = running
        .iter()
        .map(|(end, held)| {
            available += held;
            (available, (*end - moment.now).as_secs_f64().max(0.0))
        })
        .collect();
    let (mut fitting, mut backlog) = (0.0, 0.0);
    for job in jobs {
        let (width, requested) = (f64::from(job.request.gpus), job.planned.as_secs_f64().min(1e12));
        let fits = job.request.gpus <= moment.free;
        let delay = match fits {
            true => 0.0,
            false => {
                steps.iter().find(|(available, _)| *available >= job.request.gpus).map_or(1e6, |(_, delay)| *delay)
            }
        };
        fitting += f64::from(u8::from(fits));
        backlog += width * requested;
        let features = [
            1.0,
            log(requested),
            width.log2() / gpus.log2().max(1.0),
            width / gpus,
            log(job.waited_secs),
            2.0 * log(job.waited_secs / requested.max(10.0)),
            f64::from(u8::from(fits)),
            log(delay),
            log(delay * free / gpus),
        ];
        into.extend(features.map(|feature| feature as f32));
    }
    let waiting = jobs.len() as f64;
    let globals = [
        free / gpus,
        2.0 * log(waiting),
        2.0 * log(running.len() as f64),
        log(backlog / gpus),
        fitting / waiting.max(1.0),
    ];
    into.extend(globals.map(|feature| feature as f32));
}
