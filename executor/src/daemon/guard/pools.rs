//! Rules of a live cluster for the parts of a plan about services, requests and loans.

use std::collections::BTreeSet;

use goodput_env::cluster::NodeId;
use goodput_env::guard::Violation;
use goodput_env::plan::{Plan, Scale};
use goodput_env::service::ServiceId;
use goodput_env::view::ClusterView;

use super::rules::{Circumstances, LeftOut, Rule};

/// Leaves out of `kept` the parts about services, requests and loans that the engine cannot carry
/// out or that may not be touched, and the changes of jobs that rest on them. At most `orders` of
/// them stay.
pub(super) fn leave_out(
    view: &ClusterView<'_>,
    about: &Circumstances,
    orders: usize,
    kept: &mut Plan,
    left_out: &mut LeftOut,
) {
    let (lent, scaled) = (kept.lend.clone(), kept.scale.clone());
    if !kept.assign.is_empty() {
        kept.assign.clear();
        left_out.push((None, Rule::Capability));
    }
    if !(kept.scale.is_empty() || about.can_scale) {
        kept.scale.clear();
        left_out.push((None, Rule::ServiceScale));
    }
    if !(about.can_lend || kept.lend.is_empty() && kept.reclaim.is_empty()) {
        kept.lend.clear();
        kept.reclaim.clear();
        left_out.push((None, Rule::Capability));
    }
    leave_out_unmeasured(view, about, kept, left_out);
    if let Some(canary) = &about.canary {
        keep_nodes(kept, |node| canary.allows_services(node), Rule::Canary, left_out);
    }
    let starts = |scale: &Scale| grows(view, scale) && about.closed.contains(&scale.node);
    let before = kept.scale.len() + kept.lend.len();
    kept.scale.retain(|scale| !starts(scale));
    kept.lend.retain(|node| !about.closed.contains(node));
    if kept.scale.len() + kept.lend.len() < before {
        left_out.push((None, Rule::NodeNotUp));
    }
    if kept.scale.len() + kept.lend.len() + kept.reclaim.len() > orders {
        keep_nodes(kept, |_| false, Rule::ActionCap, left_out);
    }
    // A server cannot be lent while its replicas stay.
    let gone: BTreeSet<NodeId> =
        scaled.iter().filter(|scale| !kept.scale.contains(scale)).map(|scale| scale.node).collect();
    kept.lend.retain(|node| view.served_on(*node) == 0 || !gone.contains(node));
    let home = |node: NodeId| lent.contains(&node) && !kept.lend.contains(&node);
    kept.changes.retain(|change| {
        let rests_on_loan = change.placement.slices().iter().any(|slice| home(slice.node));
        if rests_on_loan {
            left_out.push((Some(change.job), Rule::NoRoom));
        }
        !rests_on_loan
    });
}

/// Leaves out what takes room from services while a load is unknown, which is not a load of zero:
/// all about the services where any of their replicas would end, and all loans.
fn leave_out_unmeasured(view: &ClusterView<'_>, about: &Circumstances, kept: &mut Plan, left_out: &mut LeftOut) {
    let ends = |scale: &Scale| {
        let ends = view.service(scale.service).is_some_and(|of| of.state.replicas_on(scale.node) > scale.replicas);
        about.unmeasured.contains(&scale.service) && ends
    };
    let kept_as_they_are: BTreeSet<ServiceId> =
        kept.scale.iter().filter(|scale| ends(scale)).map(|scale| scale.service).collect();
    let lends = !(about.unmeasured.is_empty() || kept.lend.is_empty());
    if lends || !kept_as_they_are.is_empty() {
        kept.scale.retain(|scale| !kept_as_they_are.contains(&scale.service));
        kept.lend.retain(|_| !lends);
        left_out.push((None, Rule::LoadUnknown));
    }
}

/// Keeps services and loans of the nodes for which `open` holds.
fn keep_nodes(kept: &mut Plan, open: impl Fn(NodeId) -> bool, rule: Rule, left_out: &mut LeftOut) {
    let before = kept.scale.len() + kept.lend.len() + kept.reclaim.len();
    kept.scale.retain(|scale| open(scale.node));
    kept.lend.retain(|&node| open(node));
    kept.reclaim.retain(|reclaim| open(reclaim.node));
    if kept.scale.len() + kept.lend.len() + kept.reclaim.len() < before {
        left_out.push((None, rule));
    }
}

/// Whether a service gets more replicas on the node.
fn grows(view: &ClusterView<'_>, scale: &Scale) -> bool {
    view.service(scale.service).is_none_or(|service| service.state.replicas_on(scale.node) < scale.replicas)
}

/// Leaves out of `kept` the new replicas that may not run where they are planned, or where `short`
/// says that there is no room, without the changes that were left out. `false`: there is none.
pub(super) fn leave_out_homeless(
    view: &ClusterView<'_>,
    violations: &[Violation],
    short: &BTreeSet<NodeId>,
    kept: &mut Plan,
) -> bool {
    let before = kept.scale.len();
    let refused = |scale: &Scale| {
        let about = |violation: &Violation| match violation {
            Violation::Service { service, node, .. } => (*service, *node) == (scale.service, scale.node),
            _ => false,
        };
        violations.iter().any(about)
    };
    kept.scale.retain(|scale| !(refused(scale) || grows(view, scale) && short.contains(&scale.node)));
    kept.scale.len() < before
}
