//! The load to expect until a moment: what separates reactive from forecast-driven scaling and
//! loaning.

use std::sync::{Arc, Mutex, PoisonError};

use goodput_env::scenario::Information;
use goodput_env::time::SimTime;
use goodput_env::view::ServiceView;

/// Expected highest rate within a window, requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// As likely exceeded as not.
    pub usual: f64,
    /// Exceeded as seldom as its source says; no less than `usual`.
    pub high: f64,
    /// Rule by which replicas follow.
    pub sizing: Sizing,
}

/// Rule from an expected rate to a number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// The usual rate leaves the room that the utilisation aimed for leaves, and the high rate keeps the objective.
    Utilisation,
    /// The high rate keeps the objective, and nothing is added.
    Objective,
}

impl Expected {
    /// Nothing else is expected.
    pub fn sure(rate: f64) -> Self {
        Self::forecast(rate, rate)
    }

    /// Rates that room for utilisation is added to.
    pub fn forecast(usual: f64, high: f64) -> Self {
        Self { usual, high, sizing: Sizing::Utilisation }
    }

    /// Rates of which the high one is all that is to be provided for.
    pub fn decided(usual: f64, high: f64) -> Self {
        Self { usual: usual.min(high), high, sizing: Sizing::Objective }
    }

    /// Rates with `waiting` requests per second added to them.
    #[must_use]
    pub fn with_waiting(self, waiting: f64) -> Self {
        Self { usual: self.usual + waiting, high: self.high + waiting, ..self }
    }

    /// Rates to provide for: a forecast, and never less than the rate that is measured now. Without a forecast the rate
    /// stays as it is.
    pub fn beside(forecast: Option<Self>, rate: f64) -> Self {
        let least = |Self { usual, high, sizing }| Self { usual: usual.max(rate), high: high.max(rate), sizing };
        forecast.map_or(Self::sure(rate), least)
    }
}

/// Looks ahead, or does not.
pub trait Outlook: Send {
    /// Forecast of the highest rate of `service` from now until `until`; `None` where the outlook does not look
    /// ahead, or does not know enough yet.
    fn forecast(&mut self, service: &ServiceView<'_>, until: SimTime) -> Option<Expected>;

    /// The highest rate of `service` to provide for from now until `until` ([`Expected::beside`]).
    fn expect(&mut self, service: &ServiceView<'_>, until: SimTime) -> Expected {
        Expected::beside(self.forecast(service, until), service.rate())
    }

    /// The least that has to be known.
    fn needs(&self) -> Information {
        Information::Profiled
    }
}

/// One outlook for two askers.
pub(super) struct Shared<T>(Arc<Mutex<T>>);

impl<T: Outlook + 'static> Shared<T> {
    pub fn pair(outlook: T) -> [Box<dyn Outlook>; 2] {
        let shared = Arc::new(Mutex::new(outlook));
        [Box::new(Self(Arc::clone(&shared))), Box::new(Self(shared))]
    }
}

impl<T: Outlook> Outlook for Shared<T> {
    fn forecast(&mut self, service: &ServiceView<'_>, until: SimTime) -> Option<Expected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).forecast(service, until)
    }

    fn needs(&self) -> Information {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).needs()
    }
}

/// Reactive outlook: the rate stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now;

impl Outlook for Now {
    fn forecast(&mut self, _service: &ServiceView<'_>, _until: SimTime) -> Option<Expected> {
        None
    }
}

/// Oracle outlook: the true future rate, a bound for every forecast of this sizing. It needs all information.
#[derive(Clone, Copy, Debug)]
pub struct OracleOutlook(pub Sizing);

impl Outlook for OracleOutlook {
    fn forecast(&mut self, service: &ServiceView<'_>, until: SimTime) -> Option<Expected> {
        let steps = super::steps_until(service.history_step(), service.history().len(), until);
        let future = service.future().unwrap_or_default().iter().take(steps);
        let rate = future.map(|&milli| f64::from(milli) / 1e3).fold(0.0, f64::max);
        Some(Expected { sizing: self.0, ..Expected::sure(rate) })
    }

    fn needs(&self) -> Information {
        Information::Oracle
    }
}
