//! Jobs that a queue can tell apart by their age only: what fits one of them fits all, so a
//! scheduler that has found no place for one need not look at the others.

use std::collections::BTreeMap;

use super::SpeedTables;
use crate::cluster::TypeId;
use crate::job::{JobId, Workload};

/// Properties of a waiting job that a queueing scheduler looks at beside its age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobShape {
    /// Index of the tenant.
    pub tenant: u32,
    /// The higher the earlier.
    pub priority: i32,
    /// Accelerators asked for.
    pub gpus: u32,
    /// Accelerator types it can run on, ascending.
    pub kinds: Vec<TypeId>,
}

/// The shapes of a workload's jobs.
#[derive(Clone, Debug, Default)]
pub struct JobShapes {
    all: Vec<JobShape>,
    of_job: Vec<u32>,
}

impl JobShapes {
    pub(super) fn new(workload: &Workload, speeds: &SpeedTables, types: usize) -> Self {
        let mut known: BTreeMap<JobShape, u32> = BTreeMap::new();
        let of_job = workload.jobs.iter().map(|job| {
            let kinds = TypeId::first(types).filter(|&kind| speeds.runs_on(job.work, kind)).collect();
            let request = &job.request;
            let shape = JobShape { tenant: request.tenant, priority: request.priority, gpus: request.gpus, kinds };
            let next = known.len() as u32;
            *known.entry(shape).or_insert(next)
        });
        let of_job = of_job.collect();
        let mut all: Vec<(u32, JobShape)> = known.into_iter().map(|(shape, index)| (index, shape)).collect();
        all.sort_unstable_by_key(|(index, _)| *index);
        Self { all: all.into_iter().map(|(_, shape)| shape).collect(), of_job }
    }

    /// Number of shapes; indices are below it.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The shape with this index.
    pub fn get(&self, index: u32) -> &JobShape {
        &self.all[index as usize]
    }

    /// Index of the shape of `job`.
    pub fn of(&self, job: JobId) -> u32 {
        self.of_job[job.index()]
    }
}
