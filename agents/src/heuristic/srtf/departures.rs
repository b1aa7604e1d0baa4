//! Points at which the Tiresias simulator departs from shortest remaining time first.
//!
//! The simulator differs in the order of equal jobs, and in placement where a scheme is given.

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::view::{ClusterView, JobView};

use super::AcceleratorDemand;
use crate::placement::{Free, Yarn};

/// Shortest remaining time first as the Tiresias simulator has it. The simulator sorts one list in place at every
/// event, so equal jobs keep the order that they got when they last differed.
#[derive(Clone, Debug, Default)]
pub(super) struct TiresiasSrtf {
    /// Active jobs in the order of the decision before.
    line: Vec<JobId>,
    /// Scheme by which every decision places all jobs anew; `None`: jobs that keep their size keep their nodes.
    scheme: Option<Yarn>,
    free: Free,
}

impl TiresiasSrtf {
    /// Artifact that places all jobs anew by `scheme` at every decision.
    pub(super) fn placed_anew_by(scheme: Yarn) -> Self {
        Self { scheme: Some(scheme), ..Self::default() }
    }

    /// Adds the demands of all active jobs to `keyed`, in the order in which jobs are served.
    pub(super) fn line_up(
        &mut self,
        view: &ClusterView<'_>,
        demand: impl Fn(&JobView<'_>) -> (u64, AcceleratorDemand),
        keyed: &mut Vec<(u64, AcceleratorDemand)>,
    ) {
        keep_line(&mut self.line, view);
        keyed.extend(self.line.iter().filter_map(|&job| Some(demand(&view.job(job)?))));
        // The sort is stable: equal jobs stay in the order of the decision before.
        keyed.sort_by_key(|(key, _)| *key);
        self.line.clear();
        self.line.extend(keyed.iter().map(|(_, ask)| ask.job));
    }

    /// Plan that empties the cluster and fills it again by the scheme; `None` where there is no scheme.
    pub(super) fn place_anew(&mut self, view: &ClusterView<'_>, asks: &[AcceleratorDemand]) -> Option<Plan> {
        let scheme = self.scheme?;
        self.free.reset(view);
        let held =
            |ask: &AcceleratorDemand| view.job(ask.job).map(|job| job.state.placement.clone()).unwrap_or_default();
        for ask in asks.iter().filter(|ask| ask.held > 0) {
            self.free.release(&held(ask));
        }
        let mut plan = Plan::keep();
        for ask in asks {
            let placement = scheme.place(view.cluster(), &mut self.free, ask.max).unwrap_or_default();
            if placement != held(ask) {
                plan.set(ask.job, placement);
            }
        }
        Some(plan)
    }
}

/// Forgets completed jobs and appends new ones, by id.
pub(crate) fn keep_line(line: &mut Vec<JobId>, view: &ClusterView<'_>) {
    let newest = line.iter().copied().max();
    line.retain(|&job| view.job(job).is_some());
    let old = line.len();
    // Ids follow submission, so new jobs are the last ones in view.
    line.extend(view.jobs().rev().map(|job| job.id()).take_while(|&job| newest.is_none_or(|newest| job > newest)));
    line[old..].reverse();
}
