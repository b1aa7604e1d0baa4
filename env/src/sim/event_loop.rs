//! The event loop: what happens next, until somebody has to decide.

use super::events::EventKind;
use super::{SimError, Simulator, Status};
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
        self.forget_trigger();
        let horizon = self.scenario.options.horizon.unwrap_or(SimTime::NEVER);
        loop {
            self.drop_void_events();
            let arrival = self.next_arrival();
            let phase = self.queue.peek();
            let round = self.next_round(arrival);
            let wake = self.next_wake(arrival);
            let load = self.next_service_event();
            let load_at = load.map_or(SimTime::NEVER, |event| event.at);
            let request = self.next_request();
            let lifecycle = self.next_lifecycle(request, arrival);
            let fault = self.next_fault(arrival);
            let jobs = arrival.min(round).min(wake).min(phase.map_or(SimTime::NEVER, |event| event.at));
            let next = jobs.min(fault).min(load_at).min(request).min(lifecycle);
            let headless = self.is_headless();
            if self.trigger.is_churn() && self.scenario.options.rounds.on_churn && next > self.now && !headless {
                return Ok(self.decision());
            }
            if self.requests.due && next > self.now && !headless {
                return Ok(self.request_decision());
            }
            if next == SimTime::NEVER {
                return self.at_rest();
            }
            if next > horizon {
                self.advance(horizon);
                return Ok(Status::Truncated);
            }
            self.advance(next);
            if let Some(event) = load.filter(|event| event.at == next) {
                self.service_event(event)?;
                continue;
            }
            if lifecycle == next {
                self.instance_due();
                continue;
            }
            if request == next {
                self.request_arrives();
                continue;
            }
            match phase {
                Some(event) if event.at == next && (event.kind != EventKind::PhaseAfterRound || round > next) => {
                    self.queue.pop();
                    match event.kind {
                        EventKind::Resize => self.resize_due(event.job)?,
                        EventKind::Phase | EventKind::PhaseAfterRound => self.phase_end(event.job)?,
                        EventKind::Bug => {
                            self.events += 1;
                            self.fail(event.job)?;
                        }
                    }
                }
                _ if fault == next => self.hardware_due()?,
                _ if arrival == next => self.arrive(),
                _ if round > next => {
                    self.wake = SimTime::NEVER;
                    self.trigger.wake = true;
                    if self.is_asked() {
                        return Ok(self.decision());
                    }
                }
                _ => {
                    self.trigger.wake = wake == next;
                    self.last_round = self.now;
                    self.trigger.round = true;
                    self.release_holding();
                    if self.is_asked() {
                        return Ok(self.decision());
                    }
                }
            }
        }
    }

    /// Whether there is anything to decide about.
    pub(super) fn has_active(&self) -> bool {
        !self.table.active().is_empty() || self.services.are_live()
    }

    /// Whether the policy is there to decide about it.
    pub(super) fn is_asked(&self) -> bool {
        self.has_active() && !self.is_headless()
    }

    pub(super) fn decision(&mut self) -> Status {
        self.refresh_open();
        self.decisions += 1;
        self.idle_decisions += 1;
        self.wake = SimTime::NEVER;
        Status::Decision
    }

    pub(super) fn at_rest(&self) -> Result<Status, SimError> {
        match self.table.active().first() {
            None => self.unserved().map_or(Ok(Status::Complete), Err),
            Some(&first) => Err(self.stalled(first)),
        }
    }

    pub(super) fn stalled(&self, first: JobId) -> SimError {
        SimError::Stalled { at: self.now, pending: self.table.active().len(), first: self.name(first).into() }
    }

    pub(super) fn drop_void_events(&mut self) {
        while let Some(event) = self.queue.peek() {
            if self.table.get(event.job).is_some_and(|state| event.is_due(state)) {
                break;
            }
            self.queue.pop();
        }
    }

    pub(super) fn next_arrival(&self) -> SimTime {
        self.scenario.workload.jobs.get(self.arrived).map_or(SimTime::NEVER, |job| job.request.submit)
    }

    /// The next round: there is none while nothing is active, and a stalled cluster stops asking.
    pub(super) fn next_round(&self, arrival: SimTime) -> SimTime {
        let Some(period) = self.scenario.options.rounds.period else {
            return SimTime::NEVER;
        };
        let after = self.last_round + period;
        let idle = !self.has_active() && self.holding.is_empty();
        let from = match idle {
            false => after.max(self.now),
            true if arrival == SimTime::NEVER => return SimTime::NEVER,
            true => after.max(arrival),
        };
        if self.has_stalled(arrival) { SimTime::NEVER } else { from.next_multiple_of(period) }
    }

    pub(super) fn next_wake(&self, arrival: SimTime) -> SimTime {
        if self.has_stalled(arrival) { SimTime::NEVER } else { self.wake }
    }

    /// Whether only the policy could still change anything, and has not for long.
    pub(super) fn has_stalled(&self, arrival: SimTime) -> bool {
        let nothing_due = arrival == SimTime::NEVER && self.queue.peek().is_none() && self.services.peek().is_none();
        self.idle_decisions > STALL_LIMIT && nothing_due && !self.awaits_repair()
    }

    pub(super) fn advance(&mut self, to: SimTime) {
        let span = (to - self.now).as_millis();
        self.job_millis += i64::from(self.in_system) * span;
        self.gpu_millis += i64::from(self.held) * span;
        self.advance_instances(span);
        self.advance_fragments(span);
        if let Some(health) = &mut self.health {
            health.record.out_gpu_millis += i64::from(health.out) * span;
        }
        self.now = to;
    }
}
