//! Forecasts of the loads of services, beside the loads that came.
//!
//! The policy forecasts a load at every decision, so the windows of its forecasts overlap. The windows that are judged
//! do not overlap: the next one begins with the first decision after the last one has ended. A window is judged by the
//! loads that were measured in it, each at its own time, however late they become known. The window is judged once a
//! load from its end on is known, and is left out where a step of the load was not measured.

use std::collections::BTreeMap;

use goodput_env::service::ServiceId;
use serde::{Deserialize, Serialize};

/// Load of a service at a moment, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSample {
    /// Service that the load is of.
    pub service: ServiceId,
    /// Time of the measurement, milliseconds of the engine's clock.
    pub at_ms: i64,
    /// Requests per second.
    pub load: f64,
}

/// Forecast of the highest load of a service in a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadForecast {
    /// Time of the decision, milliseconds of the engine's clock.
    pub made_ms: i64,
    /// End of the window, milliseconds of the engine's clock.
    pub until_ms: i64,
    /// Highest load of the expected path, requests per second.
    pub usual: f64,
    /// Load that the highest one seldom exceeds, requests per second.
    pub high: f64,
}

/// A forecast and the highest load that came in its window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JudgedForecast {
    /// The forecast that is over.
    #[serde(flatten)]
    pub forecast: LoadForecast,
    /// Highest load measured in the window, requests per second.
    pub came: f64,
}

/// Place of the load that came beside its forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForecastResult {
    /// Up to the usual load.
    Usual,
    /// Above the usual load and up to the high one.
    High,
    /// Above the high load.
    Above,
}

impl ForecastResult {
    /// Results from the lowest load to the highest.
    pub const ALL: [Self; 3] = [Self::Usual, Self::High, Self::Above];

    /// Name of the result in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::High => "high",
            Self::Above => "above",
        }
    }
}

impl JudgedForecast {
    /// Result of the forecast.
    pub fn result(&self) -> ForecastResult {
        match self.came {
            came if came <= self.forecast.usual => ForecastResult::Usual,
            came if came <= self.forecast.high => ForecastResult::High,
            _ => ForecastResult::Above,
        }
    }
}

/// Last forecast of a service, and the number of windows that were judged since the policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastRecord {
    /// The last forecast.
    #[serde(flatten)]
    pub last: LoadForecast,
    /// Windows that were judged.
    pub windows: u64,
    /// Windows of those in which the load rose above the high load.
    pub above_high: u64,
}

/// Forecasts of all services by one policy.
#[derive(Debug, Default)]
pub struct LoadForecasts {
    services: BTreeMap<ServiceId, ForecastService>,
}

#[derive(Debug)]
struct ForecastService {
    record: ForecastRecord,
    /// Step of the load, milliseconds.
    step_ms: i64,
    /// Time of the last sample, milliseconds of the engine's clock.
    sampled_ms: i64,
    window: Option<JudgedWindow>,
}

/// Window that is under way.
#[derive(Debug)]
struct JudgedWindow {
    forecast: LoadForecast,
    /// Highest load so far; `None` before the first sample.
    came: Option<f64>,
}

impl LoadForecasts {
    /// Takes a forecast of a service, the load of which has steps of `step_ms` milliseconds.
    pub fn issue(&mut self, service: ServiceId, step_ms: i64, forecast: LoadForecast) {
        let record = ForecastRecord { last: forecast, windows: 0, above_high: 0 };
        let begun = || ForecastService { record, step_ms, sampled_ms: forecast.made_ms, window: None };
        let known = self.services.entry(service).or_insert_with(begun);
        known.record.last = forecast;
        known.window.get_or_insert(JudgedWindow { forecast, came: None });
    }

    /// Takes a measured load. Returns the forecast of the window that is over by it.
    pub fn take(&mut self, sample: &LoadSample) -> Option<JudgedForecast> {
        let known = self.services.get_mut(&sample.service)?;
        let is_gap = 2 * (sample.at_ms - known.sampled_ms) > 3 * known.step_ms;
        known.sampled_ms = sample.at_ms;
        if is_gap {
            known.window = None;
        }
        let window = known.window.as_mut()?;
        let LoadForecast { made_ms, until_ms, .. } = window.forecast;
        // A load from before the forecast may become known after the forecast was made.
        if made_ms < sample.at_ms && sample.at_ms <= until_ms {
            window.came = Some(window.came.map_or(sample.load, |came| came.max(sample.load)));
        }
        if sample.at_ms < until_ms {
            return None;
        }
        let JudgedWindow { forecast, came } = known.window.take()?;
        let judged = JudgedForecast { forecast, came: came? };
        known.record.windows += 1;
        known.record.above_high += u64::from(judged.result() == ForecastResult::Above);
        Some(judged)
    }

    /// Forecast of a service that holds at a moment, and its record; `None` where there is none.
    pub fn at(&self, service: ServiceId, at_ms: i64) -> Option<ForecastRecord> {
        let record = self.services.get(&service)?.record;
        (at_ms <= record.last.until_ms).then_some(record)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const WEB: ServiceId = ServiceId(0);
    /// Steps of the load, milliseconds.
    const STEP: i64 = 30;

    fn forecast(made_ms: i64) -> LoadForecast {
        LoadForecast { made_ms, until_ms: made_ms + 100, usual: 10.0, high: 20.0 }
    }

    fn sample(at_ms: i64, load: f64) -> LoadSample {
        LoadSample { service: WEB, at_ms, load }
    }

    #[test]
    fn windows_follow_one_another_and_each_is_judged_by_its_highest_load() {
        let mut forecasts = LoadForecasts::default();
        assert_eq!(forecasts.take(&sample(0, 5.0)), None, "nothing was forecast yet");
        let mut judged = Vec::new();
        // A decision every 30 ms; the load lies between usual and high, then below, then above.
        for at_ms in (0..=390).step_by(30) {
            let load = [15.0, 9.0, 25.0, 1.0][(at_ms / 120).min(3) as usize];
            judged.extend(forecasts.take(&sample(at_ms, load)));
            forecasts.issue(WEB, STEP, forecast(at_ms));
        }
        let results: Vec<(i64, f64, ForecastResult)> =
            judged.iter().map(|judged| (judged.forecast.made_ms, judged.came, judged.result())).collect();
        let expected =
            [(0, 15.0, ForecastResult::High), (120, 9.0, ForecastResult::Usual), (240, 25.0, ForecastResult::Above)];
        assert_eq!(results, expected);
        let record = forecasts.at(WEB, 420).unwrap();
        assert_eq!((record.last.made_ms, record.windows, record.above_high), (390, 3, 1));
    }

    #[test]
    fn loads_that_become_known_late_are_judged_at_their_own_times() {
        let mut forecasts = LoadForecasts::default();
        forecasts.issue(WEB, STEP, forecast(0));
        // A silence, after which all steps come at once. One rise lies within the window, others before and after it.
        let late = [(-30, 50.0), (0, 40.0), (30, 3.0), (60, 30.0), (90, 4.0), (120, 90.0)];
        let judged: Vec<JudgedForecast> =
            late.iter().filter_map(|(at_ms, load)| forecasts.take(&sample(*at_ms, *load))).collect();
        assert_eq!(judged, [JudgedForecast { forecast: forecast(0), came: 30.0 }]);
    }

    #[test]
    fn a_window_without_a_step_of_the_load_is_not_judged() {
        let mut forecasts = LoadForecasts::default();
        forecasts.issue(WEB, STEP, forecast(0));
        // Nothing was measured for longer than a step.
        assert_eq!([30, 90, 120].map(|at_ms| forecasts.take(&sample(at_ms, 99.0))), [None; 3]);
        assert_eq!(forecasts.at(WEB, 90).unwrap().windows, 0);
        // There was no look at all until after the window.
        forecasts.issue(WEB, STEP, forecast(120));
        assert_eq!(forecasts.take(&sample(300, 0.0)), None);
        assert_eq!(forecasts.at(WEB, 300), None, "no forecast holds");
    }
}
