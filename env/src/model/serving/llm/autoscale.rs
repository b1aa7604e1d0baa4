//! Replicas that are started and stopped while requests arrive.
//!
//! The rule is that of Kubernetes' horizontal autoscaler on the outstanding tokens of a replica: every period, as many
//! replicas are wanted as keep their mean at the target, and a smaller number counts only after it was enough for a
//! whole window. A replica takes a cold start to serve; one that is no longer wanted serves what it has and stops.

use std::collections::VecDeque;

use super::limits::{ReplicaLimits, ReplicaLimitsError};
use super::replica::LlmReplica;
use super::request::{LlmOutcome, LlmRequest, SECOND_PS};
use super::step::BatchTime;

/// Parts of a cold start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColdStart {
    /// Time until the replica has its devices, seconds.
    pub schedule_secs: f64,
    /// Time to pull its image, seconds.
    pub pull_secs: f64,
    /// Weights that are read, GB.
    pub weights_gb: f64,
    /// Bandwidth at which they are read, GB a second.
    pub load_gb_per_sec: f64,
    /// Time to compile and to warm up, seconds.
    pub warm_secs: f64,
}

impl ColdStart {
    /// The whole cold start, seconds.
    pub fn secs(&self) -> f64 {
        self.schedule_secs + self.pull_secs + self.weights_gb / self.load_gb_per_sec + self.warm_secs
    }
}

/// Rule of the number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleRule {
    /// Fewest replicas, at least 1; they are ready at the start.
    pub least: u32,
    /// Most replicas at a time.
    pub most: u32,
    /// Outstanding tokens of a replica that the rule aims at.
    pub tokens: u64,
    /// Time between two decisions, picoseconds.
    pub period_ps: u64,
    /// Decisions for which a smaller number must be enough before replicas stop.
    pub window: u32,
    /// Cold start, picoseconds.
    pub cold_ps: u64,
}

/// A replay with a changing number of replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledReplay {
    /// Outcome of each request.
    pub outcomes: Vec<LlmOutcome>,
    /// Time of all replicas from the order to start until they stop, hours.
    pub replica_hours: f64,
    /// Number of cold starts.
    pub starts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplicaState {
    Off,
    /// Takes requests from this moment on.
    On {
        ready_ps: u64,
    },
    /// Serves what it has.
    Stopping,
}

struct Scaled {
    rule: ScaleRule,
    replicas: Vec<(LlmReplica, ReplicaState)>,
    wanted: VecDeque<u32>,
    replica_periods: u64,
    starts: u32,
}

/// Plays requests in order of arrival on replicas of which the rule decides the number.
///
/// # Errors
/// As [`ReplicaLimits::check`], and where the rule has a zero or more replicas at least than at most.
pub fn replay_scaled(
    requests: &[LlmRequest],
    limits: ReplicaLimits,
    step: &BatchTime,
    rule: ScaleRule,
) -> Result<ScaledReplay, ReplicaLimitsError> {
    let named = [
        ("the fewest replicas", u64::from(rule.least)),
        ("the target of outstanding tokens", rule.tokens),
        ("the time between two decisions", rule.period_ps),
        ("the window", u64::from(rule.window)),
    ];
    if let Some((name, _)) = named.into_iter().find(|(_, value)| *value == 0) {
        return Err(ReplicaLimitsError::Zero(name));
    }
    if rule.most < rule.least {
        return Err(ReplicaLimitsError::Replicas { least: rule.least, most: rule.most });
    }
    let replica = |at: u32| {
        let state = if at < rule.least { ReplicaState::On { ready_ps: 0 } } else { ReplicaState::Off };
        Ok((LlmReplica::new(limits, step.clone())?, state))
    };
    let replicas = (0..rule.most).map(replica).collect::<Result<_, _>>()?;
    let wanted = VecDeque::with_capacity(rule.window as usize + 1);
    let mut scaled = Scaled { rule, replicas, wanted, replica_periods: 0, starts: 0 };
    let mut outcomes = vec![LlmOutcome::TimedOut; requests.len()];
    let mut done = |id: u32, outcome| outcomes[id as usize] = outcome;
    let mut next_ps = rule.period_ps;
    for (id, &request) in (0..).zip(requests) {
        while next_ps <= request.arrival_ps {
            scaled.advance(next_ps, &mut done);
            scaled.decide(next_ps);
            next_ps += rule.period_ps;
        }
        scaled.advance(request.arrival_ps, &mut done);
        if let Some(answer) = scaled.push(id, request) {
            done(id, answer);
        }
    }
    while scaled.outstanding() > 0 {
        scaled.advance(next_ps, &mut done);
        scaled.decide(next_ps);
        next_ps += rule.period_ps;
    }
    let hours = scaled.replica_periods as f64 * (rule.period_ps as f64 / SECOND_PS as f64) / 3600.0;
    Ok(ScaledReplay { outcomes, replica_hours: hours, starts: scaled.starts })
}

impl Scaled {
    fn outstanding(&self) -> u64 {
        self.replicas.iter().map(|(replica, _)| replica.outstanding_tokens()).sum()
    }

    fn advance(&mut self, until_ps: u64, done: &mut impl FnMut(u32, LlmOutcome)) {
        for (replica, state) in &mut self.replicas {
            if *state != ReplicaState::Off {
                replica.advance(until_ps, done);
            }
        }
    }

    /// Sends a request to the ready replica with the fewest outstanding tokens. The first replicas are always ready.
    fn push(&mut self, id: u32, request: LlmRequest) -> Option<LlmOutcome> {
        let ready =
            |state: &ReplicaState| matches!(state, ReplicaState::On { ready_ps } if *ready_ps <= request.arrival_ps);
        let open = self.replicas.iter_mut().filter(|(_, state)| ready(state));
        open.map(|(replica, _)| replica).min_by_key(|replica| replica.outstanding_tokens())?.push(id, request)
    }

    /// Counts the period that ends now, and decides.
    fn decide(&mut self, now_ps: u64) {
        self.replica_periods += self.replicas.iter().filter(|(_, state)| *state != ReplicaState::Off).count() as u64;
        for (replica, state) in &mut self.replicas {
            if *state == ReplicaState::Stopping && replica.outstanding_tokens() == 0 {
                *state = ReplicaState::Off;
            }
        }
        let enough = self.outstanding().div_ceil(self.rule.tokens).min(u64::from(self.rule.most)) as u32;
        self.wanted.push_back(enough.max(self.rule.least));
        if self.wanted.len() > self.rule.window as usize {
            self.wanted.pop_front();
        }
        let wanted = self.wanted.iter().copied().max().unwrap_or(self.rule.least) as usize;
        // The first replicas stay on, so that those that stop are always the last ones.
        for (at, (_, state)) in self.replicas.iter_mut().enumerate() {
            *state = match (*state, at < wanted) {
                (ReplicaState::Off, true) => {
                    self.starts += 1;
                    ReplicaState::On { ready_ps: now_ps + self.rule.cold_ps }
                }
                (ReplicaState::Stopping, true) => ReplicaState::On { ready_ps: now_ps },
                (ReplicaState::On { .. }, false) => ReplicaState::Stopping,
                (other, _) => other,
            };
        }
    }
}
