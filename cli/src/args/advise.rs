//! Options of `advise`.

use std::path::PathBuf;

use clap::Subcommand;
use goodput_console::OutputFormat;

/// Options of `advise`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Example: jobs of your cluster (see `goodput list formats`) on 8 nodes of 4 accelerators
  goodput advise jobs.csv --cluster 8x4
Example: a page to hand on
  goodput advise jobs.csv --cluster 8x4 --report advice.html
Example: two policies, on two accelerator types
  goodput advise jobs.parquet --cluster v100:6x8,a100:4x8 --policies 'fifo,easy(order=\"saf\")'")]
pub struct Advise {
    /// Jobs: Parquet as written by `data import`, or a trace in a format of `goodput list formats`.
    #[arg(value_name = "TRACE", required = true)]
    pub trace: Option<PathBuf>,
    /// Nodes x accelerators per node, with types as in `t4:6x4,a100:2x8`.
    #[arg(long, value_name = "[TYPE:]NxG,...", required = true)]
    pub cluster: Option<String>,
    /// Published policies by name with their parameters. The first one is what the others are compared with: what the
    /// cluster does today.
    #[arg(
        long,
        value_name = "NAME,...",
        default_value = "fifo,fifo-backfill,easy,easy(order=\"saf\"),srtf,tiresias,las"
    )]
    pub policies: Vec<String>,
    /// Number of traces that are drawn from the trace, block by block, for the ranges.
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub resamples: u64,
    /// Length of a block of arrivals, hours.
    #[arg(long, default_value_t = 24.0, value_name = "HOURS")]
    pub block_hours: f64,
    /// Log-standard deviation of the run times that policies are told, where they have to know run times and a job has
    /// no time limit.
    #[arg(long, default_value_t = 0.5, value_name = "SIGMA")]
    pub estimate_sigma: f64,
    /// Threads [default: all cores]; results do not depend on it.
    #[arg(short = 'j', long)]
    pub jobs: Option<usize>,
    /// Write a page with sentences, a picture and all figures, to hand on or to print.
    #[arg(long, value_name = "HTML")]
    pub report: Option<PathBuf>,
    /// Form of the answer: tables for people, or all figures.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
    #[command(subcommand)]
    pub verb: Option<AdviseCommand>,
}

/// Verbs of `advise`.
#[derive(Debug, Subcommand)]
pub enum AdviseCommand {
    /// Predict when one job would start, and say what is ahead of it; with --check, how well such predictions held.
    Job(AdviseJob),
}

/// Options of `advise job`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: a job of 8 accelerators and at most 4 hours, submitted where the trace ends
  goodput advise job jobs.csv --cluster 8x4 --policy easy --gpus 8 --limit-hours 4
Example: job 4711 of the queue of Slurm as it is now, with the trace as its past
  squeue --json > queue.json
  goodput advise job jobs.csv --cluster 8x4 --policy easy --snapshot queue.json --job 4711
Example: how well predictions held on the second half of the trace
  goodput advise job jobs.csv --cluster 8x4 --policy easy --check")]
pub struct AdviseJob {
    /// Jobs: Parquet as written by `data import`, or a trace in a format of `goodput list formats`.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Nodes x accelerators per node, with types as in `t4:6x4,a100:2x8`.
    #[arg(long, value_name = "[TYPE:]NxG,...")]
    pub cluster: String,
    /// Policy of the cluster, with its parameters.
    #[arg(long, value_name = "NAME", default_value = "easy")]
    pub policy: String,
    /// Accelerators that the job asks for.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub gpus: u32,
    /// Time limit of the job, hours; absent: none.
    #[arg(long, value_name = "HOURS")]
    pub limit_hours: Option<f64>,
    /// Tenant of the job, as the trace names it; absent: the first one.
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Moment of the submission on the trace, hours; absent: where the trace ends.
    #[arg(long, value_name = "HOURS")]
    pub at_hours: Option<f64>,
    /// Queue of the cluster as it is: the answer of `squeue --json`, or a snapshot as `live plan --record` writes it.
    /// Run times and arrivals are those of the trace until --at-hours.
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    /// Waiting job of --snapshot to ask about, by number, key or name, in place of a new job.
    #[arg(long, value_name = "JOB", requires = "snapshot", conflicts_with_all = ["gpus", "limit_hours", "tenant"])]
    pub job: Option<String>,
    /// Number of futures that are simulated for one prediction.
    #[arg(long, default_value_t = 60, value_name = "COUNT")]
    pub futures: u64,
    /// Number of past predictions: they calibrate the interval, or are checked.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    pub questions: usize,
    /// Predict starts of jobs of the trace instead, from its middle on, and compare with what came.
    #[arg(long, conflicts_with_all = ["gpus", "limit_hours", "tenant", "at_hours", "snapshot"])]
    pub check: bool,
    /// Log-standard deviation of the run times that the policy is told, where it has to know run times and a job has no
    /// time limit.
    #[arg(long, default_value_t = 0.5, value_name = "SIGMA")]
    pub estimate_sigma: f64,
    /// Threads [default: all cores]; results do not depend on it.
    #[arg(short = 'j', long)]
    pub jobs: Option<usize>,
    /// Form of the answer: sentences for people, or all figures.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}
