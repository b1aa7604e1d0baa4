//! Knowledge of a job's own agent: the configurations it has measured and the model fitted to them
//! (PolluxAgent).

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::cluster::TypeId;
use crate::model::{
    AgentFit, BatchLimits, GoodputModel, GradientStats, Sample, StepTime, ThroughputParams, fit_by, known_fit,
};

/// Measurements of one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Search for the models; a restored profile fits to the minimum.
    #[serde(skip)]
    search: AgentFit,
    stats: Option<GradientStats>,
    /// Accelerator types in the order they were first used.
    types: SmallVec<[TypeProfile; 1]>,
}

/// Measurements on one type of accelerator, at most one per (nodes, replicas, atomic batch size).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TypeProfile {
    kind: TypeId,
    samples: Vec<Sample>,
    max_replicas: u32,
    #[serde(skip)]
    search: AgentFit,
    /// Fitted on first use after a new sample: policies that never look at the model do not pay for
    /// it.
    #[serde(skip)]
    fitted: OnceLock<ThroughputParams>,
}

/// Compares measurements only: the fit follows from them and may not have been computed yet.
impl PartialEq for TypeProfile {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.samples, self.max_replicas) == (other.kind, &other.samples, other.max_replicas)
    }
}

impl TypeProfile {
    /// Index into [`crate::cluster::Cluster::types`].
    pub fn kind(&self) -> TypeId {
        self.kind
    }

    /// Most replicas measured on this type.
    pub fn max_replicas(&self) -> u32 {
        self.max_replicas
    }

    /// Measurements on this type.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Parameters fitted to the measurements on this type.
    pub fn params(&self) -> ThroughputParams {
        *self.fitted.get_or_init(|| known_fit(self.search, &self.samples))
    }
}

impl Profile {
    /// Profile without measurements, of an agent that fits its models by `search`.
    pub fn new(search: AgentFit) -> Self {
        Self { search, ..Self::default() }
    }

    /// Profile from measurements that were averaged elsewhere, as for a live job with steps of
    /// varying length. The models are fitted here, once, so that copies need not fit them again.
    pub fn measured(stats: GradientStats, types: impl IntoIterator<Item = (TypeId, Vec<Sample>)>) -> Self {
        let of_type = |(kind, samples): (TypeId, Vec<Sample>)| {
            let max_replicas = samples.iter().map(|sample| sample.replicas).max().unwrap_or(0);
            let search = AgentFit::Converged;
            let fitted = OnceLock::from(fit_by(search, &samples));
            TypeProfile { kind, samples, max_replicas, search, fitted }
        };
        Self { stats: Some(stats), types: types.into_iter().map(of_type).collect(), ..Self::default() }
    }

    /// Takes a measurement on accelerator type `kind`. Returns whether the model may have changed.
    pub fn observe(
        &mut self,
        kind: TypeId,
        nodes: u32,
        replicas: u32,
        atomic: u32,
        step: StepTime,
        stats: GradientStats,
    ) -> bool {
        let changed = self.stats != Some(stats);
        self.stats = Some(stats);
        let at = self.types.iter().position(|seen| seen.kind == kind).unwrap_or_else(|| {
            let search = self.search;
            self.types.push(TypeProfile {
                kind,
                samples: Vec::new(),
                max_replicas: 0,
                search,
                fitted: OnceLock::new(),
            });
            self.types.len() - 1
        });
        let seen = &mut self.types[at];
        let known = seen.samples.iter().any(|s| (s.nodes, s.replicas, s.atomic) == (nodes, replicas, atomic));
        if !known {
            seen.samples.push(Sample { nodes, replicas, atomic, step_secs: step.step_secs, sync_secs: step.sync_secs });
            seen.max_replicas = seen.max_replicas.max(replicas);
            seen.fitted = OnceLock::new();
        }
        changed || !known
    }

    /// Takes over what `other` has measured and this one has not. Returns whether that was
    /// anything.
    pub(crate) fn learn(&mut self, other: &Self) -> bool {
        let mut learnt = false;
        for seen in &other.types {
            let own = self.on(seen.kind).map_or(&[][..], TypeProfile::samples);
            let known = |new: &Sample| {
                own.iter().any(|s| (s.nodes, s.replicas, s.atomic) == (new.nodes, new.replicas, new.atomic))
            };
            let new: Vec<Sample> = seen.samples.iter().filter(|sample| !known(sample)).copied().collect();
            if new.is_empty() {
                continue;
            }
            learnt = true;
            let samples = [own, &new[..]].concat();
            let max_replicas = samples.iter().map(|sample| sample.replicas).max().unwrap_or(0);
            // The model is fitted once here, so that copies of the profile need not do it.
            let fitted = OnceLock::from(known_fit(self.search, &samples));
            let known = TypeProfile { kind: seen.kind, samples, max_replicas, search: self.search, fitted };
            match self.types.iter_mut().find(|own| own.kind == seen.kind) {
                Some(own) => *own = known,
                None => self.types.push(known),
            }
        }
        self.stats = self.stats.or(other.stats);
        learnt
    }

    /// Knows `all` that is known of its application; what it has measured is among that. Gradient
    /// statistics move with a job's progress, so they stay its own once it has any.
    pub(crate) fn know(&mut self, all: &Self) {
        self.types.clone_from(&all.types);
        self.stats = self.stats.or(all.stats);
    }

    /// Most replicas measured so far, on any type.
    pub fn max_replicas(&self) -> u32 {
        self.types.iter().map(|seen| seen.max_replicas).max().unwrap_or(0)
    }

    /// Measurements by accelerator type, in the order of first use.
    pub fn types(&self) -> &[TypeProfile] {
        &self.types
    }

    /// Measurements on accelerator type `kind`.
    pub fn on(&self, kind: TypeId) -> Option<&TypeProfile> {
        self.types.iter().find(|seen| seen.kind == kind)
    }

    /// The latest gradient statistics; `None` before the first measurement.
    pub fn stats(&self) -> Option<GradientStats> {
        self.stats
    }

    /// The goodput model fitted to the measurements on accelerator type `kind` with the latest
    /// gradient statistics; `None` before the first measurement there.
    pub fn model(&self, kind: TypeId, limits: BatchLimits) -> Option<GoodputModel> {
        Some(GoodputModel { params: self.on(kind)?.params(), stats: self.stats?, limits })
    }
}
