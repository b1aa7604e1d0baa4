//! `goodput top`: cluster and queue of a running daemon at a glance.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use goodput_executor::daemon::interface::status::{DaemonStatus, QueueRow};
use goodput_executor::engine::{NodeHealth, NodeSeen};

use super::live::{Client, queue_rows};
use crate::args::{Format, Top};
use crate::fault::Fault;

/// Runs it.
#[expect(clippy::print_stdout, reason = "a dashboard is on stdout")]
pub fn run(options: &Top) -> Result<ExitCode, Fault> {
    if !(options.every > 0.0 && options.every < 1e6) {
        return Err(Fault::input(format!("--every {}: expected a positive number of seconds", options.every)));
    }
    let client = Client::new(&options.daemon)?;
    loop {
        let status: DaemonStatus = client.get("/v1/status")?;
        let nodes: Vec<NodeSeen> = client.get("/v1/nodes")?;
        let mut queue: Vec<QueueRow> = client.get("/v1/queue")?;
        queue.sort_by(|a, b| b.placement.len().cmp(&a.placement.len()).then(b.age_secs.total_cmp(&a.age_secs)));
        if !options.once && std::io::stdout().is_terminal() {
            // Home, and clear what is below.
            print!("\x1b[H\x1b[J");
        }
        println!("{}", header(&status, &nodes, &queue));
        status.shadow.iter().for_each(|compared| println!("{}", compared.words()));
        nodes.iter().for_each(|node| println!("{}", bar(node)));
        queue.truncate(30);
        queue_rows(&queue).print(Format::Table)?;
        status.alerts.iter().rev().take(3).for_each(|alert| println!("! {alert}"));
        std::io::stdout().flush().map_err(Fault::failed)?;
        if options.once {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(Duration::from_secs_f64(options.every));
    }
}

fn header(status: &DaemonStatus, nodes: &[NodeSeen], queue: &[QueueRow]) -> String {
    let total: u32 = nodes.iter().map(|node| node.gpus).sum();
    let free: u32 = nodes.iter().map(|node| node.free).sum();
    let running = queue.iter().filter(|job| job.phase == "running").count();
    let leads = status.term.map_or("stands by".into(), |term| format!("leads, term {term}"));
    let by = if status.fallback.is_empty() { status.policy.clone() } else { format!("FALLBACK {}", status.fallback) };
    format!(
        "{} · {} · {leads} · policy {by} · {} decisions, last {:.1} ms\naccelerators {} of {total} held · jobs {running} running, {} waiting · {} orders under way",
        status.engine,
        status.mode,
        status.decisions,
        status.decision_ms,
        total - free.min(total),
        queue.len() - running,
        status.open_orders,
    )
}

fn bar(node: &NodeSeen) -> String {
    let held = node.gpus - node.free.min(node.gpus);
    let boxes = "█".repeat(held as usize) + &"░".repeat(node.free as usize);
    let health =
        if node.health == NodeHealth::Up { String::new() } else { format!("  {:?} {}", node.health, node.note) };
    format!("{:>12} {:<8} {boxes}{health}", node.name, node.accelerator)
}
