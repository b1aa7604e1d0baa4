//! Evolution of learned utilities by CMA-ES, relative to a teacher on the same episodes.
//!
//! How long jobs take differs more between episodes than between policies. So all candidates of a
//! generation and the teacher meet the same episodes, and a candidate's cost is the mean of its
//! logarithms of completion times less the teacher's: common random numbers and an input-dependent
//! baseline (Mao et al., arXiv:1807.02264) in one. Where services share the cluster, their
//! objectives are a constraint ([`crate::constraint`]) on candidates and on what is exported.

mod objective;
mod space;

use std::sync::atomic::Ordering;

use goodput_agents::bundle::{PolicyBundle, Provenance};
use goodput_agents::learning::cma::Cma;
use goodput_eval::entries;
use serde::{Deserialize, Serialize};

pub(crate) use self::objective::{EXPERIENCE, past};
pub use self::objective::{EpisodeCost, Generation, GenerationRound, Objective};

use crate::constraint::feasible_first;
use crate::error::TrainError;
use crate::evaluator::{Evaluator, ThreadEvaluator, against_teacher};
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::search_state::SearchState;
use crate::validate::{Score, Validation};
use crate::{Hooks, Progress, Trained};
use goodput_configs::experiment::{EvolutionAgent, Experiment};

/// Everything the search needs to continue.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EvolutionState {
    config_sha256: String,
    search: Cma,
    /// Mean completion time on validation seeds and the parameters that had it, services'
    /// objectives kept.
    best: Option<(f64, Vec<f64>)>,
    teacher: Option<Score>,
}

impl SearchState for EvolutionState {
    const FILE: &str = "checkpoints/evolution.json";

    fn config_sha256(&self) -> &str {
        &self.config_sha256
    }
}

/// Searches on the cores of this machine, from the latest generation or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &EvolutionAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let objective = Objective::new(experiment, agent)?;
    search(&objective, &ThreadEvaluator(&objective), dir, hooks)
}

/// Searches with the costs that `evaluator` finds, from the latest generation or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn search(
    objective: &Objective<'_>,
    evaluator: &dyn Evaluator,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let Objective { experiment, agent, .. } = *objective;
    let setup = objective.setup();
    let config_sha256 = dir.config_sha256()?;
    let validation = Validation::without_heuristics(experiment, setup)?;
    let begin = || {
        let (centre, scales) = objective.begin();
        let search = Cma::new(agent.population, centre, &scales, agent.step, experiment.seed);
        EvolutionState { config_sha256: config_sha256.clone(), search, best: None, teacher: None }
    };
    let mut state = EvolutionState::read(dir, &config_sha256)?.unwrap_or_else(begin);
    let make = |values: &[f64], steps: u64| -> PolicyBundle {
        let (argv, seed) = (hooks.argv.clone(), experiment.seed);
        objective.bundle(values, Provenance { argv, seed, steps, config_sha256: config_sha256.clone() })
    };
    let taught = match state.teacher.take() {
        Some(score) => score,
        None => validation.score_of(entries::heuristic(experiment, &agent.teacher, setup)?)?,
    };
    let of_teacher = taught.jct_secs;
    state.teacher = Some(taught.clone());
    let per_generation = agent.episodes * agent.population as u64;
    let mut recorder = Recorder::new(dir, "progress", state.search.generation() * per_generation)?;
    while state.search.generation() < agent.generations {
        let generation = Generation { number: state.search.generation(), candidates: state.search.ask() };
        let costs = against_teacher(&evaluator.costs(&generation)?, objective.episodes());
        let mean = costs.iter().map(|(cost, _)| cost).sum::<f64>() / costs.len() as f64;
        let late = costs.iter().filter(|(_, excess)| *excess > 0.0).count() as f64 / costs.len() as f64;
        state.search.tell(&feasible_first(&costs));
        let done = generation.number + 1;
        if done.is_multiple_of(agent.validate_every) || done == agent.generations {
            // The centre is the answer of the search; the best of a generation may only have been
            // lucky.
            let centre = state.search.mean().to_vec();
            let Score { jct_secs, served } = validation.score_whole(&make(&centre, 0))?;
            if served.excess(&taught.served) <= 0.0 && state.best.as_ref().is_none_or(|(best, _)| jct_secs < *best) {
                state.best = Some((jct_secs, centre));
            }
        }
        let validated = state.best.as_ref().map(|best| best.0);
        let figures = vec![
            ("rollout/log_ratio_to_teacher", mean),
            ("rollout/share_beyond_objectives", late),
            ("search/sigma", state.search.sigma()),
            ("eval/jct_mean_secs", validated.unwrap_or(f64::NAN)),
            ("eval/best_heuristic_jct_secs", of_teacher),
        ];
        recorder.record(done * per_generation, &figures)?;
        // The row goes first: a stop in between leaves a row too many, which resuming drops, and
        // never one too few.
        state.write(dir)?;
        (hooks.progress)(Progress {
            phase: "evolve",
            done: done * per_generation,
            total: agent.generations * per_generation,
            unit: "episodes",
            validation_jct_secs: validated,
            best_heuristic_jct_secs: Some(of_teacher),
        });
        if hooks.stop.load(Ordering::Relaxed) && done < agent.generations {
            return Ok(Trained::Stopped);
        }
    }
    let best = state.best.map_or_else(|| state.search.mean().to_vec(), |(_, values)| values);
    Ok(Trained::Complete(Box::new(make(&best, agent.generations * per_generation))))
}
