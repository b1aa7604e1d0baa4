//! The program `goodputd`: a policy on real machines, for a machine that only deploys.
//!
//! Commands are those of `goodput live` and `goodput top`. The program links no tensor framework, no
//! Arrow and no plotting: a deployed policy runs in plain Rust.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use goodput_console::{Color, CommandError};
use goodputd::args::{Live, Top};
use goodputd::{Invocation, top};

/// Run a scheduling policy on real machines.
#[derive(Debug, Parser)]
#[command(name = "goodputd", version, propagate_version = true, arg_required_else_help = true)]
struct Args {
    /// Colours of messages.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

/// Commands of `goodputd`.
#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Live(Live),
    /// Show cluster and queue of a running daemon, again and again.
    Top(Top),
}

fn main() -> ExitCode {
    let args = Args::parse();
    goodput_console::install(args.color);
    run(&args.command).unwrap_or_else(CommandError::report)
}

fn run(command: &Command) -> Result<ExitCode, CommandError> {
    let invocation = Invocation("goodputd");
    match command {
        Command::Live(verb) => goodputd::run(verb, invocation),
        Command::Top(options) => top::run(options, invocation),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    #[test]
    fn commands_are_consistent() {
        Args::command().debug_assert();
    }
}
