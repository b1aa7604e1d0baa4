//! Measurements of jobs of one model, so that a job need not measure again what others already
//! know.
//!
//! Jobs' agents start from nothing, so under published schedulers every job is doubled from one
//! accelerator up, with a restart each time. But people submit the same model many times. Here a
//! job of a model that was seen before in this run is taken to be as fast, size by size and type by
//! type, as the job of that model that was measured on most accelerators; what its own measurements
//! reach further than is its own. Efficiency, which moves with a job's progress, is its own from
//! the first measurement on; before, it is that of the model's jobs at theirs.
//!
//! On real machines a model is but a name that a user gave, and jobs of one name may be different
//! programs. A job with a measurement far from what its model's would be goes by its own alone.

use std::collections::BTreeMap;

use goodput_env::cluster::TypeId;
use goodput_env::model::{GoodputModel, GradientStats, ThroughputParams};
use goodput_env::state::TypeProfile;
use goodput_env::view::{ClusterView, JobView};

/// A step that takes so many times as long as the model's, or as short, is another program's.
const STRANGER: f64 = 2.0;

/// Speeds by model.
#[derive(Clone, Debug, Default)]
pub(super) struct Siblings {
    models: BTreeMap<String, Model>,
}

#[derive(Clone, Debug)]
struct Model {
    /// Of a job that had just been measured for the first time.
    first: GradientStats,
    /// By type: what was fitted to the measurements that reach furthest.
    types: Vec<Option<Measured>>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    params: ThroughputParams,
    replicas: u32,
    samples: usize,
}

impl Siblings {
    /// Takes note of what jobs have measured.
    pub fn observe(&mut self, view: &ClusterView<'_>) {
        for job in view.jobs() {
            let profile = &job.state.profile;
            let Some(stats) = profile.stats().filter(|_| !job.model_name().is_empty()) else { continue };
            if !self.models.contains_key(job.model_name()) {
                self.models.insert(job.model_name().to_owned(), Model { first: stats, types: Vec::new() });
            }
            let Some(model) = self.models.get_mut(job.model_name()) else { continue };
            // A cluster may get nodes of a new type while it runs.
            model.types.resize(view.cluster().types.len().max(1), None);
            for seen in profile.types() {
                let Some(known) = model.types.get_mut(seen.kind().index()) else { continue };
                let reach = (seen.max_replicas(), seen.samples().len());
                if known.is_none_or(|known| (known.replicas, known.samples) < reach) {
                    *known = Some(Measured { params: seen.params(), replicas: reach.0, samples: reach.1 });
                }
            }
        }
    }

    /// Believed speeds of `job` on a type: what it has measured itself where that reaches as far.
    pub fn model(&self, job: &JobView<'_>, kind: TypeId) -> Option<GoodputModel> {
        let own = || job.goodput_model_on(kind);
        let Some(model) = self.model_of(job) else { return own() };
        let Some(known) = model.types.get(kind.index()).copied().flatten() else { return own() };
        // Its own measurements reach as far, and they are of this very job.
        if job.state.profile.on(kind).is_some_and(|seen| seen.max_replicas() >= known.replicas) {
            return own();
        }
        let stats = job.state.profile.stats().unwrap_or(model.first);
        Some(GoodputModel { params: known.params, stats, limits: job.limits_on(kind)? })
    }

    /// Most replicas that a job of its model was measured on, on any type.
    pub fn replicas(&self, job: &JobView<'_>) -> u32 {
        let types = self.model_of(job).map_or(&[][..], |model| &model.types);
        types.iter().flatten().map(|known| known.replicas).max().unwrap_or(0)
    }

    /// The model of `job`, unless the job contradicts it.
    fn model_of(&self, job: &JobView<'_>) -> Option<&Model> {
        let model = self.models.get(job.model_name())?;
        let alike = |seen: &TypeProfile| {
            let known = model.types.get(seen.kind().index()).copied().flatten();
            let furthest = seen.samples().iter().max_by_key(|sample| sample.replicas);
            known.zip(furthest).is_none_or(|(known, sample)| {
                let ratio = sample.step_secs / known.params.optim_time(sample.nodes, sample.replicas, sample.atomic);
                (1.0 / STRANGER..=STRANGER).contains(&ratio)
            })
        };
        job.state.profile.types().iter().all(alike).then_some(model)
    }
}
