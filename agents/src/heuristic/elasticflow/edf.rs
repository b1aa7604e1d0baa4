//! Earliest deadline first, the baseline of ElasticFlow (artifact: `one_queue_edf_sim_jobs`): in order of
//! deadlines, each job takes the largest size that is left. Nothing is planned ahead, and a late job keeps its
//! turn.

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::buddy;
use super::course::{SizeChoice, levels};
use crate::placement::Free;

/// Earliest deadline first over a cluster. Jobs are in ascending order of (deadline, id), those without a deadline
/// last.
#[derive(Clone, Debug, Default)]
pub struct Edf {
    free: Free,
}

impl Policy for Edf {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let due = |job: &JobView<'_>| job.request().deadline.unwrap_or(SimTime::NEVER);
        let mut order: Vec<(SimTime, JobId)> = view.jobs().map(|job| (due(&job), job.id())).collect();
        order.sort_unstable();
        let capacity = view.total_free() + view.jobs().map(|job| job.gpus()).sum::<u32>();
        let mut left = capacity;
        let mut sizes = Vec::new();
        for job in order.iter().filter_map(|(_, id)| view.job(*id)) {
            let size = match left {
                0 => None,
                _ => levels(&job, capacity, SizeChoice::All).into_iter().rfind(|level| level.gpus <= left),
            };
            let gpus = size.map_or(0, |level| level.gpus);
            left -= gpus;
            if gpus > 0 || job.gpus() > 0 {
                sizes.push((job, gpus));
            }
        }
        let mut plan = Plan::keep();
        buddy::place(view, &mut self.free, &sizes, &mut plan);
        plan
    }
}
