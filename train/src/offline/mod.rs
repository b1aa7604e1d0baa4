//! Learning from logged decisions: minibatches of a file instead of rollouts. The simulator is
//! asked only how good the policy has become.

mod baseline;
mod dataset;
mod learner;

use goodput_agents::bundle::{Model, PolicyBundle};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::offline::draw;
use goodput_agents::nets::weights::Weights;
use goodput_agents::policies::rounds::Decoder;
use goodput_configs::scenario::Setup;
use goodput_env::seed::{Stream, keyed};

pub use self::dataset::{Dataset, Minibatch};
use self::learner::{Figures, OfflineLearner, file};
use crate::checkpoint::{BEST, State, latest, save};
use crate::error::TrainError;
use crate::export::{bundle, decoder};
use crate::run_dir::RunDir;
use crate::scaling::ReturnScale;
use crate::training_run::TrainingRun;
use crate::updates::{self, Updates};
use crate::{Hooks, Trained};
use goodput_configs::experiment::{Algorithm, Experiment, OfflineAgent};

/// Trains from the latest checkpoint, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &OfflineAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let setup = experiment.setup()?;
    let mut offline = OfflineLoop::new(experiment, agent, dir, hooks, &setup)?;
    let updates = experiment.train.decisions.div_ceil(offline.rows_per_update());
    Ok(match updates::run(&mut offline, updates, experiment, hooks)? {
        true => Trained::Complete(Box::new(offline.bundle(&offline.best))),
        false => Trained::Stopped,
    })
}

/// Learner from a log of decisions, with the log.
struct OfflineLoop<'a> {
    run: TrainingRun<'a>,
    agent: &'a OfflineAgent,
    data: Dataset,
    minibatch: Minibatch,
    learner: OfflineLearner,
    best: Weights,
}

impl<'a> OfflineLoop<'a> {
    fn new(
        experiment: &'a Experiment,
        agent: &'a OfflineAgent,
        dir: &'a RunDir,
        hooks: &'a Hooks<'a>,
        setup: &'a Setup,
    ) -> Result<Self, TrainError> {
        let layout = experiment.gym().layout();
        let keep = if agent.algorithm == Algorithm::FilteredBc { agent.keep } else { 1.0 };
        let types = setup.type_names(layout.types);
        let data = Dataset::read(&agent.data, (&layout, &types), std::f64::consts::LN_2 / agent.half_life_secs, keep)?;
        let data = if agent.relative { data.relative(keep) } else { data };
        let threads = rayon::current_num_threads();
        let mut learner = OfflineLearner::new(agent, layout, experiment.seed, threads);
        let config_sha256 = dir.config_sha256()?;
        let (best, state) = match latest(dir, &config_sha256)? {
            Some((state, folder)) => {
                let read = |name: &str| -> Result<Learner, TrainError> {
                    Ok(Learner::from_bytes(&dir.read(&format!("{folder}/{name}"))?)?)
                };
                learner.restore(threads, &read)?;
                (read(BEST)?.weights().clone(), state)
            }
            None => {
                let state = State {
                    config_sha256,
                    updates: 0,
                    decisions: 0,
                    scale: ReturnScale::new(0),
                    cursors: Vec::new(),
                    best_jct_secs: None,
                    latest_jct_secs: None,
                };
                (learner.weights().clone(), state)
            }
        };
        Ok(Self {
            run: TrainingRun::new(experiment, dir, hooks, setup, state)?,
            minibatch: Minibatch::default(),
            agent,
            data,
            learner,
            best,
        })
    }

    fn rows_per_update(&self) -> u64 {
        self.agent.minibatch as u64 * self.agent.minibatches_per_update
    }
}

impl Updates for OfflineLoop<'_> {
    type Figures = Figures;

    fn updates(&self) -> u64 {
        self.run.state.updates
    }

    /// So many minibatches; the figures are those of the last.
    fn update(&mut self, updates: u64) -> Result<Figures, TrainError> {
        let (agent, update) = (self.agent, self.run.state.updates);
        let rate = agent.learning_rate * (1.0 - update as f64 / updates as f64);
        let mut figures = Figures::new();
        for minibatch in 0..agent.minibatches_per_update {
            let mut random = keyed(
                self.run.experiment.seed,
                Stream::Exploration,
                update.wrapping_mul(65_537).wrapping_add(minibatch),
            );
            let picks = draw(self.data.len(), agent.minibatch, &mut random);
            self.data.gather(&picks, &mut self.minibatch);
            let batch = match self.run.state.decisions < agent.critic_warmup {
                true => self.minibatch.batch_with_returns(),
                false => self.minibatch.batch(),
            };
            figures = self
                .learner
                .update(agent, rate as f32, &batch)
                .map_err(|source| TrainError::Diverged { update, source })?;
            self.run.state.decisions += agent.minibatch as u64;
        }
        self.run.state.updates += 1;
        Ok(figures)
    }

    fn validate(&mut self) -> Result<(), TrainError> {
        let jct = self.run.validation.score(&self.bundle(self.learner.weights()))?;
        if self.run.note_validation(jct) {
            self.best = self.learner.weights().clone();
        }
        Ok(())
    }

    fn report(&mut self, figures: Figures) -> Result<(), TrainError> {
        let mut row = self.run.validation_figures().to_vec();
        row.push(("train/n_updates", self.run.state.updates as f64));
        row.extend(figures);
        self.run.record(&row)
    }

    fn checkpoint(&mut self) -> Result<(), TrainError> {
        let mut files = self.learner.files();
        files.push((BEST, file(&self.best)));
        save(self.run.dir, &self.run.state, &files)?;
        Ok(())
    }
}

impl OfflineLoop<'_> {
    fn bundle(&self, weights: &Weights) -> PolicyBundle {
        let mut bundle =
            bundle(Model::Net(weights.clone()), self.run.experiment, self.run.setup, self.run.provenance());
        let decoder = Decoder { choice: self.agent.choice, ..decoder(self.run.setup) };
        bundle.card.decoder = serde_json::to_value(decoder).expect("a decoder is plain data");
        bundle
    }
}
