//! `goodput ui`: a page on this machine with the runs of a folder, a training as it goes, and a daemon's cluster.
//!
//! The server listens on the loopback device only and changes nothing. It refuses calls that name another machine, so a
//! page of another site reads nothing, even where the name of that site was made to lead here.

mod progress;
mod runs;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Json, Response};
use axum::routing::get;
use goodput_console::{CommandError, print, say};
use goodput_eval::report::{CHART_JS, page_style};
use goodputd::args::DaemonAddress;
use goodputd::client::Client;
use goodputd::top::Reading;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::LIVE;
use crate::args::Ui;

const PAGE: &str = include_str!("../../../assets/ui.html");
const SCRIPT: &str = include_str!("../../../assets/ui.js");

/// Inputs of every answer.
struct ServedPage {
    folder: PathBuf,
    daemon: Option<DaemonAddress>,
}

/// Name of a run in the address of a call.
#[derive(Deserialize)]
struct NamedRun {
    run: String,
}

/// Serves the page until interrupted.
pub fn run(args: &Ui) -> Result<ExitCode, CommandError> {
    if !args.folder.is_dir() {
        return Err(CommandError::input(format!("{} is no folder", args.folder.display()))
            .with_help("name the folder in which `train` and `eval` write runs"));
    }
    let daemon = args.daemon.clone().map(|url| DaemonAddress {
        url: Some(url),
        token_file: args.token_file.clone(),
        ca: args.ca.clone(),
    });
    if let Some(address) = &daemon {
        // A token or an authority that is missing is found before the page opens.
        Client::new(address, LIVE)?;
    }
    let served = Arc::new(ServedPage { folder: args.folder.clone(), daemon });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(CommandError::failed)?;
    let ended = runtime.block_on(serve(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)), served));
    // A page that follows a training would otherwise keep the program alive.
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}

async fn serve(address: SocketAddr, served: Arc<ServedPage>) -> Result<(), CommandError> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        CommandError::failed(format!("cannot listen on {address}: {error}")).with_help("choose another --port, or 0")
    })?;
    let address = listener.local_addr().map_err(CommandError::failed)?;
    print(&format!("http://{address}\n"))?;
    say("open this address in a browser; Ctrl-C ends the page");
    tokio::select! {
        ended = axum::serve(listener, router(served)) => ended.map_err(CommandError::failed),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

fn router(served: Arc<ServedPage>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/report", get(report))
        .route("/api/runs", get(list))
        .route("/api/summary", get(summary))
        .route("/api/progress", get(follow))
        .route("/api/daemon", get(daemon))
        .layer(middleware::from_fn(only_this_machine))
        .with_state(served)
}

/// Refuses calls to another name than that of this machine.
async fn only_this_machine(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    match name {
        "127.0.0.1" | "localhost" => next.run(request).await,
        _ => problem(StatusCode::FORBIDDEN, "this page is for 127.0.0.1 and localhost"),
    }
}

async fn page(State(served): State<Arc<ServedPage>>) -> Html<String> {
    let script = SCRIPT.replace("$DAEMON", if served.daemon.is_some() { "true" } else { "false" });
    Html(PAGE.replace("$STYLE", &page_style()).replace("$CHARTS", CHART_JS).replace("$SCRIPT", &script))
}

async fn list(State(served): State<Arc<ServedPage>>) -> Json<Value> {
    Json(json!({ "folder": served.folder, "runs": runs::list(&served.folder) }))
}

async fn report(State(served): State<Arc<ServedPage>>, Query(asked): Query<NamedRun>) -> Response {
    read(&served, &asked, "report.html").map_or_else(no_file, |text| Html(text).into_response())
}

async fn summary(State(served): State<Arc<ServedPage>>, Query(asked): Query<NamedRun>) -> Response {
    let json = |text: String| ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    read(&served, &asked, "summary.json").map_or_else(no_file, json)
}

async fn follow(State(served): State<Arc<ServedPage>>, Query(asked): Query<NamedRun>) -> Response {
    match runs::directory(&served.folder, &asked.run) {
        Some(run) => {
            Sse::new(progress::events(run.join("progress.csv"))).keep_alive(KeepAlive::default()).into_response()
        }
        None => no_file(no_run(&asked)),
    }
}

/// State of the daemon with its nodes, its services and its queue. The token stays on this side.
async fn daemon(State(served): State<Arc<ServedPage>>) -> Response {
    let reading = tokio::task::spawn_blocking(move || {
        let address = served.daemon.as_ref()?;
        let reading = Client::new(address, LIVE).and_then(|client| Reading::of(&client));
        Some(reading.map_err(|error| error.message().to_owned()))
    });
    match reading.await {
        Ok(Some(Ok(reading))) => Json(reading).into_response(),
        Ok(Some(Err(error))) => problem(StatusCode::BAD_GATEWAY, &error),
        Ok(None) => problem(StatusCode::NOT_FOUND, "no daemon was named: start the page with --daemon URL"),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Text of a file of a run, or the reason why there is none.
fn read(served: &ServedPage, asked: &NamedRun, file: &str) -> Result<String, String> {
    let run = runs::directory(&served.folder, &asked.run).ok_or_else(|| no_run(asked))?;
    std::fs::read_to_string(run.join(file)).map_err(|error| format!("{}: {file}: {error}", asked.run))
}

fn no_run(asked: &NamedRun) -> String {
    format!("there is no run called {:?}", asked.run)
}

fn no_file(reason: String) -> Response {
    problem(StatusCode::NOT_FOUND, &reason)
}

fn problem(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({ "error": text }))).into_response()
}
