//! `top`: cluster and queue of a running daemon at a glance.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use goodput_console::{CommandError, OutputFormat, counted, print};
use goodput_executor::daemon::interface::status::{DaemonStatus, QueueRow};
use goodput_executor::engine::{NodeHealth, NodeSeen, ServiceSeen};

use crate::args::Top;
use crate::client::Client;
use crate::{Invocation, listings};

/// Jobs that the screen shows.
const JOBS: usize = 30;
/// Nodes that the screen shows.
const NODES: usize = 40;
/// Cursor to the first line, and everything below it cleared.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Shows the state of a daemon every few seconds, or once.
///
/// # Errors
/// [`CommandError`] where the daemon cannot be reached.
pub fn run(options: &Top, invocation: Invocation) -> Result<ExitCode, CommandError> {
    if !(options.every > 0.0 && options.every < 1e6) {
        return Err(CommandError::input(format!("--every {}: expected a positive number of seconds", options.every)));
    }
    let client = Client::new(&options.daemon, invocation)?;
    let again = !options.once && std::io::stdout().is_terminal();
    loop {
        let status: DaemonStatus = client.get("/v1/status")?;
        let nodes: Vec<NodeSeen> = client.get("/v1/nodes")?;
        let services: Vec<ServiceSeen> = client.get("/v1/services")?;
        let queue: Vec<QueueRow> = client.get("/v1/queue")?;
        if again {
            print(CLEAR)?;
        }
        show(&status, &nodes, &services, queue)?;
        if options.once {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(Duration::from_secs_f64(options.every));
    }
}

fn show(
    status: &DaemonStatus,
    nodes: &[NodeSeen],
    services: &[ServiceSeen],
    mut queue: Vec<QueueRow>,
) -> Result<(), CommandError> {
    let mut lines = vec![header(status, nodes, &queue)];
    lines.extend(status.shadow.iter().map(|compared| compared.words()));
    lines.extend(nodes.iter().take(NODES).map(bar));
    lines.extend(more(nodes.len(), NODES, "nodes"));
    lines.extend(services.iter().map(listings::service_line));
    print(&(lines.join("\n") + "\n"))?;
    let hidden = more(queue.len(), JOBS, "jobs");
    queue.truncate(JOBS);
    listings::queue(&queue).print(OutputFormat::Table)?;
    let alerts = status.alerts.iter().rev().take(3).map(|alert| format!("! {alert}"));
    let below: String = hidden.into_iter().chain(alerts).map(|line| line + "\n").collect();
    print(&below)
}

/// Line about what the screen leaves out, if it leaves out anything.
fn more(all: usize, shown: usize, what: &str) -> Option<String> {
    (all > shown).then(|| format!("... and {} more {what}", all - shown))
}

/// Two lines about the daemon and the cluster as a whole.
fn header(status: &DaemonStatus, nodes: &[NodeSeen], queue: &[QueueRow]) -> String {
    let total: u32 = nodes.iter().map(|node| node.gpus).sum();
    let free: u32 = nodes.iter().map(|node| node.free).sum();
    let running = queue.iter().filter(|job| job.phase == "running").count();
    let leads = status.term.map_or("stands by".into(), |term| format!("leads, term {term}"));
    let by = if status.fallback.is_empty() { status.policy.clone() } else { format!("FALLBACK {}", status.fallback) };
    let engine = format!("{} {}", status.engine, status.engine_release);
    format!(
        "{} · {} · {leads} · policy {by} · {}, last {:.1} ms\naccelerators {} of {total} held · jobs {running} running, {} waiting · {} under way",
        engine.trim_end(),
        status.mode,
        counted(status.decisions, "decision"),
        status.decision_ms,
        total - free.min(total),
        queue.len() - running,
        counted(status.open_orders as u64, "order"),
    )
}

/// One line for a node: held accelerators as full boxes, free ones as light boxes.
fn bar(node: &NodeSeen) -> String {
    let held = node.gpus - node.free.min(node.gpus);
    let boxes = "█".repeat(held as usize) + &"░".repeat(node.free as usize);
    let health =
        if node.health == NodeHealth::Up { String::new() } else { format!("  {:?} {}", node.health, node.note) };
    format!("{:>12} {:<8} {boxes}{health}", node.name, node.accelerator)
}
