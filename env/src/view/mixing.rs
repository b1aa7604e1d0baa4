//! Views of jobs on accelerators of several types.

use super::{ClusterView, JobView};
use crate::cluster::TypeId;
use crate::placement::Placement;

impl ClusterView<'_> {
    /// Part of the ideal speed that a job on several types keeps; `None` where the run does not let jobs mix.
    pub fn mixing(&self) -> Option<f64> {
        self.scenario.options.mixing
    }

    /// Whether `placement` is on several types of known nodes, the run lets jobs mix, and `job` can run there
    /// ([`Scenario::accepts`](crate::scenario::Scenario::accepts)).
    pub fn may_mix(&self, job: &JobView<'_>, placement: &Placement) -> bool {
        let nodes = self.scenario.cluster.nodes.len();
        self.mixing().is_some()
            && placement.slices().iter().all(|slice| slice.node.index() < nodes)
            && job.is_mixed(placement)
            && self.scenario.accepts(job.id(), job.state.epoch, placement)
    }
}

impl JobView<'_> {
    /// Whether `placement` is on accelerators of several types.
    pub fn is_mixed(&self, placement: &Placement) -> bool {
        self.known.scenario.is_mixed(placement)
    }

    /// Speed of one accelerator of type `kind` over that of one of type `reference`; `None` where one is not known.
    pub fn worker(&self, kind: TypeId, reference: TypeId) -> Option<f64> {
        let speed = |kind| self.known.scenario.speed_of_one(self.state.id, self.state.epoch, kind);
        Some(speed(kind)? / speed(reference)?)
    }

    /// Workers of a placement, in accelerators of the fastest of its types; `None` where it is empty or a speed is not
    /// known.
    pub fn normalised_workers(&self, placement: &Placement) -> Option<f64> {
        let workers = self.known.scenario.normalised_workers(self.state.id, self.state.epoch, placement);
        workers.map(|workers| workers.count)
    }

    /// Work per second on a placement of several types; `None` where the run does not let jobs mix, or where it is not
    /// known.
    pub fn mixed_rate(&self, placement: &Placement) -> Option<f64> {
        self.known.scenario.mixed_rate(self.state.id, self.state.epoch, placement)
    }
}
