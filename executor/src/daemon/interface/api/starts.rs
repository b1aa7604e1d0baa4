//! Predicted starts over HTTP: of a job that waits, and of one that is not submitted.

use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use goodput_configs::live::token::ApiVerb;
use serde_json::{Value, json};

use super::access::Caller;
use super::{Api, ApiCommand, ApiProblem, access, call, check, look, problem};
use crate::engine::Submission;

/// Longest time that a caller waits for a prediction.
const PATIENCE: Duration = Duration::from_secs(20);

/// Route of the predicted start of a job.
pub(super) fn start_route() -> Router<Api> {
    Router::new().route("/v1/jobs/{key}/start", get(start))
}

/// Route that tries a submission out.
pub(super) fn dry_run_route() -> Router<Api> {
    Router::new().route("/v1/dry-run", post(dry_run))
}

async fn start(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(key): Path<String>,
) -> Result<Json<Value>, ApiProblem> {
    let Json(found) = look(&api, |status| {
        let row = status.queue.iter().find(|row| row.key == key || row.name == key);
        row.map(|row| row.key.clone())
    })?;
    let job = found.ok_or_else(|| problem(StatusCode::NOT_FOUND, format!("no job {key:?} waits or runs")))?;
    patiently(&api, &caller, ApiCommand::PredictStart(job)).await
}

/// A submission that the token may not make is refused in the answer, as every other reason is.
async fn dry_run(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    body: Result<Json<Submission>, JsonRejection>,
) -> Result<Json<Value>, ApiProblem> {
    let Json(mut job) = body.map_err(|error| problem(error.status(), error.body_text()))?;
    let refused = [access::own(&mut job, &caller.0), check(&job)].into_iter().filter_map(Result::err);
    let refused: Vec<String> = refused.collect();
    if !refused.is_empty() {
        return Ok(Json(json!({ "refused": refused, "start": null, "no_start": "" })));
    }
    let Json(mut tried) = patiently(&api, &caller, ApiCommand::TrySubmission(Box::new(job))).await?;
    // The queue, which names jobs of others, is for tokens that may read.
    if let Some(start) = tried["start"].as_object_mut().filter(|_| !caller.0.allows(ApiVerb::Read)) {
        start.insert("ahead".into(), json!([]));
        start.insert("frees".into(), json!([]));
    }
    Ok(Json(tried))
}

async fn patiently(api: &Api, caller: &Caller, command: ApiCommand) -> Result<Json<Value>, ApiProblem> {
    let late = |_| {
        let text = format!("no future was played within {} s; try again", PATIENCE.as_secs());
        problem(StatusCode::SERVICE_UNAVAILABLE, text)
    };
    tokio::time::timeout(PATIENCE, call(api, caller, command)).await.map_err(late)?.map(Json)
}
