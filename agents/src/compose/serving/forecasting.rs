//! Options of forecasting: the forecasters, and the level of their quantiles.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::gym::ExpectedPeak;
use goodput_forecast::Model;

use super::{Ahead, Outlook, SavedForecaster};

/// Forecasters and quantile level of every part that looks ahead by a forecast.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastingOptions {
    /// The models weighed online for every service without a forecaster of its own.
    pub models: Vec<Model>,
    /// Forecasters made before, by name of service, with the step of its series. A net is alone,
    /// with quantiles from its own errors.
    pub saved: Arc<BTreeMap<String, SavedForecaster>>,
    /// Probability, in (0, 1), that the highest rate of a window stays below what is called high.
    pub level: f64,
    /// Misses that steer the room for the objective of a service.
    pub steered_by: SteeredBy,
}

/// Misses that the level of [`Decided`](super::Decided) follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SteeredBy {
    /// Windows in which the load exceeded the decided one.
    #[default]
    Windows,
    /// Requests that were late.
    LateRequests,
}

impl Default for ForecastingOptions {
    fn default() -> Self {
        Self { models: Model::DEFAULT.to_vec(), saved: Arc::default(), level: LEVEL, steered_by: SteeredBy::Windows }
    }
}

/// Level that was chosen on other series than those of the published results.
const LEVEL: f64 = 0.98;

impl ForecastingOptions {
    /// One model for all, with quantiles from its own errors.
    pub fn by(model: Model) -> Self {
        Self { models: vec![model], ..Self::default() }
    }

    /// At another level.
    #[must_use]
    pub fn at(self, level: f64) -> Self {
        Self { level, ..self }
    }

    /// Expected load of services for learned policies: the high rate.
    pub fn expected_peak(&self) -> ExpectedPeak {
        let forecasting = self.clone();
        ExpectedPeak::remembering(move || {
            let mut ahead = Ahead::new(forecasting.clone());
            Box::new(move |service, window| ahead.expect(service, service.now() + window).high)
        })
    }
}
