//! The program `goodput` as a library: a program outside this repository is all of `goodput` with policies of its own.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use goodput_agents::heuristic::fifo::Fifo;
//! use goodput_agents::heuristic::parameters::Fixed;
//! use goodput_agents::heuristic::{ListedPolicy, Traits};
//!
//! static POLICIES: [ListedPolicy; 1] = [ListedPolicy {
//!     name: "my-policy",
//!     about: "oldest first",
//!     source: "this program",
//!     traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
//!     constructor: &Fixed(|_seed| Box::new(Fifo::strict())),
//!     replica: None,
//! }];
//!
//! fn main() -> ExitCode {
//!     goodput_cli::main_with(&POLICIES)
//! }
//! ```
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 ok, 1 the run failed, 2 usage or configuration error,
//! 3 finished but a gate failed, 130 interrupted.

mod args;
mod command;
mod config;
mod progress;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use goodput_agents::compose;
use goodput_agents::heuristic::ListedPolicy;
use goodput_console::CommandError;
use goodputd::Invocation;

use crate::args::{Args, Command};
use crate::progress::Verbosity;

/// Words that begin the commands of the live daemon in this program.
const LIVE: Invocation = Invocation("goodput live");

/// Runs the command line of the program, which knows `own` policies by name beside the published ones: in `eval`,
/// `sim`, `explain` and `live`, in `list policies`, and in every configuration file.
pub fn main_with(own: &'static [ListedPolicy]) -> ExitCode {
    let args = Args::parse();
    goodput_console::install(args.color);
    let registered = compose::register(own).map_err(CommandError::input);
    registered.and_then(|()| run(args)).unwrap_or_else(CommandError::report)
}

fn run(args: Args) -> Result<ExitCode, CommandError> {
    let verbosity = if args.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    match args.command {
        Command::Sim(options) => command::sim::run(&options),
        Command::Train(options) => command::train::run(&options, verbosity),
        Command::Advise(options) => command::advise::run(&options, verbosity),
        Command::Eval(options) => command::eval::run(&options, verbosity),
        Command::Sweep(verb) => command::sweep::run(&verb, verbosity),
        Command::Explain(options) => command::explain::run(&options),
        Command::Export(options) => command::export::run(&options),
        Command::Federate(options) => command::federate::run(&options, verbosity),
        Command::Reproduce(options) => command::reproduce::run(&options),
        Command::Data(verb) => command::data::run(&verb, verbosity),
        Command::Env(verb) => command::env::run(&verb),
        Command::Forecast(verb) => command::forecast::run(&verb),
        Command::Live(verb) => goodputd::run(&verb, LIVE),
        Command::Top(options) => goodputd::top::run(&options, LIVE),
        Command::Ui(options) => command::ui::run(&options),
        Command::Init(options) => command::init::run(&options),
        Command::Config(verb) => command::config::run(&verb),
        Command::List(options) => command::list::run(&options),
        Command::Results(options) => command::results::run(&options),
        Command::Reference(options) => command::reference::run(&options),
        Command::Man(options) => command::man::run(&options),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut <Args as clap::CommandFactory>::command(), own_name(), &mut script);
            goodput_console::print(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Name of the running program, which another one than `goodput` has where [`main_with`] is its whole.
fn own_name() -> String {
    let path = env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "goodput".to_owned())
}
