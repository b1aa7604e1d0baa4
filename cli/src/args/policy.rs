//! Options of the commands that train, explain and export one policy.

use std::path::PathBuf;

use clap::Subcommand;
use goodput_console::OutputFormat;

use super::sweep::SlurmArray;

/// Options of `train`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Example:
  goodput train configs/experiment/quickstart.toml \\
      --set agent.ppo.learning_rate=5e-4
A file with a [forecaster] trains a forecaster of a load series (configs/forecast/nhits.toml).
Ctrl-C stops after the current update; continue with --resume.")]
pub struct Train {
    /// Experiment file, or one with a [forecaster].
    #[arg(value_name = "EXPERIMENT.toml", required_unless_present = "resume")]
    pub experiment: Option<PathBuf>,
    /// Change a value of the file: `--set train.decisions=200000`.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub sets: Vec<String>,
    /// Master seed instead of the file's.
    #[arg(long, conflicts_with = "resume")]
    pub seed: Option<u64>,
    /// Directory of the run [default: runs/NAME/SEED].
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub run_dir: Option<PathBuf>,
    /// Continue the run in this directory.
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Threads [default: all cores]; results do not depend on it.
    #[arg(short = 'j', long)]
    pub jobs: Option<usize>,
    /// Share the episodes with workers that reach the directory of the run: `goodput train work DIR`. Only of an
    /// evolution; results do not depend on it.
    #[arg(long)]
    pub distributed: bool,
    /// Check the file and say what would run.
    #[arg(long)]
    pub dry_run: bool,
    #[command(subcommand)]
    pub verb: Option<TrainCommand>,
}

/// Verbs of `train`.
#[derive(Debug, Subcommand)]
pub enum TrainCommand {
    /// Play episodes of a training that runs with --distributed, until it ends. A worker may start and stop at any
    /// time.
    Work {
        /// Directory of the run, which all machines reach.
        #[arg(value_name = "RUN_DIR")]
        dir: PathBuf,
        /// Threads [default: all cores]; results do not depend on it.
        #[arg(short = 'j', long)]
        jobs: Option<usize>,
        /// Time without a sign of life of the training after which the worker gives up, seconds.
        #[arg(long, value_name = "SECS", default_value_t = 600)]
        wait: u64,
    },
    /// Run workers as an array of Slurm tasks. Workers that are ended by a signal, preempted or lost with their node go
    /// back into the queue.
    #[command(after_help = "\
Example: 20 workers with 8 threads each on the partition cpu
  goodput train submit runs/elastic/1 --slurm --array 20 --cpus 8 -- --partition=cpu --time=4:00:00")]
    Submit {
        /// Directory of the run, which all machines reach.
        #[arg(value_name = "RUN_DIR")]
        dir: PathBuf,
        #[command(flatten)]
        array: SlurmArray,
    },
}

/// Options of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: a moment of the first held-out workload of an experiment at which many jobs wait
  goodput explain zoo:elastic --config configs/experiment/elastic.toml --at 30000
Example: one job of a trace, with a page of pictures
  goodput explain runs/elastic/1/policy.bundle --workload workload-6.csv \\
      --cluster 16x4 --job imagenet-11 --report why.html")]
#[command(group(clap::ArgGroup::new("situation").required(true).args(["config", "workload"])))]
pub struct Explain {
    /// Policy: a bundle, or a shipped one as in zoo:elastic. Of an external program (proc:COMMAND,
    /// python:MODULE:CLASS) the command shows the reasons that the program sends, and of a published policy the
    /// decision alone.
    #[arg(value_name = "POLICY")]
    pub policy: String,
    /// Experiment file: its cluster, workload and environment.
    #[arg(long, value_name = "EXPERIMENT.toml")]
    pub config: Option<PathBuf>,
    /// Change a value of the experiment.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "config")]
    pub sets: Vec<String>,
    /// Seed of the experiment's workload [default: the first held-out one].
    #[arg(long, requires = "config")]
    pub seed: Option<u64>,
    /// Workload file, as for `sim`.
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Nodes x accelerators per node, with types as in `t4:6x4,a100:2x8`.
    #[arg(long, default_value = "16x4", value_name = "[TYPE:]NxG,...", conflicts_with = "config")]
    pub cluster: String,
    /// Time of the decision, seconds from the start of the run: the first decision from then on [default:
    /// when half of the jobs have arrived].
    #[arg(long, value_name = "SECS")]
    pub at: Option<f64>,
    /// Name in the trace of the job to explain [default: the job with the largest change of accelerators].
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Write a page with figures.
    #[arg(long, value_name = "HTML")]
    pub report: Option<PathBuf>,
    /// Form of the result; csv is the queue alone.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Options of `export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: what a training has found, in the place of the policy that ships with the product
  goodput export runs/elastic/1 --to agents/zoo/elastic
Example: a run in the files of MLflow, for `mlflow ui --backend-store-uri mlruns`
  goodput export runs/elastic/1 --mlflow mlruns
Example: a run to a collector of OpenTelemetry
  goodput export runs/elastic/1 --otlp http://localhost:4318")]
pub struct Export {
    /// Directory of a training, or with --mlflow also of a comparison, that is complete.
    #[arg(value_name = "RUN_DIR")]
    pub run_dir: PathBuf,
    /// Directory for policy.bundle and card.md; notes in a card that is there are kept.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["mlflow", "otlp"], conflicts_with_all = ["mlflow", "otlp"])]
    pub to: Option<PathBuf>,
    /// Folder of runs as MLflow keeps them in files; a run that is there already is written again.
    #[arg(long, value_name = "DIR", conflicts_with = "otlp")]
    pub mlflow: Option<PathBuf>,
    /// Address of a collector of OpenTelemetry that takes OTLP over HTTP; the figures of the run become gauges.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
}
