//! Classes of jobs that are counted in steps, with their measured speeds.

use std::collections::BTreeMap;

/// Class of jobs with one measured speed on each accelerator type: a row of a throughput matrix
/// (Gavel, OSDI'20).
///
/// A class may change its batch size while it trains, at fixed points of its progress (Shockwave, NSDI'23, section 2).
/// Work is then counted in steps of the first batch size, and each later stage has a speed of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobClass {
    /// Name, for example `ResNet-50 (batch size 64)`.
    pub name: String,
    /// Number of accelerators that a job of the class runs on.
    pub gpus: u32,
    /// Steps per second by name of accelerator type. A type that is absent was not measured or cannot run it.
    pub steps_per_sec: BTreeMap<String, f64>,
    /// Steps per second beside another job on shared accelerators: by name of accelerator type,
    /// then by name of the other job's class, which runs on as many accelerators. A pair that is
    /// absent was not measured or does not fit.
    pub steps_per_sec_beside: BTreeMap<String, BTreeMap<String, f64>>,
    /// Stages with other batch sizes that follow the first, ascending by their beginning; empty where the batch size
    /// never changes.
    pub later: Vec<BatchStage>,
    /// Steps of the first batch size in one pass over the data; `None` where it is unknown.
    pub steps_per_epoch: Option<f64>,
}

/// Part of the training of a class that has another batch size than the part before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchStage {
    /// Work that is done when the stage begins, in steps of the first batch size.
    pub begins: f64,
    /// Work that a step of this stage does, in steps of the first batch size.
    pub step_work: f64,
    /// Steps per second by name of accelerator type, as in [`JobClass::steps_per_sec`].
    pub steps_per_sec: BTreeMap<String, f64>,
}

impl JobClass {
    /// Number of stages, the first included.
    pub fn stages(&self) -> usize {
        1 + self.later.len()
    }

    /// Work that a step of stage `stage` does, in steps of the first batch size.
    pub fn step_work(&self, stage: usize) -> f64 {
        self.stage(stage).map_or(1.0, |stage| stage.step_work)
    }

    /// Work per second of stage `stage` on the accelerator type called `kind`; `None` where the class was not measured
    /// there or cannot run.
    pub fn work_per_sec(&self, stage: usize, kind: &str) -> Option<f64> {
        match self.stage(stage) {
            None => self.steps_per_sec.get(kind).copied(),
            Some(stage) => Some(stage.steps_per_sec.get(kind)? * stage.step_work),
        }
    }

    /// Work that is done when stage `stage` ends; infinite for the last one.
    pub fn stage_end(&self, stage: usize) -> f64 {
        self.later.get(stage).map_or(f64::INFINITY, |next| next.begins)
    }

    /// Stage of a job that has done `work`.
    pub fn stage_at(&self, work: f64) -> usize {
        self.later.partition_point(|stage| stage.begins <= work)
    }

    /// A later stage; `None` for the first one. A stage past the last one is the last one.
    fn stage(&self, stage: usize) -> Option<&BatchStage> {
        self.later.get(stage.min(self.later.len()).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_lasts_until_the_next_begins() {
        let speeds = |speed| BTreeMap::from([("v100".to_string(), speed)]);
        let stage = |begins, step_work, speed| BatchStage { begins, step_work, steps_per_sec: speeds(speed) };
        let class = JobClass {
            steps_per_sec: speeds(10.0),
            later: vec![stage(100.0, 4.0, 6.0), stage(300.0, 2.0, 9.0)],
            ..JobClass::default()
        };
        let stages = [0.0, 99.0, 100.0, 299.0, 300.0, 1e9].map(|work| class.stage_at(work));
        assert_eq!(stages, [0, 0, 1, 1, 2, 2]);
        assert_eq!([0, 1, 2, 3].map(|stage| class.work_per_sec(stage, "v100")), [10.0, 24.0, 18.0, 18.0].map(Some));
        assert_eq!([0, 1, 2].map(|stage| class.stage_end(stage)), [100.0, 300.0, f64::INFINITY]);
        assert_eq!(class.work_per_sec(1, "k80"), None);
    }
}
