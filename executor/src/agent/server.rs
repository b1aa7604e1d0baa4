//! Routes of the two HTTP servers of an agent: one for the daemon, with certificates on both sides,
//! and one for jobs on this machine.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post, put};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::api::{AttemptStatus, Done, LeaderLease, NodeStatus, Refused, ReportPage, Start, Stop, TellMembers, Term};
use super::error::AgentError;
use super::jobs::ReportSource;
use super::node::Agent;
use crate::job::adaptdl;

/// Largest request, bytes.
pub const LARGEST_BODY: usize = 64 * 1024;

type ServerState = State<Arc<Agent>>;
type HttpAnswer<T> = Result<Json<T>, AgentError>;

impl IntoResponse for AgentError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(Refused { code: self.code().to_owned(), error: self.to_string() })).into_response()
    }
}

/// Body of a call, or the reason why it cannot be read.
fn body<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, AgentError> {
    let read = serde_json::from_slice(bytes);
    read.map_err(|error| crate::job::Refusal::Malformed(error.to_string()).into())
}

/// Calls of the daemon.
pub fn for_daemon(agent: Arc<Agent>) -> Router {
    Router::new()
        .route("/v1/node", get(node))
        .route("/v1/lease", post(lease))
        .route("/v1/reports", get(reports))
        .route("/v1/attempts", post(start))
        .route("/v1/attempts/{id}", get(attempt))
        .route("/v1/attempts/{id}/stop", post(stop))
        .route("/v1/attempts/{id}/members", post(members))
        .route("/v1/attempts/{id}/checkpoint", post(checkpoint))
        .route("/v1/attempts/{id}/forget", post(forget))
        .route("/v1/accelerators/{uuid}/restore", post(restore))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(agent)
}

/// Calls of jobs: reports, and what AdaptDL asks.
pub fn for_jobs(agent: Arc<Agent>) -> Router {
    let adaptdl = adaptdl::router(Arc::clone(&agent) as Arc<dyn adaptdl::Supervisor>);
    Router::new()
        .route("/v1/jobs/{job}/report", put(report))
        .with_state(agent)
        .merge(adaptdl)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
}

async fn node(State(agent): ServerState) -> Json<NodeStatus> {
    Json(agent.status())
}

async fn lease(State(agent): ServerState, bytes: Bytes) -> HttpAnswer<Done> {
    agent.renew(&body::<LeaderLease>(&bytes)?).map(Json)
}

#[derive(Deserialize)]
struct SinceQuery {
    #[serde(default)]
    since: u64,
}

async fn reports(State(agent): ServerState, Query(since): Query<SinceQuery>) -> Json<ReportPage> {
    Json(agent.reports(since.since))
}

async fn start(State(agent): ServerState, bytes: Bytes) -> HttpAnswer<AttemptStatus> {
    agent.start(&body::<Start>(&bytes)?).await.map(Json)
}

async fn attempt(State(agent): ServerState, Path(id): Path<String>) -> HttpAnswer<AttemptStatus> {
    agent.attempt(&id).map(Json)
}

async fn stop(State(agent): ServerState, Path(id): Path<String>, bytes: Bytes) -> HttpAnswer<AttemptStatus> {
    agent.stop(&id, &body::<Stop>(&bytes)?).map(Json)
}

async fn members(State(agent): ServerState, Path(id): Path<String>, bytes: Bytes) -> HttpAnswer<AttemptStatus> {
    agent.tell_members(&id, &body::<TellMembers>(&bytes)?).map(Json)
}

async fn checkpoint(State(agent): ServerState, Path(id): Path<String>, bytes: Bytes) -> HttpAnswer<AttemptStatus> {
    agent.checkpoint(&id, body::<Term>(&bytes)?).map(Json)
}

async fn forget(State(agent): ServerState, Path(id): Path<String>, bytes: Bytes) -> HttpAnswer<Done> {
    agent.forget(&id, body::<Term>(&bytes)?).map(Json)
}

async fn restore(State(agent): ServerState, Path(uuid): Path<String>, bytes: Bytes) -> HttpAnswer<Done> {
    agent.restore(&uuid, body::<Term>(&bytes)?).map(Json)
}

async fn report(State(agent): ServerState, Path(job): Path<String>, bytes: Bytes) -> Result<StatusCode, AgentError> {
    agent.report(ReportSource::Named(&job), &bytes).map(|()| StatusCode::NO_CONTENT)
}
