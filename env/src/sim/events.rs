//! The event queue: a binary heap whose ties are broken by (time, kind, job).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::job::JobId;
use crate::state::JobState;
use crate::time::SimTime;

/// What happens, in the order in which it happens at one instant. Rounds and arrivals are not queued: both are known in
/// advance, and a round sorts after [`EventKind::Resize`] and before [`EventKind::PhaseAfterRound`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventKind {
    /// A job ends its restart or its epoch.
    Phase,
    /// A job's change of size comes to its next step; `generation` is the number of the command.
    Resize,
    /// A job fails by itself; `generation` is the number of its restarts.
    Bug,
    /// The same as `Phase`, for an end that was rounded down onto a scheduling round it really falls after.
    PhaseAfterRound,
}

/// A queued event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub at: SimTime,
    pub kind: EventKind,
    pub job: JobId,
    /// The job's generation when this was queued; void if it has changed since.
    pub generation: u32,
}

impl Event {
    /// Whether it still means something to its job.
    pub fn is_due(&self, state: &JobState) -> bool {
        match self.kind {
            EventKind::Phase | EventKind::PhaseAfterRound => state.generation == self.generation,
            EventKind::Bug => state.is_allocated() && state.restarts == self.generation,
            EventKind::Resize => state.resize.is_some() && state.commands == self.generation,
        }
    }
}

/// Events in ascending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventQueue(BinaryHeap<Reverse<Event>>);

impl EventQueue {
    pub fn with_capacity(room: usize) -> Self {
        Self(BinaryHeap::with_capacity(room))
    }

    pub fn push(&mut self, event: Event) {
        self.0.push(Reverse(event));
    }

    pub fn peek(&self) -> Option<Event> {
        self.0.peek().map(|Reverse(event)| *event)
    }

    pub fn pop(&mut self) -> Option<Event> {
        self.0.pop().map(|Reverse(event)| event)
    }
}
