//! The event loop: what happens next, until the policy has to decide.

use super::events::{Event, EventKind};
use super::{SimError, Simulator, Status};
use crate::cluster::NodeId;
use crate::job::JobId;
use crate::time::SimTime;

/// Decisions in a row that may leave a waiting cluster idle before the run is called stalled.
const STALL_LIMIT: u32 = 10_000;

impl Simulator {
    /// Advances to the next decision point, or to the end.
    ///
    /// # Errors
    /// [`SimError`] where a job leaves its profile or the run stalls.
    pub fn run_until_decision(&mut self) -> Result<Status, SimError> {
        self.requests.forget_trigger(&mut self.state);
        let horizon = self.state.scenario.options.horizon.unwrap_or(SimTime::NEVER);
        loop {
            let next = self.next_event();
            // A decision waits until nothing else happens at this moment, so that it sees all of
            // it.
            let later = next.at > self.state.now && !self.is_headless();
            if later && self.state.trigger.is_churn() && self.state.scenario.options.rounds.on_churn {
                return Ok(self.decision());
            }
            // A decision about jobs answers requests as well, so this one is for moments without
            // one.
            if later && self.requests.due {
                return Ok(self.request_decision());
            }
            if next.at == SimTime::NEVER {
                return self.at_rest();
            }
            // Events at the very horizon still happen.
            if next.at > horizon {
                self.advance(horizon);
                return Ok(Status::Truncated);
            }
            self.advance(next.at);
            let may_ask = self.handle(next)?;
            if may_ask && self.is_asked() {
                return Ok(self.decision());
            }
        }
    }

    /// The next event. Its time is [`SimTime::NEVER`] where none comes.
    fn next_event(&mut self) -> Event {
        self.queue.drop_void(&self.state);
        let arrival = self.jobs.next_arrival(&self.state.scenario);
        let request = self.requests.next(&self.state.scenario);
        let unqueued = [
            Event::unqueued(self.requests.next_lifecycle(&self.state, request, arrival), EventKind::InstanceEnd),
            Event::unqueued(request, EventKind::Request),
            Event::unqueued(self.next_fault(arrival), EventKind::Hardware),
            Event::unqueued(self.next_rental(arrival), EventKind::Rental),
            Event::unqueued(self.next_round(arrival), EventKind::Round),
            Event::unqueued(self.next_wake(arrival), EventKind::Wake),
        ];
        let arrival = Event::unqueued(arrival, EventKind::Arrival);
        unqueued.into_iter().chain(self.queue.peek()).fold(arrival, Event::min)
    }

    /// Carries out an event. Returns whether the policy is to be asked at once if it is there and
    /// something is active.
    fn handle(&mut self, event: Event) -> Result<bool, SimError> {
        let job = JobId(event.id);
        match event.kind {
            EventKind::InstanceEnd => self.instance_due()?,
            EventKind::Request => self.request_arrives(),
            EventKind::Hardware => self.hardware_due()?,
            EventKind::Rental => self.rental_due()?,
            EventKind::Arrival => {
                self.arrive();
                self.choose_batches_at_event()?;
            }
            EventKind::Round => {
                self.state.trigger.wake = self.decisions.wake == self.state.now;
                self.decisions.last_round = self.state.now;
                self.state.trigger.round = true;
                // Completed jobs give back what they hold before the round is decided.
                self.release_holding();
                return Ok(true);
            }
            EventKind::Wake => {
                self.decisions.wake = SimTime::NEVER;
                self.state.trigger.wake = true;
                return Ok(true);
            }
            queued => {
                self.queue.pop();
                self.records.events += 1;
                match queued {
                    EventKind::Deadline => self.evict(NodeId(event.id))?,
                    EventKind::Replica => self.replicas_due(event.id as usize),
                    EventKind::Rate => self.rate_due(event.id as usize),
                    EventKind::Resize => self.resize_due(job)?,
                    EventKind::Bug => self.fail(job)?,
                    _ => self.phase_end(job)?,
                }
            }
        }
        Ok(false)
    }

    /// Whether there is anything to decide about.
    pub(super) fn has_active(&self) -> bool {
        !self.state.jobs.is_empty() || self.services.live > 0
    }

    /// Whether the policy is there to decide about it.
    pub(super) fn is_asked(&self) -> bool {
        self.has_active() && !self.is_headless()
    }

    pub(super) fn decision(&mut self) -> Status {
        self.state.refresh_open();
        self.records.decisions += 1;
        // The decision counts as idle until its plan changes something.
        self.decisions.idle += 1;
        self.decisions.wake = SimTime::NEVER;
        Status::Decision
    }

    pub(super) fn at_rest(&self) -> Result<Status, SimError> {
        match self.state.jobs.next_active(JobId(0)) {
            None => self.requests.unserved(&self.state).map_or(Ok(Status::Complete), Err),
            Some(first) => Err(self.stalled(first)),
        }
    }

    pub(super) fn stalled(&self, first: JobId) -> SimError {
        SimError::Stalled {
            at: self.state.now,
            pending: self.state.jobs.len(),
            first: self.state.name(first).into(),
            gpus: self.state.scenario.workload.jobs[first.index()].request.gpus,
            capacity: self.state.scenario.cluster.total_gpus(),
            limit: self.state.scenario.tenant_limit(first, self.state.now).map(Box::new),
        }
    }

    /// The next round: there is none while nothing is active, and a stalled cluster stops asking.
    pub(super) fn next_round(&self, arrival: SimTime) -> SimTime {
        let Some(period) = self.state.scenario.options.rounds.period else {
            return SimTime::NEVER;
        };
        let after = self.decisions.last_round + period;
        // What completed jobs hold comes free at a round, so a round is due as long as some is
        // held.
        let idle = !self.has_active() && self.jobs.holding.is_empty();
        let from = match idle {
            false => after.max(self.state.now),
            true if arrival == SimTime::NEVER => return SimTime::NEVER,
            true => after.max(arrival),
        };
        if self.has_stalled(arrival) { SimTime::NEVER } else { from.next_multiple_of(period) }
    }

    pub(super) fn next_wake(&self, arrival: SimTime) -> SimTime {
        if self.has_stalled(arrival) { SimTime::NEVER } else { self.decisions.wake }
    }

    /// Has the policy asked after the end of a restart, where policies are asked then: a millisecond later, when the
    /// job has been measured.
    pub(super) fn wake_after_restart(&mut self) {
        let options = &self.state.scenario.options;
        if options.wake_after_restarts && options.rounds.on_churn {
            let measured = self.state.now + SimTime::from_millis(1);
            self.decisions.wake = self.decisions.wake.min(measured);
        }
    }

    /// Whether only the policy could still change anything, and has not for long.
    pub(super) fn has_stalled(&self, arrival: SimTime) -> bool {
        let nothing_due = arrival == SimTime::NEVER && self.queue.peek().is_none();
        self.decisions.idle > STALL_LIMIT && nothing_due && !self.awaits_repair() && !self.awaits_nodes()
    }

    pub(super) fn advance(&mut self, to: SimTime) {
        let span = (to - self.state.now).as_millis();
        // Integrals run over the span with the state that held in it, before the clock moves.
        self.records.advance(&self.state, span);
        self.requests.advance(&self.state.instances, span);
        if let Some(health) = &mut self.health {
            health.record.out_gpu_millis += i64::from(health.out) * span;
        }
        self.state.now = to;
    }
}
