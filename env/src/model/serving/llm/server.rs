//! The server of a service that runs a language model: replicas of one kind, and the requests that come to them.

use super::limits::{ReplicaLimits, ReplicaLimitsError};
use super::load::TokenLoad;
use super::replica::LlmReplica;
use super::request::{LlmOutcome, LlmRequest};
use super::step::BatchTime;

/// Replicas of one kind, and the requests that come to them.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenServer {
    /// Lengths and variability of the requests.
    pub load: TokenLoad,
    /// Limits of a replica.
    pub limits: ReplicaLimits,
    /// Time of a step of a replica.
    pub step: BatchTime,
}

/// Number of replicas that take requests from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyFrom {
    /// Time since the start of the run, picoseconds.
    pub at_ps: u64,
    /// Replicas that take requests from then on.
    pub replicas: u32,
}

impl TokenServer {
    /// Plays requests in order of arrival on a number of replicas that changes at the given moments, and gives what
    /// becomes of each. Requests that come while there is no replica wait for the first one. A replica that takes no
    /// more requests serves those that it has.
    ///
    /// # Errors
    /// As [`ReplicaLimits::check`].
    pub fn replay(&self, requests: &[LlmRequest], course: &[ReadyFrom]) -> Result<Vec<LlmOutcome>, ReplicaLimitsError> {
        let most = course.iter().map(|from| from.replicas).max().unwrap_or(0);
        let replicas = (0..most).map(|_| LlmReplica::new(self.limits, self.step.clone())).collect::<Result<_, _>>()?;
        let outcomes = vec![LlmOutcome::TimedOut; requests.len()];
        let mut fleet = ChangingFleet { replicas, ready: 0, held: Vec::new(), outcomes };
        let mut changes = course.iter().peekable();
        for (id, &request) in (0..).zip(requests) {
            while let Some(from) = changes.next_if(|from| from.at_ps <= request.arrival_ps) {
                fleet.change(from);
            }
            fleet.advance(request.arrival_ps);
            fleet.push(id, request);
        }
        changes.for_each(|from| fleet.change(from));
        fleet.advance(u64::MAX);
        for (outcome, request) in fleet.outcomes.iter_mut().zip(requests) {
            if let LlmOutcome::Served(served) = outcome {
                served.arrival_ps = request.arrival_ps;
            }
        }
        Ok(fleet.outcomes)
    }
}

struct ChangingFleet {
    replicas: Vec<LlmReplica>,
    /// The first replicas take requests.
    ready: usize,
    /// Requests that wait for the first replica.
    held: Vec<(u32, LlmRequest)>,
    outcomes: Vec<LlmOutcome>,
}

impl ChangingFleet {
    fn advance(&mut self, until_ps: u64) {
        let outcomes = &mut self.outcomes;
        let mut done = |id: u32, outcome| outcomes[id as usize] = outcome;
        self.replicas.iter_mut().for_each(|replica| replica.advance(until_ps, &mut done));
    }

    fn change(&mut self, from: &ReadyFrom) {
        self.advance(from.at_ps);
        self.ready = from.replicas as usize;
        for (id, request) in std::mem::take(&mut self.held) {
            // An idle replica begins when a request comes, and this one comes to it only now.
            self.push(id, LlmRequest { arrival_ps: from.at_ps, ..request });
        }
    }

    fn push(&mut self, id: u32, request: LlmRequest) {
        let least = self.replicas[..self.ready].iter_mut().min_by_key(|replica| replica.outstanding_tokens());
        match least {
            Some(replica) => {
                if let Some(answer) = replica.push(id, request) {
                    self.outcomes[id as usize] = answer;
                }
            }
            None => self.held.push((id, request)),
        }
    }
}
