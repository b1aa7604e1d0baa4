//! Views of jobs on accelerators of several types.

use super::{ClusterView, JobView};
use crate::cluster::TypeId;
use crate::placement::Placement;

impl ClusterView<'_> {
    /// Part of the ideal speed that a job on several types keeps; `None` where a job holds one type only.
    pub fn mixing(&self) -> Option<f64> {
        self.scenario.options.mixing
    }

    /// Whether `job` may hold `placement`, which is on several types: the run lets jobs mix, the speed is known on each
    /// type, and there are no more workers than the job can use, a slower accelerator counting as a fraction of one.
    pub fn may_mix(&self, job: &JobView<'_>, placement: &Placement) -> bool {
        let workers = job.normalised_workers(placement).map(|count| (count - 1e-9).ceil() as u32);
        job.mixed_rate(placement).is_some() && workers.is_some_and(|workers| workers <= job.request().max_gpus())
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

    /// Work per second on a placement of several types; `None` where jobs hold one type only, or where it is not known.
    pub fn mixed_rate(&self, placement: &Placement) -> Option<f64> {
        self.known.scenario.mixed_rate(self.state.id, self.state.epoch, placement)
    }
}
