//! Calls about the policy that decides: its history, another policy, and the policy before again.

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::{Deserialize, Serialize};

use super::{Api, ApiCommand, ApiProblem, Caller, call, problem};

/// Request for another policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRequest {
    /// Name of a heuristic, `zoo:NAME`, or the absolute path of a bundle on the daemon's machine.
    pub policy: String,
    /// SHA-256 that the bundle must have, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Reason, for the history.
    #[serde(default)]
    pub reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RollbackRequest {
    reason: String,
}

/// Route of the history.
pub(super) fn history_route() -> Router<Api> {
    Router::new().route("/v1/policy", get(history))
}

/// Routes of the calls that change the policy.
pub(super) fn change_routes() -> Router<Api> {
    Router::new().route("/v1/policy", post(set)).route("/v1/policy/rollback", post(roll_back))
}

type Answer = Result<Json<serde_json::Value>, ApiProblem>;

async fn history(State(api): State<Api>, Extension(caller): Extension<Caller>) -> Answer {
    call(&api, &caller, ApiCommand::PolicyHistory).await.map(Json)
}

async fn set(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    body: Result<Json<PolicyRequest>, JsonRejection>,
) -> Answer {
    let Json(request) = body.map_err(|error| problem(error.status(), error.body_text()))?;
    call(&api, &caller, ApiCommand::Policy(request)).await.map(Json)
}

async fn roll_back(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    body: Result<Json<RollbackRequest>, JsonRejection>,
) -> Answer {
    let Json(request) = body.map_err(|error| problem(error.status(), error.body_text()))?;
    call(&api, &caller, ApiCommand::RollBackPolicy(request.reason)).await.map(Json)
}
