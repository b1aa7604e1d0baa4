//! The cross-entropy method over a linear priority function: no gradients, no critic, one weight a
//! feature. What a net has to beat to be worth its trouble.

use std::sync::atomic::Ordering;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::learning::cem::Cem;
use goodput_agents::policies::linear::Linear;
use goodput_configs::scenario::Setup;
use goodput_env::gym::{EnvError, ExpectedPeak};
use goodput_env::sim::Simulator;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::export::bundle;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::search_state::SearchState;
use crate::validate::{Validation, jct_mean_secs};
use crate::{Hooks, Progress, Trained};
use goodput_configs::experiment::{CemAgent, Experiment};
use goodput_configs::seeds::training_seed;

/// Everything the search needs to continue.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CemState {
    config_sha256: String,
    search: Cem,
    best: Option<(f64, Vec<f64>)>,
}

impl SearchState for CemState {
    const FILE: &str = "checkpoints/cem.json";

    fn config_sha256(&self) -> &str {
        &self.config_sha256
    }
}

/// Searches from the latest generation, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &CemAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let setup = experiment.setup()?;
    let layout = experiment.gym().layout();
    let validation = Validation::new(experiment, &setup)?;
    let config_sha256 = dir.config_sha256()?;
    let begin = || {
        let search = Cem::new(agent.search, vec![0.0; Linear::parameters(&layout)], experiment.seed);
        CemState { config_sha256: config_sha256.clone(), search, best: None }
    };
    let mut state = CemState::read(dir, &config_sha256)?.unwrap_or_else(begin);
    let mut recorder = Recorder::new(dir, "progress", state.search.generation() * agent.episodes)?;
    let make = |weights: &[f64], steps: u64| -> Result<PolicyBundle, TrainError> {
        let weights = weights.iter().map(|&weight| weight as f32).collect();
        let linear = Linear::new(layout, weights).ok_or(EnvError::NotReset)?;
        let provenance =
            Provenance { argv: hooks.argv.clone(), seed: experiment.seed, steps, config_sha256: config_sha256.clone() };
        Ok(bundle(Model::Linear(linear), experiment, &setup, provenance))
    };
    while state.search.generation() < agent.generations {
        let generation = state.search.generation();
        let candidates = state.search.ask();
        let bundles = candidates.iter().map(|weights| make(weights, 0)).collect::<Result<Vec<_>, _>>()?;
        // All candidates of a generation meet the same episodes, and every generation meets new
        // ones.
        let first = training_seed(experiment.seed, 0).wrapping_add(generation * agent.episodes);
        let scores = score(&setup, &bundles, first, agent.episodes, &experiment.expected_peak(&setup))?;
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        state.search.tell(&scores);
        let center = state.search.mean().to_vec();
        // The centre is the answer of the search; the best of a generation may only have been
        // lucky.
        let jct = validation.score(&make(&center, 0)?)?;
        if state.best.as_ref().is_none_or(|(best, _)| jct < *best) {
            state.best = Some((jct, center));
        }
        let episodes = (generation + 1) * agent.episodes * candidates.len() as u64;
        let figures = vec![
            ("rollout/jct_mean_secs", -mean),
            ("eval/jct_mean_secs", jct),
            ("eval/best_heuristic_jct_secs", validation.best_heuristic_jct_secs),
        ];
        recorder.record((generation + 1) * agent.episodes, &figures)?;
        // The row goes first: a stop in between leaves a row too many, which resuming drops, and
        // never one too few.
        state.write(dir)?;
        (hooks.progress)(Progress {
            phase: "search",
            done: episodes,
            total: agent.generations * agent.episodes * candidates.len() as u64,
            unit: "episodes",
            validation_jct_secs: Some(jct),
            best_heuristic_jct_secs: Some(validation.best_heuristic_jct_secs).filter(|jct| jct.is_finite()),
        });
        if hooks.stop.load(Ordering::Relaxed) && state.search.generation() < agent.generations {
            return Ok(Trained::Stopped);
        }
    }
    let best = state.best.map_or_else(|| state.search.mean().to_vec(), |(_, weights)| weights);
    Ok(Trained::Complete(Box::new(make(&best, agent.generations * agent.episodes)?)))
}

/// Minus the mean completion time of each bundle over the same episodes.
fn score(
    setup: &Setup,
    bundles: &[PolicyBundle],
    first: u64,
    episodes: u64,
    expected: &ExpectedPeak,
) -> Result<Vec<f64>, TrainError> {
    let scenarios: Vec<_> =
        (0..episodes).into_par_iter().map(|episode| setup.scenario(first.wrapping_add(episode))).collect();
    let one = |bundle: &PolicyBundle| -> Result<f64, TrainError> {
        let mut total = 0.0;
        for scenario in &scenarios {
            let policy = bundle.playing().map_err(|_| EnvError::NotReset)?;
            let mut policy = policy.with_expected_peak(expected.clone());
            let outcome = Simulator::new(scenario.clone()).run(&mut policy).map_err(EnvError::from)?;
            total += jct_mean_secs(&outcome);
        }
        Ok(-total / scenarios.len() as f64)
    };
    bundles.par_iter().map(one).collect()
}
