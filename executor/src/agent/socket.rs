//! The socket on which jobs report: lines of JSON in, one line of JSON back for each.
//!
//! The kernel says which process is at the other end (`SO_PEERCRED`), so a process that the job did
//! not start cannot speak for the job, even with its fence in hand.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::jobs::ReportSource;
use super::node::Agent;
use crate::http::visitors::{Visit, Visitors};
use crate::job::LONGEST_LINE;

/// Opens the socket, in place of one that an earlier agent left.
pub fn open(agent: &Agent) -> io::Result<UnixListener> {
    let path = agent.socket_path();
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path)
}

/// Answers jobs for ever.
pub async fn serve(agent: Arc<Agent>, listener: UnixListener) {
    let visitors = Visitors::of_this_process();
    loop {
        // File descriptors may have run out, and some may be free again in a moment.
        let Ok((stream, _)) = listener.accept().await else {
            visitors.make_room();
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let Some(visit) = visitors.enter(pid) else { continue };
        let agent = Arc::clone(&agent);
        tokio::spawn(async move {
            tokio::select! {
                // A job that reports again connects again.
                () = visit.told_to_leave() => {}
                // A job that goes away mid-sentence is no matter.
                _ = talk(&agent, stream, &visit) => {}
            }
        });
    }
}

async fn talk(agent: &Agent, stream: UnixStream, visit: &Visit<Option<i32>>) -> io::Result<()> {
    let peer = stream.peer_cred()?;
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        // One byte more than allowed tells a line that is too long from the longest one.
        let limit = LONGEST_LINE as u64 + 1;
        if (&mut lines).take(limit).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        // Of the jobs that stay connected, those that spoke last keep their places.
        visit.waits();
        let whole = line.ends_with(b"\n");
        let answer = match agent.report(ReportSource::Process(pid), &line) {
            Ok(()) => serde_json::json!({"ok": true}),
            Err(error) => {
                serde_json::json!({"ok": false, "status": error.status(), "code": error.code(), "error": error.to_string()})
            }
        };
        write.write_all(format!("{answer}\n").as_bytes()).await?;
        // What follows would be the rest of a line that was cut off.
        if !whole {
            return Ok(());
        }
    }
}
