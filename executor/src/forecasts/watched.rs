//! One service: the steps of its load so far, the forecaster that learns them, and the replicas decided.
//!
//! The decision is the one of [`OnlineDecider`], which decides about a service on a simulated cluster too.

use std::collections::VecDeque;

use goodput_configs::forecast::ServedLoad;
use goodput_forecast::decide::{Objective, OnlineDecider, OnlineTerms, USUAL_AIM};
use goodput_forecast::{Adaptive, Forecast, Horizon, Predict};
use serde::{Deserialize, Serialize};

use super::decision::{DecisionGround, ReplicaDecision};

/// Steps of the past that are shown.
const SHOWN: usize = 288;

/// Keys of a service on which a forecaster depends: a state with others is of no use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ForecastTerms {
    query: String,
    step_millis: i64,
    season_steps: usize,
    long_season_steps: usize,
    reach_steps: usize,
    violated_share: f64,
}

impl ForecastTerms {
    fn of(config: &ServedLoad) -> Self {
        let season_steps = config.season_steps();
        Self {
            query: config.query.clone(),
            step_millis: config.step_millis(),
            season_steps,
            long_season_steps: season_steps * config.long_season as usize,
            reach_steps: config.reach_steps(),
            violated_share: config.violated_share,
        }
    }

    /// Terms of the decision.
    fn online(&self) -> OnlineTerms {
        let model = Adaptive {
            week_steps: self.long_season_steps,
            horizon_steps: self.reach_steps,
            ..Adaptive::daily(self.season_steps)
        };
        OnlineTerms {
            model,
            step_millis: self.step_millis,
            reach_steps: self.reach_steps,
            objective: Objective::Leases(self.violated_share),
            aim: USUAL_AIM,
        }
    }
}

/// A step of the past.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastStep {
    /// End of the step, milliseconds of the Unix epoch.
    pub epoch_millis: i64,
    /// Load; `None` in a gap.
    pub load: Option<f64>,
    /// Load that was expected when an order could still serve in time; `None` where there was no forecast yet.
    pub foreseen: Option<f64>,
}

/// A service with its forecaster. The serde form is a complete state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WatchedService {
    terms: ForecastTerms,
    /// End of the next step, milliseconds of the Unix epoch; `None` before the first value.
    next_millis: Option<i64>,
    /// The fields of the decider are fields of the state.
    #[serde(flatten)]
    online: OnlineDecider,
    past: VecDeque<PastStep>,
    steps: u64,
    gaps: u64,
    largest: f64,
    decision: ReplicaDecision,
}

impl WatchedService {
    /// A service of which nothing is known.
    pub fn new(config: &ServedLoad) -> Self {
        Self {
            terms: ForecastTerms::of(config),
            next_millis: None,
            online: OnlineDecider::default(),
            past: VecDeque::new(),
            steps: 0,
            gaps: 0,
            largest: 0.0,
            decision: ReplicaDecision::starting(),
        }
    }

    /// Whether this state belongs to a service with these terms.
    pub fn belongs_to(&self, config: &ServedLoad) -> bool {
        self.terms == ForecastTerms::of(config)
    }

    /// End of the first step that is not known, given the last step that is over: the first start goes back by the
    /// history of `config`.
    pub fn wanted_from(&self, config: &ServedLoad, last_millis: i64) -> i64 {
        let first = last_millis - (config.history_steps() - 1) * self.terms.step_millis;
        self.next_millis.unwrap_or(first)
    }

    /// Takes in the values that Prometheus has from [`Self::wanted_from`] on. A step without a value is a gap once a
    /// later step has one; until then the value may still come. Returns the number of steps taken.
    pub fn take(&mut self, values: &[(i64, f64)]) -> usize {
        let step = self.terms.step_millis;
        let mut loads: Vec<Option<f64>> = Vec::new();
        for &(at, load) in values {
            let next = *self.next_millis.get_or_insert(at) + loads.len() as i64 * step;
            // A value off the grid of steps, or of a step that is known already, is none of ours.
            if at < next || (at - next) % step != 0 {
                continue;
            }
            loads.extend(std::iter::repeat_n(None, ((at - next) / step) as usize));
            loads.push(Some(load));
        }
        let foreseen = self.online.extend(&self.terms.online(), &loads);
        loads.iter().zip(foreseen).for_each(|(&load, foreseen)| self.note(load, foreseen));
        loads.len()
    }

    /// Notes one step.
    fn note(&mut self, load: Option<f64>, foreseen: Option<f64>) {
        let Some(next) = &mut self.next_millis else { return };
        self.past.push_back(PastStep { epoch_millis: *next, load, foreseen });
        while self.past.len() > SHOWN.max(self.terms.reach_steps) {
            self.past.pop_front();
        }
        *next += self.terms.step_millis;
        self.steps += 1;
        self.gaps += u64::from(load.is_none());
        self.largest = load.map_or(self.largest, |load| self.largest.max(load));
    }

    /// Decides at the time `now_millis`. A value that is older than `patience_millis`, or as far in the future by a
    /// clock that was ahead, leaves the decision as it is, or raises it: what is not known does not lower the capacity.
    pub fn decide(&mut self, config: &ServedLoad, now_millis: i64, patience_millis: i64) {
        let Some(last) = self.last_millis() else { return };
        let reach = self.terms.reach_steps;
        let gap = self.past.iter().rev().take(reach).any(|step| step.load.is_none());
        let capacity = self.online.capacity();
        let standing = match capacity {
            _ if (now_millis - last).abs() > patience_millis => DecisionGround::Silent,
            _ if gap => DecisionGround::Gap,
            None => DecisionGround::Learning,
            Some(_) => DecisionGround::Fresh,
        };
        let mut room = capacity.unwrap_or(self.largest);
        if standing == DecisionGround::Silent {
            let missing = ((now_millis - last) / self.terms.step_millis).max(0) as usize;
            room = room.max(self.expected_peak(missing));
        }
        if !standing.may_fall() {
            room = room.max(self.decision.room.unwrap_or(0.0));
        }
        self.decision = ReplicaDecision::new(standing, room, (now_millis - last).max(0), config);
    }

    /// Largest expected load of the steps within reach, `missing` steps after the last known one. The forecaster looks
    /// one season ahead at most.
    fn expected_peak(&self, missing: usize) -> f64 {
        let Some(decider) = self.online.decider() else { return self.largest };
        let ForecastTerms { season_steps, reach_steps, .. } = self.terms;
        let first = missing.min(season_steps);
        let path = decider.forecaster().uncorrected(first + reach_steps);
        path.into_iter().skip(first).fold(0.0, f64::max)
    }

    /// Quantiles of the load of the next `steps` steps at `levels`, which pass
    /// [`check_levels`](goodput_forecast::check_levels); `None` before the first estimate.
    pub fn forecast(&self, steps: usize, levels: &[f64]) -> Option<Forecast> {
        let decider = self.online.decider()?;
        Some(decider.forecaster().predict(Horizon::steps(steps), levels))
    }

    /// End of the last step with a value, milliseconds of the Unix epoch.
    pub fn last_millis(&self) -> Option<i64> {
        Some(self.next_millis? - self.terms.step_millis)
    }

    /// Steps that are shown, oldest first.
    pub fn past(&self) -> impl Iterator<Item = &PastStep> {
        self.past.iter()
    }

    /// Number of steps so far, gaps included.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Number of steps without a value.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Decision as it stands.
    pub fn decision(&self) -> &ReplicaDecision {
        &self.decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: i64 = 60_000;

    fn service() -> ServedLoad {
        let text = "name = \"chat\"\nquery = \"load\"\nstep_secs = 60.0\nseason_secs = 1440.0\ncold_start_secs = 120.0\n\
                    load_per_replica = 1.0\n";
        toml::from_str(text).unwrap()
    }

    /// A load that is high for a half of each season of 24 steps.
    fn load(step: i64) -> f64 {
        if step.rem_euclid(24) < 12 { 10.0 } else { 2.0 }
    }

    /// Ten seasons, which end with a high load.
    fn known() -> (ServedLoad, WatchedService, i64) {
        let config = service();
        let mut watched = WatchedService::new(&config);
        let last = 24 * 10 + 6;
        watched.take(&(0..=last).map(|step| (step * STEP, load(step))).collect::<Vec<_>>());
        (config, watched, last)
    }

    fn decide(watched: &mut WatchedService, config: &ServedLoad, now: i64) -> (DecisionGround, u32) {
        watched.decide(config, now * STEP, 2 * STEP);
        (watched.decision().standing, watched.decision().replicas.unwrap())
    }

    #[test]
    fn a_silence_lowers_nothing_and_raises_what_is_expected_also_after_a_restart() {
        let (config, mut watched, last) = known();
        let (standing, high) = decide(&mut watched, &config, last);
        assert!(standing == DecisionGround::Fresh && high >= 10, "{standing:?} {high}");
        let mut before = high;
        for now in last + 3..last + 40 {
            if now % 7 == 0 {
                watched = serde_json::from_str(&serde_json::to_string(&watched).unwrap()).unwrap();
            }
            let (standing, replicas) = decide(&mut watched, &config, now);
            assert!(
                standing == DecisionGround::Silent && replicas >= before,
                "{now}: {standing:?} {replicas} {before}"
            );
            before = replicas;
        }
        // The values come after all, and the load is low: the decision may fall again.
        let now = last + 36;
        watched.take(&(last + 1..=now).map(|step| (step * STEP, load(step))).collect::<Vec<_>>());
        let (standing, replicas) = decide(&mut watched, &config, now);
        assert!(standing == DecisionGround::Fresh && replicas < high, "{standing:?} {replicas}, {high} before");
    }

    #[test]
    fn a_silence_in_the_night_expects_the_morning() {
        let (config, mut watched, last) = known();
        let night = last + 12;
        watched.take(&(last + 1..=night).map(|step| (step * STEP, load(step))).collect::<Vec<_>>());
        let (_, low) = decide(&mut watched, &config, night);
        let (standing, morning) = decide(&mut watched, &config, night + 8);
        assert!(standing == DecisionGround::Silent && morning > low, "{standing:?} {morning} {low}");
    }

    #[test]
    fn a_gap_within_reach_and_a_value_from_the_future_lower_nothing() {
        let (config, mut watched, last) = known();
        let (_, high) = decide(&mut watched, &config, last);
        // The next step has no value, and the one after it has a low one.
        watched.take(&[((last + 2) * STEP, 0.0)]);
        assert_eq!(decide(&mut watched, &config, last + 2).0, DecisionGround::Gap);
        assert!(watched.decision().replicas.unwrap() >= high);
        let (standing, replicas) = decide(&mut watched, &config, last - 100);
        assert!(standing == DecisionGround::Silent && replicas >= high, "{standing:?} {replicas}");
    }
}
