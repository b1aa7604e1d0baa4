//! Learning from logged decisions: minibatches of a file instead of rollouts. The simulator is asked only how good the policy has become.

mod baseline;
mod dataset;
mod pupil;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::offline::draw;
use goodput_agents::nets::weights::Weights;
use goodput_agents::policies::rounds::{Choice, Decoder};
use goodput_env::seed::{Stream, keyed};
use goodput_eval::setup::Setup;

pub use self::dataset::{Dataset, Minibatch};
use self::pupil::{Figures, Pupil, file};
use crate::checkpoint::{BEST, State, latest, save};
use crate::config::{Algorithm, Experiment, OfflineAgent};
use crate::error::TrainError;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::scaling::ReturnScale;
use crate::updates::{self, Updates};
use crate::validate::{Validation, bundle, decoder};
use crate::{Hooks, Progress, Trained};

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
    let mut run = Run::new(experiment, agent, dir, hooks, &setup)?;
    let updates = experiment.train.decisions.div_ceil(run.rows_per_update());
    Ok(match updates::run(&mut run, updates, experiment, hooks)? {
        true => Trained::Complete(Box::new(run.bundle(&run.best))),
        false => Trained::Stopped,
    })
}

struct Run<'a> {
    agent: &'a OfflineAgent,
    experiment: &'a Experiment,
    dir: &'a RunDir,
    hooks: &'a Hooks<'a>,
    setup: &'a Setup,
    data: Dataset,
    minibatch: Minibatch,
    pupil: Pupil,
    best: Weights,
    state: State,
    validation: Validation,
    recorder: Recorder,
}

impl<'a> Run<'a> {
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
        let mut pupil = Pupil::new(agent, layout, experiment.seed, threads);
        let config_sha256 = dir.config_sha256()?;
        let (best, state) = match latest(dir, &config_sha256)? {
            Some((state, folder)) => {
                let read = |name: &str| -> Result<Learner, TrainError> {
                    Ok(Learner::from_bytes(&dir.read(&format!("{folder}/{name}"))?)?)
                };
                pupil.restore(threads, &read)?;
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
                (pupil.weights().clone(), state)
            }
        };
        Ok(Self {
            validation: Validation::new(experiment, setup)?,
            recorder: Recorder::new(dir, "progress", state.decisions)?,
            minibatch: Minibatch::default(),
            agent,
            experiment,
            dir,
            hooks,
            setup,
            data,
            pupil,
            best,
            state,
        })
    }

    fn rows_per_update(&self) -> u64 {
        self.agent.minibatch as u64 * self.agent.minibatches_per_update
    }
}

impl Updates for Run<'_> {
    type Figures = Figures;

    fn updates(&self) -> u64 {
        self.state.updates
    }

    /// So many minibatches; the figures are those of the last.
    fn update(&mut self, updates: u64) -> Result<Figures, TrainError> {
        let (agent, update) = (self.agent, self.state.updates);
        let rate = agent.learning_rate * (1.0 - update as f64 / updates as f64);
        let mut figures = Figures::new();
        for minibatch in 0..agent.minibatches_per_update {
            let mut random =
                keyed(self.experiment.seed, Stream::Exploration, update.wrapping_mul(65_537).wrapping_add(minibatch));
            let picks = draw(self.data.len(), agent.minibatch, &mut random);
            self.data.gather(&picks, &mut self.minibatch);
            let batch = self.minibatch.batch(self.state.decisions < agent.critic_warmup);
            figures = self
                .pupil
                .update(agent, rate as f32, &batch)
                .map_err(|source| TrainError::Diverged { update, source })?;
            self.state.decisions += agent.minibatch as u64;
        }
        self.state.updates += 1;
        Ok(figures)
    }

    fn validate(&mut self) -> Result<(), TrainError> {
        let jct = self.validation.score(&self.bundle(self.pupil.weights()))?;
        self.state.latest_jct_secs = Some(jct);
        if self.state.best_jct_secs.is_none_or(|best| jct < best) {
            self.state.best_jct_secs = Some(jct);
            self.best = self.pupil.weights().clone();
        }
        Ok(())
    }

    fn report(&mut self, figures: Figures) -> Result<(), TrainError> {
        let heuristic = self.validation.best_heuristic_jct_secs;
        let validation = self.state.latest_jct_secs;
        let mut all = vec![
            ("eval/mean_jct_secs", validation.unwrap_or(f64::NAN)),
            ("eval/best_heuristic_jct_secs", heuristic),
            ("train/n_updates", self.state.updates as f64),
        ];
        all.extend(figures);
        self.recorder.record(self.state.decisions, &all)?;
        (self.hooks.progress)(Progress {
            phase: "train",
            decisions: self.state.decisions,
            budget: self.experiment.train.decisions,
            validation_jct_secs: validation,
            best_heuristic_jct_secs: heuristic.is_finite().then_some(heuristic),
        });
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), TrainError> {
        let mut files = self.pupil.files();
        files.push((BEST, file(&self.best)));
        save(self.dir, &self.state, &files)?;
        Ok(())
    }
}

impl Run<'_> {
    fn bundle(&self, weights: &Weights) -> PolicyBundle {
        let provenance = Provenance {
            argv: self.hooks.argv.clone(),
            seed: self.experiment.seed,
            steps: self.state.decisions,
            config_sha256: self.state.config_sha256.clone(),
        };
        let mut bundle = bundle(Model::Net(weights.clone()), self.setup, provenance);
        // Scores of conservative Q-learning are values, not logarithms of probabilities.
        let choice = if self.agent.algorithm == Algorithm::Cql { Choice::Best } else { self.agent.choice };
        let decoder = Decoder { choice, ..decoder(self.setup) };
        bundle.card.decoder = serde_json::to_value(decoder).expect("a decoder is plain data");
        bundle
    }
}
