//! The program `goodputd`: a policy on real machines, for a machine that only deploys.
//!
//! Commands are those of `goodput live` and `goodput top`, and `config` for the files of both. The
//! program links no tensor framework, no Arrow and no plotting: a deployed policy runs in plain Rust.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use goodput_console::{Color, CommandError};
use goodputd::args::{Live, LiveConfig, Top};
use goodputd::{Invocation, config_file, top};

/// Run a scheduling policy on real machines.
#[derive(Debug, Parser)]
#[command(name = "goodputd", version, propagate_version = true, arg_required_else_help = true)]
struct DaemonArgs {
    /// Colours of messages.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(subcommand)]
    command: DaemonCommand,
}

/// Commands of `goodputd`.
#[derive(Debug, Subcommand)]
enum DaemonCommand {
    #[command(flatten)]
    Live(Live),
    /// Show cluster and queue of a running daemon, again and again.
    Top(Top),
    /// Check and complete deployments and files of node agents.
    #[command(subcommand)]
    Config(LiveConfig),
}

fn main() -> ExitCode {
    let args = DaemonArgs::parse();
    goodput_console::install(args.color);
    run(&args.command).unwrap_or_else(CommandError::report)
}

fn run(command: &DaemonCommand) -> Result<ExitCode, CommandError> {
    let invocation = Invocation("goodputd");
    match command {
        DaemonCommand::Live(verb) => goodputd::run(verb, invocation),
        DaemonCommand::Top(options) => top::run(options, invocation),
        DaemonCommand::Config(verb) => config_file::run(verb),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::DaemonArgs;

    #[test]
    fn commands_are_consistent() {
        DaemonArgs::command().debug_assert();
    }
}
