//! Expert iteration of a net that holds back changes of a published policy (Anthony, Tian, Barber, NIPS 2017).
//!
//! - `rollouts`: exact rollouts of changes on copies of the simulator, without the noise of arrivals (the "vine"
//!   rollouts of Schulman et al., ICML 2015, section 5.2).
//!
//! A round asks the expert what holding back saves under the policy of the round, and fits a net to the labels of all
//! rounds so far. Then it tries thresholds on new episodes, and the best of them is the policy of the next round,
//! unless the policy of the round is better than all of them. The policy with the best mean on the validation seeds is
//! exported.

mod rollouts;

use std::sync::atomic::Ordering;

use goodput_agents::bundle::{PolicyBundle, Provenance};
use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::advantages::ChangeSample;
use goodput_agents::learning::learner::Learner;
use goodput_agents::nets::slots::SlotScorer;
use goodput_agents::nets::weights::{NetConfig, Weights};
use goodput_agents::policies::hold::{LearnedHold, layout};
use goodput_configs::experiment::{Experiment, HoldAgent};
use goodput_env::seed::{Stream, keyed};
use goodput_eval::entries;
use serde::{Deserialize, Serialize};

pub use self::rollouts::{HoldEpisodes, MomentLabel};

use crate::checkpoint::StateError;
use crate::error::TrainError;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::search_state::SearchState;
use crate::validate::Validation;
use crate::{Hooks, Progress, Trained};

/// Shares of the changes that the thresholds which are tried hold back, on the moments of the round that the net was
/// fitted to. The scores tell changes apart, and their mean is uncertain, so a threshold goes by their order.
const SHARES: [f64; 11] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98];
/// One of so many episodes is left out of the fit, for the choice of the number of passes.
const LEFT_OUT: usize = 5;
/// Standard deviations beyond which a label counts as no farther: a few changes turn a whole episode around.
const FARTHEST: f32 = 3.0;

/// Everything that the iteration needs to continue.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldState {
    config_sha256: String,
    rounds: u64,
    policy: StoredChoice,
    /// Mean completion time on validation seeds, seconds, and the policy that had it.
    best: (f64, StoredChoice),
    teacher_jct_secs: f64,
    /// Labels that are fitted, and labels that are left out of the fit.
    samples: [Vec<ChangeSample>; 2],
}

/// A choice as numbers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredChoice {
    weights: Vec<f32>,
    /// Absent: nothing is held back.
    threshold: Option<f32>,
}

impl SearchState for HoldState {
    const FILE: &str = "checkpoints/hold.json";

    fn config_sha256(&self) -> &str {
        &self.config_sha256
    }
}

/// Figures of a round.
#[derive(Clone, Copy, Debug)]
struct RoundFigures {
    /// Share of the variance of the labels, of those that are left out of the fit, that the net explains.
    explained: f64,
    /// Time of all jobs that choices or their opposites save, seconds, in the mean of the moments.
    saved_secs: f64,
    /// Cost after the round less that before, in the mean of the trials. Costs are logarithms.
    change: f64,
    /// Share of the changes that the threshold holds back; not a number where the policy stays.
    share: f64,
}

/// Iterates from the latest round, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &HoldAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let expert = HoldEpisodes::new(experiment, agent)?;
    let validation = Validation::without_heuristics(experiment, expert.setup())?;
    let config_sha256 = dir.config_sha256()?;
    let make = |choice: &LearnedHold, steps: u64| -> PolicyBundle {
        let (argv, seed) = (hooks.argv.clone(), experiment.seed);
        expert.bundle(choice, Provenance { argv, seed, steps, config_sha256: config_sha256.clone() })
    };
    let per_round = expert.per_round();
    let known = HoldState::read(dir, &config_sha256)?;
    let began = known.is_some();
    let mut state = match known {
        Some(state) => state,
        None => {
            let net = NetConfig::Set(agent.net.clone());
            let weights = Weights::new(&net, layout(1), experiment.seed);
            let nothing = StoredChoice { weights: weights.data().to_vec(), threshold: None };
            let teacher = entries::heuristic(experiment, &agent.teacher, expert.setup())?;
            HoldState {
                config_sha256: config_sha256.clone(),
                rounds: 0,
                best: (validation.score(&make(&choice(agent, &nothing)?, 0))?, nothing.clone()),
                policy: nothing,
                teacher_jct_secs: validation.score_of(teacher)?.jct_secs,
                samples: [Vec::new(), Vec::new()],
            }
        }
    };
    let mut recorder = Recorder::new(dir, "progress", state.rounds * per_round)?;
    if !began {
        let nothing = RoundFigures { explained: 0.0, saved_secs: 0.0, change: 0.0, share: f64::NAN };
        record(&mut recorder, 0, state.best.0, state.teacher_jct_secs, nothing)?;
    }
    while state.rounds < agent.rounds {
        let figures = iterate(&expert, experiment, agent, &mut state)?;
        state.rounds += 1;
        let done = state.rounds * per_round;
        let bundle = make(&choice(agent, &state.policy)?, done);
        bundle.save(&dir.path(&format!("checkpoints/round-{}.bundle", state.rounds)))?;
        let jct_secs = validation.score(&bundle)?;
        if jct_secs < state.best.0 {
            state.best = (jct_secs, state.policy.clone());
        }
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
    Ok(Trained::Complete(Box::new(make(&choice(agent, &state.best.1)?, agent.rounds * per_round))))
}

/// One round: labels, a fit, and the threshold that costs least on the trials.
fn iterate(
    expert: &HoldEpisodes<'_>,
    experiment: &Experiment,
    agent: &HoldAgent,
    state: &mut HoldState,
) -> Result<RoundFigures, TrainError> {
    let before = choice(agent, &state.policy)?;
    let by_episode = expert.labels(&before, state.rounds)?;
    let saves: Vec<f64> = by_episode.iter().flatten().map(|label| label.saves_secs).collect();
    let fading = agent.fading as f32;
    state.samples.iter_mut().flatten().for_each(|sample| sample.weight *= fading);
    for (number, labels) in by_episode.into_iter().enumerate() {
        let part = usize::from(number % LEFT_OUT == LEFT_OUT - 1);
        state.samples[part].extend(labels.into_iter().map(|label| label.sample));
    }
    let mut figures = RoundFigures {
        explained: 0.0,
        saved_secs: saves.iter().sum::<f64>() / saves.len().max(1) as f64,
        change: 0.0,
        share: f64::NAN,
    };
    let [fitted, left_out] = standardised(&state.samples);
    if fitted.is_empty() {
        return Ok(figures);
    }
    let seed = experiment.seed.wrapping_add(state.rounds);
    let net = NetConfig::Set(agent.net.clone());
    let mut learner = Learner::new(&net, layout(1), AdamConfig::default(), seed);
    let mut random = keyed(seed, Stream::Exploration, state.rounds);
    let fit = learner.fit_advantages(&agent.fit, &fitted, &left_out, &mut random);
    let [nothing, error] = fit.map_err(|source| TrainError::Diverged { update: state.rounds, source })?;
    figures.explained = if left_out.is_empty() { f64::NAN } else { 1.0 - error / nothing.max(1e-12) };

    // The shares are about the moments of the policy as it is now.
    let latest = fitted.iter().filter(|sample| sample.weight >= 1.0);
    let scores = scores(learner.weights(), latest);
    if scores.is_empty() {
        return Ok(figures);
    }
    let weights = learner.weights().clone();
    let with = |threshold: f32| LearnedHold { teacher: agent.teacher.clone(), weights: weights.clone(), threshold };
    let above = |share: f64| scores[((1.0 - share) * scores.len() as f64) as usize % scores.len()];
    let candidates: Vec<LearnedHold> =
        std::iter::once(before).chain(SHARES.iter().map(|share| with(above(*share)))).collect();
    let costs = expert.costs(&candidates, &expert.trials(state.rounds))?;
    let least = (1..costs.len()).fold(0, |best, at| if costs[at] < costs[best] { at } else { best });
    if least > 0 {
        let LearnedHold { weights, threshold, .. } = &candidates[least];
        state.policy = StoredChoice { weights: weights.data().to_vec(), threshold: Some(*threshold) };
        figures.share = SHARES[least - 1];
        figures.change = costs[least] - costs[0];
    }
    Ok(figures)
}

/// Samples with targets of root mean square 1, none of which is far out.
fn standardised(samples: &[Vec<ChangeSample>; 2]) -> [Vec<ChangeSample>; 2] {
    let squares = samples[0].iter().map(|sample| f64::from(sample.target).powi(2)).sum::<f64>();
    let root = (squares / samples[0].len().max(1) as f64).sqrt().max(1e-12) as f32;
    let scaled = |sample: &ChangeSample| {
        let target = (sample.target / root).clamp(-FARTHEST, FARTHEST);
        ChangeSample { target, ..sample.clone() }
    };
    samples.each_ref().map(|part| part.iter().map(scaled).collect())
}

/// Scores of all changes of the samples, the least first.
fn scores<'a>(weights: &Weights, samples: impl Iterator<Item = &'a ChangeSample>) -> Vec<f32> {
    let mut scorer = SlotScorer::new(weights);
    let mut scores: Vec<f32> = samples.flat_map(|sample| scorer.scores(&sample.features).to_vec()).collect();
    scores.sort_unstable_by(f32::total_cmp);
    scores
}

fn choice(agent: &HoldAgent, stored: &StoredChoice) -> Result<LearnedHold, TrainError> {
    let weights = Weights::from_data(&NetConfig::Set(agent.net.clone()), layout(1), stored.weights.clone());
    let damaged = |error| {
        let source = serde::de::Error::custom(error);
        StateError::Damaged { file: HoldState::FILE.into(), source }
    };
    let (teacher, threshold) = (agent.teacher.clone(), stored.threshold.unwrap_or(f32::INFINITY));
    Ok(LearnedHold { teacher, weights: weights.map_err(damaged)?, threshold })
}

fn record(
    recorder: &mut Recorder,
    done: u64,
    jct_secs: f64,
    teacher_jct_secs: f64,
    RoundFigures { explained, saved_secs, change, share }: RoundFigures,
) -> Result<(), TrainError> {
    let figures = vec![
        ("eval/jct_mean_secs", jct_secs),
        ("eval/best_heuristic_jct_secs", teacher_jct_secs),
        ("expert/saved_by_choices_secs", saved_secs),
        ("expert/explained_by_the_net", explained),
        ("rollout/log_ratio_to_round_before", change),
        ("rollout/share_held_back", share),
    ];
    Ok(recorder.record(done, &figures)?)
}
