//! Expert iteration of a utility by counterfactual advantages (Anthony, Tian, Barber, NIPS 2017).
//!
//! - `expert`: exact rollouts of changes on copies of the simulator. What a change saves is known without the noise of
//!   arrivals, and of other decisions only as far as the change brings them about (the "vine" rollouts of Schulman et
//!   al., ICML 2015, section 5.2, from a simulator that can be copied).
//! - `change`: the changes that are tried.
//! - `fit`: least squares of what the changes save on the features of the jobs. A utility is a weighted sum of these
//!   features, so they are the compatible ones, and the weights of the fit are the natural gradient of the cost
//!   (Kakade, NIPS 2001, theorem 1).
//!
//! A round asks the expert, and fits what it says. Then it tries steps of several lengths on new episodes, one lever
//! after the other, and takes the best ones. The policy of the round with the best mean on the validation seeds is
//! exported.

mod change;
mod expert;
mod fit;

use std::sync::atomic::Ordering;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::policies::utility::{Lever, Theta};
use goodput_agents::zoo;
use goodput_configs::experiment::{Experiment, ExpertAgent, started};
use goodput_configs::scenario::SetupError;
use goodput_eval::entries;
use serde::{Deserialize, Serialize};

pub use self::expert::{ChangeLabel, ExpertEpisodes};
pub use self::fit::{AdvantageFit, Products};

use crate::checkpoint::StateError;
use crate::error::TrainError;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::search_state::SearchState;
use crate::validate::Validation;
use crate::{Hooks, Progress, Trained};

/// Number of levers; states hold steps in the order of [`Lever::ALL`].
const LEVERS: usize = Lever::ALL.len();
/// Share by which labels of earlier rounds count, from round to round: the policy has moved since.
const FADING: f64 = 0.7;
/// Lengths of a step that are tried with each lever, relative to that of the round before.
const LENGTHS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Standard deviations beyond which a label counts as no farther: a few changes turn a whole episode around.
const FARTHEST: f64 = 3.0;

/// Everything that the iteration needs to continue.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpertState {
    config_sha256: String,
    rounds: u64,
    /// Parameters of the policy of the next round.
    theta: Vec<f64>,
    /// Length of a step, by lever.
    steps: [f64; LEVERS],
    products: Products,
    /// Mean completion time on validation seeds, seconds, and the parameters that had it.
    best: (f64, Vec<f64>),
    teacher_jct_secs: f64,
}

impl SearchState for ExpertState {
    const FILE: &str = "checkpoints/expert.json";

    fn config_sha256(&self) -> &str {
        &self.config_sha256
    }
}

/// Figures of a round.
#[derive(Clone, Copy, Debug, Default)]
struct RoundFigures {
    /// Share of the variance of the labels that the fit explains.
    explained: f64,
    /// Cost of an episode that a change or its opposite saves, in the mean of the changes.
    saved: f64,
    /// Cost after the round less that before, in the mean of the trials. Costs are logarithms.
    change: f64,
}

/// Iterates from the latest round, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &ExpertAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let expert = ExpertEpisodes::new(experiment, agent)?;
    let validation = Validation::without_heuristics(experiment, expert.setup())?;
    let theta_of = |values: &[f64]| Theta::new(values).unwrap_or_else(Theta::sia);
    let config_sha256 = dir.config_sha256()?;
    let make = |values: &[f64], steps: u64| -> PolicyBundle {
        let (argv, seed) = (hooks.argv.clone(), experiment.seed);
        expert.bundle(&theta_of(values), Provenance { argv, seed, steps, config_sha256: config_sha256.clone() })
    };
    let per_round = expert.per_round();
    let known = read(dir, &config_sha256)?;
    let began = known.is_some();
    let mut state = match known {
        Some(state) => state,
        None => {
            let (teacher, theta) = (entries::heuristic(experiment, &agent.teacher, expert.setup())?, start(agent)?);
            ExpertState {
                config_sha256: config_sha256.clone(),
                rounds: 0,
                steps: [agent.step; LEVERS],
                products: Products::new(Lever::FEATURES),
                best: (validation.score(&make(&theta, 0))?, theta.clone()),
                theta,
                teacher_jct_secs: validation.score_of(teacher)?.jct_secs,
            }
        }
    };
    let mut recorder = Recorder::new(dir, "progress", state.rounds * per_round)?;
    if !began {
        record(&mut recorder, 0, state.best.0, state.teacher_jct_secs, RoundFigures::default())?;
    }
    while state.rounds < agent.rounds {
        let figures = iterate(&expert, agent, &mut state, &theta_of)?;
        state.rounds += 1;
        let jct_secs = validation.score(&make(&state.theta, 0))?;
        if jct_secs < state.best.0 {
            state.best = (jct_secs, state.theta.clone());
        }
        let done = state.rounds * per_round;
        record(&mut recorder, done, jct_secs, state.teacher_jct_secs, figures)?;
        // The row goes first: a stop in between leaves a row too many, which resuming drops, and never one too few.
        state.write(dir)?;
        (hooks.progress)(Progress {
            phase: "iterate",
            done,
            total: agent.rounds * per_round,
            unit: "episodes",
            validation_jct_secs: Some(state.best.0),
            best_heuristic_jct_secs: Some(state.teacher_jct_secs),
        });
        if hooks.stop.load(Ordering::Relaxed) && state.rounds < agent.rounds {
            return Ok(Trained::Stopped);
        }
    }
    Ok(Trained::Complete(Box::new(make(&state.best.1, agent.rounds * per_round))))
}

/// Parameters that the first round starts from.
fn start(agent: &ExpertAgent) -> Result<Vec<f64>, TrainError> {
    let Some(path) = &agent.policy else { return Ok(started(&Theta::sia(), &agent.start).values()) };
    match zoo::open(path)?.model {
        Model::Utility(utility) if utility.theta.groups().is_empty() => {
            Ok(started(&utility.theta, &agent.start).values())
        }
        _ => Err(SetupError::Value {
            key: "agent.expert_iteration.policy",
            value: path.display().to_string(),
            expected: "a learned utility from an experiment without services, several tenants and bugs of jobs".into(),
        }
        .into()),
    }
}

/// One round: labels, a fit, and for each lever the step that costs least on the trials.
fn iterate(
    expert: &ExpertEpisodes<'_>,
    agent: &ExpertAgent,
    state: &mut ExpertState,
    theta_of: &impl Fn(&[f64]) -> Theta,
) -> Result<RoundFigures, TrainError> {
    let theta = theta_of(&state.theta);
    let labels = expert.labels(&theta, state.rounds)?;
    let mut figures = RoundFigures { saved: mean(labels.iter().map(|label| label.saves)), ..RoundFigures::default() };
    let bound = FARTHEST * mean(labels.iter().map(|label| label.target.powi(2))).sqrt();
    state.products.fade(FADING);
    labels.iter().for_each(|label| state.products.add(&label.features, label.target.clamp(-bound, bound)));
    let Some(fit) = state.products.fit(agent.ridge) else { return Ok(figures) };
    figures.explained = fit.explained;
    let trials = expert.trials(state.rounds);
    let before = mean(expert.costs(std::slice::from_ref(&theta), &trials)?.into_iter());
    let (mut chosen, mut least) = (theta, before);
    for (lever, step) in Lever::ALL.into_iter().zip(&mut state.steps) {
        let (direction, start, first) = (direction(lever, &fit, &state.products), chosen.clone(), *step);
        *step *= LENGTHS[0];
        let lengths = LENGTHS.map(|of| of * first);
        let moved = |by: f64| direction.iter().map(|of| of * by).collect::<Vec<f64>>();
        let candidates = lengths.map(|by| start.clone().moved(lever, &moved(by)));
        let costs = expert.costs(&candidates, &trials)?;
        for ((tried, candidate), cost) in lengths.into_iter().zip(candidates).zip(costs) {
            if cost < least {
                (least, chosen, *step) = (cost, candidate, tried);
            }
        }
    }
    state.theta = chosen.values();
    figures.change = least - before;
    Ok(figures)
}

/// Direction in which a lever saves cost, of root mean square 1 over the labels.
fn direction(lever: Lever, fit: &AdvantageFit, products: &Products) -> Vec<f64> {
    let mut by = vec![0.0; Lever::FEATURES];
    by[lever.features()].copy_from_slice(&fit.weights[lever.features()]);
    let size = products.spread(&by).max(f64::MIN_POSITIVE);
    by[lever.features()].iter().map(|of| of / size).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

fn record(
    recorder: &mut Recorder,
    done: u64,
    jct_secs: f64,
    teacher_jct_secs: f64,
    RoundFigures { explained, saved, change }: RoundFigures,
) -> Result<(), TrainError> {
    let figures = vec![
        ("eval/jct_mean_secs", jct_secs),
        ("eval/best_heuristic_jct_secs", teacher_jct_secs),
        ("expert/saved_by_a_change", saved),
        ("expert/explained_by_the_fit", explained),
        ("rollout/log_ratio_to_round_before", change),
    ];
    Ok(recorder.record(done, &figures)?)
}

fn read(dir: &RunDir, config_sha256: &str) -> Result<Option<ExpertState>, TrainError> {
    let Some(state) = ExpertState::read(dir, config_sha256)? else { return Ok(None) };
    let known = [&state.theta, &state.best.1].into_iter().all(|values| Theta::new(values).is_some());
    if !known || !state.products.hold(Lever::FEATURES) {
        let source = serde::de::Error::custom("it is about another number of parameters");
        return Err(StateError::Damaged { file: ExpertState::FILE.into(), source }.into());
    }
    Ok(Some(state))
}
