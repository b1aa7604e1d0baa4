//! Arguments of `goodput live` and `goodput top`.

use std::path::PathBuf;

use clap::Subcommand;
use goodput_env::model::BatchLimits;
use goodput_executor::devices::DeviceChoice;
use goodput_executor::job::{JobName, NameError, RetryBudget};

use super::Format;

/// Verbs of `live`.
#[derive(Debug, Subcommand)]
pub enum Live {
    /// Accelerators of this machine.
    Devices {
        /// Again every so many seconds.
        #[arg(long, value_name = "SECS")]
        watch: Option<f64>,
        /// Another NVML library.
        #[arg(long, value_name = "FILE")]
        nvml: Option<PathBuf>,
        /// Form of the listing.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// The agent of this node: starts and watches jobs until it is stopped; jobs live on.
    Agent {
        /// Settings: TOML (see the page on agents in the book).
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Accelerators instead of those in the settings: nvml, nvml:FILE or fake:COUNTxTYPE, as in fake:8xA100.
        #[arg(long, value_name = "WHICH")]
        devices: Option<DeviceChoice>,
    },
    /// Certificates for nodes and the daemon, from an authority of their own.
    Certs {
        /// Where to write them; an authority that is there already signs the new ones.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Nodes.
        #[arg(long = "node", value_name = "NAME", num_args = 1.., required = true, value_parser = node_name)]
        nodes: Vec<JobName>,
    },
    /// Runs one attempt; the agent starts it.
    #[command(hide = true)]
    Keep {
        /// Folder of the attempt.
        folder: PathBuf,
    },
    /// Plays a job of known speed.
    #[command(hide = true)]
    BenchJob {
        /// What to play, as JSON.
        #[arg(default_value = "{}")]
        job: String,
    },
    /// Run a cluster: look, ask the policy, and do what the guard lets pass, until interrupted.
    Run {
        /// Deployment: TOML (see configs/live).
        #[arg(value_name = "DEPLOYMENT.toml")]
        config: PathBuf,
        /// How far to go, instead of the file's mode: observe, canary or act.
        #[arg(long)]
        mode: Option<String>,
        /// Log lines as JSON.
        #[arg(long)]
        json_logs: bool,
    },
    /// Look once and say what would be done.
    Plan {
        /// Deployment: TOML.
        #[arg(value_name = "DEPLOYMENT.toml")]
        config: PathBuf,
        /// Keep what was seen, for `live replay`.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
        /// Form of the listing.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Say what would have been done about recorded snapshots, in their order.
    Replay {
        /// Deployment: TOML; its engine is not asked.
        #[arg(value_name = "DEPLOYMENT.toml")]
        config: PathBuf,
        /// As recorded by `live plan --record`.
        #[arg(required = true)]
        snapshots: Vec<PathBuf>,
        /// Form of the listing.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Hand a job in.
    Submit {
        /// Its name.
        #[arg(long)]
        name: String,
        /// Accelerators asked for.
        #[arg(long, default_value_t = 1)]
        gpus: u32,
        /// Fewest it runs on.
        #[arg(long)]
        min: Option<u32>,
        /// Most it can use.
        #[arg(long)]
        max: Option<u32>,
        /// Application of the catalog that it trains.
        #[arg(long)]
        application: Option<String>,
        /// Whose it is.
        #[arg(long, default_value = "")]
        tenant: String,
        /// How long it is thought to run on what it asks for, minutes.
        #[arg(long)]
        minutes: Option<f64>,
        /// Where it runs.
        #[arg(long)]
        directory: Option<PathBuf>,
        /// Seconds from SIGTERM to SIGKILL.
        #[arg(long, default_value_t = 60)]
        grace: u32,
        /// Batch sizes among which the program chooses by itself: initial and largest in all, smallest and largest of one replica.
        #[arg(long, value_name = "INIT:MAX:LOCAL_MIN:LOCAL_MAX", value_parser = batch_limits)]
        batch: Option<BatchLimits>,
        /// Failures within an hour after which it is still tried again.
        #[arg(long, default_value_t = RetryBudget::default().failures)]
        retries: u32,
        /// Folder for its checkpoints: all nodes see it, and it outlives attempts. The engine's own choice where absent.
        #[arg(long, value_name = "DIR")]
        checkpoint_dir: Option<PathBuf>,
        #[command(flatten)]
        daemon: DaemonAddress,
        /// Program and arguments, after `--`.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Jobs that wait or run, and why.
    Queue {
        #[command(flatten)]
        daemon: DaemonAddress,
        /// Form of the listing.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Nodes and what is free on them.
    Nodes {
        #[command(flatten)]
        daemon: DaemonAddress,
        /// Form of the listing.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Why a job waits, what the policy scored it, and what was ordered for it.
    Explain {
        /// Key or name.
        job: String,
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Start nothing on a node any more.
    Drain {
        /// Its name.
        node: String,
        /// Let jobs start there again.
        #[arg(long)]
        undo: bool,
        /// Why, for other administrators.
        #[arg(long, default_value = "")]
        reason: String,
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Take a job back for good.
    Cancel {
        /// Key or name.
        job: String,
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Change how far the daemon goes.
    Mode {
        /// observe, canary or act.
        mode: String,
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Check that no line of an audit log was changed or taken out.
    Audit {
        /// audit.jsonl of the state directory.
        file: PathBuf,
    },
    /// Make a token for the interface, and its hash for the deployment file.
    Token,
}

/// How to reach a daemon.
#[derive(Debug, clap::Args)]
pub struct DaemonAddress {
    /// Its address [default: $GOODPUT_URL, else http://127.0.0.1:7070].
    #[arg(long)]
    pub url: Option<String>,
    /// File with the token [default: the token in $GOODPUT_TOKEN].
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Options of `top`.
#[derive(Debug, clap::Args)]
pub struct Top {
    #[command(flatten)]
    pub daemon: DaemonAddress,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 2.0)]
    pub every: f64,
    /// Look once and end.
    #[arg(long)]
    pub once: bool,
}

/// A node is called as jobs are.
fn node_name(text: &str) -> Result<JobName, NameError> {
    JobName::new(text)
}

/// `128:4096:32:512`.
fn batch_limits(text: &str) -> Result<BatchLimits, String> {
    let numbers: Result<Vec<u32>, _> = text.split(':').map(str::parse).collect();
    match numbers.as_deref() {
        Ok(&[init, max, min_local, max_local]) => {
            BatchLimits::new(init, max, min_local, max_local).map_err(|error| error.to_string())
        }
        _ => Err("expected four numbers: initial and largest total, smallest and largest of one replica".into()),
    }
}
