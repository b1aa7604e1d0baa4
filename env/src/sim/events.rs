//! Events of a run, and the order among events at one millisecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cluster::NodeId;
use crate::job::JobId;
use crate::state::ClusterState;
use crate::time::SimTime;

/// Kind of an event. The order of the kinds is the order in which events happen at one millisecond.
///
/// What gives accelerators back or says that load has changed comes first, so that whatever comes
/// later at this moment finds it done: a request finds the instance that has just answered. Jobs
/// come to their ends before the hardware under them breaks, so a job that completes at the moment
/// of a fault is complete. Rented nodes come after that, so a node that breaks and one that comes are both counted
/// when the number of nodes is reconsidered. Jobs arrive before the round, so the round decides about them. A wake-up
/// brings no news of its own, so it comes last, and a round at the same moment stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventKind {
    /// A server that is called back reaches its deadline: training has to be gone from the server.
    Deadline,
    /// Replicas of a service become ready or are gone.
    Replica,
    /// The rate of a service changes.
    Rate,
    /// An instance has answered, or its protection is over.
    InstanceEnd,
    /// An inference request comes.
    Request,
    /// A job ends its restart or its epoch; `generation` is that of the job's segment.
    Phase,
    /// A job's change of size comes to its next step; `generation` is the number of the command.
    Resize,
    /// A job fails by itself; `generation` is the number of its restarts.
    Bug,
    /// Hardware breaks or is repaired, or the scheduler comes back.
    Hardware,
    /// A rented node comes or goes, or the number of rented nodes is reconsidered.
    Rental,
    /// A job is submitted.
    Arrival,
    /// A scheduling round is due.
    Round,
    /// End of an epoch that was rounded down onto a scheduling round which it really falls after.
    PhaseAfterRound,
    /// The policy asked to be woken.
    Wake,
}

/// An event, ordered by time, then kind, then the index that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub at: SimTime,
    pub kind: EventKind,
    /// Index of the job, service or node; 0 for kinds of which one event at most is pending.
    pub id: u32,
    /// The job's generation when this was queued; the event is void if it has changed since.
    pub generation: u32,
}

impl Event {
    /// Event of a kind that no queue holds: its part of the run knows when the next one is due.
    pub fn unqueued(at: SimTime, kind: EventKind) -> Self {
        Self { at, kind, id: 0, generation: 0 }
    }

    /// Event of a job.
    pub fn of_job(at: SimTime, kind: EventKind, job: JobId, generation: u32) -> Self {
        Self { at, kind, id: job.0, generation }
    }

    /// Event of a service or a node.
    pub fn of(at: SimTime, kind: EventKind, id: u32) -> Self {
        Self { at, kind, id, generation: 0 }
    }

    /// Whether the event still means something.
    fn is_due(&self, state: &ClusterState) -> bool {
        let job = || state.jobs.get(JobId(self.id));
        match self.kind {
            EventKind::Phase | EventKind::PhaseAfterRound => job().is_some_and(|job| job.generation == self.generation),
            EventKind::Bug => job().is_some_and(|job| job.is_allocated() && job.restarts == self.generation),
            EventKind::Resize => job().is_some_and(|job| job.resize.is_some() && job.commands == self.generation),
            EventKind::Deadline => state.loans.is_due(NodeId(self.id), self.at),
            EventKind::Replica => state.services[self.id as usize].is_due(self.at),
            _ => true,
        }
    }
}

/// Events of jobs, services and servers in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct EventQueue(BinaryHeap<Reverse<Event>>);

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

    /// Drops events at the head of the queue that no longer mean anything.
    pub fn drop_void(&mut self, state: &ClusterState) {
        while self.peek().is_some_and(|event| !event.is_due(state)) {
            self.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_are_ordered_by_kind_then_index() {
        let at = SimTime::from_secs(60);
        let job = |kind, job| Event::of_job(at, kind, JobId(job), 0);
        let ordered = [
            Event::of(at, EventKind::Deadline, 9),
            Event::of(at, EventKind::Rate, 0),
            Event::unqueued(at, EventKind::InstanceEnd),
            Event::unqueued(at, EventKind::Request),
            job(EventKind::Phase, 3),
            job(EventKind::Phase, 4),
            job(EventKind::Bug, 1),
            Event::unqueued(at, EventKind::Hardware),
            Event::unqueued(at, EventKind::Rental),
            Event::unqueued(at, EventKind::Arrival),
            Event::unqueued(at, EventKind::Round),
            job(EventKind::PhaseAfterRound, 0),
            Event::unqueued(at, EventKind::Wake),
        ];
        assert!(ordered.is_sorted());
        let later = Event::of(SimTime::from_secs(61), EventKind::Deadline, 0);
        assert!(ordered.iter().all(|event| *event < later));
    }
}
