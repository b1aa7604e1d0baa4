//! Run times of jobs that have the cluster to themselves, at the size that they ask for.

use super::Scenario;
use crate::cluster::TypeId;
use crate::job::{JobId, Work};

impl Scenario {
    /// By job: seconds that its work takes alone on the accelerators that it asks for, packed, without a restart, on
    /// the first type that it runs on; `None` where it cannot run so.
    pub fn alone_secs(&self) -> &[Option<f64>] {
        self.alone.get_or_init(|| (0..self.workload.jobs.len() as u32).map(|job| self.alone(JobId(job))).collect())
    }

    fn alone(&self, job: JobId) -> Option<f64> {
        let spec = &self.workload.jobs[job.index()];
        let kind =
            (0..self.cluster.types.len() as u16).map(TypeId).find(|kind| self.speeds.runs_on(spec.work, *kind))?;
        match spec.work {
            Work::Fixed { duration } => Some(duration.as_secs_f64()),
            Work::Steps { class, steps } => Some(steps / self.mean_work_per_sec(class, steps, kind)?),
            Work::Application { index, .. } => self.epochs_secs(job, index, kind, spec.request.gpus),
        }
    }

    fn epochs_secs(&self, job: JobId, index: u16, kind: TypeId, gpus: u32) -> Option<f64> {
        let (total, mut done, mut secs, mut epoch) = (self.total_work(job), 0.0, 0.0, 0);
        while done < total {
            let end = self.epoch_end(job, epoch);
            let rate = self.speeds.best(index, kind, epoch, gpus)?.rate;
            // An epoch without work, or without speed, would never end.
            if end <= done || rate <= 0.0 {
                return None;
            }
            secs += (end - done) / rate;
            (done, epoch) = (end, epoch + 1);
        }
        Some(secs)
    }
}
