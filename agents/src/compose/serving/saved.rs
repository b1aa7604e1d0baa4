//! Forecaster made before the run that uses it, and the check that it fits a load.

use goodput_env::service::RateSeries;
use goodput_forecast::ForecasterSnapshot;
use goodput_forecast::neural::NeuralNet;

/// Forecaster made before the run that uses it.
#[derive(Clone, Debug, PartialEq)]
pub enum SavedForecaster {
    /// Output of `goodput forecast fit`: it knows a series and continues it.
    Fitted(Box<ForecasterSnapshot>),
    /// Output of `goodput train`: a net, which knows no series yet.
    Trained {
        /// Trained net of the forecaster.
        net: Box<NeuralNet>,
        /// Milliseconds of a step of its series.
        step_millis: i64,
    },
}

/// Reason for which a forecaster cannot look ahead for a service.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Misfit {
    /// Steps of another length: the forecaster would answer, and wrongly.
    #[error("its steps are {own} ms and those of the load {load} ms: set series.step_secs where it is made")]
    Steps {
        /// Milliseconds of its step.
        own: i64,
        /// Milliseconds of the load's.
        load: i64,
    },
    /// A forecaster with covariates, which a simulated load does not have.
    #[error("it was fitted with covariates, which this load does not have: leave [covariates] out where it is made")]
    Covariates,
    /// A net of other days.
    #[error("{own} of its steps are a day and {load} of the load's: set window.day_steps where it is trained")]
    Days {
        /// Steps of its day.
        own: usize,
        /// Steps of 24 h.
        load: i64,
    },
    /// A net that would never see a whole window.
    #[error(
        "it looks back {lookback} steps and the whole load has {steps}: train with a smaller window.lookback_hours"
    )]
    Short {
        /// Steps that the net looks back.
        lookback: usize,
        /// Steps of the load.
        steps: usize,
    },
    /// A net of other units.
    #[error(
        "it was trained on loads of {mean:.4} with a spread of {spread:.4}, and this one is of another scale: train on requests per second"
    )]
    Scale {
        /// Mean trained on.
        mean: f64,
        /// Spread trained on.
        spread: f64,
    },
}

const DAY_MILLIS: i64 = 86_400_000;

impl SavedForecaster {
    /// Milliseconds of a step of its series.
    pub fn step_millis(&self) -> i64 {
        match self {
            Self::Fitted(snapshot) => snapshot.step_millis,
            Self::Trained { step_millis, .. } => *step_millis,
        }
    }

    /// Whether the forecaster can look ahead for a service with this load.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, rates: &RateSeries) -> Result<(), Misfit> {
        let (own, load) = (self.step_millis(), rates.step().as_millis());
        if own != load {
            return Err(Misfit::Steps { own, load });
        }
        let net = match self {
            Self::Trained { net, .. } => net,
            Self::Fitted(snapshot) if snapshot.regression.is_some() => return Err(Misfit::Covariates),
            Self::Fitted(_) => return Ok(()),
        };
        let spec = net.spec();
        let (own, load) = (spec.day_steps, DAY_MILLIS / load);
        if own as i64 != load {
            return Err(Misfit::Days { own, load });
        }
        let (lookback, steps) = (spec.lookback, rates.values().len());
        if steps <= lookback {
            return Err(Misfit::Short { lookback, steps });
        }
        if !net.suits(rates.values().iter().map(|&milli| f64::from(milli) / 1e3)) {
            let (mean, spread) = net.scale();
            return Err(Misfit::Scale { mean, spread });
        }
        Ok(())
    }
}
