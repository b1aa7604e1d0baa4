//! Evolution of learned utilities by CMA-ES, relative to a teacher on the same episodes.
//!
//! How long jobs take differs more between episodes than between policies. So all candidates of a generation and the teacher meet the same
//! episodes, and a candidate's cost is the mean of its logarithms of completion times less the teacher's: common random numbers and an
//! input-dependent baseline (Mao et al., arXiv:1807.02264) in one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::learned::cma::Cma;
use goodput_agents::learned::utility::{Experience, Theta, Utility};
use goodput_agents::loaning::{Sharing, complete};
use goodput_env::gym::{EnvError, ExpectedPeak};
use goodput_env::job::{WHOLE, Work};
use goodput_env::policy::Policy;
use goodput_env::sim::{Outcome, Scenario, SimOptions, Simulator};
use goodput_eval::run::PolicyEntry;
use goodput_eval::setup::Setup;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::checkpoint::StateError;
use crate::config::{EvolutionAgent, Experiment, started, training_seed};
use crate::error::TrainError;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::validate::{Validation, bundle, mean_jct_secs};
use crate::{Hooks, Progress, Trained};

const STATE: &str = "checkpoints/evolution.json";
/// Training episodes whose jobs make the experience that a policy brings along.
pub(crate) const EXPERIENCE: u64 = 32;

/// Everything the search needs to continue.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    config_sha256: String,
    search: Cma,
    /// Mean completion time on validation seeds and the parameters that had it.
    best: Option<(f64, Vec<f64>)>,
    teacher_jct_secs: Option<f64>,
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
    let setups = setups(experiment)?;
    let teacher = experiment.heuristic(&agent.teacher, &setups[0])?;
    let config_sha256 = dir.config_sha256()?;
    let validation = Validation::without_heuristics(experiment, &setups[0])?;
    let mut state = start(experiment, agent, dir, &config_sha256)?;
    let experience = match agent.experience {
        true => past(&episodes(&setups, experiment.seed, 0, EXPERIENCE)),
        false => Experience::default(),
    };
    let make = |values: &[f64], steps: u64| -> PolicyBundle {
        // What is stored is what is tried.
        let stored: Vec<f64> = values.iter().map(|&value| f64::from(value as f32)).collect();
        let theta = Theta::new(&stored).unwrap_or_else(Theta::sia);
        let provenance =
            Provenance { argv: hooks.argv.clone(), seed: experiment.seed, steps, config_sha256: config_sha256.clone() };
        bundle(Model::Utility(Utility { theta, experience: experience.clone() }), &setups[0], provenance)
    };
    let of_teacher = match state.teacher_jct_secs {
        Some(secs) => secs,
        None => validation.score_of(experiment.heuristic(&agent.teacher, &setups[0])?)?,
    };
    state.teacher_jct_secs = Some(of_teacher);
    let per_generation = agent.episodes * agent.population as u64;
    let mut recorder = Recorder::new(dir, "progress", state.search.generation() * per_generation)?;
    while state.search.generation() < agent.generations {
        let generation = state.search.generation();
        let episodes = episodes(&setups, experiment.seed, generation * agent.episodes, agent.episodes);
        let candidates: Vec<PolicyBundle> = state.search.ask().iter().map(|values| make(values, 0)).collect();
        let costs = costs(agent, setups[0].sharing(), &episodes, &candidates, &teacher)?;
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        state.search.tell(&costs);
        let done = generation + 1;
        if done.is_multiple_of(agent.validate_every) || done == agent.generations {
            let centre = state.search.mean().to_vec();
            let jct = validation.score(&make(&centre, 0))?;
            if state.best.as_ref().is_none_or(|(best, _)| jct < *best) {
                state.best = Some((jct, centre));
            }
        }
        let validated = state.best.as_ref().map(|best| best.0);
        let figures = vec![
            ("rollout/log_ratio_to_teacher", mean),
            ("search/sigma", state.search.sigma()),
            ("eval/mean_jct_secs", validated.unwrap_or(f64::NAN)),
            ("eval/best_heuristic_jct_secs", of_teacher),
        ];
        recorder.record(done * per_generation, &figures)?;
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

/// What is known of the jobs of these episodes when they are over: the models they trained and the work they did.
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

/// One setup for each load.
pub(crate) fn setups(experiment: &Experiment) -> Result<Vec<Setup>, TrainError> {
    let loads: &[f64] = if experiment.train.loads.is_empty() { &[1.0] } else { &experiment.train.loads };
    loads.iter().map(|&load| Ok(experiment.at_load(load).setup()?)).collect()
}

/// Training episodes by number, each load in turn.
pub(crate) fn episodes(setups: &[Setup], seed: u64, first: u64, count: u64) -> Vec<Arc<Scenario>> {
    let at = |episode: u64| {
        let setup = &setups[(episode % setups.len() as u64) as usize];
        setup.scenario(training_seed(seed, 0).wrapping_add(episode))
    };
    (first..first + count).into_par_iter().map(at).collect()
}

fn start(
    experiment: &Experiment,
    agent: &EvolutionAgent,
    dir: &RunDir,
    config_sha256: &str,
) -> Result<State, TrainError> {
    if !dir.path(STATE).exists() {
        let search = Cma::new(agent.population, started(&agent.start), &Theta::scales(), agent.step, experiment.seed);
        return Ok(State { config_sha256: config_sha256.into(), search, best: None, teacher_jct_secs: None });
    }
    let state: State = serde_json::from_slice(&dir.read(STATE)?)
        .map_err(|source| StateError::Damaged { file: STATE.into(), source })?;
    if state.config_sha256 != config_sha256 {
        return Err(StateError::OtherConfig { found: state.config_sha256, expected: config_sha256.into() }.into());
    }
    Ok(state)
}

/// Cost of each candidate: its logarithms of mean and tail, less the teacher's, over the same episodes. Where there are services, both share the
/// cluster with them by `sharing`.
fn costs(
    agent: &EvolutionAgent,
    sharing: &Sharing,
    episodes: &[Arc<Scenario>],
    candidates: &[PolicyBundle],
    teacher: &PolicyEntry,
) -> Result<Vec<f64>, TrainError> {
    let run = |scenario: &Arc<Scenario>, policy: Box<dyn Policy>| -> Result<f64, TrainError> {
        let mut policy = complete(policy, scenario, sharing);
        let outcome = Simulator::new(scenario.clone()).run(&mut *policy).map_err(EnvError::from)?;
        Ok(mean_jct_secs(&outcome).max(1e-3).ln() + agent.tail * tail_secs(&outcome).max(1e-3).ln())
    };
    let taught = |scenario: &Arc<Scenario>| match teacher.information {
        Some(information) => {
            let options = SimOptions { information, ..scenario.options.clone() };
            run(&Arc::new(Scenario { options, ..(**scenario).clone() }), (teacher.make)(scenario.seed))
        }
        None => run(scenario, (teacher.make)(scenario.seed)),
    };
    let reference: Vec<f64> = episodes.par_iter().map(taught).collect::<Result<_, _>>()?;
    let pairs: Vec<(usize, usize)> =
        (0..candidates.len()).flat_map(|candidate| (0..episodes.len()).map(move |at| (candidate, at))).collect();
    let one = |&(candidate, at): &(usize, usize)| -> Result<f64, TrainError> {
        let policy = candidates[candidate].policy(ExpectedPeak::default()).map_err(TrainError::Decoder)?;
        Ok(run(&episodes[at], policy)? - reference[at])
    };
    let all = pairs.par_iter().map(one).collect::<Result<Vec<f64>, _>>()?;
    Ok(all.chunks(episodes.len()).map(|costs| costs.iter().sum::<f64>() / costs.len() as f64).collect())
}

/// The 99th percentile of completion times, seconds; jobs cut off by the horizon count up to it.
fn tail_secs(outcome: &Outcome) -> f64 {
    let arrived = outcome.jobs.iter().filter(|job| job.submit <= outcome.end);
    let mut times: Vec<f64> =
        arrived.map(|job| (job.finish.unwrap_or(outcome.end) - job.submit).as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    times.get((times.len() as f64 * 0.99) as usize).or(times.last()).copied().unwrap_or(0.0)
}
