//! Commands and options of `goodput`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use goodput_configs::seeds::{HELD_OUT, VALIDATION, training_seed};
use goodput_console::{Color, OutputFormat};
use goodputd::args::{Live, Top};

/// Train, compare and deploy schedulers for deep-learning clusters.
#[derive(Debug, Parser)]
#[command(name = "goodput", version, propagate_version = true, arg_required_else_help = true)]
pub struct Args {
    /// Colours of messages.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Print results and errors only.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate one policy on one workload, and print a row for each job.
    Sim(Sim),
    /// Train a policy, compare it with published policies on held-out seeds, and write a report.
    Train(Train),
    /// Compare policies on the held-out seeds of an experiment, and write tables and a report.
    Eval(Eval),
    /// Explain a decision of a trained policy: its ranking beside published policies, and the features
    /// behind it.
    Explain(Explain),
    /// Export a trained policy with its model card.
    Export(Export),
    /// Simulate clusters that lend each other servers, with and without a coordinator.
    Federate(Federate),
    /// Compute a published table again, beside the published figures.
    Reproduce(Reproduce),
    /// Import, generate, inspect and check workloads, and fit applications.
    #[command(subcommand)]
    Data(Data),
    /// Check or serve the environment for reinforcement learning.
    #[command(subcommand)]
    Env(Env),
    /// Fit, backtest and compare forecasters of load series.
    #[command(subcommand)]
    Forecast(ForecastCommand),
    /// Run a policy on real machines: daemon, node agent and client.
    #[command(subcommand)]
    Live(Live),
    /// Show cluster and queue of a running daemon, again and again.
    Top(Top),
    /// Check, complete and describe configuration files.
    #[command(subcommand)]
    Config(Config),
    /// List policies, metrics, formats and other names that the program knows.
    List(List),
    /// Print the results of runs as Markdown tables with their origin, for pages of the book.
    #[command(hide = true)]
    Results(Results),
    /// Write the reference pages of the book.
    #[command(hide = true)]
    Reference(Reference),
    /// Print completions for a shell.
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// Options of `results`.
#[derive(Debug, clap::Args)]
pub struct Results {
    /// Run directories with a `summary.json`, as `train` and `eval` write it.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
}

/// Options of `reference`.
#[derive(Debug, clap::Args)]
pub struct Reference {
    /// Folder for the pages.
    #[arg(long, value_name = "FOLDER")]
    pub write: PathBuf,
}

/// Verbs of `forecast`.
#[derive(Debug, Subcommand)]
pub enum ForecastCommand {
    /// Fit the forecaster to a whole series and save it.
    Fit {
        /// Study in TOML (see configs/forecast).
        #[arg(value_name = "STUDY")]
        config: PathBuf,
        /// Override a key, as in --set series.column=value.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Trained forecaster from `train`, beside the models of the study. The option can be repeated.
        #[arg(long = "bundle", value_name = "FILE")]
        bundles: Vec<PathBuf>,
        /// File for the fitted forecaster.
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
    /// Print quantiles of the load from a fitted forecaster.
    Predict {
        /// Fitted forecaster from `forecast fit`, or a bundle from `train`.
        #[arg(value_name = "FITTED|BUNDLE")]
        snapshot: PathBuf,
        /// Study in TOML, with the series that a bundle continues.
        #[arg(long, value_name = "STUDY")]
        study: Option<PathBuf>,
        /// Override a key of the study.
        #[arg(long = "set", value_name = "KEY=VALUE", requires = "study")]
        sets: Vec<String>,
        /// Hours to look ahead.
        #[arg(long, default_value_t = 24.0)]
        hours: f64,
        /// Quantile levels, ascending between 0 and 1.
        #[arg(long, value_delimiter = ',', default_values_t = [0.1, 0.5, 0.9])]
        levels: Vec<f64>,
        /// Form of the rows.
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Test the forecaster on the past of a series, from rolling origins.
    Backtest {
        /// Study in TOML (see configs/forecast).
        #[arg(value_name = "STUDY")]
        config: PathBuf,
        /// Override a key, as in --set series.column=value.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Trained forecaster from `train`, beside the models of the study. The option can be repeated.
        #[arg(long = "bundle", value_name = "FILE")]
        bundles: Vec<PathBuf>,
        /// Write a page with figures, lending included.
        #[arg(long, value_name = "HTML")]
        report: Option<PathBuf>,
        /// Form of the rows.
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Backtest the forecaster beside each of its models, with intervals of the differences.
    Compare {
        /// Study in TOML (see configs/forecast).
        #[arg(value_name = "STUDY")]
        config: PathBuf,
        /// Override a key, as in --set series.column=value.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Trained forecaster from `train`, beside the models of the study. The option can be repeated.
        #[arg(long = "bundle", value_name = "FILE")]
        bundles: Vec<PathBuf>,
        /// Write a page with figures, lending included.
        #[arg(long, value_name = "HTML")]
        report: Option<PathBuf>,
        /// Form of the rows.
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputFormat,
    },
}

/// Options of `sim`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: one heuristic under the conventions of the Pollux OSDI'21 artifact
  goodput sim --workload workload-6.csv --policy tiresias --cluster 16x4 --preset pollux-osdi21 -o csv")]
pub struct Sim {
    /// Workload: Parquet as written by `data import`, or csv (see `goodput list formats`).
    #[arg(long, value_name = "FILE")]
    pub workload: PathBuf,
    /// Policy by name (see `goodput list policies`), a policy bundle, or zoo:NAME (see `goodput list zoo`).
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

/// Options of `train`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  goodput train configs/experiment/quickstart.toml --set agent.ppo.learning_rate=5e-4
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
    /// Check the file and say what would run.
    #[arg(long)]
    pub dry_run: bool,
}

/// Options of `eval`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: heuristics and a trained policy on the experiment's held-out seeds
  goodput eval configs/experiment/quickstart.toml --policies fifo,srtf,runs/quickstart/1/policy.bundle")]
pub struct Eval {
    /// Experiment file: its cluster, workload, environment and held-out seeds.
    #[arg(value_name = "EXPERIMENT.toml")]
    pub experiment: PathBuf,
    /// Policies by name, bundles, or zoo:NAME [default: those of the file].
    #[arg(long, value_delimiter = ',', value_name = "NAME|BUNDLE,...")]
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
    #[arg(long, value_enum, default_value_t = Split::HeldOut)]
    pub split: Split,
    /// Print a lower bound: a clairvoyant policy without restarts, on equal accelerators. The bound takes
    /// some seconds for each workload and seed.
    #[arg(long)]
    pub bound: bool,
    /// Change a value of the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Directory for the results.
    #[arg(long, value_name = "DIR", default_value = "runs/eval")]
    pub run_dir: PathBuf,
    /// Threads [default: all cores]; results do not depend on it.
    #[arg(short = 'j', long)]
    pub jobs: Option<usize>,
    /// Form of the table on stdout.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Options of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: three hours into the first held-out workload of an experiment
  goodput explain zoo:elastic --config configs/experiment/elastic.toml --at 10800
Example: one job of a trace, with a page of pictures
  goodput explain runs/elastic/1/policy.bundle --workload workload-6.csv --cluster 16x4 --job imagenet-11 --report why.html")]
#[command(group(clap::ArgGroup::new("situation").required(true).args(["config", "workload"])))]
pub struct Explain {
    /// Trained policy: a bundle, or a shipped one as in zoo:elastic.
    #[arg(value_name = "BUNDLE")]
    pub bundle: String,
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
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Options of `export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: what a training has found, in the place of the policy that ships with the product
  goodput export runs/elastic/1 --to agents/zoo/elastic")]
pub struct Export {
    /// Directory of a training that is complete.
    #[arg(value_name = "RUN_DIR")]
    pub run_dir: PathBuf,
    /// Directory for policy.bundle and card.md; notes in a card that is there are kept.
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
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
    #[arg(short, long, value_enum, default_value_t)]
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
    /// Form of the rows.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

#[derive(Debug, Subcommand)]
pub enum Data {
    /// A public trace into Parquet with provenance; reports every row repaired or refused.
    Import {
        /// File of the trace.
        file: PathBuf,
        /// File to write [default: the name of the trace with .parquet].
        #[arg(short = 'o', long, value_name = "FILE")]
        out: Option<PathBuf>,
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
    /// Decisions of heuristics on training workloads, to learn from offline ([agent.offline]).
    Log {
        /// Experiment file: its cluster, workload and environment.
        experiment: PathBuf,
        /// Policies to log, by name [default: those that the file compares].
        #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
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
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Everything that is wrong with a workload, row by row.
    Validate {
        /// File of the workload.
        file: PathBuf,
    },
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

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Say what is wrong with configuration files of any kind, with line and column.
    Check {
        /// Experiments, federations, studies of forecasters, deployments, node agents.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// The file with every default filled in.
    Show {
        /// Configuration file of any kind.
        file: PathBuf,
        /// Change a value of the file.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
    /// JSON schema for editors.
    Schema {
        /// Write it, and that of federations, to this directory instead of stdout.
        #[arg(long, value_name = "DIR")]
        write: Option<PathBuf>,
    },
}

/// Options of `list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// List to print.
    #[arg(value_enum)]
    pub what: What,
    /// Form of the listing.
    #[arg(short, long, value_enum, default_value_t)]
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
    /// Placement strategies for whole and shared accelerators.
    Placements,
    /// Switch cost models: what a change of accelerators costs a job, event by event.
    SwitchCosts,
}
