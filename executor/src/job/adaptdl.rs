//! The endpoints of AdaptDL's supervisor, so that jobs written for it run unchanged
//! (petuum/adaptdl, `sched/adaptdl_sched/supervisor.py`).
//!
//! `PUT /hints/{namespace}/{name}` takes what a job learned about its own speed; `GET
//! /discover/{namespace}/{name}/{group}` tells the addresses of its replicas by rank, and waits for
//! them; `GET /healthz` answers. A job's group is its attempt. AdaptDL sends no token, so all of it
//! is below `/adaptdl/{key}`, where the key follows from the token of the job
//! ([`Fence::supervisor_key`]).

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Json;
use axum::routing::{get, put};
use goodput_env::model::{BatchLimits, ThroughputParams};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::{Fence, JobReport};

/// Fields of hints that AdaptDL's scheduler keeps; it drops the rest.
const FIELDS: [&str; 8] = [
    "initBatchSize",
    "localBszBounds",
    "globalBatchSize",
    "maxBatchSize",
    "maxProfiledReplicas",
    "gradientAccumulation",
    "gradParams",
    "perfParams",
];

const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// AdaptDL's own default, seconds.
const TIMEOUT_S: u64 = 30;

/// Longest wait of a caller with a key that no running attempt has, so that strangers hold no connections.
const UNKNOWN: Duration = Duration::from_millis(500);

/// Supervisor that knows the jobs.
pub trait Supervisor: Send + Sync {
    /// Whether an attempt of the job with this key runs.
    fn knows(&self, key: &str, job: &str) -> bool;

    /// Takes hints of the attempt with this key. `false`: no such attempt of the job runs.
    fn hints(&self, key: &str, job: &str, hints: Value) -> bool;

    /// Addresses of the replicas of an attempt, by rank; `None`: not yet.
    fn addresses(&self, key: &str, job: &str, attempt: u32) -> Option<Vec<String>>;
}

/// The batch sizes that hints allow; `None` where they do not say, or contradict themselves.
#[must_use]
pub fn limits(hints: &Value) -> Option<BatchLimits> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let bounds = hints["localBszBounds"].as_array()?;
    let (min, max) = (number(bounds.first()?)?, number(bounds.get(1)?)?);
    BatchLimits::new(number(&hints["initBatchSize"])?, number(&hints["maxBatchSize"])?, min, max).ok()
}

/// Speed that hints tell where the attempt runs, as reports of it. AdaptDL keeps its measurements
/// and tells what it has fitted to them. So the fit is asked at two batch sizes of a replica: the
/// one it began with and twice that. Empty where the hints tell nothing, or nothing that makes
/// sense.
#[must_use]
pub fn reports(hints: &Value, of: &(Fence, u32), nodes: u32, replicas: u32) -> Vec<JobReport> {
    let (fence, attempt) = of;
    let number = |value: &Value| value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    let part = |name: &str| number(&hints["perfParams"][name]);
    let params = || {
        Some(ThroughputParams {
            alpha_c: part("alpha_c")?,
            beta_c: part("beta_c")?,
            alpha_n: part("alpha_n")?,
            beta_n: part("beta_n")?,
            alpha_r: part("alpha_r")?,
            beta_r: part("beta_r")?,
            gamma: part("gamma").filter(|gamma| *gamma >= 1.0)?,
        })
    };
    let (Some(params), Some(init)) = (params(), hints["initBatchSize"].as_u64()) else { return Vec::new() };
    let bounds = limits(hints).map_or((1, u32::MAX), |limits| (limits.min_local, limits.max_local));
    let shared = u32::try_from(init.div_ceil(u64::from(replicas.max(1)))).unwrap_or(u32::MAX);
    let first = shared.clamp(bounds.0, bounds.1);
    let mut sizes = vec![first, first.saturating_mul(2).min(bounds.1)];
    sizes.dedup();
    let statistics = number(&hints["gradParams"]["norm"]).zip(number(&hints["gradParams"]["var"]));
    let of_size = |atomic: u32| {
        let step = params.optim_time(nodes, replicas, atomic);
        JobReport {
            atomic_batch: Some(atomic),
            step_time_s: Some(step),
            sync_time_s: Some((step - params.grad_time(atomic)).max(0.0)),
            grad_sqr: statistics.map(|(norm, _)| norm),
            grad_var: statistics.map(|(_, var)| var),
            ..JobReport::new(fence.clone(), *attempt, 0)
        }
    };
    sizes.into_iter().map(of_size).collect()
}

/// Routes of AdaptDL's supervisor.
pub fn router(supervisor: Arc<dyn Supervisor>) -> Router {
    Router::new()
        .route("/adaptdl/{key}/healthz", get(|| async { StatusCode::OK }))
        .route("/adaptdl/{key}/hints/{namespace}/{name}", put(hints))
        .route("/adaptdl/{key}/discover/{namespace}/{name}/{group}", get(discover))
        .with_state(supervisor)
}

async fn hints(
    State(supervisor): State<Arc<dyn Supervisor>>,
    Path((key, _, job)): Path<(String, String, String)>,
    body: Bytes,
) -> StatusCode {
    let Ok(sent) = serde_json::from_slice::<Map<String, Value>>(&body) else { return StatusCode::BAD_REQUEST };
    let known = sent.into_iter().filter(|(field, _)| FIELDS.contains(&field.as_str())).collect();
    if supervisor.hints(&key, &job, Value::Object(known)) { StatusCode::OK } else { StatusCode::NOT_FOUND }
}

#[derive(Deserialize)]
struct Patience {
    timeout: Option<u64>,
}

async fn discover(
    State(supervisor): State<Arc<dyn Supervisor>>,
    Path((key, _, job, group)): Path<(String, String, String, u32)>,
    Query(patience): Query<Patience>,
) -> Result<Json<Vec<String>>, StatusCode> {
    let (began, wait) = (Instant::now(), Duration::from_secs(patience.timeout.unwrap_or(TIMEOUT_S).min(2 * TIMEOUT_S)));
    loop {
        if let Some(addresses) = supervisor.addresses(&key, &job, group) {
            return Ok(Json(addresses));
        }
        let wait = if supervisor.knows(&key, &job) { wait } else { wait.min(UNKNOWN) };
        if began.elapsed() >= wait {
            return Err(StatusCode::REQUEST_TIMEOUT);
        }
        sleep(LOOK_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::job::SpeedMeasurement;

    #[test]
    fn what_adaptdl_has_fitted_is_known_where_it_runs() {
        let perf = json!({ "alpha_c": 0.1, "beta_c": 0.002, "alpha_n": 0.05, "beta_n": 0.001, "alpha_r": 0.02, "beta_r": 0.0005, "gamma": 1.6 });
        let hints = json!({
            "initBatchSize": 256, "maxBatchSize": 4096, "localBszBounds": [32, 160], "gradParams": { "norm": 0.5, "var": 3.0 }, "perfParams": perf
        });
        let of = (Fence::random().unwrap(), 2);
        let said: Vec<SpeedMeasurement> =
            reports(&hints, &of, 1, 2).iter().filter_map(|report| SpeedMeasurement::of(report, 1, 2)).collect();
        assert_eq!(said.iter().map(|said| said.sample.unwrap().atomic).collect::<Vec<_>>(), [128, 160]);
        let params = ThroughputParams {
            alpha_c: 0.1,
            beta_c: 0.002,
            alpha_n: 0.05,
            beta_n: 0.001,
            alpha_r: 0.02,
            beta_r: 0.0005,
            gamma: 1.6,
        };
        for said in &said {
            let sample = said.sample.unwrap();
            assert!((sample.step_secs - params.optim_time(1, 2, sample.atomic)).abs() < 1e-12);
            assert_eq!(said.stats.map(|stats| (stats.sqr, stats.var)), Some((0.5, 3.0)));
        }
        for (wrong, value) in [("gamma", json!(0.5)), ("beta_c", json!(-1.0)), ("alpha_n", json!(null))] {
            let mut hints = hints.clone();
            hints["perfParams"][wrong] = value;
            assert_eq!(reports(&hints, &of, 1, 2), [], "{wrong}");
        }
    }

    #[test]
    fn batch_sizes_are_taken_from_hints_that_make_sense() {
        let hints =
            json!({ "initBatchSize": 128, "maxBatchSize": 1280, "localBszBounds": [64, 256], "gradParams": null });
        assert_eq!(limits(&hints), BatchLimits::new(128, 1280, 64, 256).ok());
        for wrong in [
            json!({ "initBatchSize": 128, "maxBatchSize": 1280, "localBszBounds": null }),
            json!({ "initBatchSize": 128, "maxBatchSize": 64, "localBszBounds": [64, 256] }),
            json!({ "initBatchSize": -1, "maxBatchSize": 64, "localBszBounds": [64] }),
        ] {
            assert_eq!(limits(&wrong), None, "{wrong}");
        }
    }
}
