//! Expected load of a service, as an input of a learned policy.
//!
//! Forecasters are in another crate; an environment accepts any function of the view of a policy,
//! with or without state. The default is the load of the day before.

use std::fmt;
use std::sync::Arc;

use crate::time::SimTime;
use crate::view::ServiceView;

/// Length of the forecast window.
pub const WINDOW: SimTime = SimTime::from_secs(3600);

const DAY: SimTime = SimTime::from_secs(24 * 3600);

type Peak = dyn FnMut(&ServiceView<'_>, SimTime) -> f64 + Send + Sync;
type Make = dyn Fn() -> Box<Peak> + Send + Sync;

/// Forecast of the highest request rate within a window from now on, requests per second.
///
/// The forecast may cache results, but it is a function of the view alone: a clone starts with an
/// empty cache, and so does an episode.
pub struct ExpectedPeak {
    make: Arc<Make>,
    peak: Box<Peak>,
}

impl ExpectedPeak {
    /// Creates a forecast from any function of a service and the window.
    pub fn new(peak: impl Fn(&ServiceView<'_>, SimTime) -> f64 + Send + Sync + 'static) -> Self {
        let peak = Arc::new(peak);
        Self::remembering(move || {
            let peak = peak.clone();
            Box::new(move |service, window| peak(service, window))
        })
    }

    /// Creates a forecast from stateful functions; `make` creates one for each episode.
    pub fn remembering(make: impl Fn() -> Box<Peak> + Send + Sync + 'static) -> Self {
        let peak = make();
        Self { make: Arc::new(make), peak }
    }

    /// Expected peak rate within [`WINDOW`].
    pub fn peak(&mut self, service: &ServiceView<'_>) -> f64 {
        (self.peak)(service, WINDOW)
    }

    /// Clears cached results before another episode.
    pub fn forget(&mut self) {
        self.peak = (self.make)();
    }
}

impl Clone for ExpectedPeak {
    fn clone(&self) -> Self {
        Self { make: self.make.clone(), peak: (self.make)() }
    }
}

impl Default for ExpectedPeak {
    fn default() -> Self {
        Self::new(yesterday)
    }
}

impl fmt::Debug for ExpectedPeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExpectedPeak")
    }
}

/// Peak rate of the window a day ago, or the current rate where that is higher or the service is
/// younger than a day.
fn yesterday(service: &ServiceView<'_>, window: SimTime) -> f64 {
    let (history, step) = (service.history(), service.history_step().as_millis());
    let steps = |time: SimTime| (time.as_millis() / step) as usize;
    if service.is_over() {
        return 0.0;
    }
    // The last step is the present one, so the same time of yesterday is a day of steps before it.
    let from = history.len().saturating_sub(1).checked_sub(steps(DAY));
    let peak = from.and_then(|from| {
        let to = (from + steps(window) + 1).min(history.len());
        history[from..to].iter().max().copied()
    });
    service.rate().max(f64::from(peak.unwrap_or(0)) / 1e3)
}
