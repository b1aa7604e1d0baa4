//! Commands and options of `goodputd`, which are those of `goodput live` and `goodput top`.

use std::path::PathBuf;

use clap::Subcommand;
use goodput_configs::live::deployment::Mode;
use goodput_configs::live::devices::DeviceChoice;
use goodput_configs::live::name::{JobName, NameError};
use goodput_configs::live::token::ApiVerb;
use goodput_configs::names::did_you_mean;
use goodput_console::{AnswerFormat, OutputFormat};
use goodput_env::model::BatchLimits;
use goodput_executor::agent::tls::DAYS;
use goodput_executor::engine::batch_text;
use goodput_executor::job::RetryBudget;

/// Commands of `goodput live`.
#[derive(Debug, Subcommand)]
pub enum Live {
    /// List the accelerators of this machine.
    Devices {
        /// Repeat the reading after this many seconds, until interrupted.
        #[arg(long, value_name = "SECS")]
        watch: Option<f64>,
        /// NVML library instead of the installed one.
        #[arg(long, value_name = "FILE")]
        nvml: Option<PathBuf>,
        /// Form of the listing.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Run the agent of this node, which starts and watches jobs. Jobs go on when the agent stops.
    Agent {
        /// File of the node in TOML (see configs/live/node.toml).
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Accelerators instead of those in the settings: nvml, nvml:FILE or fake:COUNTxTYPE, as in
        /// fake:8xA100.
        #[arg(long, value_name = "WHICH")]
        devices: Option<DeviceChoice>,
    },
    /// Make certificates for nodes and the daemon, signed by an authority of their own.
    Certs {
        /// Folder for the certificates. An authority that is already in it signs the new ones.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Names of the nodes.
        #[arg(long = "node", value_name = "NAME", num_args = 1.., required_unless_present_any = ["api", "clients"], value_parser = node_name)]
        nodes: Vec<JobName>,
        /// Names or IP addresses under which clients reach the interface of the daemon: makes its
        /// certificate too, for `[api] tls`.
        #[arg(long, value_name = "HOST", num_args = 1..)]
        api: Vec<String>,
        /// Names of programs that show a certificate to `goodput forecast serve`, such as keda; no node obeys them.
        #[arg(long = "client", value_name = "NAME", num_args = 1.., value_parser = node_name)]
        clients: Vec<JobName>,
        /// Days for which the certificates are good.
        #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
    },
    /// Run one attempt of a job. The agent starts this command.
    #[command(hide = true)]
    Keep {
        /// Folder of the attempt.
        folder: PathBuf,
    },
    /// Play a job of known speed.
    #[command(hide = true)]
    BenchJob {
        /// Description of the job in JSON.
        #[arg(default_value = "{}")]
        job: String,
    },
    /// Run a cluster until interrupted: observe it, ask the policy, and carry out what the guard lets
    /// pass.
    Run {
        /// Deployment in TOML (see configs/live).
        #[arg(value_name = "DEPLOYMENT.toml")]
        config: PathBuf,
        /// Mode instead of the one in the file: observe, canary or act.
        #[arg(long, value_parser = mode)]
        mode: Option<Mode>,
        /// Write log lines as JSON.
        #[arg(long)]
        json_logs: bool,
    },
    /// Observe the cluster once and list what the policy would do.
    Plan {
        /// Deployment in TOML.
        #[arg(value_name = "DEPLOYMENT.toml")]
        config: PathBuf,
        /// Write the observed snapshot to this file, for `live replay`.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
        /// Form of the listing.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// List what the policy would have done about recorded snapshots, in their order.
    Replay {
        /// Deployment in TOML. No request goes to its cluster.
        #[arg(value_name = "DEPLOYMENT.toml")]
        config: PathBuf,
        /// Snapshots from `live plan --record`.
        #[arg(required = true)]
        snapshots: Vec<PathBuf>,
        /// Form of the listing.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Submit a job to the daemon.
    Submit(Box<Submit>),
    /// List the jobs that wait or run, with reasons.
    Queue {
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
        /// Form of the listing.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// List the nodes with their free accelerators.
    Nodes {
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
        /// Form of the listing.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// List the inference services with their replicas and their load.
    Services {
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
        /// Form of the listing.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Explain one job: why it waits, when it will start and what is ahead of it, its score, and the orders about it.
    Explain {
        /// Key or name of the job.
        job: String,
        /// Form of the answer.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: AnswerFormat,
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Start no more jobs on a node.
    Drain {
        /// Name of the node.
        node: String,
        /// Let jobs start on the node again.
        #[arg(long)]
        undo: bool,
        /// Reason, for other administrators.
        #[arg(long, default_value = "")]
        reason: String,
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Cancel a job.
    Cancel {
        /// Key or name of the job.
        job: String,
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Change the mode of the daemon.
    Mode {
        /// Mode: observe, canary or act.
        #[arg(value_parser = mode)]
        mode: Mode,
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Show, set or roll back the policy that decides.
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// Report what the policy would have changed while the daemon observed: jobs that are sooner or later,
    /// preemptions, and risks.
    Report {
        /// Deployment in TOML, or the state directory of a daemon, or a copy of it.
        #[arg(value_name = "FROM", default_value = "/var/lib/goodput")]
        from: PathBuf,
        /// Days before now that the report is about.
        #[arg(long, default_value_t = 14.0)]
        days: f64,
        /// Form of the answer.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: AnswerFormat,
    },
    /// Check that no line of an audit log was changed or removed.
    Audit {
        /// File audit.jsonl of the state directory.
        file: PathBuf,
    },
    /// Make a token for the interface of the daemon, and its table for the deployment file.
    Token(NewToken),
}

/// Options of `token`: the holder of a new token, and the calls that it allows.
#[derive(Debug, clap::Args)]
pub struct NewToken {
    /// Name of the holder in the audit log.
    #[arg(long)]
    pub name: String,
    /// Calls that the token allows: read, submit, cancel, operate, admin.
    #[arg(long = "verb", value_name = "VERB", num_args = 1.., default_value = "read", value_parser = api_verb)]
    pub verbs: Vec<ApiVerb>,
    /// Tenants for which the token submits; `*` stands for all.
    #[arg(long = "tenant", value_name = "TENANT", num_args = 1..)]
    pub tenants: Vec<String>,
    /// Owner of the jobs that the token submits [default: the name of the token].
    #[arg(long)]
    pub user: Option<String>,
    /// Highest priority that a submission may ask for.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(0..))]
    pub max_priority: i32,
}

/// Verbs of `live policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Have another policy decide. It is tried on the present state of the cluster first.
    Set {
        /// Heuristic, zoo:NAME, a bundle that the daemon can read at this path, or an external program
        /// (proc:COMMAND, python:MODULE:CLASS).
        policy: String,
        /// SHA-256 that the bundle must have [default: that of the file, where this machine has it].
        #[arg(long, value_name = "HEX")]
        sha256: Option<String>,
        /// Reason, for the history.
        #[arg(long, default_value = "")]
        reason: String,
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// Have the policy before the present one decide again.
    Rollback {
        /// Reason, for the history.
        #[arg(long, default_value = "")]
        reason: String,
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
    },
    /// List the changes of the policy: when, by which token, and why.
    History {
        /// Daemon that the command talks to.
        #[command(flatten)]
        daemon: DaemonAddress,
        /// Form of the listing.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
}

/// Verbs of `goodputd config`.
#[derive(Debug, Subcommand)]
pub enum LiveConfig {
    /// Say what is wrong with configuration files, with line and column.
    Check {
        /// Deployments and files of node agents.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Change a value of every file first.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
    /// Print a file with every default filled in.
    Show {
        /// Deployment or file of a node agent.
        file: PathBuf,
        /// Change a value of the file.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
}

/// Options of `submit`: a job.
#[derive(Debug, clap::Args)]
pub struct Submit {
    /// Name of the job.
    #[arg(long)]
    pub name: String,
    /// Idempotency key: all calls with one key hand one job in, so a call that broke off may be repeated.
    #[arg(long)]
    pub key: Option<String>,
    /// Accelerators that the job asks for.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub gpus: u32,
    /// Fewest accelerators on which the job runs [default: as many as asked for].
    #[arg(long)]
    pub min: Option<u32>,
    /// Most accelerators that the job can use [default: as many as asked for].
    #[arg(long)]
    pub max: Option<u32>,
    /// Application of the catalog that the job trains.
    #[arg(long)]
    pub application: Option<String>,
    /// Tenant that the job belongs to.
    #[arg(long, default_value = "")]
    pub tenant: String,
    /// Part of the compute that is enough, percent of one accelerator such as `30%`, over all accelerators that the job
    /// asks for; with --device-memory. For node agents with CUDA MPS.
    #[arg(long, value_name = "PERCENT", value_parser = percent, requires = "device_memory")]
    pub compute: Option<u32>,
    /// Device memory of the part, MiB, over all accelerators that the job asks for; with --compute.
    #[arg(long, visible_alias = "memory", value_name = "MIB", requires = "compute")]
    pub device_memory: Option<u32>,
    /// Processors for each accelerator [default: of the deployment, else of the cluster].
    #[arg(long, value_name = "COUNT")]
    pub cpus_per_gpu: Option<u32>,
    /// Memory for each accelerator, MiB [default: of the deployment, else of the cluster].
    #[arg(long, value_name = "MIB")]
    pub memory_per_gpu: Option<u64>,
    /// Minutes after which the cluster ends an attempt [default: of the partition, else none].
    #[arg(long, value_name = "MINUTES")]
    pub time_limit: Option<u32>,
    /// Account that is charged (Slurm).
    #[arg(long)]
    pub account: Option<String>,
    /// Quality of service (Slurm).
    #[arg(long)]
    pub qos: Option<String>,
    /// Partition in which the job runs (Slurm).
    #[arg(long)]
    pub partition: Option<String>,
    /// Features that every node of the job must have, as `sbatch --constraint` takes them (Slurm).
    #[arg(long)]
    pub constraint: Option<String>,
    /// Estimated run time on the accelerators that the job asks for, minutes.
    #[arg(long, allow_negative_numbers = true)]
    pub minutes: Option<f64>,
    /// Working directory of the job.
    #[arg(long)]
    pub directory: Option<PathBuf>,
    /// Seconds from SIGTERM to SIGKILL.
    #[arg(long, default_value_t = 60)]
    pub grace: u32,
    /// Batch sizes among which the program itself chooses: initial and largest in all, smallest and
    /// largest of one replica.
    #[arg(long, value_name = "INIT:MAX:LOCAL_MIN:LOCAL_MAX", value_parser = batch_text::read)]
    pub batch: Option<BatchLimits>,
    /// Failures within an hour after which the job is still tried again.
    #[arg(long, default_value_t = RetryBudget::default().failures)]
    pub retries: u32,
    /// The program takes in new processes and lets others go while it trains, so that node agents resize it without a
    /// stop. The program is started once for each accelerator.
    #[arg(long)]
    pub elastic: bool,
    /// Submit nothing: say for what the job would be refused, or else when it would start and what is ahead of it.
    #[arg(long)]
    pub dry_run: bool,
    /// Form of the answer to --dry-run.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t, requires = "dry_run")]
    pub output: AnswerFormat,
    /// Folder for checkpoints, which all nodes see [default: chosen by the cluster].
    #[arg(long, value_name = "DIR")]
    pub checkpoint_dir: Option<PathBuf>,
    /// Daemon that the command talks to.
    #[command(flatten)]
    pub daemon: DaemonAddress,
    /// Program and arguments, after `--`.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// A percentage with or without its sign.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    number.parse().map_err(|_| format!("{text:?}: expected a whole number of percent, such as 30%"))
}

/// Address of a daemon and the token for it.
#[derive(Debug, clap::Args)]
pub struct DaemonAddress {
    /// Address of the daemon [default: $GOODPUT_URL, else http://127.0.0.1:7070].
    #[arg(long)]
    pub url: Option<String>,
    /// File with the token [default: the token in $GOODPUT_TOKEN].
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate of the authority that signed the daemon's, for addresses with https [default:
    /// $GOODPUT_CA].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

/// Options of `top`.
#[derive(Debug, clap::Args)]
pub struct Top {
    /// Daemon that the command talks to.
    #[command(flatten)]
    pub daemon: DaemonAddress,
    /// Seconds between two readings.
    #[arg(long, default_value_t = 2.0)]
    pub every: f64,
    /// Read once and end.
    #[arg(long)]
    pub once: bool,
}

/// Verb of a token by its name.
fn api_verb(text: &str) -> Result<ApiVerb, String> {
    let names = ApiVerb::ALL.map(ApiVerb::name);
    let wrong = || format!("expected one of {}{}", names.join(", "), did_you_mean(text, names));
    ApiVerb::by_name(text).ok_or_else(wrong)
}

/// Name of a node, which follows the rules for names of jobs.
fn node_name(text: &str) -> Result<JobName, NameError> {
    JobName::new(text)
}

/// Mode by its name.
fn mode(text: &str) -> Result<Mode, String> {
    let names = Mode::ALL.map(Mode::name);
    let wrong = || format!("expected {}{}", names.join(", "), did_you_mean(text, names));
    Mode::by_name(text).ok_or_else(wrong)
}
