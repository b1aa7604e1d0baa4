//! Bringing an agent up.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use goodput_configs::live::node_agent::NodeAgentConfig;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::clock::unix_ms;
use super::error::AgentError;
use super::guardian::HEALTH;
use super::keeper::LEASE_DEADLINE;
use super::node::Agent;
use super::{lease, server, socket, spool, tls};
use crate::devices::Telemetry;
use crate::http::{self, Door};
use crate::private;

/// Longest path of a socket (`sun_path` of unix(7)).
const LONGEST_SOCKET: usize = 107;

/// An agent that serves. Ends when dropped; its jobs do not.
pub struct Running {
    /// Agent that serves.
    pub agent: Arc<Agent>,
    /// Address for the daemon.
    pub address: SocketAddr,
    /// Address for jobs.
    pub jobs: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
    _only_one: File,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Starts an agent: accounts for what an earlier one left, then serves.
///
/// # Errors
/// Another agent serves from the same folder; the folder, the sockets or the certificates cannot be
/// used.
pub async fn serve(config: NodeAgentConfig) -> Result<Running, AgentError> {
    if !config.jobs.ip().is_loopback() {
        return Err(AgentError::Setup(format!(
            "`jobs` is {}: jobs are served on the loopback device only",
            config.jobs
        )));
    }
    if config.keeper.is_empty() {
        return Err(AgentError::Setup("`keeper` is empty: name the program that keeps attempts".to_owned()));
    }
    let folder = config.state_dir.join("devices");
    let only_one = prepare(&config)?;
    let identity = tls::acceptor(&config.tls)?;
    let listen = TcpListener::bind(config.listen).await;
    let listen = listen.map_err(AgentError::io(format!("listen on {}", config.listen)))?;
    let for_jobs = TcpListener::bind(config.jobs).await;
    let for_jobs = for_jobs.map_err(AgentError::io(format!("listen on {}", config.jobs)))?;
    let address = listen.local_addr().map_err(AgentError::io("read the own address"))?;
    let jobs = for_jobs.local_addr().map_err(AgentError::io("read the own address"))?;

    let telemetry = Telemetry::start(config.devices.clone(), folder, config.node.to_string(), config.pace, unix_ms);
    if let Some(book) = spool::read(&config.state_dir, HEALTH) {
        telemetry.inherit(book);
    }
    if let Some(dcgm) = config.dcgm.clone() {
        telemetry.follow_dcgm(dcgm);
    }
    let daemon = config.daemon.clone();
    let agent = Arc::new(Agent::new(config, telemetry, format!("http://{jobs}"))?);
    // Nothing is answered before the attempts of the earlier agent are accounted for.
    agent.adopt().await;
    let socket =
        socket::open(&agent).map_err(AgentError::io(format!("listen on {}", agent.socket_path().display())))?;
    let for_the_daemon = server::for_daemon(Arc::clone(&agent));
    let tasks = vec![
        tokio::spawn(socket::serve(Arc::clone(&agent), socket)),
        tokio::spawn(http::serve(listen, Door::Mutual { identity, peer: daemon }, for_the_daemon)),
        tokio::spawn(http::serve(for_jobs, Door::Plain, server::for_jobs(Arc::clone(&agent)))),
        tokio::spawn(Arc::clone(&agent).guard()),
        tokio::spawn(Arc::clone(&agent).watch_disk()),
    ];
    Ok(Running { agent, address, jobs, tasks, _only_one: only_one })
}

/// Makes the folders, readable by their owner only, and locks them.
fn prepare(config: &NodeAgentConfig) -> Result<File, AgentError> {
    let folder = &config.state_dir;
    let socket = folder.join("jobs.sock");
    if socket.as_os_str().len() > LONGEST_SOCKET {
        return Err(AgentError::Setup(format!(
            "{} is too long for a socket: choose a shorter `state_dir`",
            socket.display()
        )));
    }
    let make = || -> io::Result<File> {
        fs::create_dir_all(&config.checkpoint_root)?;
        // Jobs run as the agent's user, so that they reach the socket in the folder.
        for folder in [folder.clone(), folder.join("attempts"), folder.join(spool::OUTPUTS)] {
            private::folder(&folder)?;
        }
        for name in [HEALTH, SERVING, lease::TERM, LEASE_DEADLINE] {
            private::file(&folder.join(name))?;
        }
        spool::folders(&folder.join("attempts")).iter().try_for_each(|attempt| private::files(attempt))?;
        private::create(&folder.join("lock"))
    };
    let lock = make().map_err(AgentError::io(format!("use {}", folder.display())))?;
    lock.try_lock().map_err(|_| {
        AgentError::Setup(format!("another agent serves from {}: end it, or choose another folder", folder.display()))
    })?;
    Ok(lock)
}

/// File in the agent's folder that says that the agent serves: `{"address": ..., "jobs": ...,
/// "pid": ...}`.
pub const SERVING: &str = "serving.json";

/// Serves until SIGTERM or SIGINT. Jobs live on.
///
/// # Errors
/// As [`serve`].
pub fn run(config: NodeAgentConfig) -> Result<(), AgentError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(AgentError::io("start threads"))?;
    let result = runtime.block_on(async {
        let folder = config.state_dir.clone();
        let mut term = signal(SignalKind::terminate()).map_err(AgentError::io("listen for signals"))?;
        let running = serve(config).await?;
        let pid = std::process::id();
        let serving = serde_json::json!({"address": running.address, "jobs": running.jobs, "pid": pid});
        spool::write(&folder, SERVING, &serving).map_err(AgentError::io(format!("write {SERVING}")))?;
        tokio::select! {
            _ = term.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok(())
    });
    // A driver that hangs would otherwise keep the program alive.
    runtime.shutdown_background();
    result
}
