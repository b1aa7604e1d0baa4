//! Loop over updates: decides when a learner is validated, reported, saved and stopped. The loop is
//! common to learners from their own experience and from a log.

use std::sync::atomic::Ordering;

use crate::Hooks;
use crate::error::TrainError;
use goodput_configs::experiment::Experiment;

/// Operations of a learner that advances update by update.
pub(crate) trait Updates {
    /// Figures that are reported after an update.
    type Figures;

    /// Updates so far.
    fn updates(&self) -> u64;

    /// Whether the training is at its end, where it is planned to have `updates` updates.
    fn is_complete(&self, updates: u64) -> bool {
        self.updates() >= updates
    }

    /// The next of `updates` updates.
    fn update(&mut self, updates: u64) -> Result<Self::Figures, TrainError>;

    /// Scores the policy on validation seeds and keeps the best one.
    fn validate(&mut self) -> Result<(), TrainError>;

    /// Records the latest update.
    fn report(&mut self, figures: Self::Figures) -> Result<(), TrainError>;

    /// Saves all that it takes to go on.
    fn checkpoint(&mut self) -> Result<(), TrainError>;
}

/// Goes on until `updates` are done or it is asked to stop; whether it is complete.
pub(crate) fn run(
    learner: &mut impl Updates,
    updates: u64,
    experiment: &Experiment,
    hooks: &Hooks<'_>,
) -> Result<bool, TrainError> {
    while !learner.is_complete(updates) {
        let figures = learner.update(updates)?;
        let done = learner.updates();
        let last = learner.is_complete(updates);
        if last || done.is_multiple_of(experiment.train.evaluate_every) {
            learner.validate()?;
        }
        // The row goes before the checkpoint: a stop in between leaves a row too many, which
        // resuming drops.
        learner.report(figures)?;
        let stop = hooks.stop.load(Ordering::Relaxed);
        if last || stop || done.is_multiple_of(experiment.train.checkpoint_every) {
            learner.checkpoint()?;
        }
        if stop && !last {
            return Ok(false);
        }
    }
    Ok(true)
}
