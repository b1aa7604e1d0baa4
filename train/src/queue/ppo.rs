//! Proximal policy optimisation of a set encoder over the queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::ppo::{PpoConfig, PpoRates, PpoStats};
use goodput_agents::nets::weights::{NetConfig, Weights};
use goodput_agents::policies::queue::{ChoiceLog, LearnedOrder, QueueChoice, QueueScore, layout};
use goodput_configs::experiment::QueuePpo;
use goodput_env::scenario::Scenario;
use goodput_env::seed::{Stream, keyed};
use goodput_env::time::SimTime;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::choices::{QueueExperience, QueueStep, advantages};
use super::objective::{cost, steps};
use super::runs::{QueueRuns, mean};
use crate::error::TrainError;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::search_state::SearchState;
use crate::{Hooks, Progress, Trained};

const LEARNER: &str = "checkpoints/queue-learner.bin";
const BEST: &str = "checkpoints/queue-best.bin";

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PpoState {
    config_sha256: String,
    updates: u64,
    choices: u64,
    /// Least mean cost on the validation workloads so far.
    best: Option<f64>,
}

impl SearchState for PpoState {
    const FILE: &str = "checkpoints/queue.json";

    fn config_sha256(&self) -> &str {
        &self.config_sha256
    }
}

struct QueueLearning<'a> {
    runs: &'a QueueRuns<'a>,
    agent: &'a QueuePpo,
    learner: Learner,
    best: Weights,
    state: PpoState,
}

/// Figures of the runs of an update.
struct Collected {
    experience: QueueExperience,
    /// Choices in queues that were too long to learn from.
    left_out: u64,
    /// Mean over the runs.
    cost: f64,
}

/// Run of an order that explores.
struct ExploredRun {
    choices: Vec<QueueChoice>,
    steps: Vec<QueueStep>,
    cost: f64,
}

/// Trains from the latest checkpoint, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(runs: &QueueRuns<'_>, agent: &QueuePpo, dir: &RunDir, hooks: &Hooks<'_>) -> Result<Trained, TrainError> {
    let mut learning = QueueLearning::begin(runs, agent, dir)?;
    let mut recorder = Recorder::new(dir, "progress", learning.state.choices)?;
    while learning.state.updates < agent.updates {
        let collected = learning.collect()?;
        let stats = learning.update(&collected.experience)?;
        learning.state.choices += collected.experience.rows() as u64;
        learning.state.updates += 1;
        let last = learning.state.updates == agent.updates;
        if last || learning.state.updates.is_multiple_of(runs.experiment.train.evaluate_every) {
            learning.validate()?;
        }
        let names = runs.names();
        let figures = vec![
            (names.rollout, collected.cost),
            ("rollout/left_out", collected.left_out as f64),
            (names.validation, learning.state.best.unwrap_or(f64::NAN)),
            ("train/policy_gradient_loss", stats.policy_loss),
            ("train/entropy", stats.entropy),
            ("train/approx_kl", stats.approx_kl),
            ("train/clip_fraction", stats.clipfrac),
            ("train/grad_norm", stats.grad_norm),
            ("train/n_updates", learning.state.updates as f64),
        ];
        recorder.record(learning.state.choices, &figures)?;
        let stop = hooks.stop.load(Ordering::Relaxed);
        if last || stop || learning.state.updates.is_multiple_of(runs.experiment.train.checkpoint_every) {
            learning.save(dir)?;
        }
        (hooks.progress)(Progress {
            phase: "train",
            done: learning.state.updates,
            total: agent.updates,
            unit: "updates",
            validation_jct_secs: None,
            best_heuristic_jct_secs: None,
        });
        if stop && !last {
            return Ok(Trained::Stopped);
        }
    }
    let choices = learning.state.choices;
    Ok(Trained::Complete(Box::new(runs.bundle(QueueScore::Net(learning.best), choices))))
}

impl<'a> QueueLearning<'a> {
    fn begin(runs: &'a QueueRuns<'a>, agent: &'a QueuePpo, dir: &RunDir) -> Result<Self, TrainError> {
        let (learner, best, state) = if let Some(state) = PpoState::read(dir, runs.config_sha256())? {
            let read = |name: &str| Ok::<_, TrainError>(Learner::from_bytes(&dir.read(name)?)?);
            (read(LEARNER)?, read(BEST)?.weights().clone(), state)
        } else {
            let net = NetConfig::Set(agent.net.clone());
            let learner = Learner::new(&net, layout(agent.slots), AdamConfig::default(), runs.experiment.seed);
            let best = learner.weights().clone();
            let config_sha256 = runs.config_sha256().into();
            (learner, best, PpoState { config_sha256, updates: 0, choices: 0, best: None })
        };
        Ok(Self { runs, agent, learner: learner.with_threads(rayon::current_num_threads()), best, state })
    }

    /// Runs the policy on the workloads of this update.
    fn collect(&self) -> Result<Collected, TrainError> {
        let (agent, update) = (self.agent, self.state.updates);
        let workloads = self.runs.training(update * agent.episodes, agent.episodes);
        let score = QueueScore::Net(self.learner.weights().clone());
        let cells = agent.episodes * agent.runs;
        let play = |cell: u64| {
            let workload = &workloads[(cell / agent.runs) as usize];
            self.explore(&score, workload, update * cells + cell)
        };
        let all: Vec<_> = (0..cells).into_par_iter().map(play).collect();
        let all = all.into_iter().collect::<Result<Vec<ExploredRun>, TrainError>>()?;
        let costs: Vec<f64> = all.iter().map(|run| run.cost).collect();
        let (mut experience, mut left_out) = (QueueExperience::default(), 0);
        for runs in all.chunks(agent.runs as usize) {
            let times: Vec<Vec<SimTime>> =
                runs.iter().map(|run| run.choices.iter().map(|choice| choice.at).collect()).collect();
            let steps: Vec<Vec<QueueStep>> = runs.iter().map(|run| run.steps.clone()).collect();
            for (run, advantages) in runs.iter().zip(advantages(&times, &steps)) {
                for (choice, advantage) in run.choices.iter().zip(advantages) {
                    left_out += u64::from(!experience.push(choice, advantage, agent.slots));
                }
            }
        }
        Ok(Collected { experience, left_out, cost: mean(&costs) })
    }

    fn explore(&self, score: &QueueScore, workload: &Arc<Scenario>, run: u64) -> Result<ExploredRun, TrainError> {
        let log = ChoiceLog::default();
        // The stream of a run is that of its number, which the shuffles of updates do not use.
        let seed = self.runs.experiment.seed ^ run.wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03);
        let order = LearnedOrder::exploring(score, seed, log.clone());
        let outcome = self.runs.play(workload, self.runs.rule.policy(order))?;
        let objective = self.runs.objective;
        let cost = cost(objective, workload, &outcome);
        Ok(ExploredRun { choices: log.take(), steps: steps(objective, &outcome, cost), cost })
    }

    fn update(&mut self, experience: &QueueExperience) -> Result<PpoStats, TrainError> {
        let (agent, update) = (self.agent, self.state.updates);
        if experience.rows() == 0 {
            return Ok(PpoStats::default());
        }
        let left = 1.0 - update as f64 / agent.updates as f64;
        let rates = PpoRates {
            learning_rate: (agent.learning_rate * left) as f32,
            entropy: (agent.entropy * left) as f32,
            reference_kl: 0.0,
        };
        let config = PpoConfig {
            epochs: agent.epochs,
            minibatch: agent.minibatch,
            clip: agent.clip as f32,
            // The baseline is that of the runs of a workload, so no critic learns.
            value_coefficient: 0.0,
            max_grad_norm: agent.max_grad_norm as f32,
            target_kl: agent.target_kl as f32,
        };
        let mut shuffle = keyed(self.runs.experiment.seed, Stream::Exploration, update);
        self.learner
            .ppo(&config, rates, &experience.batch(), None, &mut shuffle)
            .map_err(|source| TrainError::Diverged { update, source })
    }

    fn validate(&mut self) -> Result<(), TrainError> {
        let weights = self.learner.weights();
        let cost = self.runs.validate(&QueueScore::Net(weights.clone()))?;
        if self.state.best.is_none_or(|best| cost < best) {
            self.state.best = Some(cost);
            self.best = weights.clone();
        }
        Ok(())
    }

    fn save(&self, dir: &RunDir) -> Result<(), TrainError> {
        let best = Learner::from_weights(self.best.clone(), AdamConfig::default());
        dir.write(LEARNER, &self.learner.to_bytes())?;
        dir.write(BEST, &best.to_bytes())?;
        self.state.write(dir)?;
        Ok(())
    }
}
