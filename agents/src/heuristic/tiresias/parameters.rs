//! Parameters of the listed forms of Tiresias.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SIMULATOR_LIMITS, TiresiasConfig};
use crate::heuristic::gittins::{GittinsHorizon, LengthSample};

/// Limits of queues, ascending: the service at which a job leaves each queue but the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct QueueLimits(Vec<u32>);

impl TryFrom<Vec<u32>> for QueueLimits {
    type Error = &'static str;

    fn try_from(limits: Vec<u32>) -> Result<Self, Self::Error> {
        let first = limits.first().is_none_or(|&first| first > 0);
        if first && limits.is_sorted_by(|one, next| one < next) { Ok(Self(limits)) } else { Err("limits ascend") }
    }
}

impl From<QueueLimits> for Vec<u32> {
    fn from(limits: QueueLimits) -> Self {
        limits.0
    }
}

/// Parameters of `tiresias` and `tiresias-l`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueParameters {
    /// Accelerator time at which a job leaves each queue but the last, ascending: one queue more than limits.
    #[schemars(extend("x-unit" = "GPU-s", "x-source" = "NSDI 2019, section 3.2.3; Pollux artifact, Tiresias simulator"))]
    #[schemars(with = "Vec<u32>", inner(range(min = 1)))]
    pub limits: QueueLimits,
    /// Starvation knob: a waiting job returns to the first queue, its service forgiven, once it has waited this many
    /// times the seconds it ran; 0 never.
    #[schemars(range(min = 0.0), extend("x-source" = "NSDI 2019, PROMOTEKNOB of section 3.2.3; 0 in both artifacts"))]
    pub starvation_knob: f64,
}

impl QueueParameters {
    /// Two queues with the limit of the Pollux artifact, 16 GPU-hours.
    pub fn pollux_artifact() -> Self {
        Self { limits: QueueLimits(vec![57_600]), starvation_knob: 0.0 }
    }

    /// Three queues with the limits of the Tiresias simulator.
    pub fn simulator() -> Self {
        Self { limits: QueueLimits(SIMULATOR_LIMITS.to_vec()), starvation_knob: 0.0 }
    }

    /// Settings `base` with these parameters.
    pub(super) fn applied(&self, base: TiresiasConfig) -> TiresiasConfig {
        TiresiasConfig { limits: self.limits.0.clone(), starvation_knob: self.starvation_knob, ..base }
    }
}

/// Parameters of `las`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeQueueParameters {
    /// Time run at which a job leaves each queue but the last, ascending: one queue more than limits.
    #[schemars(extend("x-unit" = "s", "x-source" = "Tiresias simulator"))]
    #[schemars(with = "Vec<u32>", inner(range(min = 1)))]
    pub limits: QueueLimits,
    /// Starvation knob: a waiting job returns to the first queue, its time forgiven, once it has waited this many
    /// times the seconds it ran; 0 never.
    #[schemars(range(min = 0.0), extend("x-source" = "NSDI 2019, PROMOTEKNOB of section 3.2.3; 0 in both artifacts"))]
    pub starvation_knob: f64,
}

impl Default for TimeQueueParameters {
    fn default() -> Self {
        let QueueParameters { limits, starvation_knob } = QueueParameters::simulator();
        Self { limits, starvation_knob }
    }
}

impl TimeQueueParameters {
    pub(super) fn applied(&self, base: TiresiasConfig) -> TiresiasConfig {
        QueueParameters { limits: self.limits.clone(), starvation_knob: self.starvation_knob }.applied(base)
    }
}

/// Parameters of `tiresias-g`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GittinsQueueParameters {
    /// Accelerator time at which a job leaves each queue but the last, ascending: one queue more than limits.
    #[schemars(extend("x-unit" = "GPU-s", "x-source" = "NSDI 2019, section 3.2.3; Tiresias simulator"))]
    #[schemars(with = "Vec<u32>", inner(range(min = 1)))]
    pub limits: QueueLimits,
    /// Starvation knob: a waiting job returns to the first queue, its service forgiven, once it has waited this many
    /// times the seconds it ran; 0 never.
    #[schemars(range(min = 0.0), extend("x-source" = "NSDI 2019, PROMOTEKNOB of section 3.2.3; 0 in both artifacts"))]
    pub starvation_knob: f64,
    /// Quantum of service over which the Gittins index looks ahead; 0: every quantum, which is the index proper.
    #[schemars(range(min = 0.0))]
    #[schemars(extend("x-unit" = "GPU-s", "x-source" = "NSDI 2019, service quantum of the index; left open"))]
    pub gittins_quantum: f64,
}

impl Default for GittinsQueueParameters {
    fn default() -> Self {
        let QueueParameters { limits, starvation_knob } = QueueParameters::simulator();
        Self { limits, starvation_knob, gittins_quantum: 0.0 }
    }
}

impl GittinsQueueParameters {
    pub(super) fn config(&self) -> TiresiasConfig {
        let quantum = self.gittins_quantum;
        let horizon = if quantum > 0.0 { GittinsHorizon::Quantum(quantum) } else { GittinsHorizon::Supremum };
        let queues = QueueParameters { limits: self.limits.clone(), starvation_knob: self.starvation_knob };
        queues.applied(TiresiasConfig::gittins(LengthSample::default(), horizon))
    }
}
