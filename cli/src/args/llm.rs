//! Options of `data fit-llm` and `data replay-llm`.

use std::path::PathBuf;

use clap::builder::RangedI64ValueParser;
use goodput_console::OutputFormat;

/// Most sequences and tokens of a step, and most tokens of a block.
const MOST_TOKENS: i64 = 1 << 20;
/// Most replicas, and most decisions of a window.
const MOST_COUNT: i64 = 100_000;

/// Whole numbers from 1 to `most`.
fn up_to(most: i64) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=most)
}

/// Options of `data fit-llm`.
#[derive(Debug, clap::Args)]
pub struct FitLlm {
    /// Files of measured times: a row for each configuration and load, as silicon_sample.csv of AIConfigurator.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print the errors on loads, on configurations and on models that the fit has not seen: the rows are divided into
    /// four parts by a hash of the name, and each part is predicted from the other three.
    #[arg(long)]
    pub check: bool,
    /// Print the errors of the fit on the rows of another file.
    #[arg(long, value_name = "FILE")]
    pub test: Option<PathBuf>,
    /// File for the costs of a step of each configuration, as TOML.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `data replay-llm`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: the hour of Mooncake on 8 replicas of a fitted configuration
  goodput data replay-llm mooncake.jsonl --replica Llama-3.1-70B-fp8/vllm/h100_sxm/tp4 --replicas 8
Example: 3 replicas that prefill and 5 that decode
  goodput data replay-llm mooncake.jsonl --replica Llama-3.1-70B-fp8/vllm/h100_sxm/tp4 --prefill-replicas 3 \
    --replicas 5")]
pub struct ReplayLlm {
    /// Trace: JSON lines of Mooncake or of a run of vLLM, a table of Azure or BurstGPT, or a table with the columns
    /// arrival_secs, input and output.
    pub trace: PathBuf,
    /// Configuration of a replica: a name of `goodput list llm-replicas`.
    #[arg(long, value_name = "NAME", required_unless_present = "costs")]
    pub replica: Option<String>,
    /// File with the costs of a step in place of those of the catalog, as --fit writes it.
    #[arg(long, value_name = "FILE", conflicts_with = "replica", requires = "kv_tokens")]
    pub costs: Option<PathBuf>,
    /// Number of replicas. A request goes to the one with the fewest tokens of unfinished requests.
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = up_to(MOST_COUNT))]
    pub replicas: u32,
    /// Most requests that a replica works on at a time.
    #[arg(long, default_value_t = 256, value_name = "COUNT", value_parser = up_to(MOST_TOKENS))]
    pub sequences: u32,
    /// Most tokens of a step.
    #[arg(long, default_value_t = 8192, value_name = "TOKENS", value_parser = up_to(MOST_TOKENS))]
    pub budget: u32,
    /// Tokens of which the memory of a replica, of either pool, holds keys and values [default: those of the
    /// configuration].
    #[arg(long, value_name = "TOKENS")]
    pub kv_tokens: Option<u64>,
    /// Tokens of a block of that memory.
    #[arg(long, default_value_t = 16, value_name = "TOKENS", value_parser = up_to(MOST_TOKENS))]
    pub block: u32,
    /// Tokens of earlier prompts that a replica keeps beside that memory, for a trace that names blocks.
    #[arg(long, default_value_t = 0, value_name = "TOKENS")]
    pub prefix_tokens: u64,
    /// Wait for the first token after which a request is given up, seconds [default: none is].
    #[arg(long, value_name = "SECS")]
    pub timeout: Option<f64>,
    /// Objective of the time to the first token, seconds.
    #[arg(long, default_value_t = 2.0, value_name = "SECS")]
    pub ttft: f64,
    /// Objective of the time of a further token, seconds.
    #[arg(long, default_value_t = 0.05, value_name = "SECS")]
    pub tpot: f64,
    /// Factor of the times of memory: the bandwidth that the costs were measured at, over that of the replica.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub memory: f64,
    /// Factor of the times of computation: the peak that the costs were measured at, over that of the replica.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub compute: f64,
    #[command(flatten)]
    pub pools: Pools,
    #[command(flatten)]
    pub scale: Autoscale,
    /// Print measured times beside the replayed ones, where the trace has them.
    #[arg(long)]
    pub check: bool,
    /// Fit the costs of a step to the measured times of the trace first, and write them to a file.
    #[arg(long, value_name = "FILE")]
    pub fit: Option<PathBuf>,
    /// Form of the figures.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Options of `data replay-services`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: two language models beside training, under a policy that lends by forecasts
  goodput data replay-services configs/scenario/llm-services.toml --policy fifo+forecast")]
pub struct ReplayServices {
    /// Experiment file with a language model among its services.
    pub experiment: PathBuf,
    /// Policy that decides the number of replicas, by name.
    #[arg(long, value_name = "NAME")]
    pub policy: String,
    /// Seed of the loads and of the requests.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Change a value of the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Form of the table.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Replicas that prefill only, beside replicas that decode only.
#[derive(Debug, clap::Args)]
pub struct Pools {
    /// Number of replicas that only prefill. The --replicas then only decode: they take a request after its first
    /// token, and pull its keys and values over a link.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["most", "fit"], value_parser = up_to(MOST_COUNT))]
    pub prefill_replicas: Option<u32>,
    /// Configuration of a replica that prefills [default: as a replica that decodes].
    #[arg(long, value_name = "NAME", requires = "prefill_replicas")]
    pub prefill_replica: Option<String>,
    /// Most tokens of a step of a replica that prefills [default: as a replica that decodes].
    #[arg(long, value_name = "TOKENS", requires = "prefill_replicas", value_parser = up_to(MOST_TOKENS))]
    pub prefill_budget: Option<u32>,
    /// Bytes of the keys and values of a token; 0 for a transfer without time [default: those of the model of
    /// --replica, with 16-bit numbers].
    #[arg(long, value_name = "BYTES", requires = "prefill_replicas")]
    pub kv_bytes_per_token: Option<u32>,
    /// Bandwidth at which the keys and values of a request move, Gbit/s.
    #[arg(long, default_value_t = 400.0, value_name = "GBPS", requires = "prefill_replicas")]
    pub kv_transfer_gbps: f64,
}

/// Replicas that are started and stopped.
#[derive(Debug, clap::Args)]
pub struct Autoscale {
    /// Most replicas: their number changes between --replicas and this one.
    #[arg(
        long,
        value_name = "COUNT",
        conflicts_with_all = ["prefix_tokens", "fit", "check"],
        value_parser = up_to(MOST_COUNT)
    )]
    pub most: Option<u32>,
    /// Tokens of unfinished requests of a replica that the rule aims at.
    #[arg(long, default_value_t = 100_000, value_name = "TOKENS", requires = "most")]
    pub target: u64,
    /// Time between two decisions, seconds.
    #[arg(long, default_value_t = 15.0, value_name = "SECS", requires = "most")]
    pub period: f64,
    /// Decisions for which a smaller number must be enough before replicas stop.
    #[arg(long, default_value_t = 20, value_name = "COUNT", requires = "most", value_parser = up_to(MOST_COUNT))]
    pub window: u32,
    /// Time until a starting replica has its devices, seconds.
    #[arg(long, default_value_t = 5.0, value_name = "SECS", requires = "most")]
    pub cold_schedule: f64,
    /// Time to pull the image of a starting replica, seconds.
    #[arg(long, default_value_t = 30.0, value_name = "SECS", requires = "most")]
    pub cold_pull: f64,
    /// Weights that a starting replica reads, GB.
    #[arg(long, default_value_t = 70.0, value_name = "GB", requires = "most")]
    pub weights: f64,
    /// Bandwidth at which it reads them, GB a second.
    #[arg(long, default_value_t = 2.0, value_name = "GB", requires = "most")]
    pub load: f64,
    /// Time to compile and to warm up a starting replica, seconds.
    #[arg(long, default_value_t = 30.0, value_name = "SECS", requires = "most")]
    pub cold_warm: f64,
}
