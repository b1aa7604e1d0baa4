//! Whether an order is carried out, by what a snapshot shows and nothing else.

use super::{Action, JobPhase, JobSeen, NodeHealth, OnNode, Order, Snapshot, Verdict};

/// Judges `order` by `snapshot`.
pub fn verify(order: &Order, snapshot: &Snapshot) -> Verdict {
    let lost = |reason: &str| Verdict::Lost { reason: reason.into() };
    let node = |name: &str| snapshot.nodes.iter().find(|node| node.name == name);
    let on_node = |name: &str, done: &dyn Fn(&super::NodeSeen) -> bool| match node(name) {
        None => lost("there is no such node"),
        Some(node) if done(node) => Verdict::Done,
        Some(_) => Verdict::Pending,
    };
    match &order.action {
        Action::Drain { node, .. } => on_node(node, &|node| node.health != NodeHealth::Up),
        Action::Undrain { node } => on_node(node, &|node| node.health == NodeHealth::Up),
        Action::Lend { node } => on_node(node, &|node| node.lent),
        Action::Scale { service, node, replicas } => {
            match snapshot.services.iter().find(|seen| seen.name == *service) {
                None => lost("there is no such service"),
                Some(seen) if seen.lasting_on(node) == *replicas => Verdict::Done,
                Some(_) => Verdict::Pending,
            }
        }
        Action::Return { node, .. } => on_node(node, &|node| !node.lent),
        _ => match snapshot.jobs.iter().find(|job| job.key == order.job) {
            None => lost("the job is gone"),
            Some(job) => of_job(order, job),
        },
    }
}

fn of_job(order: &Order, job: &JobSeen) -> Verdict {
    let lost = |reason: &str| Verdict::Lost { reason: reason.into() };
    let done_if = |done: bool| if done { Verdict::Done } else { Verdict::Pending };
    let over = job.phase.is_over();
    if let Action::Cancel { .. } = order.action {
        return done_if(over);
    }
    // While it leaves, engines count its starts one way or the other.
    if job.phase == JobPhase::Stopping {
        return Verdict::Pending;
    }
    // A short job may start and end between two snapshots: an order that started it was carried
    // out.
    let moved_on = job.starts > order.starts;
    match &order.action {
        Action::Place { placement, .. } | Action::Resize { placement, .. } | Action::Migrate { placement, .. } => {
            match &job.attempt {
                _ if over && moved_on => Verdict::Done,
                _ if over => lost("the job ended before"),
                Some(attempt) if moved_on && same(&attempt.placement, placement) => Verdict::Done,
                Some(_) if moved_on => lost("the job runs elsewhere"),
                None if moved_on && job.phase == JobPhase::Held => lost("the job started and was stopped again"),
                _ => Verdict::Pending,
            }
        }
        Action::Stop { .. } if over => lost("the job ended by itself"),
        Action::Stop { .. } if moved_on => lost("the job was started again"),
        Action::Stop { .. } => done_if(!job.phase.holds()),
        _ if over => lost("the job ended by itself"),
        Action::Suspend => done_if(job.phase == JobPhase::Suspended),
        Action::Resume => done_if(job.phase == JobPhase::Running),
        _ => lost("no action on a job"),
    }
}

/// Whether two placements are the same number of accelerators on the same nodes; which ones counts
/// only where both say.
pub(crate) fn same(one: &[OnNode], other: &[OnNode]) -> bool {
    let gpus_on = |on: &[OnNode], node: &str| -> u32 { on.iter().filter(|o| o.node == node).map(|o| o.gpus).sum() };
    one.iter().chain(other).all(|on| gpus_on(one, &on.node) == gpus_on(other, &on.node))
}
