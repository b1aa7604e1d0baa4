//! Verbs of `config`, and options of `list`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueEnum};
use goodput_configs::kind::Kind;
use goodput_console::OutputFormat;

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Say what is wrong with configuration files of any kind, with line and column.
    Check {
        /// Experiments, federations, studies of forecasters, forecasters, deployments, node agents.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Change a value of every file first.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
    /// Print a file with every default filled in.
    Show {
        /// Configuration file of any kind.
        file: PathBuf,
        /// Change a value of the file.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
    /// Print or write the JSON schema of a kind of file, for editors.
    Schema {
        /// Kind of file [default: experiment].
        #[arg(value_parser = config_kind(), value_name = "KIND")]
        kind: Option<Kind>,
        /// Write the schemas to this directory instead of standard output: all of them, or that of KIND.
        #[arg(long, value_name = "DIR")]
        write: Option<PathBuf>,
    },
}

/// Parser of the name of a kind of configuration file.
fn config_kind() -> impl TypedValueParser<Value = Kind> {
    let names = PossibleValuesParser::new(Kind::ALL.map(Kind::name));
    names.try_map(|name| Kind::by_name(&name).ok_or("no such kind of file"))
}

/// Options of `init`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: the experiment of the quickstart, in this folder
  goodput init quickstart
Example: a deployment on a Slurm cluster under another name
  goodput init live/slurm --to deployment.toml")]
pub struct Init {
    /// Name of the file, with its folder where two files have one name [default: list all].
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// File to write [default: NAME.toml in this folder].
    #[arg(long, value_name = "FILE", requires = "name")]
    pub to: Option<PathBuf>,
    /// Form of the list.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Options of `list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "`-o wide` prints all columns, sources among them.")]
pub struct List {
    /// List to print.
    #[arg(value_enum)]
    pub what: What,
    /// List the parameters of policies instead: default, unit, range and source of each.
    #[arg(long)]
    pub parameters: bool,
    /// Form of the listing.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Published scheduling policies.
    Policies,
    /// Trained policies that come with the product.
    Zoo,
    /// Metrics of evaluations.
    Metrics,
    /// Formats of traces and other files.
    Formats,
    /// Published tables that can be run again.
    Reproductions,
    /// Accelerator types with what is published about them.
    Accelerators,
    /// Replicas of language models with the fitted costs of a step.
    LlmReplicas,
    /// Applications that jobs train: batch size, sizes, accelerator types with a speed, and sources.
    Applications,
    /// Placement strategies for whole and shared accelerators.
    Placements,
    /// Conventions of published simulators.
    Presets,
    /// Switch cost models: what a change of accelerators costs a job, event by event.
    SwitchCosts,
}
