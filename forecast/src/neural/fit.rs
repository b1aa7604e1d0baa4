//! Nets as models that are trained when they are fitted.

use serde::{Deserialize, Serialize};

use super::fitted::FittedNet;
use super::spec::Spec;
use super::trainer::{NetTrainError, Trainer, Training};
use crate::{Fit, FitError, Series};

/// Settings of a net that is trained at each fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neural {
    /// Shape of the net.
    pub spec: Spec,
    /// Settings of the training.
    pub training: Training,
    /// Newest fraction of the series that is kept for validation; 0 trains on the whole series and
    /// takes the last weights.
    pub validation_share: f64,
    /// Seed of everything random.
    pub seed: u64,
}

impl Neural {
    /// Trainer of this net on `series`.
    ///
    /// # Errors
    /// Settings that cannot work, or a series too short for one window.
    pub fn trainer(&self, series: &Series) -> Result<Trainer, NetTrainError> {
        let share = self.validation_share.clamp(0.0, 0.9);
        let validation_from = series.len() - (series.len() as f64 * share) as usize;
        Trainer::new(&self.spec, &self.training, std::slice::from_ref(series), validation_from, self.seed)
    }
}

impl Fit for Neural {
    type Fitted = FittedNet;

    fn fit(&self, series: &Series) -> Result<FittedNet, FitError> {
        if series.observed_len() == 0 {
            return Err(FitError::NothingObserved { len: series.len() });
        }
        let refused = |error: NetTrainError| FitError::Training { reason: error.to_string() };
        let mut trainer = self.trainer(series).map_err(refused)?;
        trainer.run().map_err(refused)?;
        trainer.best().fit(series)
    }
}
