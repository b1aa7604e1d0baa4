//! Metrics of the server, in the text format of Prometheus.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::board::ServiceBoard;
use super::decision::DecisionGround;

type RealGauge = Family<Vec<(&'static str, String)>, Gauge<f64, AtomicU64>>;

/// Levels of the quantiles that are exported.
const LEVELS: [f64; 3] = [0.1, 0.5, 0.9];

/// Every metric, as it is exported.
pub const NAMES: [&str; 10] = [
    "goodput_forecast_load",
    "goodput_forecast_foreseen_load",
    "goodput_forecast_ahead_load",
    "goodput_forecast_room_load",
    "goodput_forecast_replicas",
    "goodput_forecast_age_seconds",
    "goodput_forecast_steps",
    "goodput_forecast_gaps",
    "goodput_forecast_standing",
    "goodput_forecast_prometheus_up",
];

/// The text that a scrape gets at the time `now_millis`.
pub fn text(board: &ServiceBoard, now_millis: i64) -> String {
    let mut registry = Registry::with_prefix("goodput_forecast");
    let mut family = |name: &str, help: &str| {
        let family = RealGauge::default();
        registry.register(name, help, family.clone());
        family
    };
    let load = family("load", "Load of the last step with a value");
    let foreseen = family("foreseen_load", "Load of that step as it was expected when an order could serve in time");
    let ahead = family("ahead_load", "Quantiles of the load of the last step within reach of an order of now");
    let room = family("room_load", "Load for which there is to be room");
    let replicas = family("replicas", "Replicas that are decided");
    let age = family("age_seconds", "Time since the end of the last step with a value");
    let steps = family("steps", "Steps that are known");
    let gaps = family("gaps", "Steps without a value");
    let standing = family("standing", "Ground of the decision: 1 for the one that holds");
    let up = family("prometheus_up", "Whether Prometheus gave what it was asked for last");
    for place in &board.places {
        let watched = place.watched();
        let service = || vec![("service", place.config.name.to_string())];
        let set = |family: &RealGauge, value: Option<f64>| {
            if let Some(value) = value {
                family.get_or_create(&service()).set(value);
            }
        };
        let last = watched.past().last();
        set(&load, last.and_then(|step| step.load));
        set(&foreseen, last.and_then(|step| step.foreseen));
        let reach = place.config.reach_steps();
        if let Some(forecast) = watched.forecast(reach, &LEVELS) {
            for (level, value) in LEVELS.iter().zip(forecast.quantiles().row(reach - 1)) {
                let mut labels = service();
                labels.push(("quantile", level.to_string()));
                ahead.get_or_create(&labels).set(*value);
            }
        }
        let decision = watched.decision();
        set(&room, decision.room);
        set(&replicas, decision.replicas.map(f64::from));
        set(&age, place.age_millis(now_millis).map(|age| age as f64 / 1e3));
        set(&steps, Some(watched.steps() as f64));
        set(&gaps, Some(watched.gaps() as f64));
        set(&up, Some(f64::from(u8::from(place.problem().is_none()))));
        for kind in DecisionGround::ALL {
            let mut labels = service();
            labels.push(("standing", kind.name().to_owned()));
            standing.get_or_create(&labels).set(f64::from(u8::from(kind == decision.standing)));
        }
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}
