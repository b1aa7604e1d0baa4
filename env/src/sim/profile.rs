//! What a job's own agent knows of it: the configurations it has measured and the model fitted to them (PolluxAgent).

use std::sync::OnceLock;

use crate::model::{self, BatchLimits, GoodputModel, GradientStats, Sample, StepTime, ThroughputParams};

/// Measurements of one job, at most one per (nodes, replicas, atomic batch size).
#[derive(Clone, Debug, Default)]
pub struct Profile {
    samples: Vec<Sample>,
    stats: Option<GradientStats>,
    max_replicas: u32,
    /// Fitted on first use after a new sample: policies that never look at the model do not pay for it.
    fitted: OnceLock<ThroughputParams>,
}

impl Profile {
    /// Takes a measurement. Returns whether the model may have changed.
    pub fn observe(&mut self, nodes: u32, replicas: u32, atomic: u32, step: StepTime, stats: GradientStats) -> bool {
        let changed = self.stats != Some(stats);
        self.stats = Some(stats);
        let known = self.samples.iter().any(|s| (s.nodes, s.replicas, s.atomic) == (nodes, replicas, atomic));
        if !known {
            self.samples.push(Sample { nodes, replicas, atomic, step_secs: step.step_secs, sync_secs: step.sync_secs });
            self.max_replicas = self.max_replicas.max(replicas);
            self.fitted = OnceLock::new();
        }
        changed || !known
    }

    /// Most replicas measured so far.
    pub fn max_replicas(&self) -> u32 {
        self.max_replicas
    }

    /// Measurements so far.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The goodput model fitted to the measurements with the latest gradient statistics; `None` before the first.
    pub fn model(&self, limits: BatchLimits) -> Option<GoodputModel> {
        let stats = self.stats?;
        let params = *self.fitted.get_or_init(|| model::fit(&self.samples));
        Some(GoodputModel { params, stats, limits })
    }

    /// Forgets everything but keeps the memory.
    pub fn clear(&mut self) {
        self.samples.clear();
        self.stats = None;
        self.max_replicas = 0;
        self.fitted = OnceLock::new();
    }
}
