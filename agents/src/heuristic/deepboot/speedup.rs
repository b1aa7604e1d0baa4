//! Speedup of a job on more accelerators, by what is known of the job.

use std::collections::BTreeMap;

use goodput_env::job::JobId;
use goodput_env::model::GoodputModel;
use goodput_env::view::JobView;

/// Goodputs of jobs on one node and on several, kept as long as a job's model stays the same.
#[derive(Clone, Debug, Default)]
pub(super) struct SpeedupTables {
    jobs: BTreeMap<JobId, SpeedupTable>,
}

#[derive(Clone, Debug)]
struct SpeedupTable {
    model: GoodputModel,
    /// Goodput by replicas, on one node and on several; NaN where not yet computed.
    known: [Vec<f64>; 2],
}

impl SpeedupTables {
    /// Goodput of `gpus` replicas on `nodes` nodes, in a unit of the job's own. `None` where
    /// nothing is known, which counts as perfect scaling.
    pub(super) fn at(&mut self, job: &JobView<'_>, nodes: u32, gpus: u32) -> Option<f64> {
        let Some(model) = job.goodput_model() else {
            return if gpus == 0 { None } else { job.rate(gpus) };
        };
        let table = self.jobs.entry(job.id()).or_insert_with(|| SpeedupTable { model, known: Default::default() });
        if table.model != model {
            *table = SpeedupTable { model, known: Default::default() };
        }
        // The model distinguishes one node from several, but not two from three.
        let row = &mut table.known[usize::from(nodes > 1)];
        if row.len() <= gpus as usize {
            row.resize(gpus as usize + 1, f64::NAN);
        }
        let entry = &mut row[gpus as usize];
        if entry.is_nan() {
            let best = if gpus == 0 { None } else { model.best(1 + u32::from(nodes > 1), gpus) };
            *entry = best.map_or(0.0, |best| best.goodput);
        }
        Some(*entry)
    }

    /// Forgets jobs that are not active any more.
    pub(super) fn retain(&mut self, active: impl Fn(JobId) -> bool) {
        self.jobs.retain(|&job, _| active(job));
    }

    /// Goodput relative to that of `fair` replicas on one node, the artifact's fair share.
    pub(super) fn speedup(&mut self, job: &JobView<'_>, nodes: u32, gpus: u32, fair: u32) -> f64 {
        if gpus == 0 {
            return 0.0;
        }
        let most = job.goodput_model().map_or(job.request().max_gpus(), |model| model.limits.most_replicas());
        let base = self.at(job, 1, fair.min(most).max(job.min_gpus()).max(1));
        match (self.at(job, nodes, gpus), base) {
            (Some(goodput), Some(base)) if base > 0.0 => goodput / base,
            (Some(_), _) => 0.0,
            (None, _) => f64::from(gpus) / f64::from(fair.max(1)),
        }
    }
}
