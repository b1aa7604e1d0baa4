//! What a change of allocation costs: the job holds its GPUs for a while and makes no progress.
//!
//! Published schedulers disagree on this constant by an order of magnitude, and their gains depend on it; so it is
//! named in the configuration of every run, and a comparison prints it.

use serde::{Deserialize, Serialize};

/// A switch cost model. A model that is a table of constants per application is one more variant with a `const` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SwitchCost {
    /// Reallocation is free: an upper bound of what a scheduler can gain.
    Zero,
    /// The same delay for every application and every change.
    Constant {
        /// Delay in milliseconds.
        millis: i64,
    },
    /// What the Sia artifact charges for a restart, by application (SOSP'23, `sia-simulator/applications.py`).
    SiaFull,
    /// What the deployed Sia believes a restart costs, by application (SOSP'23, `adaptdl_sched/policy/mip.py`).
    SiaPolicy,
    /// What Sia's simulated policy believes a restart costs (SOSP'23, `sia-simulator/sia.py`): neither of the two above.
    SiaSimulatedPolicy,
    /// A cold start by application (DeepBoot artifact, `APPLICATIONS_DELAY`).
    DeepbootFull,
    /// One delay for all applications (DeepBoot artifact, `APPLICATIONS_DELAY_BACKUP`).
    DeepbootUniform,
}

/// Seconds by application, and for any other.
type Table = (&'static [(&'static str, i64)], i64);

const SIA_FULL: Table =
    (&[("imagenet", 250), ("bert", 120), ("yolov3", 80), ("cifar10", 50), ("deepspeech2", 25), ("ncf", 15)], 30);
const SIA_POLICY: Table =
    (&[("imagenet", 250), ("bert", 120), ("yolov3", 80), ("deepspeech2", 25), ("cifar10", 20)], 30);
const SIA_SIMULATED_POLICY: Table =
    (&[("imagenet", 250), ("bert", 120), ("yolov3", 45), ("cifar10", 30), ("deepspeech2", 25)], 30);
/// The publication gives none for other applications; they get the longest but one.
const DEEPBOOT_FULL: Table =
    (&[("bert", 103), ("imagenet", 35), ("yolov3", 26), ("ncf", 25), ("cifar10", 24), ("deepspeech2", 18)], 35);
const DEEPBOOT_UNIFORM: Table = (&[], 60);

impl SwitchCost {
    /// Pollux: checkpoint, restart and restore take 30 s for every application (artifact `simulator.py`).
    pub const POLLUX: Self = Self::Constant { millis: 30_000 };

    /// Names that [`by_name`](Self::by_name) knows, for error messages and listings.
    pub const NAMES: [&'static str; 7] =
        ["zero", "pollux_const", "sia_full", "sia_policy", "sia_simulated_policy", "deepboot_full", "deepboot_uniform"];

    /// The model published under this name, or `None` if it is not one of [`NAMES`](Self::NAMES).
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "zero" => Some(Self::Zero),
            "pollux_const" => Some(Self::POLLUX),
            "sia_full" => Some(Self::SiaFull),
            "sia_policy" => Some(Self::SiaPolicy),
            "sia_simulated_policy" => Some(Self::SiaSimulatedPolicy),
            "deepboot_full" => Some(Self::DeepbootFull),
            "deepboot_uniform" => Some(Self::DeepbootUniform),
            _ => None,
        }
    }

    /// Milliseconds for which `application` stands still when its allocation goes from `from` to `to` GPUs.
    ///
    /// `moved` tells a change of nodes at an equal count from no change at all. Releasing everything is free: the cost
    /// is charged when GPUs come back, while they are held. The application matters to models that are tables of
    /// constants.
    #[must_use]
    pub fn cost_millis(&self, application: &str, from: u32, to: u32, moved: bool) -> i64 {
        let unchanged = from == to && !moved;
        if to == 0 || unchanged {
            return 0;
        }
        let (known, other) = match *self {
            Self::Zero => return 0,
            Self::Constant { millis } => return millis,
            Self::SiaFull => SIA_FULL,
            Self::SiaPolicy => SIA_POLICY,
            Self::SiaSimulatedPolicy => SIA_SIMULATED_POLICY,
            Self::DeepbootFull => DEEPBOOT_FULL,
            Self::DeepbootUniform => DEEPBOOT_UNIFORM,
        };
        1000 * known.iter().find(|(name, _)| *name == application).map_or(other, |(_, secs)| *secs)
    }
}
