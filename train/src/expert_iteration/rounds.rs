//! The rounds of expert iteration. The policy of the round with the best mean on the validation seeds is exported, and
//! the folder of checkpoints has a bundle of each round.

use std::sync::atomic::Ordering;

use goodput_agents::bundle::{PolicyBundle, Provenance};
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::Setup;
use goodput_eval::entries;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::checkpoint::StateError;
use crate::error::TrainError;
use crate::recorder::{ProgressFigures, Recorder};
use crate::run_dir::RunDir;
use crate::search_state::SearchState;
use crate::validate::Validation;
use crate::{Hooks, Progress, Trained};

/// A policy that learns from an expert round by round.
pub(super) trait Apprentice {
    /// Numbers of a policy.
    type Policy: Clone + Serialize + DeserializeOwned;
    /// All else that a round goes on from.
    type Memory: Serialize + DeserializeOwned;
    /// Path of the state in the folder of the run.
    const FILE: &'static str;

    /// The experiment under the first of its loads.
    fn setup(&self) -> &Setup;

    /// Name of the heuristic that the exported policy must not be worse than.
    fn teacher(&self) -> &str;

    /// Number of rounds.
    fn rounds(&self) -> u64;

    /// Number of training episodes of a round.
    fn per_round(&self) -> u64;

    /// Policy and memory that the first round starts from.
    ///
    /// # Errors
    /// [`TrainError`] where the start cannot be read.
    fn start(&self) -> Result<(Self::Policy, Self::Memory), TrainError>;

    /// Whether numbers from a file are those of this apprentice.
    fn owns(&self, policy: &Self::Policy, memory: &Self::Memory) -> bool;

    /// Bundle of a policy.
    fn bundle(&self, policy: &Self::Policy, provenance: Provenance) -> PolicyBundle;

    /// Goes through a round, from its policy to the next one, and gives the figures of the round.
    ///
    /// # Errors
    /// [`TrainError`] where a run fails.
    fn iterate(
        &self,
        round: u64,
        policy: &mut Self::Policy,
        memory: &mut Self::Memory,
    ) -> Result<ProgressFigures, TrainError>;

    /// Figures in the row of the start, which no round has made.
    fn figures_of_start(&self) -> ProgressFigures;
}

/// Everything that the rounds need to continue.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
struct RoundState<A: Apprentice> {
    config_sha256: String,
    rounds: u64,
    /// Policy of the next round.
    policy: A::Policy,
    memory: A::Memory,
    /// Mean completion time on validation seeds, seconds, and the policy that had it.
    best: (f64, A::Policy),
    teacher_jct_secs: f64,
}

impl<A: Apprentice> SearchState for RoundState<A> {
    const FILE: &str = A::FILE;

    fn config_sha256(&self) -> &str {
        &self.config_sha256
    }
}

/// Goes through the rounds from the latest one, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub(super) fn go_through<A: Apprentice>(
    apprentice: &A,
    experiment: &Experiment,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let validation = Validation::without_heuristics(experiment, apprentice.setup())?;
    let config_sha256 = dir.config_sha256()?;
    let (rounds, per_round) = (apprentice.rounds(), apprentice.per_round());
    let make = |policy: &A::Policy, rounds: u64| -> PolicyBundle {
        let (argv, seed, steps) = (hooks.argv.clone(), experiment.seed, rounds * per_round);
        apprentice.bundle(policy, Provenance { argv, seed, steps, config_sha256: config_sha256.clone() })
    };
    let known = read(apprentice, dir, &config_sha256)?;
    let mut recorder = Recorder::new(dir, "progress", known.as_ref().map_or(0, |state| state.rounds * per_round))?;
    let record = |recorder: &mut Recorder, state: &RoundState<A>, jct_secs: f64, figures: ProgressFigures| {
        let of_policies = [("eval/jct_mean_secs", jct_secs), ("eval/best_heuristic_jct_secs", state.teacher_jct_secs)];
        recorder.record(state.rounds * per_round, &of_policies.into_iter().chain(figures).collect())
    };
    let mut state = match known {
        Some(state) => state,
        None => {
            let (policy, memory) = apprentice.start()?;
            let teacher = entries::heuristic(experiment, apprentice.teacher(), apprentice.setup())?;
            let state = RoundState {
                config_sha256: config_sha256.clone(),
                rounds: 0,
                best: (validation.score(&make(&policy, 0))?, policy.clone()),
                policy,
                memory,
                teacher_jct_secs: validation.score_of(teacher)?.jct_secs,
            };
            record(&mut recorder, &state, state.best.0, apprentice.figures_of_start())?;
            state.write(dir)?;
            state
        }
    };
    while state.rounds < rounds {
        let figures = apprentice.iterate(state.rounds, &mut state.policy, &mut state.memory)?;
        state.rounds += 1;
        let bundle = make(&state.policy, state.rounds);
        bundle.save(&dir.path(&format!("checkpoints/round-{}.bundle", state.rounds)))?;
        let jct_secs = validation.score(&bundle)?;
        if jct_secs < state.best.0 {
            state.best = (jct_secs, state.policy.clone());
        }
        record(&mut recorder, &state, jct_secs, figures)?;
        // The row goes first: a stop in between leaves a row too many, which resuming drops, and never one too few.
        state.write(dir)?;
        (hooks.progress)(Progress {
            phase: "iterate",
            done: state.rounds * per_round,
            total: rounds * per_round,
            unit: "episodes",
            validation_jct_secs: Some(state.best.0),
            best_heuristic_jct_secs: Some(state.teacher_jct_secs),
        });
        if hooks.stop.load(Ordering::Relaxed) && state.rounds < rounds {
            return Ok(Trained::Stopped);
        }
    }
    Ok(Trained::Complete(Box::new(make(&state.best.1, rounds))))
}

fn read<A: Apprentice>(apprentice: &A, dir: &RunDir, config_sha256: &str) -> Result<Option<RoundState<A>>, TrainError> {
    let Some(state) = RoundState::<A>::read(dir, config_sha256)? else { return Ok(None) };
    if ![&state.policy, &state.best.1].into_iter().all(|policy| apprentice.owns(policy, &state.memory)) {
        let source = serde::de::Error::custom("it is about another number of parameters");
        return Err(StateError::Damaged { file: A::FILE.into(), source }.into());
    }
    Ok(Some(state))
}
