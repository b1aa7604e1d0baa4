//! Runs in OpenTelemetry: the figures of a run as gauges, sent to a collector.
//!
//! The protocol is OTLP over HTTP in its JSON encoding (OpenTelemetry Protocol Specification 1.5, section "OTLP/HTTP"):
//! one `ExportMetricsServiceRequest` to `URL/v1/metrics`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use goodput_console::{CommandError, counted, say};
use serde_json::{Value, json};

use crate::command::finished_run::FinishedRun;

/// Longest time for an answer of the collector.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends the run in `run` to the collector at `url`.
///
/// # Errors
/// [`CommandError`] where `run` is no complete run, or the collector does not take it.
pub fn export(run: &Path, url: &str) -> Result<ExitCode, CommandError> {
    if !url.starts_with("http://") {
        let problem = format!("{url}: expected http://HOST:PORT, the address of a collector");
        return Err(CommandError::input(problem).with_help("send through a collector on this host, which may use TLS"));
    }
    let finished = FinishedRun::read(run)?;
    let metrics = metrics(&finished);
    let count = counted(metrics.len() as u64, "metric");
    let attributes = [
        ("service.name", "goodput"),
        ("service.version", &finished.origin.version),
        ("goodput.experiment", &finished.experiment),
        ("goodput.run", &finished.name),
        ("vcs.ref.head.revision", finished.origin.commit.as_deref().unwrap_or_default()),
    ];
    let request = json!({ "resourceMetrics": [{
        "resource": { "attributes": attributes.map(|(key, value)| attribute(key, value)) },
        "scopeMetrics": [{ "scope": { "name": "goodput.run" }, "metrics": metrics }],
    }] });
    let endpoint = format!("{}/v1/metrics", url.trim_end_matches('/'));
    let refused = |error: &dyn std::fmt::Display| {
        CommandError::failed(format!("{endpoint}: {error}"))
            .with_help("name the OTLP/HTTP address of a collector, as in --otlp http://localhost:4318")
    };
    let agent = ureq::Agent::new_with_config(ureq::config::Config::builder().timeout_global(Some(PATIENCE)).build());
    let mut answer = agent.post(&endpoint).send_json(&request).map_err(|error| refused(&error))?;
    let answer: Value = answer.body_mut().read_json().unwrap_or_default();
    let partly = &answer["partialSuccess"];
    let message = partly["errorMessage"].as_str().unwrap_or_default();
    // The JSON of protobuf has 64 bits as a text, and readers take a number too.
    let rejected = &partly["rejectedDataPoints"];
    let rejected = rejected.as_i64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0);
    if rejected > 0 {
        return Err(refused(&format!("the collector rejected {rejected} points: {message}")));
    }
    if !message.is_empty() {
        say(&format!("note: the collector says: {message}"));
    }
    say(&format!("{endpoint}: {count} of {} in the experiment {}", finished.name, finished.experiment));
    Ok(ExitCode::SUCCESS)
}

/// Gauges of the curve of a training, with a step for each point, and of the means of a comparison, with a policy.
fn metrics(finished: &FinishedRun) -> Vec<Value> {
    let at = finished.ended_nanos.to_string();
    let gauge = |name: &str, points: Vec<Value>| json!({ "name": name, "gauge": { "dataPoints": points } });
    let point =
        |attribute: Value, value: f64| json!({ "attributes": [attribute], "timeUnixNano": at, "asDouble": value });
    let mut metrics: Vec<Value> = Vec::new();
    for (name, points) in &finished.curve {
        let step = |step: &str| json!({ "key": "step", "value": { "intValue": step } });
        let each = points.iter().filter_map(|(at, value)| Some(point(step(at), finite(value.parse().ok()?)?)));
        metrics.push(gauge(&format!("goodput.train.{}", dotted(name)), each.collect()));
    }
    let mut names: Vec<&String> = finished.summary.policies.iter().flat_map(|policy| policy.metrics.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let of = |policy: &goodput_eval::run::summary::PolicySummary| {
            let value = finite(policy.metrics.get(name)?.value)?;
            Some(point(attribute("policy", &policy.name), value))
        };
        let each = finished.summary.policies.iter().filter_map(of).collect();
        metrics.push(gauge(&format!("goodput.eval.{}", dotted(name)), each));
    }
    metrics.retain(|metric| metric["gauge"]["dataPoints"].as_array().is_some_and(|points| !points.is_empty()));
    metrics
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// JSON has no numbers that are not finite.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Name with dots between its parts, as OpenTelemetry has them.
fn dotted(name: &str) -> String {
    name.replace('/', ".")
}
