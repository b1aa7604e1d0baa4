//! A submission as arguments and script of `sbatch`.
//!
//! The script runs the program as its child and marks the end of a job that ended well, in the
//! checkpoint folder or below the home folder. slurmctld may forget the end and start the job again;
//! the script then finds the mark and ends at once.

use std::fmt::Write;
use std::path::PathBuf;

use goodput_env::job::Work;

use goodput_configs::live::engine::SlurmConfig;

use super::facts_key::FactsKey;
use super::per_gpu::JobDefaults;
use super::stated::CommentFacts;
use super::user::SystemUser;
use crate::engine::mailbox::token_hash;
use crate::engine::{JobResources, Submission, digest};
use crate::job::Fence;
use crate::job::contract::VERSION;

/// Settings of the deployment that submissions depend on.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptSettings {
    /// URL under which jobs report.
    report_url: Option<String>,
    /// Certificate of the authority that signed the interface's, on the nodes.
    report_ca: Option<PathBuf>,
    /// Whether jobs run as their owners.
    run_as_owner: bool,
}

impl ScriptSettings {
    pub fn new(settings: &SlurmConfig) -> Self {
        Self {
            report_url: settings.report_url.clone(),
            report_ca: settings.report_ca.clone(),
            run_as_owner: settings.run_as_owner,
        }
    }

    pub fn run_as_owner(&self) -> bool {
        self.run_as_owner
    }
}

/// Start of a job on its first node: the mark of its end, its accelerators, and the program on every
/// node.
const BATCH: &str = include_str!("batch.sh");
/// Start of a job on one of its nodes: the job protocol's variables, the program, and its signals.
const NODE: &str = include_str!("node.sh");

/// Seat of a replica of a service: it starts there at once, and Slurm does not start it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat<'a> {
    /// Reservation of the services.
    pub reservation: &'a str,
    /// Name of the node.
    pub node: &'a str,
}

/// Arguments and script. A job without a seat waits, held, until an order places it. Without a `user` the
/// job runs as the user of the daemon.
pub(super) fn of(
    job: &Submission,
    fence: &Fence,
    key: &FactsKey,
    settings: &ScriptSettings,
    each: JobDefaults,
    seat: Option<Seat<'_>>,
    user: Option<&SystemUser>,
) -> (Vec<String>, String) {
    let request = &job.spec.request;
    let duration_ms = match job.spec.work {
        Work::Fixed { duration } => Some(duration.as_millis()),
        _ => None,
    };
    let stated = CommentFacts {
        gpus: Some(request.gpus),
        min: Some(request.min_gpus()),
        max: Some(request.max_gpus()),
        submit_ms: Some(request.submit.as_millis()),
        priority: Some(request.priority),
        duration_ms,
        application: job.application.clone(),
        tenant: Some(job.tenant.clone()).filter(|tenant| !tenant.is_empty()),
        owner: Some(job.owner.clone()).filter(|owner| !owner.is_empty()),
        batch: job.batch,
        token: Some(token_hash(fence)),
        retries: seat.is_none().then_some(job.retry.failures),
        failed: Vec::new(),
    };
    // All of the few variables that the command itself has. Without any, slurmd would make a login environment, and it
    // holds the job back where a busy node takes more than two seconds for that.
    let mut arguments: Vec<String> =
        ["--parsable", "--nodes=1", "--ntasks=1", "--open-mode=append", "--export=ALL"].map(Into::into).into();
    match seat {
        // The order that places the job sets the number; until then one stands for any.
        None => {
            arguments.extend(["--hold".into(), "--requeue".into(), format!("--gpus={}", request.gpus.min(1))]);
        }
        Some(Seat { reservation, node }) => {
            arguments.extend(["--no-requeue".into(), format!("--gpus={}", request.gpus)]);
            arguments.extend([format!("--reservation={reservation}"), format!("--nodelist={node}")]);
        }
    }
    let number = user.map_or_else(|| rustix::process::getuid().as_raw(), |user| user.number);
    arguments.extend(user.map(|user| format!("--uid={}", user.name)));
    arguments.push(format!("--job-name={}", request.name));
    arguments.push(format!("--comment={}", key.signed(&stated, number)));
    arguments.extend(resources(&job.resources, each));
    // The folder of the daemon may be closed to another user.
    if let Some(directory) = job.directory.as_ref().or(user.map(|user| &user.home)) {
        arguments.push(format!("--chdir={}", directory.display()));
    }
    let mut script = String::from("#!/bin/sh\n");
    if let Some(user) = user {
        let (name, home) = (quoted(&user.name), quoted(&user.home.to_string_lossy()));
        let _ = writeln!(script, "export HOME={home} USER={name} LOGNAME={name}");
    }
    for (name, value) in &job.environment {
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let _ = writeln!(script, "export {name}={}", quoted(value));
        }
    }
    let _ = writeln!(
        script,
        "export SCHED_PROTOCOL={VERSION} SCHED_GRACE_S={} SCHED_FENCE={}",
        job.grace_s,
        fence.as_str()
    );
    if let Some(url) = &settings.report_url {
        let _ = writeln!(script, "export SCHED_URL={}", quoted(url));
    }
    if let Some(ca) = &settings.report_ca {
        let _ = writeln!(script, "export SCHED_CA={}", quoted(&ca.to_string_lossy()));
    }
    if let Some(directory) = &job.checkpoint_dir {
        let directory = quoted(&directory.to_string_lossy());
        let _ = writeln!(script, "export SCHED_CHECKPOINT_DIR={directory} ADAPTDL_CHECKPOINT_PATH={directory}");
        let _ = writeln!(script, "export ADAPTDL_SHARE_PATH={directory}");
        script.push_str("mkdir -p \"$SCHED_CHECKPOINT_DIR\" || exit 75\n");
    }
    // A replica runs as long as it is wanted, so its end is not the end of its work.
    let mark = if seat.is_none() { mark(job) } else { String::new() };
    let _ = writeln!(script, "GOODPUT_MARK={mark}\nnode={}", quoted(NODE));
    let words: Vec<String> = job.command.iter().map(|word| quoted(word)).collect();
    let _ = writeln!(script, "set -- {}", words.join(" "));
    script.push_str(BATCH);
    (arguments, script)
}

/// Name of the mark that a job leaves when it has ended well. The time of submission names the job,
/// also where slurmctld forgot the job and the daemon handed it in again.
fn mark(job: &Submission) -> String {
    let submit = job.spec.request.submit.as_millis().to_string();
    let words = [job.spec.request.name.as_str(), submit.as_str()].into_iter();
    let words: Vec<&str> = words.chain(job.command.iter().map(String::as_str)).collect();
    format!(".goodput-ended-{}", digest(&words))
}

/// Options of `sbatch` for what the job asks for beside accelerators. Processors and memory are asked
/// for each accelerator, so Slurm itself keeps to them when the number of accelerators changes.
fn resources(asked: &JobResources, each: JobDefaults) -> Vec<String> {
    let option = |name: &str, value: Option<String>| value.map(|value| format!("--{name}={value}"));
    let options = [
        option("cpus-per-gpu", each.cpus.map(|cpus| cpus.to_string())),
        option("mem-per-gpu", each.memory_mib.map(|mib| format!("{mib}M"))),
        option("time", asked.time_limit_mins.map(|minutes| minutes.to_string())),
        option("account", asked.account.clone()),
        option("qos", asked.qos.clone()),
        option("partition", asked.partition.clone()),
        option("constraint", asked.constraint.clone()),
    ];
    options.into_iter().flatten().collect()
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
