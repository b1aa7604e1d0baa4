//! Ranges of seeds: those that policies train on, and those that are held out.

/// First held-out seed; training seeds are far away from it (see [`training_seed`]).
pub const HELD_OUT: u64 = 1_000_000;

/// First validation seed.
pub const VALIDATION: u64 = 2_000_000;

/// First episode seed of environment `index`: far from all others, and never a held-out or
/// validation seed.
pub fn training_seed(master: u64, index: u64) -> u64 {
    let spread = (master.wrapping_mul(1_000_003).wrapping_add(index)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (1 << 63) | (spread >> 1)
}

/// Workloads that are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// To learn from.
    #[default]
    Training,
    /// To choose by.
    Validation,
    /// To compare on, in the end.
    HeldOut,
}

impl Split {
    /// Every split, in the order in which a study needs them.
    pub const ALL: [Self; 3] = [Self::Training, Self::Validation, Self::HeldOut];

    /// Name on the command line and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Validation => "validation",
            Self::HeldOut => "held-out",
        }
    }

    /// Use of the workloads, for listings.
    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Training => "To learn from",
            Self::Validation => "To choose by",
            Self::HeldOut => "To compare on, in the end",
        }
    }

    /// Split called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|split| split.name() == name)
    }

    /// The first seed of the `index`-th of several environments that play one episode after another under this
    /// master seed.
    pub fn first_seed(self, master: u64, index: u64) -> u64 {
        /// Far enough apart for as many episodes.
        const APART: u64 = 10_000;
        match self {
            Self::Training => training_seed(master, index),
            Self::Validation => VALIDATION + index * APART,
            Self::HeldOut => HELD_OUT + index * APART,
        }
    }
}
