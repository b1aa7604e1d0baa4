//! What a service's load will be, as far as a learned policy is told.
//!
//! Forecasters live in another crate; an environment takes any function of what a policy may see, with a memory or without. Without one it goes by yesterday.

use std::fmt;
use std::sync::Arc;

use crate::time::SimTime;
use crate::view::ServiceView;

/// How far ahead it looks.
pub const WINDOW: SimTime = SimTime::from_secs(3600);

const DAY: SimTime = SimTime::from_secs(24 * 3600);

type Peak = dyn FnMut(&ServiceView<'_>, SimTime) -> f64 + Send + Sync;
type Make = dyn Fn() -> Box<Peak> + Send + Sync;

/// The highest rate expected within a window from now on, requests per second.
///
/// It may remember what it has worked out, but its answer follows from the view alone: a clone begins without memory, and so does an episode.
pub struct ExpectedPeak {
    make: Arc<Make>,
    peak: Box<Peak>,
}

impl ExpectedPeak {
    /// By any function of a service and the window.
    pub fn new(peak: impl Fn(&ServiceView<'_>, SimTime) -> f64 + Send + Sync + 'static) -> Self {
        let peak = Arc::new(peak);
        Self::remembering(move || {
            let peak = peak.clone();
            Box::new(move |service, window| peak(service, window))
        })
    }

    /// By functions that `make` makes, one an episode.
    pub fn remembering(make: impl Fn() -> Box<Peak> + Send + Sync + 'static) -> Self {
        let peak = make();
        Self { make: Arc::new(make), peak }
    }

    /// The peak of [`WINDOW`].
    pub fn peak(&mut self, service: &ServiceView<'_>) -> f64 {
        (self.peak)(service, WINDOW)
    }

    /// Forgets what it has worked out, before another episode.
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

/// The peak of the same window a day ago, or the rate now where that is higher or there was no yesterday.
fn yesterday(service: &ServiceView<'_>, window: SimTime) -> f64 {
    let (history, step) = (service.history(), service.history_step().as_millis());
    let steps = |time: SimTime| (time.as_millis() / step) as usize;
    if service.is_over() {
        return 0.0;
    }
    let from = history.len().saturating_sub(1).checked_sub(steps(DAY));
    let peak = from.and_then(|from| {
        let to = (from + steps(window) + 1).min(history.len());
        history[from..to].iter().max().copied()
    });
    service.rate().max(f64::from(peak.unwrap_or(0)) / 1e3)
}
