//! Reach of a division: the jobs that may be moved, and the accelerators that are there to divide.

use goodput_env::state::Phase;
use goodput_env::view::{ClusterView, JobView};

/// Restarts after which a job runs undisturbed for as long as a restart takes before it may be
/// stopped again; after twice as many for twice as long.
const PATIENCE: u32 = 8;

/// Whether a job keeps what it holds, as it is: while it starts, for it has paid for what it is
/// about to get, and for the longer afterwards the more often it was stopped. However wrong the
/// utility is on jobs unlike those of its training, so of the time that a job holds accelerators an
/// ever greater part is work; without this a policy can go on for ever stopping every job on a
/// crowded cluster in favour of the next.
pub(super) fn is_left_alone(view: &ClusterView<'_>, job: &JobView<'_>) -> bool {
    match job.state.phase {
        Phase::Pending => false,
        Phase::Starting { .. } => true,
        Phase::Running => {
            let restart = job.restart_secs();
            let times = job.state.restarts / PATIENCE;
            // The undisturbed time grows with the number of restarts.
            times > 0 && (view.now - job.state.changed).as_secs_f64() < restart * f64::from(1 + times)
        }
    }
}

/// Accelerators by node that are free or held by jobs.
pub(super) fn available(view: &ClusterView<'_>) -> Vec<u32> {
    let mut available = view.free().to_vec();
    for job in view.jobs() {
        job.state.frees().iter().for_each(|slice| available[slice.node.index()] += slice.gpus);
    }
    available
}

/// Accelerators by type that are free or held by jobs.
pub(super) fn capacity(view: &ClusterView<'_>, available: &[u32]) -> Vec<u32> {
    let mut capacity = vec![0; view.cluster().types.len().max(1)];
    for (node, available) in view.cluster().nodes.iter().zip(available) {
        capacity[node.accelerator.index()] += available;
    }
    capacity
}
