//! Speeds of jobs where the run hides those of the catalog: fitted to what agents of jobs have measured.

use std::collections::BTreeMap;

use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::cluster::{AcceleratorType, TypeId};
use goodput_env::job::Work;
use goodput_env::model::{GradientStats, ThroughputParams};
use goodput_env::state::Profile;

/// Gradients of a job that was never measured: every sample is worth as much as any other.
const UNMEASURED: GradientStats = GradientStats { sqr: 0.0, var: 1.0 };
/// Time that a job takes on one accelerator where nothing at all is known of its application, seconds.
const UNKNOWN_SECS: f64 = 3600.0;

/// Measurements that reach furthest, by application.
#[derive(Clone, Debug, Default)]
pub(super) struct MeasuredSpeeds {
    applications: BTreeMap<u16, Profile>,
}

impl MeasuredSpeeds {
    /// Takes note of what the agent of a job with this work has measured.
    pub fn observe(&mut self, work: Work, profile: &Profile) {
        let Work::Application { index, .. } = work else { return };
        if profile.stats().is_some() && self.applications.get(&index).is_none_or(|known| reach(known) < reach(profile))
        {
            self.applications.insert(index, profile.clone());
        }
    }

    /// The application number `index` with `total` work as the run has shown it: speeds and gradients by `own`
    /// measurements, else by those of other jobs of the application.
    pub fn believed(
        &self,
        of: &Application,
        index: u16,
        own: Option<&Profile>,
        total: f64,
        types: &[AcceleratorType],
    ) -> Application {
        let known = [own, self.applications.get(&index)];
        let stats = known.into_iter().flatten().find_map(Profile::stats).unwrap_or(UNMEASURED);
        let params = |(at, kind): (usize, &AcceleratorType)| {
            let on_kind = known.into_iter().flatten().filter_map(|profile| profile.on(TypeId::at(at)));
            let furthest = on_kind.max_by_key(|seen| (seen.max_replicas(), seen.samples().len()));
            let elsewhere = || known.into_iter().flatten().find_map(|profile| profile.types().first());
            let fitted = furthest.or_else(elsewhere).map(|seen| seen.params());
            (kind.name.clone(), fitted.unwrap_or_else(|| linear(of.limits.init, total)))
        };
        Application {
            name: of.name.clone(),
            limits: of.limits,
            max_replicas: of.max_replicas,
            fixed_batch: of.fixed_batch,
            tensors: None,
            epochs: vec![total.max(f64::MIN_POSITIVE)],
            gradients: GradientTable { sqr: EpochTable::constant(stats.sqr), var: EpochTable::constant(stats.var) },
            iterations: None,
            reference: of.reference.clone(),
            params: types.iter().enumerate().map(params).collect(),
            local_limits: of.local_limits.clone(),
            measured: BTreeMap::new(),
        }
    }
}

/// Reach of the measurements: the most replicas, then the number of measurements.
fn reach(profile: &Profile) -> (u32, usize) {
    (profile.max_replicas(), profile.types().iter().map(|seen| seen.samples().len()).sum())
}

/// Step times in proportion to the samples, of a job that does `total` iterations of `init` samples in an hour.
fn linear(init: u32, total: f64) -> ThroughputParams {
    let beta_c = UNKNOWN_SECS / (total * f64::from(init)).max(f64::MIN_POSITIVE);
    let tiny = 1e-8;
    ThroughputParams { alpha_c: tiny, beta_c, alpha_n: tiny, beta_n: tiny, alpha_r: tiny, beta_r: tiny, gamma: 1.0 }
}
