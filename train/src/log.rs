//! Decisions of heuristics, some of them disturbed by chance, logged to learn from offline.
//!
//! Every workload is met by every behaviour, so that a return can be held against the others on the
//! same workload. Results do not depend on the number of threads.

use goodput_agents::learning::teacher::Teacher;
use goodput_configs::scenario::SetupError;
use goodput_datasets::store::DecisionLog;
use goodput_datasets::store::decisions::{Behaviour, EpisodeEnd, LoggedDecision};
use goodput_env::gym::{ClusterEnv, EnvError, Environment, Observation, ResetOptions};
use goodput_env::seed::{Stream, keyed};
use rand::RngExt;
use rayon::prelude::*;

use crate::entries::published;
use crate::error::TrainError;
use goodput_configs::experiment::Experiment;
use goodput_configs::seeds::training_seed;

/// Logged workloads are numbered from here among those of training: reinforcement does not meet
/// them.
const FIRST: u64 = 1 << 20;
/// Workloads played side by side.
const BATCH: u64 = 8;

/// Plays workload after workload of `experiment` under every behaviour until there are `decisions`,
/// and tells how many there are.
///
/// # Errors
/// [`TrainError`] where a behaviour is unknown, may not run on what the experiment lets policies
/// know, or a workload cannot be run.
pub fn log(
    experiment: &Experiment,
    behaviours: &[Behaviour],
    decisions: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<DecisionLog, TrainError> {
    let setup = experiment.setup()?;
    for behaviour in behaviours {
        check(behaviour, experiment)?;
    }
    let types = setup.type_names(experiment.gym().types);
    let env = experiment.cluster_env(setup);
    let mut all = DecisionLog::new(env.layout(), env.layout().schema_hash()).with_types(types);
    let first = training_seed(experiment.seed, FIRST);
    for batch in 0.. {
        if all.decisions() as u64 >= decisions || behaviours.is_empty() {
            break;
        }
        // Batches are whole, so every workload of the log has been met by all behaviours.
        let plays: Vec<(u64, usize)> = (batch * BATCH..(batch + 1) * BATCH)
            .flat_map(|at| (0..behaviours.len()).map(move |who| (at, who)))
            .collect();
        let one = |&(at, who): &(u64, usize)| play(env.clone(), &behaviours[who], who, first.wrapping_add(at));
        for episode in plays.par_iter().map(one).collect::<Result<Vec<_>, _>>()? {
            all.append(&episode);
        }
        progress(all.decisions() as u64);
    }
    Ok(all)
}

fn check(behaviour: &Behaviour, experiment: &Experiment) -> Result<(), TrainError> {
    let needs = published(&behaviour.name)?.training(0).needs();
    let given = experiment.environment.information;
    if !given.allows(needs) {
        let expected = format!("behaviours that run on `{given}`; {} needs `{needs}`", behaviour.name);
        return Err(SetupError::Value { key: "environment.information", value: given.to_string(), expected }.into());
    }
    if !(0.0..=1.0).contains(&behaviour.noise) {
        return Err(
            SetupError::Value { key: "noise", value: behaviour.noise.to_string(), expected: "0 to 1".into() }.into()
        );
    }
    Ok(())
}

/// One episode. Chance is named by the workload and the behaviour.
fn play(mut env: ClusterEnv, behaviour: &Behaviour, who: usize, seed: u64) -> Result<DecisionLog, TrainError> {
    let layout = env.layout();
    let (mut now, mut then) = (Observation::zeros(&layout), Observation::zeros(&layout));
    let mut log = DecisionLog::new(layout, layout.schema_hash());
    let mut guide = Teacher::new(published(&behaviour.name)?.training(seed));
    let mut random = keyed(seed, Stream::Exploration, who as u64);
    env.reset(Some(seed), &ResetOptions::default(), now.as_mut())?;
    loop {
        let own = guide.advise(&env)?;
        // Both are drawn at every step, so that the stream does not depend on what was disturbed.
        let (disturbed, at): (f32, f64) = (random.random(), random.random());
        let allowed = now.mask.iter().filter(|&&allowed| allowed != 0).count();
        let mut action = own;
        if disturbed < behaviour.noise {
            let any = now.mask.iter().enumerate().filter(|(_, allowed)| **allowed != 0).map(|(action, _)| action);
            action = any.clone().nth((at * allowed as f64) as usize).ok_or(EnvError::NotReset)?;
        }
        // The propensity is that of the mixture: chance may pick any allowed action, the
        // heuristic's own too.
        let chosen = if action == own { 1.0 - behaviour.noise } else { 0.0 };
        let step = env.step(action, then.as_mut())?;
        log.push(&LoggedDecision {
            features: &now.features,
            mask: &now.mask,
            action: action as u32,
            propensity: behaviour.noise / allowed as f32 + chosen,
            reward: step.reward as f32,
            dt_secs: step.elapsed_secs as f32,
        });
        std::mem::swap(&mut now, &mut then);
        if step.terminated || step.truncated {
            let end = if step.terminated { EpisodeEnd::Terminated } else { EpisodeEnd::Truncated };
            log.finish(behaviour.clone(), seed, end, (&now.features, &now.mask));
            return Ok(log);
        }
    }
}
