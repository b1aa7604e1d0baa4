//! An alert: something is wrong with the cluster or with the daemon.

use serde_json::json;

use super::metrics::Metrics;
use crate::daemon::Daemon;
use crate::machine::wall_ms;

/// Kinds of alerts. Each has a rule in `executor/prometheus/alerts.yml` and a page among the runbooks.
pub const KINDS: [&str; 20] = [
    "audit",
    "canary",
    "certificate",
    "damaged",
    "drained",
    "ended",
    "fallback",
    "forgotten",
    "gone",
    "hands-off",
    "journal",
    "lease",
    "load",
    "mass-failure",
    "policy",
    "regression",
    "rival",
    "stale",
    "term",
    "unfit",
];

impl<E> Daemon<E> {
    /// Raises an alert for damage that was found in the audit log.
    pub(in crate::daemon) fn tell_audit_damage(&mut self) {
        if let Some(damage) = self.audit.take_damage() {
            self.alert("audit", &damage);
        }
    }

    /// Raises an alert, to monitoring, to the log and to the status that users read.
    pub(in crate::daemon) fn alert(&mut self, kind: &'static str, text: &str) {
        tracing::warn!(alert = kind, text);
        Metrics::count(&self.metrics.alerts, &[("kind", kind)]);
        let _ = self.audit.write(wall_ms(), "alert", json!({ "kind": kind, "text": text }));
        if let Ok(mut status) = self.status.lock() {
            status.alerts.push(format!("{kind}: {text}"));
            let old = status.alerts.len().saturating_sub(20);
            status.alerts.drain(..old);
        }
    }
}
