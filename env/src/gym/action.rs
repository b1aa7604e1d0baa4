//! What one action does, and the sizes a job moves through.

use serde::{Deserialize, Serialize};

use crate::gym::layout::Layout;
use crate::gym::shared_round::{self, LoanVerb, ScaleVerb};
use crate::view::JobView;

/// What is done to the job of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Start it, or move it one rung up the ladder of sizes.
    Grow,
    /// Move it one rung down.
    Shrink,
    /// Take everything away.
    Preempt,
    /// Start it on an accelerator type, or move it there, by index into the cluster's types.
    Place(u16),
}

impl Verb {
    /// Verbs that there are whether types are told apart or not, in the order of action numbers; one for each type follows.
    pub const ALWAYS: [Self; 3] = [Self::Grow, Self::Shrink, Self::Preempt];

    /// Its number among the verbs of a slot.
    pub const fn number(self) -> usize {
        match self {
            Self::Grow => 0,
            Self::Shrink => 1,
            Self::Preempt => 2,
            Self::Place(kind) => Self::ALWAYS.len() + kind as usize,
        }
    }

    /// The verb of a number.
    pub fn of(number: usize) -> Self {
        match Self::ALWAYS.get(number) {
            Some(&verb) => verb,
            None => Self::Place((number - Self::ALWAYS.len()) as u16),
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

/// A decoded action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Change the job in a slot.
    Change {
        /// The slot.
        slot: usize,
        /// What to do.
        verb: Verb,
    },
    /// One replica of a service more or less.
    Scale {
        /// The service's slot.
        service: usize,
        /// What to do.
        verb: ScaleVerb,
    },
    /// A server of the inference pool lent or called back.
    Loan(LoanVerb),
    /// End the round: the working allocation is carried out and time goes on.
    Wait,
}

impl Action {
    /// From its number; `None` where there is no such action.
    pub fn decode(number: usize, layout: &Layout) -> Option<Self> {
        if number == layout.wait() {
            return Some(Self::Wait);
        }
        if number >= layout.first_other() {
            return shared_round::decode(number, layout);
        }
        Some(Self::Change { slot: number / layout.verbs, verb: Verb::of(number % layout.verbs) })
    }

    /// Its number.
    pub fn encode(self, layout: &Layout) -> usize {
        match self {
            Self::Change { slot, verb } => slot * layout.verbs + verb.number(),
            Self::Scale { service, verb } => layout.first_other() + 2 * service + verb as usize,
            Self::Loan(verb) => layout.first_other() + 2 * layout.services + verb as usize,
            Self::Wait => layout.wait(),
        }
    }
}

/// The sizes a job can be moved through: its smallest, then one accelerator at a time up to a full node, then node by node. A
/// job that holds nothing starts at what it asked for.
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

    /// The ladder of a job on nodes of `per_node` accelerators.
    pub fn of(job: &JobView<'_>, per_node: u32) -> Self {
        let mut ladder = Self { min: job.min_gpus(), max: job.max_gpus().max(job.min_gpus()), per_node, start: 0 };
        ladder.start = ladder.snap(job.request().gpus).max(ladder.min);
        ladder
    }

    /// The smallest size.
    pub fn min(&self) -> u32 {
        self.min
    }

    /// The largest size.
    pub fn max(&self) -> u32 {
        self.max
    }

    /// The size at which the job starts where there is room.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// The next larger size; `None` at the top.
    pub fn up(&self, gpus: u32) -> Option<u32> {
        let next = match gpus {
            0 => self.start,
            gpus if gpus < self.per_node => gpus + 1,
            gpus => (gpus / self.per_node + 1) * self.per_node,
        };
        let next = next.min(self.max);
        (next > gpus).then_some(next)
    }

    /// The next smaller size that the job still runs on; `None` at the bottom.
    pub fn down(&self, gpus: u32) -> Option<u32> {
        let next = match gpus {
            gpus if gpus <= self.per_node => gpus.saturating_sub(1),
            gpus => (gpus - 1) / self.per_node * self.per_node,
        };
        (gpus > self.min).then(|| next.max(self.min))
    }

    /// The largest size on the ladder that is at most `gpus`; zero below the bottom.
    pub fn snap(&self, gpus: u32) -> u32 {
        match gpus {
            gpus if gpus < self.min => 0,
            gpus if gpus >= self.max => self.max,
            gpus if gpus <= self.per_node => gpus,
            gpus => (gpus / self.per_node * self.per_node).max(self.min),
        }
    }
}
