//! Request for a share of an accelerator, or for whole ones.

use goodput_env::cluster::TypeId;
use thiserror::Error;

/// Thousandths in one whole accelerator.
pub const MILLI: u32 = 1000;

/// Accelerator types that a request may use; the default is any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kinds(u64);

impl Kinds {
    /// Any type of accelerator.
    pub const ANY: Self = Self(0);

    /// Adds a type, by its index below 64. Any type becomes only this one.
    #[must_use]
    pub fn with(self, kind: TypeId) -> Self {
        assert!(kind.0 < 64, "at most 64 accelerator types, not {kind}");
        Self(self.0 | 1 << kind.0)
    }

    /// Whether type `kind` is among them.
    pub fn allow(self, kind: TypeId) -> bool {
        self.0 == 0 || self.0 >> kind.0 & 1 == 1
    }
}

/// Resources that one pod or replica needs, all on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// Thousandths of a processor core.
    pub cpu_milli: u32,
    /// Memory of each accelerator, MiB.
    pub memory_mib: u32,
    /// Accelerators; 0 for work on processors only.
    pub accelerators: u32,
    /// Thousandths of each of them: 1000, or less where it is one; 0 where it is none.
    pub milli: u32,
    /// Accelerator types that will do.
    pub kinds: Kinds,
}

/// Numbers of a request that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// More than a whole, or nothing, of each accelerator.
    #[error(
        "{milli} thousandths of each of {accelerators} accelerators: expected 1 to 1000, and 0 where there are none"
    )]
    Milli {
        /// Number of accelerators.
        accelerators: u32,
        /// Thousandths of each.
        milli: u32,
    },
    /// Fraction of several accelerators, which no device offers.
    #[error("{milli} thousandths of each of {accelerators} accelerators: only a single accelerator can be shared")]
    SharedSeveral {
        /// Number of accelerators.
        accelerators: u32,
        /// Thousandths of each.
        milli: u32,
    },
}

impl Request {
    /// Checks the numbers against each other.
    ///
    /// # Errors
    /// [`RequestError`] where the thousandths do not fit the number of accelerators.
    pub fn checked(self) -> Result<Self, RequestError> {
        let Self { accelerators, milli, .. } = self;
        match (accelerators, milli) {
            (0, 0) | (1, 1..=MILLI) | (_, MILLI) if accelerators > 0 || milli == 0 => Ok(self),
            (2.., 1..MILLI) => Err(RequestError::SharedSeveral { accelerators, milli }),
            _ => Err(RequestError::Milli { accelerators, milli }),
        }
    }

    /// Thousandths of accelerators in total.
    pub fn total_milli(&self) -> u32 {
        self.accelerators * self.milli
    }

    /// Whether the request takes a part of one accelerator.
    pub fn shares(&self) -> bool {
        self.accelerators == 1 && self.milli < MILLI
    }

    /// Request without its memory, which no published score uses.
    pub fn shape(self) -> Self {
        Self { memory_mib: 0, ..self }
    }
}
