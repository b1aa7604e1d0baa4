//! `goodput live agent | certs`: what a node runs, and who may speak with it.

use std::path::Path;
use std::process::ExitCode;

use goodput_executor::agent::{self, AgentConfig, AgentError, keeper, tls};
use goodput_executor::bench_job::BenchJob;
use goodput_executor::devices::DeviceChoice;
use goodput_executor::job::JobName;

use crate::fault::Fault;
use crate::output::say;

/// Serves this node until it is stopped.
pub fn serve(config: &Path, devices: Option<&DeviceChoice>) -> Result<ExitCode, Fault> {
    let text = std::fs::read_to_string(config);
    let text = text.map_err(|error| Fault::input(format!("{}: {error}", config.display())))?;
    let read = toml::from_str::<AgentConfig>(&text);
    let mut config = read.map_err(|error| Fault::input(format!("{}: {error}", config.display())))?;
    if let Some(devices) = devices {
        config.devices = devices.clone();
    }
    if config.keeper.is_empty() {
        let program = std::env::current_exe().map_err(Fault::failed)?;
        config.keeper = vec![program.to_string_lossy().into_owned(), "live".to_owned(), "keep".to_owned()];
    }
    agent::run(config).map_err(fault)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes certificates.
pub fn certs(folder: &Path, nodes: &[JobName]) -> Result<ExitCode, Fault> {
    tls::create(folder, nodes).map_err(fault)?;
    say(&format!(
        "{}: ca.pem for all; NAME.pem and NAME.key to its node only; {}.pem and .key to the daemon; ca.key stays here",
        folder.display(),
        tls::DAEMON
    ));
    Ok(ExitCode::SUCCESS)
}

/// Runs one attempt; the agent starts it.
pub fn keep(folder: &Path) -> Result<ExitCode, Fault> {
    keeper::keep(folder).map_err(Fault::failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Plays a job of known speed.
pub fn bench_job(job: &str) -> Result<ExitCode, Fault> {
    let job: BenchJob = serde_json::from_str(job).map_err(|error| Fault::input(format!("JOB: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Fault::failed)?;
    let code = runtime.block_on(job.play()).map_err(Fault::failed)?;
    Ok(ExitCode::from(code as u8))
}

fn fault(error: AgentError) -> Fault {
    match error {
        AgentError::Setup(problem) => Fault::input(problem),
        error => Fault::failed(error),
    }
}
