//! Training run: the parts that every loop over updates shares, whatever the loop learns from.

use goodput_agents::bundle::Provenance;
use goodput_configs::scenario::Setup;

use crate::checkpoint::State;
use crate::error::TrainError;
use crate::recorder::{ProgressFigures, Recorder};
use crate::run_dir::RunDir;
use crate::validate::Validation;
use crate::{Hooks, Progress};
use goodput_configs::experiment::Experiment;

/// Run of one experiment in one directory: the configuration, the state that checkpoints hold, the
/// validation seeds and the recorder of progress. A loop adds its learner and its source of data.
pub(crate) struct TrainingRun<'a> {
    pub experiment: &'a Experiment,
    pub dir: &'a RunDir,
    pub hooks: &'a Hooks<'a>,
    pub setup: &'a Setup,
    pub state: State,
    pub validation: Validation,
    recorder: Recorder,
}

impl<'a> TrainingRun<'a> {
    /// Run that continues from `state`: the state of the latest checkpoint, or a new one.
    ///
    /// # Errors
    /// [`TrainError`] where the validation seeds cannot be prepared or the directory not written.
    pub fn new(
        experiment: &'a Experiment,
        dir: &'a RunDir,
        hooks: &'a Hooks<'a>,
        setup: &'a Setup,
        state: State,
    ) -> Result<Self, TrainError> {
        Ok(Self {
            validation: Validation::new(experiment, setup)?,
            recorder: Recorder::new(dir, "progress", state.decisions)?,
            experiment,
            dir,
            hooks,
            setup,
            state,
        })
    }

    /// Origin of a policy that is exported now.
    pub fn provenance(&self) -> Provenance {
        Provenance {
            argv: self.hooks.argv.clone(),
            seed: self.experiment.seed,
            steps: self.state.decisions,
            config_sha256: self.state.config_sha256.clone(),
        }
    }

    /// Notes the mean completion time of the current policy on the validation seeds, seconds.
    /// Returns whether the current policy is the best so far.
    pub fn note_validation(&mut self, jct_secs: f64) -> bool {
        self.state.latest_jct_secs = Some(jct_secs);
        let best = self.state.best_jct_secs.is_none_or(|best| jct_secs < best);
        if best {
            self.state.best_jct_secs = Some(jct_secs);
        }
        best
    }

    /// Columns of the latest validation, for a row of progress.
    pub fn validation_figures(&self) -> [(&'static str, f64); 2] {
        [
            ("eval/jct_mean_secs", self.state.latest_jct_secs.unwrap_or(f64::NAN)),
            ("eval/best_heuristic_jct_secs", self.validation.best_heuristic_jct_secs),
        ]
    }

    /// Records a row of progress and reports it to the caller of the training loop.
    ///
    /// # Errors
    /// [`TrainError`] where the directory cannot be written.
    pub fn record(&mut self, figures: &ProgressFigures) -> Result<(), TrainError> {
        self.recorder.record(self.state.decisions, figures)?;
        let heuristic = self.validation.best_heuristic_jct_secs;
        (self.hooks.progress)(Progress {
            phase: "train",
            done: self.state.decisions,
            total: self.experiment.train.decisions,
            unit: "decisions",
            validation_jct_secs: self.state.latest_jct_secs,
            best_heuristic_jct_secs: heuristic.is_finite().then_some(heuristic),
        });
        Ok(())
    }
}
