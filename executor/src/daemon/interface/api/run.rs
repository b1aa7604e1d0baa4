//! The daemon's loop with its interface: cycles by the clock, calls as they come.

use std::time::Duration;

use goodput_configs::live::token::{ApiVerb, Role, Token};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use super::{Api, ApiCommand, Call, CallRefusal, router};
use crate::daemon::durability::journal::ChangeVerb;
use crate::daemon::predict::PredictedStart;
use crate::daemon::predict::answer::TriedSubmission;
use crate::daemon::{Daemon, DaemonError};
use crate::engine::{Engine, EngineAction};
use crate::http::{self, Door, identity};

/// Between looks while orders are under way.
const BUSY: Duration = Duration::from_millis(200);

/// Runs `daemon` until `stop`. Errors of cycles are logged and the next cycle begins anew.
///
/// # Errors
/// Where the interface cannot listen, or its certificate cannot be used.
pub async fn run<E: Engine>(mut daemon: Daemon<E>, mut stop: oneshot::Receiver<()>) -> Result<Daemon<E>, DaemonError> {
    let (calls, mut called) = mpsc::channel::<Call>(64);
    let listen = daemon.settings.api.listen.clone();
    let mut server = None;
    if !listen.is_empty() {
        let listener = TcpListener::bind(&listen).await.map_err(|source| DaemonError::System {
            action: format!("cannot listen on {listen}; see [api] listen"),
            source,
        })?;
        let door = match &daemon.settings.api.tls {
            Some(files) => Door::Tls(identity::acceptor(&files.certificate, &files.key)?),
            None => Door::Plain,
        };
        let tokens = daemon.settings.api.tokens.clone().into();
        let api = Api {
            health: daemon.health(),
            status: daemon.status(),
            metrics: daemon.metrics(),
            calls: calls.clone(),
            tokens,
            mailbox: daemon.engine.mailbox(),
        };
        let writers = daemon.settings.api.tokens.iter().any(|token| token.allows(ApiVerb::Submit));
        for Token { name, .. } in daemon.settings.api.tokens.iter().filter(|token| token.role == Some(Role::Write)) {
            tracing::warn!(token = name, "role = \"write\" allows every call for every tenant; give the token `verbs`");
        }
        if !writers {
            tracing::warn!(
                "no token may submit: jobs are submitted to the engine itself, and the mode is what the file says"
            );
        }
        let address = listener.local_addr().map(|address| address.to_string()).unwrap_or(listen);
        tracing::info!(address, "listening");
        server = Some(tokio::spawn(http::serve(listener, door, router(api))));
    }
    let poll = Duration::from_secs_f64(daemon.settings.cycle.poll_secs);
    loop {
        let open = match daemon.cycle().await {
            Ok(report) => report.open > 0,
            Err(DaemonError::Drill(_)) => break,
            Err(_) => false,
        };
        let pause = if open { poll.min(BUSY) } else { poll };
        tokio::select! {
            _ = &mut stop => break,
            call = called.recv() => {
                let Some(call) = call else { break };
                answer(&mut daemon, call).await;
                // What came meanwhile does not wait for a look at the cluster each.
                for _ in 0..called.len() {
                    let Ok(call) = called.try_recv() else { break };
                    answer(&mut daemon, call).await;
                }
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
    daemon.resign().await;
    if let Some(server) = server {
        server.abort();
    }
    Ok(daemon)
}

/// Carries a call out and answers. The answer about a start comes later, from the thread of predictions. The caller may
/// have hung up already.
async fn answer<E: Engine>(daemon: &mut Daemon<E>, Call { who, command, answer }: Call) {
    let who = who.as_str();
    let done = match command {
        ApiCommand::PredictStart(job) => {
            let reply = |predicted: Result<PredictedStart, String>| {
                let _ = answer.send(predicted.map(|start| json!(start)).map_err(CallRefusal::Refused));
            };
            return daemon.predict_start(&job, Box::new(reply));
        }
        ApiCommand::TrySubmission(job) => {
            let reply = |tried: Result<TriedSubmission, DaemonError>| {
                let _ = answer.send(tried.map(|tried| json!(tried)).map_err(CallRefusal::from));
            };
            return daemon.try_submission(&job, reply).await;
        }
        ApiCommand::Submit(job, None) => daemon.submit(who, &job).await.map(|key| json!({ "key": key })),
        ApiCommand::Submit(job, Some(once)) => {
            let submitted = daemon.submit_once(who, &job, &once).await;
            submitted.map(|submitted| json!({ "key": submitted.key, "repeated": submitted.repeated }))
        }
        ApiCommand::Node(action) => daemon.order_by_hand(who, "", action).await.map(|()| json!({ "accepted": true })),
        ApiCommand::Cancel(job) => {
            let cancel = EngineAction::Cancel { grace_s: daemon.settings.cycle.grace_secs };
            daemon.order_by_hand(who, &job, cancel).await.map(|()| json!({ "accepted": true }))
        }
        ApiCommand::Mode(mode) => daemon
            .set_mode(who, mode)
            .await
            .map(|()| json!({ "mode": mode.name(), "rules": daemon.mode().name(), "held_back": daemon.held_back() })),
        ApiCommand::Policy(request) => daemon.set_policy(who, &request).await.map(|change| json!(change)),
        ApiCommand::RollBackPolicy(reason) => {
            daemon.roll_back_policy(who, &reason, ChangeVerb::Rollback).await.map(|change| json!(change))
        }
        ApiCommand::PolicyHistory => daemon.policy_history().map(|changes| json!(changes)),
        ApiCommand::Orders(job) => daemon.journal().orders_of(&job).map_err(Into::into).map(|orders| {
            let order =
                |(verb, stage, note, at_ms)| json!({ "verb": verb, "stage": stage, "note": note, "at_ms": at_ms });
            orders.into_iter().map(order).collect()
        }),
    };
    let _ = answer.send(done.map_err(CallRefusal::from));
}
