//! A policy on real machines, from the command line: the daemon, the node agent, and the client that
//! talks to the daemon.
//!
//! The program `goodputd` and the command `goodput live` share these commands. The crate links no
//! tensor framework, no Arrow and no plotting; `xtask/tests/house.rs` keeps the promise.
//!
//! - [`args`]: commands and options, for clap.
//! - [`client`]: calls to the interface of a daemon.
//! - [`forecasts`]: forecasts as a service.
//! - [`queue_file`]: the queue of a cluster at one moment, from a file.
//! - [`run`]: one command of `goodput live`.
//! - [`top`]: cluster and queue at a glance.

mod agent;
pub mod args;
pub mod client;
pub mod config_file;
mod daemon;
mod devices;
mod explain;
pub mod forecasts;
mod listings;
mod logs;
mod policy;
pub mod queue_file;
mod report;
mod starts;
mod submit;
mod token;
pub mod top;

use std::process::ExitCode;

use goodput_console::{CommandError, print, say};
use goodput_executor::daemon::interface::audit;
use goodput_executor::daemon::interface::status::{QueueRow, ServiceRow};
use goodput_executor::engine::NodeSeen;
use serde_json::json;

use crate::args::{DaemonAddress, Live};
use crate::client::Client;
use crate::logs::LogFormat;

/// Words that begin a command of this crate: `goodputd`, or `goodput live`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invocation(pub &'static str);

impl Invocation {
    /// Arguments of the running program that lead to the command `verb`.
    fn arguments(self, verb: &str) -> impl Iterator<Item = String> {
        let leading: Vec<String> = self.0.split_whitespace().skip(1).map(str::to_owned).collect();
        leading.into_iter().chain([verb.to_owned()])
    }
}

/// Runs one command.
///
/// # Errors
/// [`CommandError`] of the command, with its exit code.
pub fn run(verb: &Live, invocation: Invocation) -> Result<ExitCode, CommandError> {
    let client = |address: &DaemonAddress| Client::new(address, invocation);
    match verb {
        Live::Devices { watch, nvml, output } => devices::run(*watch, nvml.as_deref(), *output)?,
        Live::Agent { config, devices } => agent::serve(config, devices.as_ref(), invocation)?,
        Live::Certs { folder, nodes, api, clients, days } => agent::certs(folder, nodes, api, clients, *days)?,
        Live::Keep { folder } => agent::keep(folder)?,
        Live::BenchJob { job } => return agent::bench_job(job),
        Live::Run { config, mode, json_logs } => {
            let format = if *json_logs { LogFormat::Json } else { LogFormat::Text };
            daemon::run(config, *mode, format)?;
        }
        Live::Plan { config, record, output } => daemon::plan(config, record.as_deref(), *output)?,
        Live::Replay { config, snapshots, output } => daemon::replay(config, snapshots, *output)?,
        Live::Submit(options) => {
            let (client, job) = (client(&options.daemon)?, submit::submission(options)?);
            if options.dry_run {
                return starts::dry_run(&client, &job, options.output);
            }
            let answer = match &options.key {
                Some(key) => client.post_once("/v1/jobs", key, &job)?,
                None => client.post("/v1/jobs", &job)?,
            };
            print(&format!("{}\n", answer["key"].as_str().unwrap_or_default()))?;
        }
        Live::Queue { daemon, output } => {
            let queue: Vec<QueueRow> = client(daemon)?.get("/v1/queue")?;
            listings::queue(&queue).print(*output)?;
        }
        Live::Nodes { daemon, output } => {
            let nodes: Vec<NodeSeen> = client(daemon)?.get("/v1/nodes")?;
            listings::nodes(&nodes).print(*output)?;
        }
        Live::Services { daemon, output } => {
            let services: Vec<ServiceRow> = client(daemon)?.get("/v1/services")?;
            listings::services(&services).print(*output)?;
        }
        Live::Explain { job, output, daemon } => explain::run(&client(daemon)?, job, *output)?,
        Live::Drain { node, undo, reason, daemon } => {
            let verb = if *undo { "undrain" } else { "drain" };
            client(daemon)?.post(&format!("/v1/nodes/{node}/{verb}"), &json!({ "reason": reason }))?;
            say(&format!("{verb} of {node}: ordered"));
        }
        Live::Cancel { job, daemon } => {
            client(daemon)?.delete(&format!("/v1/jobs/{job}"))?;
            say(&format!("{job}: ordered to end"));
        }
        Live::Mode { mode, daemon } => {
            let answer = client(daemon)?.post("/v1/mode", &json!({ "mode": mode }))?;
            if let Some(held_back) = answer["held_back"].as_str() {
                return Err(CommandError::failed(held_back));
            }
            say(&format!("mode {}", mode.name()));
        }
        Live::Policy(verb) => policy::run(verb, invocation)?,
        Live::Report { from, days, output } => report::run(from, *days, *output)?,
        Live::Audit { file } => {
            let audit::Chain { first, lines, hash } = audit::verify(file).map_err(CommandError::failed)?;
            let from = if first > 1 { format!(", from line {first} on") } else { String::new() };
            print(&format!("{lines} lines hold together{from}; the last one has hash {hash}\n"))?;
        }
        Live::Token(options) => token::run(options)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::Invocation;

    #[test]
    fn an_agent_starts_its_keeper_by_the_words_that_started_the_agent() {
        assert_eq!(Invocation("goodput live").arguments("keep").collect::<Vec<_>>(), ["live", "keep"]);
        assert_eq!(Invocation("goodputd").arguments("keep").collect::<Vec<_>>(), ["keep"]);
    }
}
