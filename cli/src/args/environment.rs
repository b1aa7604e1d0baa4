//! Verbs of `env`, and the workloads that are kept apart.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use goodput_configs::seeds::{HELD_OUT, VALIDATION, training_seed};

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
    /// env/clients/python/goodput_gym.py makes a Gymnasium vector environment of the server. Each
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
        #[arg(long, value_enum, default_value_t)]
        split: Split,
        /// Change a value of the file.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
}

/// Workloads that are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Split {
    /// To learn from.
    #[default]
    Training,
    /// To choose by.
    Validation,
    /// To compare on, in the end.
    HeldOut,
}

impl Split {
    /// The first seed of the `index`-th of several that play one episode after another under this master seed.
    pub fn first_seed(self, master: u64, index: u64) -> u64 {
        /// Far enough apart for as many episodes.
        const APART: u64 = 10_000;
        match self {
            Self::Training => training_seed(master, index),
            Self::Validation => VALIDATION + index * APART,
            Self::HeldOut => HELD_OUT + index * APART,
        }
    }
}
