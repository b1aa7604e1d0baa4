//! Loads of services that the policy forecast, beside those that came.

use goodput_env::state::ClusterState;
use serde_json::json;

use crate::daemon::decide::decision::Decided;
use crate::daemon::interface::metrics::Metrics;
use crate::daemon::observe::load_forecasts::{ForecastResult, LoadForecast};
use crate::daemon::{Daemon, DaemonError};
use crate::engine::{ClusterSnapshot, Engine};
use crate::machine::wall_ms;

impl<E: Engine> Daemon<E> {
    /// Judges the forecasts that are over, with a line of the audit log for each, and takes those of a decision.
    ///
    /// # Errors
    /// [`DaemonError`] where the audit log cannot be written.
    pub(super) fn judge_forecasts(
        &mut self,
        cluster: &ClusterState,
        snapshot: &ClusterSnapshot,
        decided: Option<&Decided>,
    ) -> Result<(), DaemonError> {
        let count = &self.metrics.load_forecasts;
        for sample in self.observer.load_samples() {
            let Some(judged) = self.forecasts.take(sample) else { continue };
            let service = self.observer.service(sample.service).unwrap_or_default();
            Metrics::count(count, &[("service", service), ("result", judged.result().name())]);
            self.audit.write(wall_ms(), "load", json!({ "service": service, "forecast": judged }))?;
        }
        let now = cluster.view().now;
        // Loads of an earlier decision are left out.
        for load in decided.iter().flat_map(|decided| &decided.decision.loads).filter(|load| load.from == now) {
            let Some(service) = self.observer.service(load.service) else { continue };
            let Some(step_ms) = self.observer.load_step_ms(load.service) else { continue };
            for result in ForecastResult::ALL {
                Metrics::begin(count, &[("service", service), ("result", result.name())]);
            }
            let (made_ms, span) = (snapshot.at_ms, self.observer.engine_ms(load.until - now));
            let forecast = LoadForecast { made_ms, until_ms: made_ms + span, usual: load.usual, high: load.high };
            self.forecasts.issue(load.service, step_ms, forecast);
        }
        Ok(())
    }
}
