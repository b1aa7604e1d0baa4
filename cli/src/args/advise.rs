//! Options of `advise`.

use std::path::PathBuf;

use goodput_console::OutputFormat;

/// Options of `advise`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: jobs of your cluster (see `goodput list formats`) on 8 nodes of 4 accelerators
  goodput advise jobs.csv --cluster 8x4
Example: two policies, on two accelerator types
  goodput advise jobs.parquet --cluster v100:6x8,a100:4x8 --policies 'fifo,easy(order=\"saf\")'")]
pub struct Advise {
    /// Jobs: Parquet as written by `data import`, or a trace in a format of `goodput list formats`.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Nodes x accelerators per node, with types as in `t4:6x4,a100:2x8`.
    #[arg(long, value_name = "[TYPE:]NxG,...")]
    pub cluster: String,
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
    /// Form of the answer: a page, or all figures.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}
