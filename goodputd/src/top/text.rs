//! The state of a daemon as text.

use goodput_console::{CommandError, OutputFormat, counted, print};
use goodput_executor::engine::{NodeHealth, NodeSeen};

use super::reading::Reading;
use crate::listings;

/// Jobs that the text shows.
const JOBS: usize = 30;
/// Nodes that the text shows.
const NODES: usize = 40;

/// Prints the state.
///
/// # Errors
/// A write that fails, other than by a closed pipe.
pub fn show(mut reading: Reading) -> Result<(), CommandError> {
    let mut lines = vec![header(&reading)];
    let Reading { status, nodes, services, queue } = &mut reading;
    lines.extend(nodes.iter().take(NODES).map(bar));
    lines.extend(more(nodes.len(), NODES, "nodes"));
    lines.extend(services.iter().map(listings::service_line));
    print(&(lines.join("\n") + "\n"))?;
    let hidden = more(queue.len(), JOBS, "jobs");
    queue.truncate(JOBS);
    listings::queue(queue).print(OutputFormat::Table)?;
    let alerts = status.alerts.iter().rev().take(3).map(|alert| format!("! {alert}"));
    let below: String = hidden.into_iter().chain(alerts).map(|line| line + "\n").collect();
    print(&below)
}

/// Line about what the screen leaves out, if it leaves out anything.
fn more(all: usize, shown: usize, what: &str) -> Option<String> {
    (all > shown).then(|| format!("... and {} more {what}", all - shown))
}

/// Lines about the daemon and the cluster as a whole: two, and one about the shadow policy where there is one.
pub fn header(reading: &Reading) -> String {
    let Reading { status, nodes, queue, .. } = reading;
    let total: u32 = nodes.iter().map(|node| node.gpus).sum();
    let free: u32 = nodes.iter().map(|node| node.free).sum();
    let running = queue.iter().filter(|job| job.phase == "running").count();
    let leads = status.term.map_or("stands by".into(), |term| format!("leads, term {term}"));
    let by = match (status.undecided.is_empty(), status.fallback.is_empty()) {
        (false, _) => format!("{}, NOTHING IS DECIDED (alert `policy`)", status.policy),
        (true, false) => format!("FALLBACK {}", status.fallback),
        (true, true) => status.policy.clone(),
    };
    let engine = format!("{} {}", status.engine, status.engine_release);
    let beside: String = status.shadow.iter().map(|compared| format!("\n{}", compared.words())).collect();
    format!(
        "{} · {} · {leads} · policy {by} · {}, last {:.1} ms\naccelerators {} of {total} held · jobs {running} running, {} waiting · {} under way{beside}",
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
