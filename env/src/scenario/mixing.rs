//! Jobs on accelerators of several types. A slower accelerator counts as a fraction of a worker: its speed over that of
//! one of the fastest type (normalised workers; Li et al., Aryl, arXiv:2202.07896, on jobs of V100 that borrow T4).

use super::{Batching, Scenario};
use crate::cluster::TypeId;
use crate::job::{JobId, Work};
use crate::model::BatchConfig;
use crate::placement::{Placement, packed_shape};

/// Most accelerators at which the speed of one is looked for, where a job cannot run on one alone.
const FEWEST: u32 = 16;

/// Workers of a placement, counted in accelerators of the fastest of its types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormalisedWorkers {
    /// The fastest type of the placement, for the job.
    pub kind: TypeId,
    /// Accelerators of other types as fractions of one.
    pub count: f64,
}

impl Scenario {
    /// Whether a placement is on accelerators of several types.
    pub fn is_mixed(&self, placement: &Placement) -> bool {
        let mut kinds = placement.slices().iter().map(|slice| self.cluster.type_of(slice.node));
        let first = kinds.next();
        kinds.any(|kind| Some(kind) != first)
    }

    /// Speed of one accelerator of type `kind` for a job in `epoch`, work per second; `None` where it is not known.
    pub fn speed_of_one(&self, job: JobId, epoch: u32, kind: TypeId) -> Option<f64> {
        if let Work::Fixed { .. } = self.workload.jobs[job.index()].work {
            return Some(1.0);
        }
        (1..=FEWEST).find_map(|gpus| Some(self.packed_rate(job, epoch, kind, gpus)? / f64::from(gpus)))
    }

    /// Workers of a placement; `None` where it is empty or the speed on one of its types is not known.
    pub fn normalised_workers(&self, job: JobId, epoch: u32, placement: &Placement) -> Option<NormalisedWorkers> {
        let speed = |slice: &crate::placement::Slice| {
            let kind = self.cluster.type_of(slice.node);
            Some((kind, self.speed_of_one(job, epoch, kind)?, f64::from(slice.gpus)))
        };
        let speeds = placement.slices().iter().map(speed).collect::<Option<Vec<_>>>()?;
        let (kind, fastest, _) =
            speeds.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        let count = speeds.iter().map(|(_, speed, gpus)| gpus * speed / fastest).sum();
        Some(NormalisedWorkers { kind, count })
    }

    /// Work per second of a job on a placement of several types: the part [`SimOptions::mixing`](super::SimOptions) of
    /// its speed on as many packed accelerators of the fastest type as it has normalised workers, between whole numbers
    /// by a straight line. `None` where jobs hold one type only, or where the speed is not known.
    pub fn mixed_rate(&self, job: JobId, epoch: u32, placement: &Placement) -> Option<f64> {
        let kept = self.options.mixing?;
        if let Work::Fixed { .. } = self.workload.jobs[job.index()].work {
            return Some(kept * self.workload.jobs[job.index()].request.linear_rate(placement.gpus())?);
        }
        let NormalisedWorkers { kind, count } = self.normalised_workers(job, epoch, placement)?;
        let whole = count.floor().max(1.0);
        let below = self.packed_rate(job, epoch, kind, whole as u32)?;
        // Beyond the most replicas of the application, more workers add nothing.
        let above = self.packed_rate(job, epoch, kind, whole as u32 + 1).unwrap_or(below);
        Some(kept * (below + (above - below) * (count - whole).max(0.0)) * count.min(1.0))
    }

    /// Work per second on `gpus` packed accelerators of type `kind`, at the batch size of the run.
    fn packed_rate(&self, job: JobId, epoch: u32, kind: TypeId, gpus: u32) -> Option<f64> {
        let spec = &self.workload.jobs[job.index()];
        let Work::Application { index, .. } = spec.work else { return None };
        match self.options.batching {
            Batching::Catalog => self.speeds.best(index, kind, epoch, gpus).map(|best| best.rate),
            Batching::Requested => {
                let (app, pace) = (&self.workload.applications[index as usize], self.speeds.pace(index, kind)?);
                let shape = packed_shape(gpus, self.speeds.gpus_per_node(kind));
                let total = spec.request.batch_size.unwrap_or(app.limits.init);
                let batch: BatchConfig = pace.limits_on(&shape).split(total, gpus);
                let step = pace.step_time(&shape, batch.atomic).ok()?;
                Some(app.progress_rate(step, gpus, batch, epoch))
            }
            // Agents measure one type at a time.
            Batching::Agent | Batching::Throughput => None,
        }
    }
}
