//! Listings of a live cluster: its queue and its nodes.

use goodput_console::{Cell, Listing};
use goodput_executor::daemon::interface::status::QueueRow;
use goodput_executor::engine::{NodeSeen, OnNode};

/// Placement in words: `node:accelerators` for each node.
pub fn place(placement: &[OnNode]) -> String {
    placement.iter().map(|on| format!("{}:{}", on.node, on.gpus)).collect::<Vec<_>>().join(" ")
}

/// Jobs that wait or run, with the reason why each is where it is.
pub fn queue(jobs: &[QueueRow]) -> Listing {
    let mut rows =
        Listing::new(&["job", "name", "tenant", "phase", "gpus", "placement", "age_secs", "starts", "reason", "score"]);
    for job in jobs {
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

/// Nodes with the accelerators that are free on them.
pub fn nodes(nodes: &[NodeSeen]) -> Listing {
    let mut rows = Listing::new(&["node", "accelerator", "gpus", "free", "health", "note"]);
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
