//! Forecasts of hourly means, made every six hours.

use std::ops::Range;

use crate::worth::{ColdStart, ServiceLoad};
use crate::{Adaptive, Fit, Predict, Series};

/// Hours from one forecast to the next, and hours forecast.
const EVERY: usize = 6;
const AHEAD: usize = 12;
/// Seconds by which capacity is launched before its hour, at least.
const BUFFER_SECS: f64 = 300.0;

/// Load expected at each step of `part`: the largest hourly forecast until the buffer is over, and at least the last
/// load. The last load alone where a day is not 24 whole hours of steps.
pub(in crate::worth) fn expected(service: &ServiceLoad, part: &Range<usize>, cold: ColdStart) -> Vec<f64> {
    let hour = service.day_steps / 24;
    let last = |step: usize| step.checked_sub(1).map_or(0.0, |last| service.seen[last]);
    if hour == 0 || !service.day_steps.is_multiple_of(24) {
        return part.clone().map(last).collect();
    }
    let means: Vec<f64> =
        service.seen.chunks_exact(hour).map(|loads| loads.iter().sum::<f64>() / hour as f64).collect();
    let first = (part.start / hour).saturating_sub(1) / EVERY * EVERY;
    let forecasts = forecasts(&means, first);
    let buffer = (BUFFER_SECS / service.step_secs).max(cold.in_steps()).ceil() as usize;
    let most = |step: usize| {
        let (now, until) = (step / hour, (step + buffer) / hour);
        let made = forecasts.get((now - first) / EVERY);
        let made_at = now - (now - first) % EVERY;
        let at = |hour: usize| made.and_then(|made| made.get(hour - made_at)).copied().unwrap_or(0.0);
        (now..=until).map(at).fold(last(step), f64::max)
    };
    part.clone().map(most).collect()
}

/// Forecasts of the next hours, made every six hours from hour `first` on.
fn forecasts(means: &[f64], first: usize) -> Vec<Vec<f64>> {
    let model = Adaptive { horizon_steps: AHEAD, ..Adaptive::daily(24) };
    let known = Series::new(0, 3_600_000, means[..first.min(means.len())].to_vec().into());
    let Some(mut fitted) = known.ok().and_then(|known| model.fit(&known).ok()) else { return Vec::new() };
    let mut forecasts = Vec::new();
    for (number, hours) in means[first..].chunks(EVERY).enumerate() {
        if number.is_multiple_of(24 / EVERY) && number > 0 {
            fitted.refresh();
        }
        forecasts.push(fitted.uncorrected(AHEAD));
        fitted.update(hours);
    }
    forecasts
}
