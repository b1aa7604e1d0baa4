//! The HTTP interface: JSON over HTTP/1.1, a bearer token on every call but those that ask for health.
//!
//! Of a token only the hash is stored. A token allows the calls of its verbs, and submits for its
//! tenants only. What changes anything goes through the daemon's loop one by one, and into
//! the audit log with the token's name.

mod access;
mod policy;
mod run;
mod starts;

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{delete, get, post, put};
use axum::{Extension, Json, Router};
use goodput_configs::live::deployment::Mode;
use goodput_configs::live::token::{ApiVerb, Token};
use goodput_env::job::Elasticity;
use goodput_env::placement::ShareRequest;
use goodput_env::policy::Look;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::daemon::DaemonError;
use crate::daemon::durability::leader::DaemonName;
use crate::daemon::interface::health::{DaemonHealth, HealthCheck, HealthReport};
use crate::daemon::interface::metrics::Metrics;
use crate::daemon::interface::status::{DaemonStatus, QueueRow, ServiceRow};
use crate::engine::{EngineAction, EngineError, Mailbox, Submission};
use crate::job::{LONGEST_LINE, Refusal, adaptdl};
pub use access::hash;
use access::{Caller, TokenCheck, authorise, forbidden};
pub use policy::PolicyRequest;
pub use run::run;

/// Largest body taken, bytes.
const LARGEST_BODY: usize = 64 * 1024;

/// Something to be done by the daemon.
#[derive(Debug)]
pub enum ApiCommand {
    /// Hand a job in, once for all calls with the idempotency key.
    Submit(Box<Submission>, Option<String>),
    /// Act on a node.
    Node(EngineAction),
    /// Cancel the job with this key.
    Cancel(String),
    /// Change the mode.
    Mode(Mode),
    /// Have another policy decide.
    Policy(PolicyRequest),
    /// Have the policy before decide again, for this reason.
    RollBackPolicy(String),
    /// The changes of the policy.
    PolicyHistory,
    /// The last orders of a job.
    Orders(String),
    /// The predicted start of the job with this key.
    PredictStart(String),
    /// Say what would become of a submission.
    TrySubmission(Box<Submission>),
}

/// Command, with its caller and the channel of its answer.
#[derive(Debug)]
pub struct Call {
    /// Name of the token.
    pub who: String,
    /// Command of the call.
    pub command: ApiCommand,
    /// The answer, or why not.
    pub answer: oneshot::Sender<Result<serde_json::Value, CallRefusal>>,
}

/// Reason why the daemon does not carry a call out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallRefusal {
    /// The daemon does not do this.
    Refused(String),
    /// Another daemon leads, or none.
    Standby(Option<DaemonName>, String),
    /// Nothing is accepted now, and may be later.
    Unavailable(String),
}

impl From<DaemonError> for CallRefusal {
    fn from(error: DaemonError) -> Self {
        let text = error.to_string();
        match error {
            DaemonError::Standby(leader) => Self::Standby(leader, text),
            DaemonError::Refused(_) | DaemonError::Engine(EngineError::Refused { .. }) => Self::Refused(text),
            _ => Self::Unavailable(text),
        }
    }
}

impl From<CallRefusal> for ApiProblem {
    fn from(refusal: CallRefusal) -> Self {
        match refusal {
            CallRefusal::Refused(text) => problem(StatusCode::CONFLICT, text),
            CallRefusal::Unavailable(text) => problem(StatusCode::SERVICE_UNAVAILABLE, text),
            CallRefusal::Standby(None, text) => {
                (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "error": text, "leader": null })))
            }
            // The call is good, and was sent to the wrong daemon.
            CallRefusal::Standby(Some(leader), text) => {
                (StatusCode::MISDIRECTED_REQUEST, Json(json!({ "error": text, "leader": leader })))
            }
        }
    }
}

/// State that the handlers share.
#[derive(Clone, Debug)]
pub struct Api {
    /// Health of the daemon's loop.
    pub health: Arc<DaemonHealth>,
    /// State after the last cycle.
    pub status: Arc<Mutex<DaemonStatus>>,
    /// Metrics of the daemon.
    pub metrics: Arc<Metrics>,
    /// To the daemon's loop.
    pub calls: mpsc::Sender<Call>,
    /// Tokens that may ask.
    pub tokens: Arc<[Token]>,
    /// Mailbox for reports of jobs, where jobs report to the daemon.
    pub mailbox: Option<Arc<Mailbox>>,
}

/// An answer that is an error.
type ApiProblem = (StatusCode, Json<serde_json::Value>);

fn problem(code: StatusCode, text: impl Into<String>) -> ApiProblem {
    (code, Json(serde_json::json!({ "error": text.into() })))
}

/// Routes of the interface.
pub fn router(api: Api) -> Router {
    // Jobs show the token of their attempt instead of an administrator's.
    let open = Router::new()
        .route("/livez", get(livez))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/v1/jobs/{key}/report", put(report))
        .layer(DefaultBodyLimit::max(LONGEST_LINE));
    // AdaptDL sends no token: its address contains a key.
    let supervisor = api.mailbox.clone().map(|mailbox| adaptdl::router(mailbox as Arc<dyn adaptdl::Supervisor>));
    let supervisor = supervisor.unwrap_or_default().layer(DefaultBodyLimit::max(LARGEST_BODY));
    let look = Router::new()
        .route("/metrics", get(metrics))
        .route("/v1/status", get(status))
        .route("/v1/queue", get(queue))
        .route("/v1/nodes", get(nodes))
        .route("/v1/services", get(services))
        .route("/v1/jobs/{key}", get(explain));
    let submit = Router::new().route("/v1/jobs", post(submit)).merge(starts::dry_run_route());
    let cancel = Router::new().route("/v1/jobs/{key}", delete(cancel));
    let operate = Router::new()
        .route("/v1/nodes/{name}/drain", post(drain))
        .route("/v1/nodes/{name}/undrain", post(undrain))
        .route("/v1/mode", post(mode));
    // A route is in a group, and a group has verbs: no route is open because a check was forgotten.
    let groups: [(Router<Api>, &[ApiVerb]); 5] = [
        (look.merge(policy::history_route()).merge(starts::start_route()), &[ApiVerb::Read]),
        (submit, &[ApiVerb::Submit]),
        (cancel, &[ApiVerb::Cancel, ApiVerb::Operate]),
        (operate, &[ApiVerb::Operate]),
        (policy::change_routes(), &[ApiVerb::Admin]),
    ];
    let guarded = groups.into_iter().map(|(routes, verbs)| {
        let check = TokenCheck { api: api.clone(), verbs };
        routes.layer(DefaultBodyLimit::max(LARGEST_BODY)).route_layer(from_fn_with_state(check, authorise))
    });
    guarded.fold(open, Router::merge).with_state(api).merge(supervisor)
}

/// Whether the loop comes round: where it does not, the process has to be started anew.
async fn livez(State(api): State<Api>) -> (StatusCode, &'static str) {
    match api.health.lives() {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the loop of the daemon does not come round\n"),
    }
}

/// Whether all works, on a daemon that leads and on one that stands by.
async fn healthz(State(api): State<Api>) -> (StatusCode, Json<HealthReport>) {
    let report = api.health.report();
    (if report.problems.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(report))
}

/// Whether this daemon takes submissions: it leads, and all works but for a policy that has to be set first. A person
/// can set one through a load balancer only while the daemon is ready.
async fn readyz(State(api): State<Api>) -> (StatusCode, Json<HealthReport>) {
    let report = api.health.report();
    let takes = report.leads && report.problems.iter().all(|problem| problem.check == HealthCheck::Policy);
    (if takes { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(report))
}

async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], api.metrics.text())
}

fn look<T>(api: &Api, what: impl FnOnce(&DaemonStatus) -> T) -> Result<Json<T>, ApiProblem> {
    let status =
        api.status.lock().map_err(|_| problem(StatusCode::INTERNAL_SERVER_ERROR, "the daemon's loop has died"))?;
    Ok(Json(what(&status)))
}

async fn status(State(api): State<Api>) -> Result<Json<DaemonStatus>, ApiProblem> {
    look(&api, |status| DaemonStatus {
        queue: Vec::new(),
        nodes: Vec::new(),
        services: Vec::new(),
        ended: Vec::new(),
        ..status.clone()
    })
}

async fn queue(State(api): State<Api>) -> Result<Json<Vec<QueueRow>>, ApiProblem> {
    look(&api, |status| status.queue.clone())
}

async fn nodes(State(api): State<Api>) -> Result<Json<Vec<crate::engine::NodeSeen>>, ApiProblem> {
    look(&api, |status| status.nodes.clone())
}

async fn services(State(api): State<Api>) -> Result<Json<Vec<ServiceRow>>, ApiProblem> {
    look(&api, |status| status.services.clone())
}

/// Takes what a job says of itself.
async fn report(State(api): State<Api>, Path(key): Path<String>, body: Bytes) -> Result<StatusCode, ApiProblem> {
    let mailbox =
        api.mailbox.ok_or_else(|| problem(StatusCode::NOT_FOUND, "jobs report to the agents of their nodes"))?;
    let code = |refusal: &Refusal| match refusal {
        Refusal::OldFence | Refusal::Stranger => StatusCode::CONFLICT,
        Refusal::NotSeen => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Malformed(_) | Refusal::WentBack { .. } => StatusCode::BAD_REQUEST,
    };
    let taken = mailbox.take(&key, &body, crate::machine::wall_ms());
    taken.map(|()| StatusCode::NO_CONTENT).map_err(|refusal| problem(code(&refusal), refusal.to_string()))
}

/// A job with its last orders.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobExplanation {
    /// Row of the job in the queue.
    pub job: QueueRow,
    /// Verb, stage, note and time of its last orders, newest first.
    pub orders: serde_json::Value,
    /// The last look of the policy ahead; `None` for a policy that does not look ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
}

async fn explain(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(key): Path<String>,
) -> Result<Json<JobExplanation>, ApiProblem> {
    let Json((job, simulated)) = look(&api, |status| {
        let mut known = status.queue.iter().chain(status.ended.iter().rev());
        (known.find(|row| row.key == key || row.name == key).cloned(), status.look.clone())
    })?;
    let job = job.ok_or_else(|| {
        problem(
            StatusCode::NOT_FOUND,
            format!(
                "no job {key:?} waits, runs or ended lately; a new one is shown from the next look of the daemon on"
            ),
        )
    })?;
    let orders = call(&api, &caller, ApiCommand::Orders(job.key.clone())).await?;
    Ok(Json(JobExplanation { job, orders, look: simulated }))
}

/// Header that makes a submission one for all its tries.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Idempotency key of a call; `None` where it has none.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiProblem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=200).contains(&key.len()));
    let bad = || problem(StatusCode::BAD_REQUEST, "Idempotency-Key: expected 1 to 200 visible characters of ASCII");
    key.map(|key| Some(key.to_owned())).ok_or_else(bad)
}

async fn submit(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Result<Json<Submission>, JsonRejection>,
) -> Result<(StatusCode, Json<serde_json::Value>), ApiProblem> {
    let Json(mut job) = body.map_err(|error| problem(error.status(), error.body_text()))?;
    access::own(&mut job, &caller.0).map_err(|text| problem(StatusCode::FORBIDDEN, text))?;
    check(&job).map_err(|text| problem(StatusCode::UNPROCESSABLE_ENTITY, text))?;
    let once = idempotency_key(&headers)?;
    let answer = call(&api, &caller, ApiCommand::Submit(Box::new(job), once)).await?;
    let repeated = answer["repeated"] == true;
    Ok((if repeated { StatusCode::OK } else { StatusCode::CREATED }, Json(answer)))
}

/// Checks a submission.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn check(job: &Submission) -> Result<(), String> {
    let name = &job.spec.request.name;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) || name.starts_with(['.', '-']) {
        return Err(format!(
            "name {name:?}: expected 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter, digit or '_'"
        ));
    }
    let request = &job.spec.request;
    if !(1..=request.gpus).contains(&request.min_gpus()) || request.max_gpus() < request.gpus || request.gpus > 65_536 {
        let (min, gpus, max) = (request.min_gpus(), request.gpus, request.max_gpus());
        return Err(format!(
            "accelerators: at least {min}, asked {gpus}, at most {max}: expected 1 <= min <= asked <= max"
        ));
    }
    if let Some(share) = request.share {
        check_share(share, request.gpus, job.elastic || request.elasticity != Elasticity::Rigid)?;
    }
    for path in job.directory.iter().chain(&job.checkpoint_dir) {
        let up = path.components().any(|part| part == std::path::Component::ParentDir);
        if !path.is_absolute() || up || path.as_os_str().as_encoded_bytes().contains(&b'\0') {
            return Err(format!("{}: expected an absolute path without `..`", path.display()));
        }
    }
    if job.command.is_empty() || job.command.iter().any(|part| part.contains('\0')) {
        return Err("command: expected a program and its arguments".into());
    }
    if job.environment.iter().any(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0'))
    {
        return Err("environment: a name is empty or has a '='".into());
    }
    job.resources.check()
}

/// Checks a part of `gpus` accelerators.
fn check_share(share: ShareRequest, gpus: u32, changes: bool) -> Result<(), String> {
    let ShareRequest { compute_percent, memory_mib } = share;
    if changes {
        return Err(
            "compute: a job with a part of an accelerator keeps its size; leave out --min, --max and --elastic".into(),
        );
    }
    if !(gpus..=gpus.saturating_mul(100)).contains(&compute_percent) {
        return Err(format!("compute {compute_percent} %: expected 1 to 100 for each of {gpus} accelerators"));
    }
    match memory_mib {
        0 => Err("device memory: expected at least 1 MiB beside --compute".into()),
        _ => Ok(()),
    }
}

async fn cancel(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(key): Path<String>,
) -> Result<Json<serde_json::Value>, ApiProblem> {
    // A key names one job. A name may be shared, and then it means the job that the caller may cancel.
    let Json(found) = look(&api, |status| {
        let of_key: Vec<&QueueRow> = status.queue.iter().filter(|row| row.key == key).collect();
        let of_name = || status.queue.iter().filter(|row| row.name == key).collect();
        let found: Vec<&QueueRow> = if of_key.is_empty() { of_name() } else { of_key };
        found.into_iter().map(|row| (row.key.clone(), row.owner.clone())).collect::<Vec<_>>()
    })?;
    let own: Vec<&str> =
        found.iter().filter(|(_, owner)| caller.may_cancel(owner)).map(|(job, _)| job.as_str()).collect();
    let job = match (own.as_slice(), found.first()) {
        (&[job], _) => job.to_owned(),
        ([], None) => return Err(problem(StatusCode::NOT_FOUND, format!("no job {key:?} waits or runs"))),
        ([], Some((job, _))) => {
            let owner = caller.0.owner();
            let text = format!("job {job} does not belong to {owner:?}; the verb \"operate\" cancels any job");
            return Err(problem(StatusCode::FORBIDDEN, text));
        }
        (several, _) => {
            let text =
                format!("{} jobs have the name {key:?}: {}; give the key of one", several.len(), several.join(", "));
            return Err(problem(StatusCode::CONFLICT, text));
        }
    };
    call(&api, &caller, ApiCommand::Cancel(job)).await.map(Json)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ExplainQuery {
    reason: String,
}

async fn drain(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(node): Path<String>,
    body: Result<Json<ExplainQuery>, JsonRejection>,
) -> Result<Json<serde_json::Value>, ApiProblem> {
    let reason = body.map(|Json(why)| why.reason).unwrap_or_default();
    let reason = if reason.is_empty() { format!("by {}", caller.0.name) } else { reason };
    on_node(&api, &caller, &node, EngineAction::Drain { node: node.clone(), reason }).await
}

async fn undrain(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(node): Path<String>,
) -> Result<Json<serde_json::Value>, ApiProblem> {
    on_node(&api, &caller, &node, EngineAction::Undrain { node: node.clone() }).await
}

async fn on_node(
    api: &Api,
    caller: &Caller,
    node: &str,
    action: EngineAction,
) -> Result<Json<serde_json::Value>, ApiProblem> {
    let Json(known) = look(api, |status| status.nodes.iter().any(|seen| seen.name == node))?;
    if !known {
        return Err(problem(StatusCode::NOT_FOUND, format!("there is no node {node:?}")));
    }
    call(api, caller, ApiCommand::Node(action)).await.map(Json)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModeBody {
    mode: Mode,
}

async fn mode(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    body: Result<Json<ModeBody>, JsonRejection>,
) -> Result<Json<serde_json::Value>, ApiProblem> {
    let Json(body) = body.map_err(|error| problem(error.status(), error.body_text()))?;
    if body.mode != Mode::Observe && !caller.0.allows(ApiVerb::Admin) {
        return Err(forbidden(&caller.0, ApiVerb::Admin));
    }
    call(&api, &caller, ApiCommand::Mode(body.mode)).await.map(Json)
}

async fn call(api: &Api, caller: &Caller, command: ApiCommand) -> Result<serde_json::Value, ApiProblem> {
    let gone = |_| problem(StatusCode::SERVICE_UNAVAILABLE, "the daemon's loop has ended");
    let (answer, answered) = oneshot::channel();
    let call = Call { who: caller.0.name.clone(), command, answer };
    api.calls.send(call).await.map_err(|_| problem(StatusCode::SERVICE_UNAVAILABLE, "the daemon's loop has ended"))?;
    let answered = answered.await.map_err(gone)?;
    answered.map_err(ApiProblem::from)
}
