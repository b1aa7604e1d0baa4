//! Actions of an environment, and the sizes that they move a job through.

use serde::{Deserialize, Serialize};

use crate::cluster::TypeId;
use crate::gym::layout::Layout;
use crate::view::JobView;

/// Change to the job of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Starts the job, or moves it one rung up the ladder of sizes.
    Grow,
    /// Moves the job one rung down the ladder of sizes.
    Shrink,
    /// Takes all accelerators of the job away.
    Preempt,
    /// Starts the job on an accelerator type, or moves it there, by index into the cluster's types.
    Place(TypeId),
}

impl Verb {
    /// Verbs that exist in every layout, in the order of action numbers; one verb for each
    /// accelerator type follows where the layout distinguishes types.
    pub const ALWAYS: [Self; 3] = [Self::Grow, Self::Shrink, Self::Preempt];

    /// Number of the verb among the verbs of a slot.
    pub const fn number(self) -> usize {
        match self {
            Self::Grow => 0,
            Self::Shrink => 1,
            Self::Preempt => 2,
            Self::Place(kind) => Self::ALWAYS.len() + kind.index(),
        }
    }

    /// Verb with a given number; the inverse of [`Self::number`].
    pub fn of(number: usize) -> Self {
        match Self::ALWAYS.get(number) {
            Some(&verb) => verb,
            None => Self::Place(TypeId::at(number - Self::ALWAYS.len())),
        }
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Grow => write!(f, "grow"),
            Self::Shrink => write!(f, "shrink"),
            Self::Preempt => write!(f, "preempt"),
            Self::Place(kind) => write!(f, "place on type {kind}"),
        }
    }
}

/// Change to the replicas of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleVerb {
    /// Adds one replica.
    Out,
    /// Removes one replica.
    In,
}

impl ScaleVerb {
    /// All verbs, in the order of action numbers.
    pub const ALL: [Self; 2] = [Self::Out, Self::In];
}

/// Change to the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoanVerb {
    /// Lends one server of the inference pool to training.
    Lend,
    /// Reclaims one lent server.
    Reclaim,
}

impl LoanVerb {
    /// All verbs, in the order of action numbers.
    pub const ALL: [Self; 2] = [Self::Lend, Self::Reclaim];
}

/// Decoded form of an action number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Change of the job in a slot.
    Change {
        /// Index of the job slot.
        slot: usize,
        /// Change to the job.
        verb: Verb,
    },
    /// Addition or removal of one replica of a service.
    Scale {
        /// Index of the service slot.
        service: usize,
        /// Change to the replicas.
        verb: ScaleVerb,
    },
    /// Loan of one server of the inference pool, or its return.
    Loan(LoanVerb),
    /// End of the round: the working allocation is carried out and simulated time advances.
    Wait,
}

impl Action {
    /// Action with a given number; `None` where there is no such action.
    pub fn decode(number: usize, layout: &Layout) -> Option<Self> {
        if number == layout.wait() {
            return Some(Self::Wait);
        }
        if number >= layout.first_other() {
            return Self::beyond_jobs(number, layout);
        }
        Some(Self::Change { slot: number / layout.verbs, verb: Verb::of(number % layout.verbs) })
    }

    /// Action with a number that concerns no job; `None` where there is no such action.
    fn beyond_jobs(number: usize, layout: &Layout) -> Option<Self> {
        let other = number.checked_sub(layout.first_other())?;
        if other < 2 * layout.services {
            let verb = *ScaleVerb::ALL.get(other % 2)?;
            return Some(Self::Scale { service: other / 2, verb });
        }
        let loan = LoanVerb::ALL.get(other - 2 * layout.services).filter(|_| layout.pools)?;
        Some(Self::Loan(*loan))
    }

    /// Number of the action in `layout`.
    pub fn encode(self, layout: &Layout) -> usize {
        match self {
            Self::Change { slot, verb } => slot * layout.verbs + verb.number(),
            Self::Scale { service, verb } => layout.first_other() + 2 * service + verb as usize,
            Self::Loan(verb) => layout.first_other() + 2 * layout.services + verb as usize,
            Self::Wait => layout.wait(),
        }
    }
}

/// Ladder of sizes that a job can be moved through.
///
/// The ladder starts at the smallest size, then rises by one accelerator up to a full node, then by
/// whole nodes. A job that holds no accelerators starts at its requested size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    min: u32,
    max: u32,
    per_node: u32,
    start: u32,
}

impl Ladder {
    /// Accelerators of a full node.
    pub const fn per_node(&self) -> u32 {
        self.per_node
    }

    /// Ladder of a job on nodes of `per_node` accelerators.
    pub fn of(job: &JobView<'_>, per_node: u32) -> Self {
        let mut ladder = Self { min: job.min_gpus(), max: job.max_gpus().max(job.min_gpus()), per_node, start: 0 };
        ladder.start = ladder.snap(job.request().gpus).max(ladder.min);
        ladder
    }

    /// Smallest size on the ladder.
    pub fn min(&self) -> u32 {
        self.min
    }

    /// Largest size on the ladder.
    pub fn max(&self) -> u32 {
        self.max
    }

    /// Size at which the job starts where there is room.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// Next larger size; `None` at the top.
    pub fn up(&self, gpus: u32) -> Option<u32> {
        let next = match gpus {
            0 => self.start,
            gpus if gpus < self.per_node => gpus + 1,
            gpus => (gpus / self.per_node + 1) * self.per_node,
        };
        let next = next.min(self.max);
        (next > gpus).then_some(next)
    }

    /// Next smaller size at which the job still runs; `None` at the bottom.
    pub fn down(&self, gpus: u32) -> Option<u32> {
        let next = match gpus {
            gpus if gpus <= self.per_node => gpus.saturating_sub(1),
            gpus => (gpus - 1) / self.per_node * self.per_node,
        };
        (gpus > self.min).then(|| next.max(self.min))
    }

    /// Largest size on the ladder that is at most `gpus`; zero below the bottom.
    pub fn snap(&self, gpus: u32) -> u32 {
        match gpus {
            gpus if gpus < self.min => 0,
            gpus if gpus >= self.max => self.max,
            gpus if gpus <= self.per_node => gpus,
            gpus => (gpus / self.per_node * self.per_node).max(self.min),
        }
    }
}
