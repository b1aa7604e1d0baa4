//! Ranking of jobs of unknown length by the lengths of other jobs.
//!
//! Among jobs of which only the distribution of lengths is known, the Gittins index gives the order
//! with the least mean completion time on one server. Tiresias (Gu et al., NSDI'19) takes the index
//! over accelerator time, for jobs of any width. The distribution is a sample: given in advance, or
//! the jobs that completed so far, or both.

mod artifact;
mod expected;
mod sample;

pub use artifact::ArtifactTable;
pub(crate) use artifact::rounded;
pub use expected::{Serpt, SerptArtifact};
pub use sample::{GittinsHorizon, GittinsSample};

use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "serpt",
    about: "preemptive, least expected remaining accelerator time first, given the completed jobs",
    source: "`shortest-expected` of the Tiresias simulator; Gu et al., NSDI 2019",
    traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
    constructor: &Fixed(|_| Box::new(Serpt::new(LengthSample::default()))),
    replica: None,
}];

/// Sample of lengths that grows with each completed job.
///
/// The tables over the sample are made again each time it has grown by a sixteenth, so that
/// learning from n jobs costs O(n) and not O(n^2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LengthSample {
    lengths: Vec<f64>,
    sample: GittinsSample,
    next: usize,
    closed: bool,
}

impl LengthSample {
    /// A sample that begins with `lengths` and learns from completed jobs.
    pub fn new(lengths: Vec<f64>) -> Self {
        let next = lengths.len() + 1;
        Self { sample: GittinsSample::new(lengths.iter().copied()), lengths, next, closed: false }
    }

    /// A sample that stays as it is.
    pub fn closed(lengths: Vec<f64>) -> Self {
        Self { closed: true, ..Self::new(lengths) }
    }

    /// Adds the length of a completed job; returns true where the tables have changed.
    pub fn learn(&mut self, length: f64) -> bool {
        if self.closed {
            return false;
        }
        self.lengths.push(length);
        if self.lengths.len() < self.next {
            return false;
        }
        self.next = self.lengths.len() + self.lengths.len().div_ceil(16);
        self.sample = GittinsSample::new(self.lengths.iter().copied());
        true
    }

    /// Sample with its tables.
    pub fn sample(&self) -> &GittinsSample {
        &self.sample
    }
}
