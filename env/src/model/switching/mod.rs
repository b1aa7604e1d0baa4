//! Cost of a change of allocation: for some time the job holds its accelerators and makes no
//! progress.
//!
//! Published schedulers disagree on this cost by an order of magnitude (ImageNet: 30, 35 or 250 s),
//! and their gains depend on it. So the configuration of each run names the model, and a comparison
//! prints it. A model gives the cost of each event and, where known or derivable, the parts of that
//! cost.

mod components;
mod event;
mod listed;
pub mod pipeline;
mod tables;

pub use components::{Components, PARTS};
pub use event::{Switch, SwitchEvent};
pub use listed::{NAMED, Named};

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::seed::{Stream, keyed};
use tables::Table;

/// Switch cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SwitchCost {
    /// Reallocation is free: an upper bound of what a scheduler can gain.
    Zero,
    /// One delay for all applications and all changes.
    Constant {
        /// Delay in milliseconds.
        millis: i64,
    },
    /// Delay drawn uniformly for each restart.
    Range {
        /// Shortest delay, milliseconds.
        min_millis: i64,
        /// Longest delay, milliseconds.
        max_millis: i64,
    },
    /// Restart delay in the Sia artifact, by application (SOSP'23,
    /// `sia-simulator/applications.py`).
    SiaFull,
    /// Restart delay that the deployed Sia policy assumes, by application (SOSP'23,
    /// `adaptdl_sched/policy/mip.py`).
    SiaPolicy,
    /// Restart delay that Sia's simulated policy assumes (SOSP'23, `sia-simulator/sia.py`); differs
    /// from both models above.
    SiaSimulatedPolicy,
    /// Cold start by application (DeepBoot artifact, `APPLICATIONS_DELAY`).
    DeepbootFull,
    /// One delay for all applications (DeepBoot artifact, `APPLICATIONS_DELAY_BACKUP`).
    DeepbootUniform,
    /// Adaptive fast elasticity (DeepBoot artifact, `calculate_rescale_time`): running workers are
    /// reused. Growing pays the warm part and, in proportion to the new accelerators, the cold
    /// part. Shrinking pays the warm part, and moving pays both in full.
    DeepbootAfe,
    /// Cold start of a serving replica (DeepBoot artifact).
    DeepbootInfer,
    /// Overlapped resizes (CoDDL, the executor of AFS). Growing takes the start-up of new workers,
    /// during which only the new accelerators are idle; shrinking is free.
    Coddl,
    /// ElasticFlow (ASPLOS'23) on 256 or more accelerators, without a warm cache and a restart of its workers (artifact
    /// `utils.py`, `estimate_overhead`): 9 s on one accelerator, and 2 s more for each doubling.
    ElasticFlow,
    /// PipeSwitch (OSDI'20): contexts are initialised in advance and the model is transferred in a
    /// pipeline.
    PipeSwitch,
    /// Start with the next process already running (PipeSwitch, OSDI'20).
    StopNext,
    /// Device shared by both processes (PipeSwitch, OSDI'20).
    Mps,
    /// Start of a new process (PipeSwitch, OSDI'20).
    KillRestart,
    /// Checkpoint to storage and start from it, part by part as in Tiresias (NSDI'19): save,
    /// container, build, restore, warm-up.
    Checkpoint {
        /// Bandwidth of the storage, MB/s.
        megabytes_per_sec: u32,
    },
}

impl SwitchCost {
    /// Pollux: checkpoint, restart and restore take 30 s for all applications (artifact
    /// `simulator.py`).
    pub const POLLUX: Self = Self::Constant { millis: 30_000 };
    /// Shockwave: a job that did not run in the round before loses 20 s (artifact `scheduler.py`).
    pub const SHOCKWAVE: Self = Self::Constant { millis: 20_000 };
    /// Range of restart delays that is quoted for DeepBoot's testbed.
    pub const SEED_RANGE: Self = Self::Range { min_millis: 20_000, max_millis: 100_000 };

    /// Checkpoints through storage of this bandwidth, MB/s.
    #[must_use]
    pub const fn checkpoint(megabytes_per_sec: u32) -> Self {
        Self::Checkpoint { megabytes_per_sec }
    }

    /// Names that [`by_name`](Self::by_name) accepts, for error messages.
    pub fn names() -> Vec<&'static str> {
        NAMED.iter().map(|named| named.name).collect()
    }

    /// Model published under this name, or one delay for any change, such as `600s`; `None` if the name is neither one
    /// of [`NAMED`] nor a whole number of seconds.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let constant = || {
            let secs: u32 = name.strip_suffix('s')?.parse().ok()?;
            Some(Self::Constant { millis: 1000 * i64::from(secs) })
        };
        NAMED.iter().find(|named| named.name == name).map(|named| named.cost).or_else(constant)
    }

    /// Name of the model in the list; `None` where it is not one of [`NAMED`].
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMED.iter().find(|named| named.cost == self).map(|named| named.name)
    }

    /// Parts of the time of `switch`. A preemption is free: its cost is charged when the job
    /// resumes, while it holds accelerators.
    #[must_use]
    pub fn components(&self, switch: &Switch<'_>) -> Components {
        let (name, from, to) = (switch.application, switch.from, switch.to);
        let event = match switch.event() {
            None | Some(SwitchEvent::Preempt) => return Components::default(),
            Some(event) => event,
        };
        let secs = |table: Table| Components::unsplit(1000 * tables::look_up(table, name));
        match (*self, event) {
            (Self::Zero, _) => Components::default(),
            (Self::Constant { millis }, _) => Components::unsplit(millis),
            (Self::Range { min_millis, max_millis }, _) => Components::unsplit(i64::midpoint(min_millis, max_millis)),
            (Self::SiaFull, _) => secs(tables::SIA_FULL),
            (Self::SiaPolicy, _) => secs(tables::SIA_POLICY),
            (Self::SiaSimulatedPolicy, _) => secs(tables::SIA_SIMULATED_POLICY),
            (Self::DeepbootUniform, _) => secs(tables::DEEPBOOT_UNIFORM),
            (Self::DeepbootInfer, _) => secs(tables::DEEPBOOT_INFER),
            (Self::DeepbootAfe, SwitchEvent::Grow) => tables::growing(name, from, to),
            (Self::DeepbootAfe, SwitchEvent::Shrink) => tables::warm_start(name),
            (Self::Coddl, SwitchEvent::Grow) => Components { model_init: 0, ..tables::cold_start(name) },
            (Self::Coddl, SwitchEvent::Shrink) => Components::default(),
            (Self::DeepbootFull | Self::DeepbootAfe | Self::Coddl, _) => tables::cold_start(name),
            (Self::ElasticFlow, _) => Components::unsplit(9_000 + 2_000 * i64::from(to.max(1).ilog2())),
            (Self::PipeSwitch, _) => Components::unsplit(tables::PIPESWITCH.millis(name)),
            (Self::StopNext, _) => Components::unsplit(tables::STOP_NEXT.millis(name)),
            (Self::Mps, _) => Components::unsplit(tables::MPS.millis(name)),
            (Self::KillRestart, _) => Components::unsplit(tables::KILL_RESTART.millis(name)),
            (Self::Checkpoint { .. }, SwitchEvent::Cold) => tables::cold_start(name),
            (Self::Checkpoint { megabytes_per_sec }, _) => {
                let transfer = tables::transfer_millis(name, megabytes_per_sec);
                let warm_up = tables::warm_start(name).model_init;
                Components { save: transfer, restore: transfer, warm_up, ..tables::cold_start(name) }
            }
        }
    }

    /// Milliseconds without progress of `application` when it goes from `from` accelerators to `to`
    /// others; the expected value where the model draws.
    ///
    /// At an equal count the job changes its nodes. With `from` at 0 the change is a cold start.
    #[must_use]
    pub fn cost_millis(&self, application: &str, from: u32, to: u32) -> i64 {
        self.components(&Switch { application, from, to, moved: true, started: from > 0 }).total()
    }

    /// Milliseconds without progress for restart number `restart` of one job, in a run with this
    /// master seed.
    ///
    /// A model that draws uses a random stream keyed by job and restart, so that the cost of a
    /// restart does not depend on other jobs.
    #[must_use]
    pub fn drawn_millis(&self, switch: &Switch<'_>, master: u64, job: u32, restart: u32) -> i64 {
        let expected = self.components(switch).total();
        match *self {
            Self::Range { min_millis, max_millis } if expected > 0 => {
                let key = u64::from(job) << 32 | u64::from(restart);
                keyed(master, Stream::Switching, key).random_range(min_millis..=max_millis.max(min_millis))
            }
            _ => expected,
        }
    }

    /// Whether a running job makes progress while its size changes.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        *self == Self::Coddl
    }
}
