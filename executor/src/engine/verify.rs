//! Whether an order is carried out, by what a snapshot shows and nothing else.

use super::{ClusterSnapshot, EngineAction, JobPhase, JobSeen, MembersSeen, NodeHealth, OnNode, Order, OrderProgress};

/// Judges `order` by `snapshot`.
pub fn verify(order: &Order, snapshot: &ClusterSnapshot) -> OrderProgress {
    let lost = |reason: &str| OrderProgress::Lost { reason: reason.into() };
    let node = |name: &str| snapshot.nodes.iter().find(|node| node.name == name);
    let on_node = |name: &str, done: &dyn Fn(&super::NodeSeen) -> bool| match node(name) {
        None => lost("there is no such node"),
        Some(node) if done(node) => OrderProgress::Done,
        Some(_) => OrderProgress::Pending,
    };
    match &order.action {
        EngineAction::Drain { node, .. } => on_node(node, &|node| node.health != NodeHealth::Up),
        EngineAction::Undrain { node } => on_node(node, &|node| node.health == NodeHealth::Up),
        EngineAction::Lend { node } => on_node(node, &|node| node.lent),
        EngineAction::Scale { service, node, replicas } => {
            match snapshot.services.iter().find(|seen| seen.name == *service) {
                None => lost("there is no such service"),
                Some(seen) if seen.lasting_on(node) == *replicas => OrderProgress::Done,
                Some(_) => OrderProgress::Pending,
            }
        }
        EngineAction::Return { node, .. } => on_node(node, &|node| !node.lent),
        _ => match snapshot.jobs.iter().find(|job| job.key == order.job) {
            None => lost("the job is gone"),
            Some(job) => of_job(order, job),
        },
    }
}

fn of_job(order: &Order, job: &JobSeen) -> OrderProgress {
    let lost = |reason: &str| OrderProgress::Lost { reason: reason.into() };
    let done_if = |done: bool| if done { OrderProgress::Done } else { OrderProgress::Pending };
    let over = job.phase.is_over();
    if let EngineAction::Cancel { .. } = order.action {
        return done_if(over);
    }
    // While it leaves, engines count its starts one way or the other.
    if job.phase == JobPhase::Stopping {
        return OrderProgress::Pending;
    }
    // A short job may start and end between two snapshots: an order that started it was carried
    // out.
    let moved_on = job.starts > order.starts;
    let settled = job.members == Some(MembersSeen::Settled);
    match &order.action {
        // Members joined and left, and the attempt went on.
        EngineAction::Resize { placement, .. } | EngineAction::Migrate { placement, .. }
            if settled && !moved_on && !over =>
        {
            done_if(job.attempt.as_ref().is_some_and(|attempt| same(&attempt.placement, placement)))
        }
        EngineAction::Place { placement, .. }
        | EngineAction::Resize { placement, .. }
        | EngineAction::Migrate { placement, .. } => match &job.attempt {
            _ if over && moved_on => OrderProgress::Done,
            _ if over => lost("the job ended before"),
            Some(attempt) if moved_on && same(&attempt.placement, placement) => OrderProgress::Done,
            Some(_) if moved_on => lost("the job runs elsewhere"),
            None if moved_on && job.phase == JobPhase::Held => lost("the job started and was stopped again"),
            _ => OrderProgress::Pending,
        },
        EngineAction::Stop { .. } if over => lost("the job ended by itself"),
        EngineAction::Stop { .. } if moved_on => lost("the job was started again"),
        EngineAction::Stop { .. } => done_if(!job.phase.holds()),
        _ if over => lost("the job ended by itself"),
        EngineAction::Suspend => done_if(job.phase == JobPhase::Suspended),
        EngineAction::Resume => done_if(job.phase == JobPhase::Running),
        _ => lost("no action on a job"),
    }
}

/// Whether two placements are the same number of accelerators on the same nodes; which ones counts
/// only where both say.
pub(crate) fn same(one: &[OnNode], other: &[OnNode]) -> bool {
    let gpus_on = |on: &[OnNode], node: &str| -> u32 { on.iter().filter(|o| o.node == node).map(|o| o.gpus).sum() };
    // Either list may have a node that the other one lacks.
    one.iter().chain(other).all(|on| gpus_on(one, &on.node) == gpus_on(other, &on.node))
}
