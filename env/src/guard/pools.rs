//! Rules of the guard about pools and services: the jobs that a pool admits, loans of whole
//! servers, room for replicas.

use super::Violation;
use super::balance::Balance;
use crate::cluster::{NodeId, Pool};
use crate::plan::{Change, Plan, Scale};
use crate::service::ServiceId;
use crate::state::{Loan, ReplicaPhase};
use crate::time::SimTime;
use crate::view::ClusterView;

/// Training runs where it may after the plan, and on a server that is called back goes on with what
/// it has there.
pub(super) fn check_training(view: &ClusterView<'_>, plan: &Plan, violations: &mut Vec<Violation>) {
    if !view.has_pools() {
        return;
    }
    for Change { job, placement, .. } in &plan.changes {
        let held = view.job(*job).map(|job| job.state.placement.slices()).unwrap_or_default();
        for slice in placement.slices().iter().filter(|slice| slice.node.index() < view.cluster().nodes.len()) {
            let node = slice.node;
            let called = plan.reclaim.iter().any(|reclaim| reclaim.node == node);
            let open = (view.may_train(node) && !called) || plan.lend.contains(&node);
            if open {
                continue;
            }
            let here = held.iter().filter(|held| held.node == node).map(|held| held.gpus).sum();
            let there: u32 = placement.slices().iter().filter(|of| of.node == node).map(|of| of.gpus).sum();
            if there > here {
                violations.push(Violation::NotForTraining { job: *job, node });
            }
        }
    }
}

/// Servers that are lent are whole, without a request at work, and at home; those called back are lent.
pub(super) fn check_loans(view: &ClusterView<'_>, plan: &Plan, violations: &mut Vec<Violation>) {
    let mut refuse = |node, problem: &str| violations.push(Violation::Loan { node, problem: problem.into() });
    let known = |node: NodeId| view.cluster().nodes.get(node.index()).is_some_and(|node| node.pool == Pool::Inference);
    for (at, &node) in plan.lend.iter().enumerate() {
        if !known(node) {
            refuse(node, "it is no server of the inference pool");
        } else if view.lent(node) {
            refuse(node, "it is lent already");
        } else if !view.owned(node) {
            refuse(node, "it belongs to another cluster now");
        } else if plan.lend[..at].contains(&node) {
            refuse(node, "it is lent twice");
        } else if left_of_services(view, plan, node) > 0 {
            refuse(node, "replicas are left on it; servers are lent whole");
        } else if view.instances().answers_on(node) {
            refuse(node, "a request is being answered on it; servers are lent whole");
        }
    }
    for (at, reclaim) in plan.reclaim.iter().enumerate() {
        let node = reclaim.node;
        if !known(node) || !matches!(view.loan(node), Loan::Lent { .. }) {
            refuse(node, "it cannot be called back, for it is not lent");
        } else if plan.reclaim[..at].iter().any(|other| other.node == node) {
            refuse(node, "it is called back twice");
        } else if reclaim.deadline < view.now {
            refuse(node, "its deadline has passed");
        }
    }
}

/// Reason why no request may be answered on `node` after the plan.
pub(super) fn unanswerable(view: &ClusterView<'_>, plan: &Plan, node: NodeId) -> Option<&'static str> {
    match view.pool(node) {
        Pool::Training => Some("the node is for training"),
        Pool::Inference if !view.owned(node) => Some("the server belongs to another cluster now"),
        Pool::Inference if !view.may_answer(node) => Some("the server is called back"),
        Pool::Inference if plan.reclaim.iter().any(|reclaim| reclaim.node == node) => Some("the server is called back"),
        Pool::Inference if plan.lend.contains(&node) => {
            Some("the server is lent by the same plan, and servers are lent whole")
        }
        Pool::Inference | Pool::Shared => None,
    }
}

/// Replicas are of known services, fit their limits, and start only where they may and can run.
/// Enters what they take and leave into `balance`, which holds the plan's training jobs already.
pub(super) fn check_services(
    view: &ClusterView<'_>,
    plan: &Plan,
    balance: &mut Balance,
    violations: &mut Vec<Violation>,
) {
    // Before anything is entered: what training leaves on each server.
    let empty = |node: NodeId, balance: &Balance| i64::from(view.trained_on(node)) - balance.change(node) <= 0;
    let mut serves = Vec::new();
    for scale in &plan.scale {
        let home = balance.knows(scale.node) && {
            let called = plan.reclaim.iter().any(|reclaim| reclaim.node == scale.node);
            let returning = matches!(view.loan(scale.node), Loan::Returning { .. });
            (view.may_serve(scale.node) && !plan.lend.contains(&scale.node))
                || ((called || returning) && empty(scale.node, balance))
        };
        serves.push(home);
    }
    for (at, (scale, home)) in plan.scale.iter().zip(serves).enumerate() {
        let Scale { service: id, node, replicas } = *scale;
        let mut refuse = |problem: String| violations.push(Violation::Service { service: id, node, problem });
        let (Some(service), Some(machine)) = (view.service(id), view.cluster().nodes.get(node.index())) else {
            refuse("no such service or node".into());
            continue;
        };
        if plan.scale[..at].iter().any(|other| (other.service, other.node) == (id, node)) {
            refuse("it is scaled twice".into());
            continue;
        }
        let change = Exchange::of(view, scale);
        balance.add(node, i64::from(change.freed) - i64::from(change.taken));
        if change.taken == 0 {
            continue;
        }
        if !home {
            refuse("replicas may not run on this node".into());
        } else if service.profile(machine.accelerator).is_none() {
            refuse("it has no serving profile on this type of accelerator".into());
        } else if replicas.saturating_mul(service.gpus_per_replica()) > machine.gpus {
            refuse(format!("{replicas} replicas do not fit"));
        }
    }
    check_limits(view, plan, violations);
}

fn check_limits(view: &ClusterView<'_>, plan: &Plan, violations: &mut Vec<Violation>) {
    let mut seen: Vec<ServiceId> = plan.scale.iter().map(|scale| scale.service).collect();
    seen.sort_unstable();
    seen.dedup();
    for service in seen.into_iter().filter_map(|id| view.service(id)) {
        let (min, max) = service.replica_limits();
        let before = service.state.lasting().count() as i64;
        let of_it = plan.scale.iter().filter(|scale| scale.service == service.id());
        let change: i64 =
            of_it.map(|scale| i64::from(scale.replicas) - i64::from(service.state.replicas_on(scale.node))).sum();
        let after = before + change;
        // A service that is outside its limits already may move towards them.
        if (change > 0 && after > i64::from(max)) || (change < 0 && after < i64::from(min)) {
            violations.push(Violation::Replicas { service: service.id(), replicas: after.max(0) as u32, min, max });
        }
    }
}

/// Accelerators that a change of replicas frees and takes at once.
struct Exchange {
    freed: u32,
    taken: u32,
}

impl Exchange {
    fn of(view: &ClusterView<'_>, scale: &Scale) -> Self {
        let Some(service) = view.service(scale.service) else { return Self { freed: 0, taken: 0 } };
        let here = || service.state.lasting().rev().filter(|replica| replica.node == scale.node);
        let count = here().count() as u32;
        let surplus = count.saturating_sub(scale.replicas);
        let at_once = service.drain() <= SimTime::ZERO;
        let freed = here().take(surplus as usize).filter(|replica| at_once || replica.phase != ReplicaPhase::Ready);
        let gpus = service.gpus_per_replica();
        Self { freed: freed.count() as u32 * gpus, taken: scale.replicas.saturating_sub(count).saturating_mul(gpus) }
    }
}

/// Accelerators that replicas hold on `node` after the plan.
fn left_of_services(view: &ClusterView<'_>, plan: &Plan, node: NodeId) -> i64 {
    let changes = plan.scale.iter().filter(|scale| scale.node == node).map(|scale| Exchange::of(view, scale));
    i64::from(view.served_on(node))
        + changes.map(|change| i64::from(change.taken) - i64::from(change.freed)).sum::<i64>()
}
