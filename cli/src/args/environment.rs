//! Verbs of `env`, and the workloads that are kept apart.

use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use goodput_configs::seeds::Split;

#[derive(Debug, Subcommand)]
pub enum Env {
    /// Play random episodes of an experiment's environment and check the conventions.
    Check {
        /// Experiment file in TOML.
        experiment: PathBuf,
        /// Number of episodes.
        #[arg(long, default_value_t = 3)]
        episodes: u64,
        /// Most steps of an episode.
        #[arg(long, default_value_t = 5000)]
        steps: usize,
        /// Seed of the first episode.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Serve environments to a learner in another language, over stdin and stdout.
    ///
    /// env/clients/python/goodput_pipe.py makes a Gymnasium vector environment of the server. Each
    /// environment plays one episode after another, on the workloads that `goodput train` learns from
    /// unless `--split` names others.
    Serve {
        /// Experiment file in TOML.
        experiment: PathBuf,
        /// Environments side by side.
        #[arg(long, default_value_t = 1)]
        envs: usize,
        /// Master seed of training workloads.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Workloads to play.
        #[arg(long, value_parser = split(), default_value = Split::default().name())]
        split: Split,
        /// Change a value of the file.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
}

/// Parser of the name of a split.
pub fn split() -> impl TypedValueParser<Value = Split> {
    let value = |split: Split| PossibleValue::new(split.name()).help(split.purpose());
    // The possible values are all that has a name, so no name is unknown.
    PossibleValuesParser::new(Split::ALL.map(value)).map(|name| Split::by_name(&name).unwrap_or_default())
}
