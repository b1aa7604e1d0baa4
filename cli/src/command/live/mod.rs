//! `goodput live`: real machines.

mod agent;
mod client;
mod devices;
mod host;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use goodput_executor::daemon::interface::api::hash;
use goodput_executor::daemon::interface::{api, audit};
use goodput_executor::engine::{NodeSeen, OnNode, Submission};
use goodput_executor::job::RetryBudget;
use serde_json::{Value, json};

use crate::args::Live;
use crate::fault::Fault;
use crate::output::{Cell, Rows, say};
pub use client::Client;

/// Runs it.
pub fn run(verb: &Live) -> Result<ExitCode, Fault> {
    match verb {
        Live::Devices { watch, nvml, output } => return devices::run(*watch, nvml.as_deref(), *output),
        Live::Agent { config, devices } => return agent::serve(config, devices.as_ref()),
        Live::Certs { folder, nodes } => return agent::certs(folder, nodes),
        Live::Keep { folder } => return agent::keep(folder),
        Live::BenchJob { job } => return agent::bench_job(job),
        Live::Run { config, mode, json_logs } => return host::run(config, mode.as_deref(), *json_logs),
        Live::Plan { config, record, output } => return host::plan(config, record.as_deref(), *output),
        Live::Replay { config, snapshots, output } => return host::replay(config, snapshots, *output),
        Live::Submit { daemon, .. } => {
            let job = submission(verb)?;
            let answer = Client::new(daemon)?.post("/v1/jobs", &job)?;
            print_text(answer["key"].as_str().unwrap_or_default());
        }
        Live::Queue { daemon, output } => {
            let queue: Vec<goodput_executor::daemon::interface::status::QueueRow> =
                Client::new(daemon)?.get("/v1/queue")?;
            queue_rows(&queue).print(*output)?;
        }
        Live::Nodes { daemon, output } => {
            let nodes: Vec<NodeSeen> = Client::new(daemon)?.get("/v1/nodes")?;
            node_rows(&nodes).print(*output)?;
        }
        Live::Explain { job, daemon } => {
            let told: api::JobExplanation = Client::new(daemon)?.get(&format!("/v1/jobs/{job}"))?;
            print_text(&explained(&told));
        }
        Live::Drain { node, undo, reason, daemon } => {
            let verb = if *undo { "undrain" } else { "drain" };
            Client::new(daemon)?.post(&format!("/v1/nodes/{node}/{verb}"), &json!({ "reason": reason }))?;
            say(&format!("{verb} of {node}: ordered"));
        }
        Live::Cancel { job, daemon } => {
            Client::new(daemon)?.delete(&format!("/v1/jobs/{job}"))?;
            say(&format!("{job}: ordered to end"));
        }
        Live::Mode { mode, daemon } => {
            let answer = Client::new(daemon)?.post("/v1/mode", &json!({ "mode": mode }))?;
            say(&format!("mode {}", answer["mode"].as_str().unwrap_or_default()));
        }
        Live::Audit { file } => {
            let (lines, last) = audit::verify(file).map_err(Fault::failed)?;
            print_text(&format!("{lines} lines hold together; the last one has hash {last}"));
        }
        Live::Token => token()?,
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "data goes to stdout")]
fn print_text(text: &str) {
    println!("{text}");
}

/// A path as it is named elsewhere than here.
fn absolute(path: Option<&PathBuf>) -> Result<Option<PathBuf>, Fault> {
    path.map(std::path::absolute).transpose().map_err(Fault::input)
}

/// A job from its options.
fn submission(verb: &Live) -> Result<Submission, Fault> {
    let Live::Submit { name, gpus, min, max, application, tenant, minutes, directory, grace, command, .. } = verb
    else {
        return Err(Fault::failed("not a submission"));
    };
    let Live::Submit { batch, retries, checkpoint_dir, .. } = verb else {
        return Err(Fault::failed("not a submission"));
    };
    let (min, max) = (min.unwrap_or(*gpus), max.unwrap_or(*gpus));
    let elasticity = if min == max { Elasticity::Rigid } else { Elasticity::Elastic { min, max } };
    let duration = SimTime::from_secs_f64(60.0 * minutes.unwrap_or(0.0));
    let request = JobRequest { name: name.clone(), gpus: *gpus, elasticity, ..JobRequest::default() };
    let job = Submission {
        application: application.clone(),
        tenant: tenant.clone(),
        directory: absolute(directory.as_ref())?,
        grace_s: *grace,
        batch: *batch,
        retry: RetryBudget { failures: *retries, ..RetryBudget::default() },
        checkpoint_dir: absolute(checkpoint_dir.as_ref())?,
        ..Submission::new(JobSpec { request, work: Work::Fixed { duration } }, command.clone())
    };
    api::check(&job).map_err(Fault::input)?;
    Ok(job)
}

fn place(placement: &[OnNode]) -> String {
    placement.iter().map(|on| format!("{}:{}", on.node, on.gpus)).collect::<Vec<_>>().join(" ")
}

/// The queue as rows.
pub fn queue_rows(queue: &[goodput_executor::daemon::interface::status::QueueRow]) -> Rows {
    let mut rows =
        Rows::new(&["job", "name", "tenant", "phase", "gpus", "placement", "age_secs", "starts", "reason", "score"]);
    for job in queue {
        let [min, asked, max] = job.gpus;
        rows.push(vec![
            job.key.as_str().into(),
            job.name.as_str().into(),
            job.tenant.as_str().into(),
            job.phase.as_str().into(),
            if min == max { asked.to_string() } else { format!("{asked} ({min}-{max})") }.into(),
            place(&job.placement).into(),
            Cell::Number(job.age_secs, 1),
            Cell::Whole(i64::from(job.starts)),
            job.reason.as_str().into(),
            Cell::option(job.score, |score| Cell::Number(f64::from(score), 3)),
        ]);
    }
    rows
}

/// Nodes as rows.
pub fn node_rows(nodes: &[NodeSeen]) -> Rows {
    let mut rows = Rows::new(&["node", "accelerator", "gpus", "free", "health", "note"]);
    for node in nodes {
        rows.push(vec![
            node.name.as_str().into(),
            node.accelerator.as_str().into(),
            Cell::Whole(i64::from(node.gpus)),
            Cell::Whole(i64::from(node.free)),
            format!("{:?}", node.health).to_lowercase().into(),
            node.note.as_str().into(),
        ]);
    }
    rows
}

fn explained(told: &api::JobExplanation) -> String {
    let job = &told.job;
    let mut text = format!("job {} ({}): {}\nreason: {}: {}\n", job.key, job.name, job.phase, job.reason, job.detail);
    if !job.placement.is_empty() {
        text.push_str(&format!("on: {}\n", place(&job.placement)));
    }
    if let Some(score) = job.score {
        text.push_str(&format!("the policy scores it {score:.4} for a larger share now; greater is sooner\n"));
    }
    if !job.learned.is_empty() {
        text.push_str(&format!("speed: {}\n", job.learned));
    }
    if !job.beside.is_empty() {
        text.push_str(&format!("beside: {}\n", job.beside));
    }
    let [min, asked, max] = job.gpus;
    text.push_str(&format!(
        "asked for {asked} accelerators ({min} to {max}); {:.0} s old, {} starts, {} failures\norders, newest first:",
        job.age_secs, job.starts, job.failures
    ));
    let orders = told.orders.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
    for order in &orders {
        text.push_str(&format!("\n  {} {} {}", word(&order["verb"]), word(&order["stage"]), word(&order["note"])));
    }
    if orders.is_empty() {
        text.push_str(" none");
    }
    text
}

fn token() -> Result<(), Fault> {
    let mut bytes = [0_u8; 32];
    std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).map_err(Fault::failed)?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    say("The token, to be kept by whoever uses it, is on stdout; its hash belongs into the deployment file:");
    say(&format!("[[api.tokens]]\nname = \"NAME\"\nrole = \"read\" # or \"write\"\nsha256 = \"{}\"", hash(&token)));
    print_text(&token);
    Ok(())
}
