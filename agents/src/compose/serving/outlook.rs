//! The load to expect until a moment: what separates reactive from forecast-driven scaling and
//! loaning.

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
}

impl Expected {
    /// Nothing else is expected.
    pub fn sure(rate: f64) -> Self {
        Self { usual: rate, high: rate }
    }

    /// Never below what is measured now.
    pub fn at_least(self, rate: f64) -> Self {
        Self { usual: self.usual.max(rate), high: self.high.max(rate) }
    }
}

/// Looks ahead, or does not.
pub trait Outlook: Send {
    /// The highest rate of `service` from now until `until`.
    fn expect(&mut self, service: &ServiceView<'_>, until: SimTime) -> Expected;

    /// The least that has to be known.
    fn needs(&self) -> Information {
        Information::Profiled
    }
}

/// Reactive outlook: the rate stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now;

impl Outlook for Now {
    fn expect(&mut self, service: &ServiceView<'_>, _until: SimTime) -> Expected {
        Expected::sure(service.rate())
    }
}

/// Oracle outlook: the true future rate, a bound for every forecast. It needs all information.
#[derive(Clone, Copy, Debug, Default)]
pub struct OracleOutlook;

impl Outlook for OracleOutlook {
    fn expect(&mut self, service: &ServiceView<'_>, until: SimTime) -> Expected {
        let steps = super::steps_until(service.history_step(), service.history().len(), until);
        let future = service.future().unwrap_or_default().iter().take(steps);
        Expected::sure(future.map(|&milli| f64::from(milli) / 1e3).fold(service.rate(), f64::max))
    }

    fn needs(&self) -> Information {
        Information::Oracle
    }
}
