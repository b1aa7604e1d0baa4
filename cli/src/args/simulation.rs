//! Options of `sim`.

use std::path::PathBuf;

use clap::ValueEnum;
use goodput_console::OutputFormat;

/// Options of `sim`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: one heuristic under the conventions of the Pollux OSDI'21 artifact
  goodput sim --workload workload-6.csv --policy tiresias --cluster 16x4 \\
      --preset pollux-osdi21 -o csv")]
pub struct Sim {
    /// Workload: Parquet as written by `data import`, or csv (see `goodput list formats`).
    #[arg(long, value_name = "FILE")]
    pub workload: PathBuf,
    /// Policy by name (see `goodput list policies`) with its parameters as in 'gandiva(quantum_secs=600)', a policy
    /// bundle, or zoo:NAME (see `goodput list zoo`).
    #[arg(long, value_name = "NAME|BUNDLE")]
    pub policy: String,
    /// Nodes x accelerators per node, with types as in `t4:6x4,a100:2x8`; or a cluster file of the Tiresias simulator.
    #[arg(long, default_value = "16x4", value_name = "[TYPE:]NxG,...|FILE")]
    pub cluster: String,
    /// Gavel's throughputs by accelerator type: the workload is then one of Gavel's traces.
    #[arg(long, value_name = "FILE", conflicts_with = "profiles")]
    pub throughputs: Option<PathBuf>,
    /// Conventions of a published simulator; batching and information are then the policy's own.
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
    /// Measured profiles, a directory per application, instead of the catalog.
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    /// Exact step times for placements that the profiles have to interpolate.
    #[arg(long, value_name = "FILE", requires = "profiles")]
    pub step_times: Option<PathBuf>,
    /// Slowdown of distributed jobs that share a node, in [0, 1).
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub interference: f64,
    /// Information that the policy has about jobs [default: as published].
    #[arg(long, value_enum)]
    pub information: Option<InformationLevel>,
    /// Log-standard deviation of estimates, with `--information estimate`.
    #[arg(long, default_value_t = 0.5, value_name = "SIGMA")]
    pub estimate_sigma: f64,
    /// Seed of the policy and of estimates.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Form of the rows.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Rounds of 60 s, accelerators released at round ends, epoch ends at whole seconds, 30 s restarts.
    #[value(name = "pollux-osdi21")]
    PolluxOsdi21,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InformationLevel {
    /// Measurements of the jobs themselves, and nothing else.
    Profiled,
    /// Catalogued models, remaining work with an error.
    Estimate,
    /// Exact models and exact remaining work.
    Oracle,
}
