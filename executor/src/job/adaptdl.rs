//! The endpoints of AdaptDL's supervisor, so that jobs written for it run unchanged (petuum/adaptdl, `sched/adaptdl_sched/supervisor.py`).
//!
//! `PUT /hints/{namespace}/{name}` takes what a job learned about its own speed; `GET /discover/{namespace}/{name}/{group}` tells the addresses of its replicas
//! by rank, and waits for them; `GET /healthz` answers. A job's group is its attempt.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Json;
use axum::routing::{get, put};
use goodput_env::model::BatchLimits;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

/// What AdaptDL's scheduler keeps of hints; it drops the rest.
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

/// Who knows the jobs.
pub trait Supervisor: Send + Sync {
    /// Takes hints. `false`: no such job runs.
    fn hints(&self, job: &str, hints: Value) -> bool;

    /// Addresses of the replicas of an attempt, by rank; `None`: not yet.
    fn addresses(&self, job: &str, attempt: u32) -> Option<Vec<String>>;
}

/// The batch sizes that hints allow; `None` where they do not say, or contradict themselves.
#[must_use]
pub fn limits(hints: &Value) -> Option<BatchLimits> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let bounds = hints["localBszBounds"].as_array()?;
    let (min, max) = (number(bounds.first()?)?, number(bounds.get(1)?)?);
    BatchLimits::new(number(&hints["initBatchSize"])?, number(&hints["maxBatchSize"])?, min, max).ok()
}

/// The endpoints.
pub fn router(supervisor: Arc<dyn Supervisor>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { StatusCode::OK }))
        .route("/hints/{namespace}/{name}", put(hints))
        .route("/discover/{namespace}/{name}/{group}", get(discover))
        .with_state(supervisor)
}

async fn hints(
    State(supervisor): State<Arc<dyn Supervisor>>,
    Path((_, job)): Path<(String, String)>,
    body: Bytes,
) -> StatusCode {
    let Ok(sent) = serde_json::from_slice::<Map<String, Value>>(&body) else { return StatusCode::BAD_REQUEST };
    let known = sent.into_iter().filter(|(field, _)| FIELDS.contains(&field.as_str())).collect();
    if supervisor.hints(&job, Value::Object(known)) { StatusCode::OK } else { StatusCode::NOT_FOUND }
}

#[derive(Deserialize)]
struct Patience {
    timeout: Option<u64>,
}

async fn discover(
    State(supervisor): State<Arc<dyn Supervisor>>,
    Path((_, job, group)): Path<(String, String, u32)>,
    Query(patience): Query<Patience>,
) -> Result<Json<Vec<String>>, StatusCode> {
    let given_up = Instant::now() + Duration::from_secs(patience.timeout.unwrap_or(TIMEOUT_S).min(2 * TIMEOUT_S));
    loop {
        if let Some(addresses) = supervisor.addresses(&job, group) {
            return Ok(Json(addresses));
        }
        if Instant::now() >= given_up {
            return Err(StatusCode::REQUEST_TIMEOUT);
        }
        sleep(LOOK_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
