//! Metrics of a daemon, in the text format of Prometheus.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::daemon::shadow::ShadowComparison;

type Labels = Vec<(&'static str, String)>;
type Real = Gauge<f64, AtomicU64>;

/// All metrics of a daemon. Names as exported are in [`Metrics::NAMES`].
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Time of a whole cycle.
    pub cycle: Histogram,
    /// Time of a decision, guard included.
    pub decision: Histogram,
    /// Orders by verb and result.
    pub orders: Family<Labels, Counter>,
    /// Changes that the guard left out, by rule.
    pub guard: Family<Labels, Counter>,
    /// Whether the fallback decides.
    pub fallback_active: Gauge,
    /// Whether nothing is decided, because the policy that rules is not this daemon's.
    pub undecided: Gauge,
    /// Times the policy was not relied on, by reason.
    pub fallbacks: Family<Labels, Counter>,
    /// Age of the newest snapshot.
    pub snapshot_age: Real,
    /// Jobs by state.
    pub jobs: Family<Labels, Gauge>,
    /// Accelerators by state and type.
    pub accelerators: Family<Labels, Gauge>,
    /// Share of accelerators in service that are held.
    pub utilisation: Real,
    /// Work per second of all jobs, relative to each on what it asked for.
    pub goodput: Real,
    /// From submission to the first start.
    pub queue_delay: Histogram,
    /// From submission to completion.
    pub jct: Histogram,
    /// Jobs that are not where they were ordered to be.
    pub drift: Gauge,
    /// Orders that are not closed.
    pub open_orders: Gauge,
    /// Whether the engine answers.
    pub engine_up: Gauge,
    /// Whether this daemon leads.
    pub leader: Gauge,
    /// The mode: 0 observe, 1 canary, 2 act.
    pub mode: Gauge,
    /// Alerts by kind; each is also in the audit log.
    pub alerts: Family<Labels, Counter>,
    /// Mean completion time by simulation of the policy that acts and of the one beside, as last
    /// compared.
    pub shadow_jct: Family<Labels, Real>,
    /// Requests per second by service, where they are known.
    pub service_load: Family<Labels, Real>,
    /// Age of the last load that Prometheus gave, by service.
    pub load_age: Family<Labels, Real>,
    /// Highest load that the policy expects until a replica started now would be warm, by service and level.
    pub load_forecast: Family<Labels, Real>,
    /// Forecasts that are over, by service and result.
    pub load_forecasts: Family<Labels, Counter>,
}

impl Metrics {
    /// Every metric, as it is exported.
    pub const NAMES: [&'static str; 25] = [
        "goodput_cycle_seconds",
        "goodput_decision_seconds",
        "goodput_orders_total",
        "goodput_guard_left_out_total",
        "goodput_fallback_active",
        "goodput_undecided",
        "goodput_fallbacks_total",
        "goodput_snapshot_age_seconds",
        "goodput_jobs",
        "goodput_accelerators",
        "goodput_utilisation_ratio",
        "goodput_relative_goodput",
        "goodput_queue_delay_seconds",
        "goodput_jct_seconds",
        "goodput_reconcile_drift",
        "goodput_open_orders",
        "goodput_engine_up",
        "goodput_leader",
        "goodput_mode",
        "goodput_alerts_total",
        "goodput_shadow_jct_seconds",
        "goodput_service_load",
        "goodput_load_age_seconds",
        "goodput_load_forecast",
        "goodput_load_forecasts_total",
    ];

    /// All at zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("goodput"),
            cycle: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
            decision: Histogram::new(exponential_buckets(0.0005, 2.0, 16)),
            orders: Family::default(),
            guard: Family::default(),
            fallback_active: Gauge::default(),
            undecided: Gauge::default(),
            fallbacks: Family::default(),
            snapshot_age: Real::default(),
            jobs: Family::default(),
            accelerators: Family::default(),
            utilisation: Real::default(),
            goodput: Real::default(),
            queue_delay: Histogram::new(exponential_buckets(0.5, 2.0, 20)),
            jct: Histogram::new(exponential_buckets(1.0, 2.0, 22)),
            drift: Gauge::default(),
            open_orders: Gauge::default(),
            engine_up: Gauge::default(),
            leader: Gauge::default(),
            mode: Gauge::default(),
            alerts: Family::default(),
            shadow_jct: Family::default(),
            service_load: Family::default(),
            load_age: Family::default(),
            load_forecast: Family::default(),
            load_forecasts: Family::default(),
        };
        metrics.register();
        // Prometheus sees the first alert of a kind only where the counter was there before, at zero.
        for kind in super::alert::KINDS {
            Self::begin(&metrics.alerts, &[("kind", kind)]);
        }
        for verb in ["place", "stop", "resize", "migrate"] {
            for result in ["done", "lost", "refused"] {
                Self::begin(&metrics.orders, &[("verb", verb), ("result", result)]);
            }
        }
        metrics
    }

    fn register(&mut self) {
        let r = &mut self.registry;
        let secs = Unit::Seconds;
        r.register_with_unit("cycle", "Time of a whole cycle", secs.clone(), self.cycle.clone());
        r.register_with_unit("decision", "Time of a decision, guard included", secs.clone(), self.decision.clone());
        r.register("orders", "Orders by verb and result", self.orders.clone());
        r.register("guard_left_out", "Changes the guard left out, by rule", self.guard.clone());
        let of_undecided = "Whether nothing is decided, because the policy that rules is not this daemon's";
        r.register("undecided", of_undecided, self.undecided.clone());
        r.register("fallback_active", "Whether the fallback decides", self.fallback_active.clone());
        r.register("fallbacks", "Times the policy was not relied on, by reason", self.fallbacks.clone());
        r.register_with_unit("snapshot_age", "Age of the newest snapshot", secs.clone(), self.snapshot_age.clone());
        r.register("jobs", "Jobs by state", self.jobs.clone());
        r.register("accelerators", "Accelerators by state and type", self.accelerators.clone());
        r.register("utilisation_ratio", "Share of accelerators held", self.utilisation.clone());
        r.register("relative_goodput", "Work per second relative to what was asked for", self.goodput.clone());
        r.register_with_unit("queue_delay", "From submission to first start", secs.clone(), self.queue_delay.clone());
        r.register_with_unit("jct", "From submission to completion", secs.clone(), self.jct.clone());
        let of_shadow = "Mean completion time by simulation of the policy that acts and of the one beside";
        r.register_with_unit("shadow_jct", of_shadow, secs.clone(), self.shadow_jct.clone());
        r.register("service_load", "Requests per second by service, where they are known", self.service_load.clone());
        let of_load = "Age of the last load that Prometheus gave";
        r.register_with_unit("load_age", of_load, secs, self.load_age.clone());
        let expected = "Highest load that the policy expects until a replica started now would be warm, by level";
        r.register("load_forecast", expected, self.load_forecast.clone());
        r.register("load_forecasts", "Forecasts that are over, by result", self.load_forecasts.clone());
        r.register("reconcile_drift", "Jobs that are not where they were ordered to be", self.drift.clone());
        r.register("open_orders", "Orders that are not closed", self.open_orders.clone());
        r.register("engine_up", "Whether the engine answers", self.engine_up.clone());
        r.register("leader", "Whether this daemon leads", self.leader.clone());
        r.register("mode", "0 observe, 1 canary, 2 act", self.mode.clone());
        r.register("alerts", "Alerts by kind", self.alerts.clone());
    }

    /// Counts one of a family.
    pub fn count(family: &Family<Labels, Counter>, labels: &[(&'static str, &str)]) {
        family.get_or_create(&owned(labels)).inc();
    }

    /// Shows a counter of a family at zero before its first count: Prometheus takes a count for a rise only where the
    /// counter was there before.
    pub fn begin(family: &Family<Labels, Counter>, labels: &[(&'static str, &str)]) {
        drop(family.get_or_create(&owned(labels)));
    }

    /// Sets one of a family.
    pub fn set(family: &Family<Labels, Gauge>, labels: &[(&'static str, &str)], value: i64) {
        family.get_or_create(&owned(labels)).set(value);
    }

    /// Sets a real number of a family; one that is not known has no sample.
    pub fn set_real(family: &Family<Labels, Real>, labels: &[(&'static str, &str)], value: Option<f64>) {
        let labels = owned(labels);
        match value {
            Some(value) => drop(family.get_or_create(&labels).set(value)),
            None => drop(family.remove(&labels)),
        }
    }

    /// Shows a comparison of policies.
    pub fn compared(&self, compared: &ShadowComparison) {
        for (role, rolled) in [("incumbent", &compared.incumbent), ("candidate", &compared.candidate)] {
            self.shadow_jct.get_or_create(&owned(&[("role", role)])).set(rolled.mean_jct_secs);
        }
    }

    /// The text that a scrape gets.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn owned(labels: &[(&'static str, &str)]) -> Labels {
    labels.iter().map(|(name, value)| (*name, (*value).to_string())).collect()
}
