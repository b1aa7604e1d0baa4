//! Environment checker: tests the conventions that all environments must follow, on an environment
//! of the user.

use rand::RngExt;

use crate::gym::environment::{EnvError, Environment, Observation, ResetOptions, Step};
use crate::seed::{Stream, rng};

/// Outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the checked convention.
    pub check: &'static str,
    /// Description of the violation; `None` where the check passed.
    pub problem: Option<String>,
}

/// Recorded step of an episode.
struct Trace {
    observation: Observation,
    step: Step,
}

/// Runs `episodes` random episodes of at most `max_steps` steps with seeds from `seed` on, and
/// checks the conventions of this crate: seeded resets, finite features, masks, errors for
/// forbidden actions, ends of episodes.
///
/// # Errors
/// [`EnvError`] where the environment itself fails.
pub fn check<E: Environment + Clone>(
    env: &E,
    seed: u64,
    episodes: u64,
    max_steps: usize,
) -> Result<Vec<Finding>, EnvError> {
    let mut findings = Vec::new();
    let mut report = |check, problem: Option<String>| findings.push(Finding { check, problem });
    let mut recorded = Vec::new();
    for episode in 0..episodes {
        recorded.push(play(&mut env.clone(), seed + episode, max_steps)?);
    }
    let steps = || recorded.iter().flat_map(|trace| trace.iter());
    let bad = steps().position(|t| t.observation.features.iter().any(|value| !value.is_finite()));
    report("features are finite", bad.map(|at| format!("step {at} has a feature that is not finite")));
    let bad = steps().position(|t| t.observation.mask.iter().all(|&allowed| allowed == 0));
    report("some action is always allowed", bad.map(|at| format!("the mask of step {at} is all zero")));
    let bad = steps().position(|t| !t.step.reward.is_finite() || t.step.elapsed_secs < 0.0);
    report("rewards are finite and time runs forward", bad.map(|at| format!("step {at} violates it")));
    let bad = steps().position(|t| t.step.terminated && t.step.truncated);
    report("terminated and truncated exclude each other", bad.map(|at| format!("step {at} sets both")));

    let again = play(&mut env.clone(), seed, max_steps)?;
    let same = again.len() == recorded[0].len()
        && again.iter().zip(&recorded[0]).all(|(a, b)| a.observation == b.observation && a.step == b.step);
    report("the same seed and actions give the same episode", (!same).then(|| "two plays of one seed differ".into()));
    let other = recorded.iter().skip(1).any(|trace| {
        trace.len() != recorded[0].len() || trace.iter().zip(&recorded[0]).any(|(a, b)| a.observation != b.observation)
    });
    report(
        "different seeds give different episodes",
        (episodes > 1 && !other).then(|| "all seeds give one episode".into()),
    );

    let layout = env.layout();
    let mut fresh = env.clone();
    let mut observation = Observation::zeros(&layout);
    fresh.reset(Some(seed), &ResetOptions::default(), observation.as_mut())?;
    let forbidden = observation.mask.iter().position(|&allowed| allowed == 0);
    let refused = forbidden.is_none_or(|action| {
        matches!(fresh.step(action, Observation::zeros(&layout).as_mut()), Err(EnvError::Forbidden { .. }))
    });
    report("a forbidden action is refused", (!refused).then(|| "a masked action was carried out".into()));
    let snapshot = fresh.clone();
    let allowed = observation.mask.iter().position(|&allowed| allowed == 1).unwrap_or(0);
    let branch = |mut env: E| {
        let mut out = Observation::zeros(&layout);
        env.step(allowed, out.as_mut()).map(|step| (out, step))
    };
    let (a, b) = (branch(fresh)?, branch(snapshot)?);
    report("a snapshot continues like the original", (a != b).then(|| "one action gives two results".into()));
    Ok(findings)
}

fn play<E: Environment>(env: &mut E, seed: u64, max_steps: usize) -> Result<Vec<Trace>, EnvError> {
    let mut random = rng(seed, Stream::Exploration);
    let mut observation = Observation::zeros(&env.layout());
    env.reset(Some(seed), &ResetOptions::default(), observation.as_mut())?;
    let mut trace = Vec::new();
    for _ in 0..max_steps {
        let allowed = observation.mask.iter().filter(|&&allowed| allowed == 1).count();
        let pick = random.random_range(0..allowed.max(1));
        let action = observation.mask.iter().enumerate().filter(|(_, allowed)| **allowed == 1).nth(pick);
        let step = env.step(action.map_or(0, |(action, _)| action), observation.as_mut())?;
        let ended = step.terminated || step.truncated;
        trace.push(Trace { observation: observation.clone(), step });
        if ended {
            break;
        }
    }
    Ok(trace)
}
