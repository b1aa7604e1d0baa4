//! A plan says where jobs are to be; orders say what has to be done for that.

use std::collections::BTreeMap;

use goodput_env::cluster::NodeId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::view::ClusterView;

use crate::daemon::observe::ClusterObserver;
use crate::engine::{AcceleratorShare, ClusterSnapshot, EngineAction, JobSeen, Order};

/// Part of each accelerator of a placement; `None` where it holds whole ones. Of parts that differ by one the smallest
/// counts, so that all together are no more than the job asked for.
fn part(placement: &Placement) -> Option<AcceleratorShare> {
    let (_, share) = placement.share()?;
    let count = share.cards.len() as u32;
    let least = share.amount.part(count, count.saturating_sub(1));
    let percent = least.compute_percent.clamp(1, 100);
    Some(AcceleratorShare { compute_percent: percent as u8, memory_mib: least.memory_mib })
}

/// The orders that carry `plan` out: what leaves first, then what moves, then what starts.
pub fn orders(
    name: &str,
    plan: &Plan,
    view: &ClusterView<'_>,
    observer: &ClusterObserver,
    snapshot: &ClusterSnapshot,
    grace_s: u32,
) -> Vec<Order> {
    let mut orders = Vec::with_capacity(plan.changes.len());
    let seen: BTreeMap<&str, &JobSeen> = snapshot.jobs.iter().map(|seen| (seen.key.as_str(), seen)).collect();
    for change in &plan.changes {
        let (Some(job), Some(key)) = (view.job(change.job), observer.key(change.job)) else { continue };
        let Some(seen) = seen.get(key) else { continue };
        let (held, wanted) = (&job.state.placement, &change.placement);
        let placement = observer.named(wanted);
        let action = match (held.is_empty(), wanted.is_empty()) {
            (true, true) => continue,
            _ if held == wanted => continue,
            (true, false) => EngineAction::Place { placement, share: part(wanted) },
            (false, true) => EngineAction::Stop { grace_s },
            // Orders to move say nothing of parts: the job leaves, and a later plan places it anew.
            _ if held.share().is_some() || wanted.share().is_some() => EngineAction::Stop { grace_s },
            (false, false) if held.gpus() == wanted.gpus() => EngineAction::Migrate { placement, grace_s },
            (false, false) => EngineAction::Resize { placement, grace_s },
        };
        orders.push(Order::named(name, key, seen.starts, action));
    }
    let node = |node: NodeId| observer.node(node).unwrap_or_default().to_string();
    orders.extend(plan.lend.iter().map(|&at| Order::named(name, "", 0, EngineAction::Lend { node: node(at) })));
    orders.extend(plan.scale.iter().filter_map(|scale| {
        let service = observer.service(scale.service)?.to_string();
        let node = node(scale.node);
        // Policies repeat what a service has already, or has once the orders under way are done.
        let changes = view.service(scale.service)?.state.replicas_on(scale.node) != scale.replicas;
        changes.then(|| Order::named(name, "", 0, EngineAction::Scale { service, node, replicas: scale.replicas }))
    }));
    orders.extend(plan.reclaim.iter().map(|reclaim| {
        let deadline_ms = snapshot.at_ms + observer.engine_ms(reclaim.deadline - view.now);
        Order::named(name, "", 0, EngineAction::Return { node: node(reclaim.node), deadline_ms })
    }));
    // The sort is stable, so orders of one kind keep the order of the plan.
    orders.sort_by_key(|order| match order.action {
        EngineAction::Stop { .. } | EngineAction::Cancel { .. } => 0,
        EngineAction::Lend { .. } | EngineAction::Return { .. } | EngineAction::Scale { .. } => 1,
        EngineAction::Resize { .. } | EngineAction::Migrate { .. } => 2,
        _ => 3,
    });
    orders
}
