//! CMA-ES over the weights of a linear score.

use std::sync::atomic::Ordering;

use goodput_agents::learning::cma::Cma;
use goodput_agents::policies::queue::{JOB_FEATURES, QueueScore};
use goodput_configs::experiment::QueueEvolution;
use serde::{Deserialize, Serialize};

use super::runs::{QueueRuns, mean};
use crate::error::TrainError;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::search_state::SearchState;
use crate::{Hooks, Progress, Trained};

/// Weights of a linear score that are searched: those of all features but the first, which is 1 for every job and so
/// changes no order.
const SEARCHED: usize = JOB_FEATURES.len() - 1;

/// Everything that the search needs to continue.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderSearch {
    config_sha256: String,
    search: Cma,
    /// Mean cost on the validation workloads, and the weights that had it.
    best: Option<(f64, Vec<f64>)>,
}

impl SearchState for OrderSearch {
    const FILE: &str = "checkpoints/queue.json";

    fn config_sha256(&self) -> &str {
        &self.config_sha256
    }
}

/// Smallest area first: the features are logarithms, and a sum of logarithms is that of the product. Its scale keeps
/// the weights of the order of 1.
fn start() -> Vec<f64> {
    let weight = |feature: &&str| match *feature {
        "log_requested" => -1.0,
        // The feature is 1 at all accelerators of a cluster of 256, and that of the run time at a million seconds.
        "log_width" => -0.4,
        _ => 0.0,
    };
    JOB_FEATURES[1..].iter().map(weight).collect()
}

fn score(weights: &[f64]) -> QueueScore {
    let mut score = [0.0; JOB_FEATURES.len()];
    score[1..].iter_mut().zip(weights).for_each(|(into, weight)| *into = *weight as f32);
    QueueScore::Linear(score)
}

/// Searches from the latest generation, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    runs: &QueueRuns<'_>,
    agent: &QueueEvolution,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let begin = || {
        let search = Cma::new(agent.population, start(), &[1.0; SEARCHED], agent.step, runs.experiment.seed);
        OrderSearch { config_sha256: runs.config_sha256().into(), search, best: None }
    };
    let mut state = OrderSearch::read(dir, runs.config_sha256())?.unwrap_or_else(begin);
    let per_generation = agent.episodes * agent.population as u64;
    let mut recorder = Recorder::new(dir, "progress", state.search.generation() * per_generation)?;
    while state.search.generation() < agent.generations {
        let generation = state.search.generation();
        let scores: Vec<QueueScore> = state.search.ask().iter().map(|weights| score(weights)).collect();
        // All candidates of a generation meet equal workloads, and every generation meets new ones.
        let workloads = runs.training(generation * agent.episodes, agent.episodes);
        let by_workload = runs.costs(&scores, &workloads)?;
        // A mean of logarithms: otherwise the most crowded of the workloads would decide alone.
        let costs: Vec<f64> =
            by_workload.iter().map(|of| mean(&of.iter().map(|cost| cost.ln()).collect::<Vec<_>>())).collect();
        state.search.tell(&costs);
        let done = generation + 1;
        if done.is_multiple_of(runs.experiment.train.evaluate_every) || done == agent.generations {
            // The centre is the answer of the search; the best of a generation may only have been lucky.
            let centre = state.search.mean().to_vec();
            let cost = runs.validate(&score(&centre))?;
            if state.best.as_ref().is_none_or(|(best, _)| cost < *best) {
                state.best = Some((cost, centre));
            }
        }
        let validated = state.best.as_ref().map_or(f64::NAN, |(cost, _)| *cost);
        let names = runs.names();
        let figures = vec![
            (names.rollout_log, mean(&costs)),
            ("search/sigma", state.search.sigma()),
            (names.validation, validated),
        ];
        recorder.record(done * per_generation, &figures)?;
        // The row goes first: a stop in between leaves a row too many, which resuming drops, and never one too few.
        state.write(dir)?;
        (hooks.progress)(Progress {
            phase: "evolve",
            done: done * per_generation,
            total: agent.generations * per_generation,
            unit: "episodes",
            validation_jct_secs: None,
            best_heuristic_jct_secs: None,
        });
        if hooks.stop.load(Ordering::Relaxed) && done < agent.generations {
            return Ok(Trained::Stopped);
        }
    }
    let best = state.best.map_or_else(|| state.search.mean().to_vec(), |(_, weights)| weights);
    Ok(Trained::Complete(Box::new(runs.bundle(score(&best), agent.generations * per_generation))))
}
