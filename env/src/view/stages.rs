//! Progress of jobs that are counted in steps, and the stages of batch size that they pass.

use super::JobView;
use crate::cluster::TypeId;
use crate::job::JobClass;

impl<'a> JobView<'a> {
    /// Class of a job that is counted in steps.
    pub fn class(&self) -> Option<&'a JobClass> {
        self.known.scenario.workload.class(self.state.id).map(|class| &**class)
    }

    /// Work done so far in the job's unit, which the job reports.
    pub fn done_work(&self) -> f64 {
        self.state.done(self.known.now)
    }

    /// Work that a step of the job does at its present batch size: 1 but where its class changes the batch size, since
    /// work counts steps of the first one.
    pub fn step_work(&self) -> f64 {
        self.class().map_or(1.0, |class| class.step_work(self.state.epoch as usize))
    }

    /// Work per second of stage `stage` of the job's class on accelerator type `kind`; `None` where the class was not
    /// measured there, or the job has no class.
    pub fn stage_rate(&self, stage: usize, kind: TypeId) -> Option<f64> {
        let kind = self.known.scenario.cluster.types.get(kind.index()).map_or("gpu", |kind| &kind.name);
        self.class()?.work_per_sec(stage, kind)
    }
}
