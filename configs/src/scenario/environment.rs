//! Behaviour of the cluster in a run: `[environment]`.

use std::collections::BTreeSet;

use goodput_env::gym::{EnvOptions, Reward, USUAL_SLOTS};
use goodput_env::model::{AgentFit, Checkpointing, FaultModel, Rental, SwitchCost};
use goodput_env::model_names::MOST_NAMES;
use goodput_env::scenario::{Allocation, Batching, EpochEnd, Information, Preset, Release, Resize, Rounds, SimOptions};
use goodput_env::tie_break::TieBreak;
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AsPublished, CardSharingConfig, ClusterConfig, InstancesConfig, SetupError, faults, rental};

/// Behaviour of the cluster: `[environment]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentConfig {
    /// Conventions of a published simulator, as `goodput list presets` lists them. Keys that stand beside
    /// the preset replace its conventions; absent: every key has its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Seconds between scheduling rounds; absent: none.
    pub round_secs: Option<f64>,
    /// Whether policies are also asked on each arrival and completion.
    pub on_churn: bool,
    /// Moment at which a completed job gives its accelerators back.
    pub release: Release,
    /// Rounding of the ends of epochs.
    pub epoch_end: EpochEnd,
    /// Whether a job that keeps its accelerator type and its replicas per node changes nodes for free.
    pub free_moves: bool,
    /// Cost of a change of a job's placement, by name: `zero`, `pollux_const`, `deepboot_afe`, ...
    /// as `goodput list switch-costs` names them; or one delay for any change, such as `600s`.
    pub switch_cost: String,
    /// Way in which a running job changes its size.
    pub resize: Resize,
    /// Inference instances, for workloads with requests.
    pub instances: InstancesConfig,
    /// Slowdown, in [0, 1), of distributed jobs that share a node.
    pub interference: f64,
    /// Part of the ideal speed, above 0 and at most 1, that a job on accelerators of several types keeps; absent: a job
    /// holds one type. A slower accelerator counts as a fraction of a worker. `aryl` gives jobs of several types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixing: Option<f64>,
    /// Sharing of accelerators by jobs that ask for parts of them; absent: as its keys default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<CardSharingConfig>,
    /// Way in which tenants share the cluster: static or dynamic, with preemption or without; absent: by their quotas
    /// as declared, and policies preempt by their own rules. For `[[tenants]]`, under `kueue`, `kai*` and
    /// `kubernetes*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// Faults of the cluster; absent: nothing fails.
    pub faults: Option<FaultModel>,
    /// Checkpoints of jobs; absent: only jobs that are stopped by plan save their work.
    pub checkpoint: Option<Checkpointing>,
    /// Rented nodes, of which there are as many as a rule chooses; absent: all nodes are there all the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rental: Option<Rental>,
    /// Choice of the batch sizes of jobs.
    pub batching: Batching,
    /// Whether agents also choose batch sizes again when a job arrives and when a request has been answered.
    pub batches_at_events: bool,
    /// Information about jobs that policies are given.
    pub information: Information,
    /// Conventions that heuristics of a comparison take from their own publications.
    pub as_published: AsPublished,
    /// Search by which the jobs' agents fit their models, for `batching = "agent"` and for policies that go by
    /// these models.
    pub agent_fit: AgentFit,
    /// Whether jobs of one application share the measurements of their agents; for `batching =
    /// "agent"`. In the published scheduler the jobs do not share them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared_profiles: bool,
    /// Whether policies are also asked as soon as a job works again after a restart, and not at the next round; for
    /// `on_churn = true`. Learned utilities ask for it themselves, so without this key they alone have it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wake_after_restarts: bool,
    /// Number of names that each application goes by, of which every job draws one; absent: the application's own name.
    /// Jobs of different names are equally fast, and policies tell jobs apart by name: the more names, the less often
    /// a name comes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names_per_application: Option<u32>,
    /// Order of jobs that are submitted at the same instant. Every policy uses this order as its
    /// last tie-break.
    pub tie_break: TieBreak,
    /// Episodes and runs are cut off here, seconds; absent: never.
    pub horizon_secs: Option<f64>,
    /// Job slots in an observation.
    pub slots: usize,
    /// Number of service slots in an observation, with actions for one replica more and one less;
    /// services beyond the slots keep their replicas.
    pub service_slots: usize,
    /// Whether a learned policy lends servers of the inference pool and calls them back.
    pub pool_actions: bool,
    /// Whether observations include the tenant of a job.
    pub tenant_features: bool,
    /// Whether observations distinguish accelerator types, with an action for each type that starts
    /// a job on the type or moves the job there.
    pub type_actions: bool,
    /// Reward of learned policies.
    pub reward: Reward,
}

impl Default for EnvironmentConfig {
    fn default() -> Self {
        Self {
            preset: None,
            round_secs: Some(300.0),
            on_churn: true,
            release: Release::Immediately,
            epoch_end: EpochEnd::Millisecond,
            free_moves: false,
            switch_cost: "pollux_const".into(),
            resize: Resize::StopRestart,
            instances: InstancesConfig::default(),
            interference: 0.0,
            mixing: None,
            sharing: None,
            allocation: None,
            faults: None,
            checkpoint: None,
            rental: None,
            batching: Batching::Catalog,
            batches_at_events: false,
            information: Information::Estimate { sigma: 0.5 },
            as_published: AsPublished::default(),
            agent_fit: AgentFit::Converged,
            shared_profiles: false,
            wake_after_restarts: false,
            names_per_application: None,
            tie_break: TieBreak::Trace,
            horizon_secs: None,
            slots: USUAL_SLOTS,
            service_slots: 0,
            pool_actions: false,
            tenant_features: false,
            type_actions: false,
            reward: Reward::default(),
        }
    }
}

impl EnvironmentConfig {
    /// Options of the environment that learned policies observe and act on.
    pub fn gym(&self, cluster: &ClusterConfig) -> EnvOptions {
        let types: BTreeSet<&str> = cluster.groups.iter().map(|group| &*group.accelerator).collect();
        EnvOptions {
            types: if self.type_actions { types.len() } else { 0 },
            slots: self.slots,
            services: self.service_slots,
            pools: self.pool_actions,
            tenants: self.tenant_features,
            reward: self.reward.clone(),
        }
    }

    /// The simulator's options.
    ///
    /// # Errors
    /// [`SetupError::Value`] for values outside their range.
    pub fn options(&self) -> Result<SimOptions, SetupError> {
        let value = |key, value: String, expected: &str| SetupError::Value { key, value, expected: expected.into() };
        let span = |key, secs: Option<f64>| match secs {
            Some(secs) if !(0.001..=1e12).contains(&secs) => {
                Err(value(key, secs.to_string(), "a positive number of seconds"))
            }
            secs => Ok(secs.map(SimTime::from_secs_f64)),
        };
        let period = span("environment.round_secs", self.round_secs)?;
        if period.is_none() && !self.on_churn {
            return Err(value(
                "environment.on_churn",
                "false".into(),
                "true where there is no round_secs, or no policy is ever asked",
            ));
        }
        if !(0.0..1.0).contains(&self.interference) {
            return Err(value("environment.interference", self.interference.to_string(), "at least 0 and below 1"));
        }
        if let Some(kept) = self.mixing.filter(|kept| !(*kept > 0.0 && *kept <= 1.0)) {
            return Err(value("environment.mixing", kept.to_string(), "above 0 and at most 1"));
        }
        if let Some(kept) = self.mixing.filter(|_| self.batching.is_measured()) {
            let expected = "none where batching is agent or throughput: agents measure one type at a time";
            return Err(value("environment.mixing", kept.to_string(), expected));
        }
        if self.shared_profiles && !self.batching.is_measured() {
            return Err(value(
                "environment.shared_profiles",
                "true".into(),
                "false where batching is neither agent nor throughput: nothing is measured",
            ));
        }
        if self.wake_after_restarts && !self.on_churn {
            let expected = "false where on_churn is false: policies are asked at rounds alone";
            return Err(value("environment.wake_after_restarts", "true".into(), expected));
        }
        if let Some(names) = self.names_per_application.filter(|names| !(1..=MOST_NAMES).contains(names)) {
            return Err(value("environment.names_per_application", names.to_string(), &format!("1 to {MOST_NAMES}")));
        }
        if let Information::Estimate { sigma } = self.information
            && !(0.0..=10.0).contains(&sigma)
        {
            return Err(value("environment.information.estimate.sigma", sigma.to_string(), "0 to 10"));
        }
        if self.slots == 0 || self.slots > 4096 {
            return Err(value("environment.slots", self.slots.to_string(), "1 to 4096"));
        }
        if self.service_slots > 1024 {
            return Err(value("environment.service_slots", self.service_slots.to_string(), "0 to 1024"));
        }
        if !(self.reward.scale_secs > 0.0 && self.reward.scale_secs.is_finite()) {
            return Err(value(
                "environment.reward.scale_secs",
                self.reward.scale_secs.to_string(),
                "a positive number of seconds",
            ));
        }
        self.faults.as_ref().map_or(Ok(()), faults::check_faults)?;
        self.checkpoint.as_ref().map_or(Ok(()), faults::check_checkpoint)?;
        self.rental.as_ref().map_or(Ok(()), rental::check)?;
        let switch_cost = switch_cost("environment.switch_cost", &self.switch_cost)?;
        // Some models are of systems in which a job goes on while its size changes.
        let resize = match self.resize {
            Resize::StopRestart if switch_cost.overlaps() => Resize::Overlapped,
            resize => resize,
        };
        Ok(SimOptions {
            rounds: Rounds { period, on_churn: self.on_churn },
            release: self.release,
            epoch_end: self.epoch_end,
            free_moves: self.free_moves,
            switch_cost,
            resize,
            instances: self.instances.options()?,
            interference: self.interference,
            mixing: self.mixing,
            sharing: self.sharing.unwrap_or_default().options()?,
            allocation: self.allocation,
            faults: self.faults.clone(),
            checkpoint: self.checkpoint,
            rental: self.rental,
            batching: self.batching,
            batches_at_events: self.batches_at_events,
            information: self.information,
            agent_fit: self.agent_fit,
            shared_profiles: self.shared_profiles,
            wake_after_restarts: self.wake_after_restarts,
            horizon: span("environment.horizon_secs", self.horizon_secs)?,
            ..SimOptions::standard()
        })
    }
}

/// Switching cost that a file names at `key`.
///
/// # Errors
/// [`SetupError::Value`] with the names that there are.
pub(crate) fn switch_cost(key: &'static str, name: &str) -> Result<SwitchCost, SetupError> {
    SwitchCost::by_name(name).ok_or_else(|| SetupError::Value {
        key,
        value: name.into(),
        expected: format!("{} or a number of seconds such as 600s", SwitchCost::names().join(" or ")),
    })
}
