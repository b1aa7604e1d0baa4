//! `live agent` and `live certs`: the agent of a node, and the certificates by which it knows the daemon.

use std::path::Path;
use std::process::ExitCode;

use goodput_configs::live::devices::DeviceChoice;
use goodput_configs::live::name::JobName;
use goodput_configs::live::node_agent::NodeAgentConfig;
use goodput_configs::reader;
use goodput_console::{CommandError, say};
use goodput_executor::agent::{self, AgentError, keeper, tls};
use goodput_executor::bench_job::BenchJob;

use crate::logs::LogFormat;
use crate::{Invocation, config_file, logs};

/// Serves this node until the agent is stopped.
pub fn serve(config: &Path, devices: Option<&DeviceChoice>, invocation: Invocation) -> Result<(), CommandError> {
    let (mut config, _) = reader::read::<NodeAgentConfig>(config, &[]).map_err(config_file::command_error)?;
    if let Some(devices) = devices {
        config.devices = devices.clone();
    }
    if config.keeper.is_empty() {
        let program = std::env::current_exe().map_err(CommandError::failed)?;
        config.keeper = vec![program.to_string_lossy().into_owned()];
        config.keeper.extend(invocation.arguments("keep"));
    }
    logs::start(LogFormat::Text);
    agent::run(config).map_err(command_error)
}

/// Makes certificates for nodes and the daemon, for an interface under its `hosts`, and for `clients` of the forecast
/// server.
pub fn certs(
    folder: &Path,
    nodes: &[JobName],
    hosts: &[String],
    clients: &[JobName],
    days: u32,
) -> Result<(), CommandError> {
    let authority = tls::Authority::open(folder).map_err(command_error)?;
    if !nodes.is_empty() {
        authority.of_agents(nodes, days).map_err(command_error)?;
        say(&format!(
            "{}: ca.pem for all; NAME.pem and NAME.key to its node only; {}.pem and .key to the daemon; ca.key stays here",
            folder.display(),
            tls::DAEMON
        ));
    }
    if !hosts.is_empty() {
        authority.of_interface(hosts, days).map_err(command_error)?;
        say(&format!(
            "{0}: {1}.pem and {1}.key to the daemon, for [api] tls; ca.pem to its clients, for --ca",
            folder.display(),
            tls::INTERFACE
        ));
    }
    if !clients.is_empty() {
        authority.of_clients(clients, days).map_err(command_error)?;
        say(&format!("{}: NAME.pem and NAME.key to the client of this name; ca.pem for all", folder.display()));
    }
    Ok(())
}

/// Runs one attempt of a job; the agent starts this command.
pub fn keep(folder: &Path) -> Result<(), CommandError> {
    keeper::keep(folder).map_err(CommandError::failed)
}

/// Plays a job of known speed, and ends with its exit code.
pub fn bench_job(job: &str) -> Result<ExitCode, CommandError> {
    let job: BenchJob = serde_json::from_str(job).map_err(|error| CommandError::input(format!("JOB: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    let code = runtime.block_on(job.play()).map_err(CommandError::failed)?;
    Ok(ExitCode::from(code as u8))
}

fn command_error(error: AgentError) -> CommandError {
    match error {
        AgentError::Setup(problem) => CommandError::input(problem),
        AgentError::Identity(problem) => CommandError::input(problem),
        error => CommandError::failed(error),
    }
}
