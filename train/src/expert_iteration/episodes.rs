//! Training episodes as all experts play them.

use std::sync::Arc;

use goodput_env::gym::EnvError;
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::sim::{SimError, Simulator};
use goodput_env::time::SimTime;
use rand::{Rng, RngExt};
use rayon::prelude::*;

use crate::cost;
use crate::error::TrainError;

/// Moments drawn at random until the last arrival of an episode, the last moment first.
pub(super) fn moments(scenario: &Scenario, count: u64, random: &mut impl Rng) -> Vec<SimTime> {
    let last = scenario.workload.jobs.iter().map(|job| job.request.submit).max().unwrap_or(SimTime::ZERO);
    let mut drawn: Vec<SimTime> =
        (0..count).map(|_| SimTime::from_secs_f64(last.as_secs_f64() * random.random::<f64>())).collect();
    drawn.sort_unstable_by(|one, other| other.cmp(one));
    drawn
}

/// Result of `of` for each episode, in order of the episodes.
///
/// # Errors
/// [`TrainError`] where a run fails.
pub(super) fn of_each<T: Send>(
    episodes: &[Arc<Scenario>],
    of: impl Fn(&Arc<Scenario>) -> Result<T, SimError> + Send + Sync,
) -> Result<Vec<T>, TrainError> {
    let each = episodes.par_iter().map(of).collect::<Vec<Result<T, SimError>>>();
    Ok(each.into_iter().collect::<Result<Vec<T>, SimError>>().map_err(EnvError::from)?)
}

/// Mean cost of each candidate on `trials`, with this weight of the 99th percentile; `policy` makes the policy of a
/// candidate for a trial.
///
/// # Errors
/// [`TrainError`] where a run fails.
pub(super) fn mean_costs<C: Sync, P: Policy>(
    candidates: &[C],
    trials: &[Arc<Scenario>],
    tail: f64,
    policy: impl Fn(&C, &Scenario) -> P + Send + Sync,
) -> Result<Vec<f64>, TrainError> {
    let played = (0..candidates.len() * trials.len()).into_par_iter().map(|number| {
        let (candidate, trial) = (&candidates[number / trials.len()], &trials[number % trials.len()]);
        let outcome = Simulator::new(trial.clone()).run(&mut policy(candidate, trial))?;
        Ok(cost::of_run(trial, &outcome, tail))
    });
    let costs: Vec<Result<f64, SimError>> = played.collect();
    let costs = costs.into_iter().collect::<Result<Vec<f64>, _>>().map_err(EnvError::from)?;
    Ok(costs.chunks(trials.len().max(1)).map(|costs| mean(costs.iter().copied())).collect())
}

/// Mean of some numbers; 0 of none.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}
