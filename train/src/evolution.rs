//! Evolution of learned utilities by CMA-ES, relative to a teacher on the same episodes.
//!
//! How long jobs take differs more between episodes than between policies. So all candidates of a
//! generation and the teacher meet the same episodes, and a candidate's cost is the mean of its
//! logarithms of completion times less the teacher's: common random numbers and an input-dependent
//! baseline (Mao et al., arXiv:1807.02264) in one. Where services share the cluster, their
//! objectives are a constraint ([`crate::constraint`]) on candidates and on what is exported.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::learning::cma::Cma;
use goodput_agents::policies::utility::{Experience, Theta, Utility};
use goodput_env::job::{WHOLE, Work};
use goodput_env::scenario::Scenario;
use goodput_eval::entries;
use serde::{Deserialize, Serialize};

use crate::checkpoint::StateError;
use crate::constraint::feasible_first;
use crate::episodes::Episodes;
use crate::error::TrainError;
use crate::evaluator::{ThreadEvaluator, against_teacher};
use crate::export::bundle;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::validate::{Score, Validation};
use crate::{Hooks, Progress, Trained};
use goodput_configs::experiment::{EvolutionAgent, Experiment, started};

const STATE: &str = "checkpoints/evolution.json";
/// Number of training episodes that provide the jobs in the experience that a policy starts with.
pub(crate) const EXPERIENCE: u64 = 32;

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

/// Searches from the latest generation, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &EvolutionAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let training = Episodes::new(experiment)?;
    let setup = training.setup();
    let teacher = entries::heuristic(experiment, &agent.teacher, setup)?;
    let config_sha256 = dir.config_sha256()?;
    let validation = Validation::without_heuristics(experiment, setup)?;
    let space = Space::of(experiment, agent);
    let mut state = start(experiment, agent, &space, dir, &config_sha256)?;
    let experience = match agent.experience {
        true => past(&training.range(experiment.seed, 0, EXPERIENCE)),
        false => Experience::default(),
    };
    let make = |values: &[f64], steps: u64| -> PolicyBundle {
        let theta = space.theta(values);
        let provenance =
            Provenance { argv: hooks.argv.clone(), seed: experiment.seed, steps, config_sha256: config_sha256.clone() };
        let utility =
            Utility { theta, experience: experience.clone(), siblings: agent.siblings, efficiency: agent.efficiency };
        bundle(Model::Utility(utility), setup, provenance)
    };
    let taught = match state.teacher.take() {
        Some(score) => score,
        None => validation.score_of(entries::heuristic(experiment, &agent.teacher, setup)?)?,
    };
    let of_teacher = taught.jct_secs;
    state.teacher = Some(taught.clone());
    let evaluator = ThreadEvaluator { tail: agent.tail, sharing: setup.sharing(), teacher: &teacher };
    let per_generation = agent.episodes * agent.population as u64;
    let mut recorder = Recorder::new(dir, "progress", state.search.generation() * per_generation)?;
    while state.search.generation() < agent.generations {
        let generation = state.search.generation();
        let episodes = training.range(experiment.seed, generation * agent.episodes, agent.episodes);
        let candidates: Vec<PolicyBundle> = state.search.ask().iter().map(|values| make(values, 0)).collect();
        let costs = against_teacher(&evaluator, &episodes, &candidates)?;
        let mean = costs.iter().map(|(cost, _)| cost).sum::<f64>() / costs.len() as f64;
        let late = costs.iter().filter(|(_, excess)| *excess > 0.0).count() as f64 / costs.len() as f64;
        state.search.tell(&feasible_first(&costs));
        let done = generation + 1;
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
        dir.write(STATE, &serde_json::to_vec_pretty(&state).expect("a state is plain data"))?;
        (hooks.progress)(Progress {
            phase: "evolve",
            decisions: done * per_generation,
            budget: agent.generations * per_generation,
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

/// Experience from the jobs of these episodes once they are complete: the models trained and the
/// work done.
pub(crate) fn past(episodes: &[Arc<Scenario>]) -> Experience {
    let jobs = episodes.iter().flat_map(|scenario| {
        let workload = &scenario.workload;
        workload.jobs.iter().filter_map(|job| match job.work {
            Work::Application { index, work_milli } => {
                let app = &workload.applications[usize::from(index)];
                Some((app.name.as_str(), app.total_work() * f64::from(work_milli) / f64::from(WHOLE)))
            }
            Work::Fixed { .. } | Work::Steps { .. } => None,
        })
    });
    Experience::of(jobs)
}

/// Search space: the parameters to which the experiment gives a meaning and that the configuration
/// does not freeze.
struct Space {
    /// Parameters at the start of the search; frozen parameters keep these values.
    start: Theta,
    /// Places of those that are free.
    free: Vec<usize>,
}

impl Space {
    fn of(experiment: &Experiment, agent: &EvolutionAgent) -> Self {
        let start = started(&Theta::sia().with(experiment.groups()), &agent.start);
        let frozen = |name: &str| agent.freeze.iter().any(|frozen| frozen == name);
        let free = start.names().enumerate().filter(|(_, name)| !frozen(name)).map(|(at, _)| at).collect();
        Self { start, free }
    }

    /// Starting point of the search and the initial step size in each direction.
    fn begin(&self) -> (Vec<f64>, Vec<f64>) {
        let (values, scales) = (self.start.values(), self.start.scales());
        self.free.iter().map(|&at| (values[at], scales[at])).unzip()
    }

    /// The parameters that the free ones make; what is stored is what is tried.
    fn theta(&self, free: &[f64]) -> Theta {
        let mut values = self.start.values();
        self.free.iter().zip(free).for_each(|(&at, &value)| values[at] = value);
        let stored: Vec<f64> = values.into_iter().map(|value| f64::from(value as f32)).collect();
        self.start.clone().of_values(&stored).unwrap_or_else(|| self.start.clone())
    }
}

fn start(
    experiment: &Experiment,
    agent: &EvolutionAgent,
    space: &Space,
    dir: &RunDir,
    config_sha256: &str,
) -> Result<EvolutionState, TrainError> {
    if !dir.path(STATE).exists() {
        let (centre, scales) = space.begin();
        let search = Cma::new(agent.population, centre, &scales, agent.step, experiment.seed);
        return Ok(EvolutionState { config_sha256: config_sha256.into(), search, best: None, teacher: None });
    }
    let state: EvolutionState = serde_json::from_slice(&dir.read(STATE)?)
        .map_err(|source| StateError::Damaged { file: STATE.into(), source })?;
    if state.config_sha256 != config_sha256 {
        return Err(StateError::OtherConfig { found: state.config_sha256, expected: config_sha256.into() }.into());
    }
    Ok(state)
}
