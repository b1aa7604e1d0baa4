//! Commands and options of `goodput`, a family of commands in each file.

mod advise;
mod book;
#[cfg(test)]
mod book_tests;
mod compare;
mod config;
mod data;
mod environment;
mod forecast;
mod llm;
mod policy;
mod simulation;
mod sweep;
mod ui;

use clap::{Parser, Subcommand};
use goodput_console::Color;
use goodputd::args::{Live, Top};

pub use self::advise::{Advise, AdviseCommand, AdviseJob};
pub use self::book::{Man, Reference, Results};
pub use self::compare::{Eval, Federate, Reproduce, StudyOptions};
pub use self::config::{Config, Init, List, What};
pub use self::data::{Data, ExportFormat};
pub use self::environment::Env;
pub use self::forecast::{ForecastCommand, StudyFile};
pub use self::llm::{FitLlm, ReplayLlm, ReplayServices};
pub use self::policy::{Explain, Export, Train, TrainCommand};
pub use self::simulation::{InformationLevel, PODS, Sim, SimPreset, allocation, preset};
pub use self::sweep::{SlurmArray, SweepCommand};
pub use self::ui::Ui;

/// Train, compare and deploy schedulers for deep-learning clusters.
#[derive(Debug, Parser)]
#[command(name = "goodput", version, propagate_version = true, arg_required_else_help = true)]
pub struct Args {
    /// Colours of messages.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Print results and errors only.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate one policy on one workload, and print a row for each job.
    Sim(Sim),
    /// Train a policy, compare it with published policies on held-out seeds, and write a report.
    Train(Train),
    /// Compare policies on the held-out seeds of an experiment, and write tables and a report.
    Eval(Eval),
    /// Run a comparison as many small tasks, on one machine or on many, and put their results together.
    #[command(subcommand)]
    Sweep(SweepCommand),
    /// Say what policies would have done with the jobs of a trace, and what a change of the cluster would do.
    Advise(Advise),
    /// Explain a decision of a policy: its ranking beside published policies, and the features behind it.
    Explain(Explain),
    /// Export a trained policy with its model card.
    Export(Export),
    /// Simulate clusters that lend each other servers, with and without a coordinator.
    Federate(Federate),
    /// Compute a published table again, beside the published figures.
    Reproduce(Reproduce),
    /// Import, generate, inspect and check workloads, and fit applications.
    #[command(subcommand)]
    Data(Data),
    /// Check or serve the environment for reinforcement learning.
    #[command(subcommand)]
    Env(Env),
    /// Fit, backtest and compare forecasters of load series.
    #[command(subcommand)]
    Forecast(ForecastCommand),
    /// Run a policy on real machines: daemon, node agent and client.
    #[command(subcommand)]
    Live(Live),
    /// Show cluster and queue of a running daemon, again and again.
    Top(Top),
    /// Show runs, a training as it goes, and the cluster of a daemon on a local page.
    Ui(Ui),
    /// Write a configuration file that ships with the program, to start from.
    Init(Init),
    /// Check, complete and describe configuration files.
    #[command(subcommand)]
    Config(Config),
    /// List policies, metrics, formats and other names that the program knows.
    List(List),
    /// Print the results of runs as Markdown tables with their origin, for pages of the book.
    #[command(hide = true)]
    Results(Results),
    /// Write the reference pages of the book.
    #[command(hide = true)]
    Reference(Reference),
    /// Write manual pages, one for each command.
    Man(Man),
    /// Print completions for a shell.
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::Args;

    #[test]
    fn every_form_of_output_is_also_called_format() {
        fn look(command: &Command, seen: &mut usize) {
            for argument in command.get_arguments().filter(|argument| argument.get_id() == "output") {
                let aliases = argument.get_visible_aliases().unwrap_or_default();
                assert_eq!((argument.get_short(), aliases), (Some('o'), vec!["format"]), "{}", command.get_name());
                *seen += 1;
            }
            command.get_subcommands().for_each(|command| look(command, seen));
        }
        let mut seen = 0;
        look(&Args::command(), &mut seen);
        assert!(seen > 20, "only {seen} commands have an --output");
    }
}
