//! A submission as arguments and script of `sbatch`.

use std::fmt::Write;
use std::path::Path;

use goodput_env::job::Work;

use super::reports;
use super::stated::CommentFacts;
use crate::engine::Submission;
use crate::job::Fence;
use crate::job::contract::VERSION;

/// The job protocol's names for what Slurm says, then the program itself: signals reach it, not a
/// shell. How many accelerators there are on other nodes only slurmctld knows, and it may be away
/// for a moment. A job that slurmctld started without any (seen after restarts of it) waits here to
/// be put back.
const PROTOCOL: &str = r#"export SCHED_JOB_ID=$SLURM_JOB_ID SCHED_ATTEMPT=${SLURM_RESTART_COUNT:-0}
export ADAPTDL_NUM_RESTARTS=$SCHED_ATTEMPT NNODES=$SLURM_JOB_NUM_NODES
here=${CUDA_VISIBLE_DEVICES:-$SLURM_JOB_GPUS}
while [ -z "$here" ]; do sleep 1; done
SCHED_GPUS=$(echo "$here" | tr , '\n' | grep -c .)
while [ "$NNODES" -gt 1 ]; do
  SCHED_GPUS=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/.*TresPerJob=[a-z:/]*:\([0-9]*\)$/\1/p')
  if [ -n "$SCHED_GPUS" ]; then break; else sleep 1; fi
done
export SCHED_GPUS WORLD_SIZE=$SCHED_GPUS
"#;

/// Address at which jobs report.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportAddress<'a> {
    /// URL of the daemon's interface as the nodes reach it; jobs do not report without one.
    pub url: Option<&'a str>,
    /// Certificate of the authority that signed the interface's, on the nodes.
    pub ca: Option<&'a Path>,
}

/// Seat of a replica of a service: it starts there at once, and Slurm does not start it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat<'a> {
    /// Reservation of the services.
    pub reservation: &'a str,
    /// Name of the node.
    pub node: &'a str,
}

/// Arguments and script. A job without a seat waits, held, until an order places it.
pub(super) fn of(
    job: &Submission,
    fence: &Fence,
    reports: ReportAddress<'_>,
    seat: Option<Seat<'_>>,
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
        token: Some(reports::hash(fence)),
        retries: seat.is_none().then_some(job.retry.failures),
        failed: Vec::new(),
    };
    let mut arguments: Vec<String> =
        ["--parsable", "--nodes=1", "--ntasks=1", "--open-mode=append"].map(Into::into).into();
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
    arguments.push(format!("--job-name={}", request.name));
    arguments.push(format!("--comment={}", stated.text()));
    if let Some(directory) = &job.directory {
        arguments.push(format!("--chdir={}", directory.display()));
    }
    let mut script = String::from("#!/bin/sh\n");
    for (name, value) in &job.environment {
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let _ = writeln!(script, "export {name}={}", quoted(value));
        }
    }
    script.push_str(PROTOCOL);
    let _ = writeln!(
        script,
        "export SCHED_PROTOCOL={VERSION} SCHED_GRACE_S={} SCHED_FENCE={}",
        job.grace_s,
        fence.as_str()
    );
    if let Some(url) = reports.url {
        let _ = writeln!(script, "export SCHED_URL={}", quoted(url));
    }
    if let Some(ca) = reports.ca {
        let _ = writeln!(script, "export SCHED_CA={}", quoted(&ca.to_string_lossy()));
    }
    if let Some(directory) = &job.checkpoint_dir {
        let directory = quoted(&directory.to_string_lossy());
        let _ = writeln!(script, "export SCHED_CHECKPOINT_DIR={directory} ADAPTDL_CHECKPOINT_PATH={directory}");
        script.push_str("mkdir -p \"$SCHED_CHECKPOINT_DIR\" || exit 75\n");
    }
    let words: Vec<String> = job.command.iter().map(|word| quoted(word)).collect();
    let _ = writeln!(script, "exec {}", words.join(" "));
    (arguments, script)
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
