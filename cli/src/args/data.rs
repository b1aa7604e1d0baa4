//! Verbs of `data`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use goodput_console::OutputFormat;
use goodput_datasets::import::column_map::ColumnMap;

use super::{FitLlm, ReplayLlm, ReplayServices};

/// Format of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Standard Workload Format: accelerators are processors.
    Swf,
    /// Table in Parquet: the job table of a workload, or the rows of a run.
    Parquet,
    /// The table as comma-separated values.
    Csv,
    /// Trace events of a run for ui.perfetto.dev.
    Perfetto,
}

#[derive(Debug, Subcommand)]
pub enum Data {
    /// Write a trace as Parquet with provenance, and report every row repaired or refused.
    ///
    /// Refused rows are left out. The exit code is 0 where every row was written and can be run, and 3 otherwise.
    Import {
        /// File of the trace.
        file: PathBuf,
        /// File to write [default: the name of the trace with .parquet].
        #[arg(short = 'o', long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// End with 0 although rows were refused.
        #[arg(long)]
        allow_refused: bool,
        /// Columns of a csv file of your own, by name of the column of the job table; a unit of times behind a colon:
        /// secs, millis, minutes, hours, days, unix or date. `start` and `end` give a duration.
        #[arg(long, value_name = "NAME=COLUMN[:UNIT],...", conflicts_with = "throughputs")]
        map: Option<ColumnMap>,
        /// Speeds of a trace of Gavel or Shockwave, such as simulation_throughputs.json.
        #[arg(long, value_name = "FILE")]
        throughputs: Option<PathBuf>,
        /// Give jobs of applications that the catalog does not have the scaling of one that it has: its name,
        /// `mixture`, or a TOML file with a name for each. The table keeps the assumption.
        #[arg(long, value_name = "NAME|FILE")]
        assume_scaling: Option<String>,
    },
    /// Write a workload, or the schedule of a run, in a format of other programs.
    Export {
        /// File of a workload, or directory of a run with its `jobs.parquet`.
        source: PathBuf,
        /// Format of the file.
        #[arg(long, value_enum)]
        format: ExportFormat,
        /// File to write.
        #[arg(short = 'o', long, alias = "output", value_name = "FILE")]
        out: PathBuf,
        /// Policy of the run, where the directory has several.
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
        /// Workload of the run, where the directory has several.
        #[arg(long, value_name = "NAME")]
        workload: Option<String>,
        /// Seed of the run, where the directory has several.
        #[arg(long)]
        seed: Option<i64>,
    },
    /// Print the columns of the job table: name, type, unit, meaning.
    Schema {
        /// Form of the table.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Draw a workload from the generator of an experiment file.
    Synth {
        /// Experiment file with a `[workload.synthetic]` table.
        experiment: PathBuf,
        /// Seed of the workload.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// File to write.
        #[arg(short = 'o', long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Log decisions of heuristics on training workloads, to learn from offline ([agent.offline]).
    Log {
        /// Experiment file: its cluster, workload and environment.
        experiment: PathBuf,
        /// Policies to log, by name with their parameters [default: those that the file compares].
        #[arg(long, value_name = "NAME,...")]
        policies: Vec<String>,
        /// Probabilities that a decision is drawn at random from the allowed ones. Each policy plays every
        /// workload with each probability.
        #[arg(long, value_delimiter = ',', default_values_t = [0.0, 0.05, 0.2], value_name = "SHARE,...")]
        noise: Vec<f32>,
        /// Decisions, at least.
        #[arg(long, default_value_t = 1_000_000, value_name = "COUNT")]
        decisions: u64,
        /// Change a value of the file.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Threads [default: all cores]; results do not depend on it.
        #[arg(short = 'j', long)]
        jobs: Option<usize>,
        /// File to write.
        #[arg(short = 'o', long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Print how much a workload asks of a cluster.
    Inspect {
        /// File of the workload.
        file: PathBuf,
        /// Nodes x accelerators per node.
        #[arg(long, default_value = "16x4", value_name = "NxG")]
        cluster: String,
        /// Form of the figures.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// List everything that is wrong with a workload, row by row.
    Validate {
        /// File of the workload.
        file: PathBuf,
        /// Name jobs that are too large for a cluster of nodes x accelerators per node.
        #[arg(long, value_name = "NxG")]
        cluster: Option<String>,
    },
    /// Fit the two stages of language models, prefill and decode, to measured times of tokens.
    FitLlm(FitLlm),
    /// Replay requests to a language model on replicas, and print percentiles of their times.
    ReplayLlm(ReplayLlm),
    /// Replay every request to the language models of a scenario under a policy, beside what the run counts.
    ReplayServices(ReplayServices),
    /// Fit the catalog of applications to measured profiles.
    Fit {
        /// A directory per application.
        #[arg(long, value_name = "DIR")]
        profiles: PathBuf,
        /// Measurements on more accelerator types, as the Sia artifact keeps them.
        #[arg(long, value_name = "DIR")]
        by_type: Option<PathBuf>,
        /// File for the catalog.
        #[arg(short = 'o', long, value_name = "FILE")]
        out: PathBuf,
    },
}
