//! Options of the commands that compare policies.

use std::path::PathBuf;

use goodput_console::OutputFormat;
use goodput_env::scenario::{Allocation, Preset};

use super::environment::split;
use goodput_configs::seeds::Split;

/// Options of `eval`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: heuristics and a trained policy on the experiment's held-out seeds
  goodput eval configs/experiment/quickstart.toml \\
      --policies fifo,srtf,runs/quickstart/1/policy.bundle
Example: a heuristic with other parameters (`goodput list policies --parameters`)
  goodput eval configs/experiment/quickstart.toml \\
      --policies 'gandiva,gandiva(quantum_secs=60),tiresias(starvation_knob=2)'")]
pub struct Eval {
    #[command(flatten)]
    pub study: StudyOptions,
    /// Print a lower bound: the mean of a clairvoyant that pays for restarts and places anything anywhere, on equal
    /// accelerators. A policy that shares profiles is not strictly bound by it. The bound takes some seconds for each
    /// workload and seed.
    #[arg(long)]
    pub bound: bool,
    /// Print how much is left for each workload: the best published policy, the best of the others, a probe that knows
    /// the future, and the bound. The probe is a reference, and no policy that can be deployed. It plays every policy
    /// to the end of the run again and again, which takes minutes.
    #[arg(long)]
    pub headroom: bool,
    /// Print the training throughput that each policy gives up against the reference, for each point of requests to
    /// language models that it answers with the first token in time.
    #[arg(long)]
    pub token_price: bool,
    /// Directory for the results. Finished runs of an evaluation that was stopped are in its folder `cells`, and are
    /// not run again.
    #[arg(long, value_name = "DIR", default_value = "runs/eval")]
    pub run_dir: PathBuf,
    /// Keep the finished runs in the folder `cells`, so that the next evaluation takes those that it has too.
    #[arg(long)]
    pub keep_cells: bool,
    /// Write jobs.csv too: the rows of jobs.parquet for programs that read batsim's results.
    #[arg(long)]
    pub jobs_csv: bool,
    /// Threads [default: all cores]; results do not depend on it.
    #[arg(short = 'j', long)]
    pub jobs: Option<usize>,
    /// Form of the table on stdout.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Policies, workloads and seeds of a comparison.
#[derive(Debug, clap::Args)]
pub struct StudyOptions {
    /// Experiment files: their clusters, workloads, environments and held-out seeds. The first one lists the policies.
    #[arg(value_name = "EXPERIMENT.toml", required = true)]
    pub experiments: Vec<PathBuf>,
    /// Policies by name with their parameters, bundles, zoo:NAME, or external programs (proc:COMMAND,
    /// python:MODULE:CLASS) [default: those of the file].
    #[arg(long, value_name = "NAME|BUNDLE,...")]
    pub policies: Vec<String>,
    /// Workload files instead of the experiment's own workload; once for each.
    #[arg(long = "workload", value_name = "FILE")]
    pub workloads: Vec<PathBuf>,
    /// Policy the others are compared with [default: the first].
    #[arg(long, value_name = "NAME")]
    pub reference: Option<String>,
    /// Number of seeds instead of the file's.
    #[arg(long)]
    pub seeds: Option<u64>,
    /// Workloads to compare on: held-out ones, or validation ones to choose a policy by.
    #[arg(long, value_parser = split(), default_value = Split::HeldOut.name())]
    pub split: Split,
    /// Conventions of a published simulator instead of the file's preset; keys of the file replace them.
    #[arg(long, value_parser = super::preset(), value_name = "NAME")]
    pub preset: Option<Preset>,
    /// Way in which tenants share the cluster, instead of the file's `environment.allocation`.
    #[arg(long, value_parser = super::allocation(), value_name = "NAME")]
    pub allocation: Option<Allocation>,
    /// Change a value of the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// Options of `federate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: two clusters with opposite peak hours, isolated and with coordinators
  goodput federate configs/scenario/cross-cluster.toml")]
pub struct Federate {
    /// Federation: its servers, coordinators and clusters.
    #[arg(value_name = "FEDERATION.toml")]
    pub federation: PathBuf,
    /// Number of seeds instead of the file's.
    #[arg(long)]
    pub seeds: Option<u64>,
    /// Change a value of the file: `--set coordinator.period_secs=1800`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Threads [default: all cores]; results do not depend on it.
    #[arg(short = 'j', long)]
    pub jobs: Option<usize>,
    /// Form of the table.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Options of `reproduce`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: the published results of the Pollux artifact
  goodput reproduce pollux-table --data public-data")]
pub struct Reproduce {
    /// Table by name (see `goodput list reproductions`).
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Directory with the public files.
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Learned order of a batch queue, a bundle of `[agent.queue]`, judged beside the heuristics of `rlscheduler` on
    /// its windows and on held-out ones; once for each. It gets a row for each heuristic, with the paired difference.
    #[arg(long = "policy", value_name = "BUNDLE")]
    pub policies: Vec<String>,
    /// Form of the rows.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}
