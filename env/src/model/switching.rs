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
}

impl SwitchCost {
    /// Pollux: checkpoint, restart and restore take 30 s for every application (artifact `simulator.py`).
    pub const POLLUX: Self = Self::Constant { millis: 30_000 };

    /// Names that [`by_name`](Self::by_name) knows, for error messages and listings.
    pub const NAMES: [&'static str; 2] = ["zero", "pollux_const"];

    /// The model published under this name, or `None` if it is not one of [`NAMES`](Self::NAMES).
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "zero" => Some(Self::Zero),
            "pollux_const" => Some(Self::POLLUX),
            _ => None,
        }
    }

    /// Milliseconds for which `application` stands still when its allocation goes from `from` to `to` GPUs.
    ///
    /// `moved` tells a change of nodes at an equal count from no change at all. Releasing everything is free: the cost
    /// is charged when GPUs come back, while they are held. The application matters to models that are tables of
    /// constants.
    #[must_use]
    pub fn cost_millis(&self, _application: &str, from: u32, to: u32, moved: bool) -> i64 {
        let unchanged = from == to && !moved;
        if to == 0 || unchanged {
            return 0;
        }
        match *self {
            Self::Zero => 0,
            Self::Constant { millis } => millis,
        }
    }
}
