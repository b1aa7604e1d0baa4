//! Terms on which the inference pool is shared, and its forecaster: `[loaning]` and `[forecaster]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use goodput_agents::compose::loaning::{Sharing, Terms};
use goodput_agents::compose::serving::{ForecastingOptions, Scaling, SteeredBy};
use goodput_agents::zoo;
use goodput_env::service::Service;
use goodput_env::time::SimTime;
use goodput_forecast::Model;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;

/// Terms of loans and of scaling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoaningConfig {
    /// Between decisions to lend, seconds.
    pub period_secs: f64,
    /// From calling a server back until training has to be gone, seconds.
    pub deadline_secs: f64,
    /// Length of a lease, seconds: a server is lent if it is not expected to be needed for this
    /// long, and at least until the next decision could take effect.
    pub lease_secs: f64,
    /// Share of the need kept on top of it.
    pub headroom: f64,
    /// Share of a replica's throughput that the usual load is to use.
    pub utilisation: f64,
}

/// Forecaster for loans, scaling and coordinators. With this table in the file, observations of
/// learned policies use the forecaster too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ForecasterConfig {
    /// Models weighed online; the fourteen of the default where none is named.
    pub models: Vec<Model>,
    /// Saved forecasters, by name of service; a service that is absent uses `models`. A forecaster
    /// of `goodput forecast fit` continues its series with the load of the service. A bundle of
    /// `goodput train` starts without history and repeats the last value until a whole window of
    /// the load is known.
    pub saved: BTreeMap<String, PathBuf>,
    /// Probability that the highest rate of a window stays below what is kept for.
    pub level: f64,
    /// Misses that steer the room that `+objective` keeps.
    pub steered_by: SteeringConfig,
}

/// Misses that steer a room for the objective of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteeringConfig {
    /// Windows in which the load exceeded the room: half as many windows may be missed as requests may be late.
    #[default]
    Windows,
    /// Requests that were late.
    LateRequests,
}

impl Default for LoaningConfig {
    fn default() -> Self {
        let (terms, scaling) = (Terms::default(), Scaling::default());
        Self {
            period_secs: terms.period.as_secs_f64(),
            deadline_secs: terms.deadline.as_secs_f64(),
            lease_secs: terms.lease.as_secs_f64(),
            headroom: terms.headroom,
            utilisation: scaling.utilisation,
        }
    }
}

impl Default for ForecasterConfig {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            saved: BTreeMap::new(),
            level: ForecastingOptions::default().level,
            steered_by: SteeringConfig::Windows,
        }
    }
}

fn value(key: &'static str, value: impl ToString, expected: impl ToString) -> SetupError {
    SetupError::Value { key, value: value.to_string(), expected: expected.to_string() }
}

fn within(
    key: &'static str,
    number: f64,
    range: std::ops::RangeInclusive<f64>,
    expected: &str,
) -> Result<(), SetupError> {
    if range.contains(&number) { Ok(()) } else { Err(value(key, number, expected)) }
}

/// The settings of everything that shares a cluster with `services`.
///
/// # Errors
/// [`SetupError`] naming the key or the file.
pub fn sharing(
    loaning: &LoaningConfig,
    forecaster: &ForecasterConfig,
    services: &[Arc<Service>],
) -> Result<Sharing, SetupError> {
    let LoaningConfig { period_secs, deadline_secs, lease_secs, headroom, utilisation } = *loaning;
    within("loaning.period_secs", period_secs, 1.0..=1e6, "1 to 1000000")?;
    within("loaning.deadline_secs", deadline_secs, 0.001..=1e6, "0.001 to 1000000")?;
    within("loaning.lease_secs", lease_secs, 0.0..=86_400.0, "0 to 86400")?;
    within("loaning.headroom", headroom, 0.0..=10.0, "0 to 10")?;
    within("loaning.utilisation", utilisation, 0.01..=1.0, "0.01 to 1")?;
    let secs = SimTime::from_secs_f64;
    let terms = Terms { headroom, period: secs(period_secs), deadline: secs(deadline_secs), lease: secs(lease_secs) };
    let scaling = Scaling { utilisation, ..Scaling::default() };
    Ok(Sharing { scaling, terms, forecasting: forecaster.forecasting(services)? })
}

impl ForecasterConfig {
    /// Reads what was saved.
    fn forecasting(&self, services: &[Arc<Service>]) -> Result<ForecastingOptions, SetupError> {
        within("forecaster.level", self.level, 0.001..=0.999, "0.001 to 0.999")?;
        const KEY: &str = "forecaster.saved";
        let read = |(name, path): (&String, &PathBuf)| {
            let service = services.iter().find(|service| service.name == *name).ok_or_else(|| {
                let known = services.iter().map(|service| service.name.as_str()).collect::<Vec<_>>().join(" or ");
                value(KEY, format!("for {name:?}"), if known.is_empty() { "[[services]]" } else { &known })
            })?;
            let expected = "a file that `goodput forecast fit` or `goodput train` has written, or a shipped forecaster";
            let saved = zoo::open_saved(path).map_err(|error| value(KEY, error, expected))?;
            let unfit =
                |misfit| value(KEY, path.display(), format!("a forecaster for the load of {name}, but {misfit}"));
            saved.check(&service.rates).map_err(unfit)?;
            Ok((name.clone(), saved))
        };
        let saved = self.saved.iter().map(read).collect::<Result<BTreeMap<_, _>, SetupError>>()?;
        let usual = ForecastingOptions::default();
        let models = if self.models.is_empty() { usual.models } else { self.models.clone() };
        let steered_by = match self.steered_by {
            SteeringConfig::Windows => SteeredBy::Windows,
            SteeringConfig::LateRequests => SteeredBy::LateRequests,
        };
        Ok(ForecastingOptions { models, saved: Arc::new(saved), level: self.level, steered_by })
    }
}
