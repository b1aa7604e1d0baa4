//! GuardConfig of a live cluster for plans, beyond what is possible at all: a plan does no harm.
//!
//! [`goodput_env::guard::Guard`] decides whether a plan can be at all; it is the same in
//! simulation. These rules leave changes out that come too soon, too often or at the wrong place,
//! one by one, and what is left is checked again.

use std::collections::{BTreeMap, BTreeSet};

use goodput_configs::live::guard::GuardConfig;
use goodput_env::cluster::NodeId;
use goodput_env::guard::{Guard, Violation};
use goodput_env::job::JobId;
use goodput_env::plan::{Change, Plan};
use goodput_env::service::ServiceId;
use goodput_env::view::ClusterView;
use serde::{Deserialize, Serialize};

use super::pools;

/// Reason why a change was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// An order for the job is under way.
    UnderWay,
    /// An administrator works on the job, or undid what was done to it twice.
    HandsOff,
    /// A node is drained, suspect, or not known.
    NodeNotUp,
    /// The job has not run long enough.
    MinRunTime,
    /// The job was moved too lately.
    PreemptRate,
    /// Too many accelerators at once.
    PreemptShare,
    /// Too many orders at once.
    ActionCap,
    /// Outside what a canary may touch.
    Canary,
    /// The engine cannot do it.
    Capability,
    /// The engine does not start or end replicas of services.
    ServiceScale,
    /// The load of a service is not known, so none of its replicas is ended and no node is lent.
    LoadUnknown,
    /// There is no room without the changes that were left out.
    NoRoom,
    /// The job's tenant would hold more than is available to it.
    Quota,
    /// The job's nodes were lost with many others lately: they may come back, and the job with
    /// them.
    MassFailure,
}

impl Rule {
    /// Name of the rule, as in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnderWay => "under-way",
            Self::HandsOff => "hands-off",
            Self::NodeNotUp => "node-not-up",
            Self::MinRunTime => "min-run-time",
            Self::PreemptRate => "preempt-rate",
            Self::PreemptShare => "preempt-share",
            Self::ActionCap => "action-cap",
            Self::Canary => "canary",
            Self::Capability => "capability",
            Self::ServiceScale => "service-scale",
            Self::LoadUnknown => "load-unknown",
            Self::NoRoom => "no-room",
            Self::Quota => "quota",
            Self::MassFailure => "mass-failure",
        }
    }
}

impl Rule {
    /// Whether the rule spends a budget, which another change may have used up.
    fn is_budget(self) -> bool {
        matches!(self, Self::PreemptShare | Self::ActionCap | Self::MassFailure)
    }

    /// Sentence about the rule, for the decision log.
    pub fn message(self) -> &'static str {
        match self {
            Self::UnderWay => "an order for the job is under way",
            Self::HandsOff => "an administrator works on the job",
            Self::NodeNotUp => "a node of the placement is drained, suspect or not known",
            Self::MinRunTime => "the job has not run long enough to be moved",
            Self::PreemptRate => "the job was moved too lately",
            Self::PreemptShare => "running jobs would leave too many accelerators in one cycle",
            Self::ActionCap => "the cycle has too many orders",
            Self::Canary => "the canary may not touch the job or a node of the placement",
            Self::Capability => "the engine cannot lend nodes, answer single requests or share accelerators",
            Self::ServiceScale => {
                "the engine cannot start or end replicas of services; scale the service by its own means"
            }
            Self::LoadUnknown => {
                "the load of a service is not known, so none of its replicas is ended and no node is lent"
            }
            Self::NoRoom => "there is no room without the changes that were left out",
            Self::Quota => "the tenant would hold more than is available to it",
            Self::MassFailure => "the nodes of the job were lost with many others lately",
        }
    }
}

/// Circumstances of a plan, beside the view.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// Jobs that an order is under way for.
    pub under_way: BTreeSet<JobId>,
    /// Jobs that are left alone.
    pub hands_off: BTreeSet<JobId>,
    /// Nodes where nothing may start.
    pub closed: BTreeSet<NodeId>,
    /// Time of the last order that moved or stopped a job.
    pub preempted: BTreeMap<JobId, goodput_env::time::SimTime>,
    /// Jobs and nodes that a canary may touch; everything where `None`.
    pub canary: Option<Canary>,
    /// Whether nodes can be lent.
    pub can_lend: bool,
    /// Whether the engine starts and ends replicas of services.
    pub can_scale: bool,
    /// Services with a load that is not known.
    pub unmeasured: BTreeSet<ServiceId>,
    /// Jobs that ran on nodes which were lost with many others lately.
    pub vanished: BTreeSet<JobId>,
    /// Number of vanished jobs that may be changed for now.
    pub vanished_budget: usize,
}

/// Limits of a canary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canary {
    /// Jobs that may be touched; `None`: no list of jobs, so the nodes alone decide.
    pub jobs: Option<BTreeSet<JobId>>,
    /// Nodes that may be touched; `None`: no list of nodes, so the jobs alone decide.
    pub nodes: Option<BTreeSet<NodeId>>,
    /// Orders left in this hour.
    pub budget: usize,
}

impl Canary {
    /// Whether a change of the job on these nodes is allowed; without any list nothing is.
    pub fn allows(&self, job: JobId, mut nodes: impl Iterator<Item = NodeId>) -> bool {
        let job_listed = self.jobs.as_ref().is_none_or(|jobs| jobs.contains(&job));
        let nodes_listed = self.nodes.as_ref().is_none_or(|listed| nodes.all(|node| listed.contains(&node)));
        (self.jobs.is_some() || self.nodes.is_some()) && job_listed && nodes_listed
    }

    /// Whether replicas and loans of the node may change. A list of jobs names no service.
    pub fn allows_services(&self, node: NodeId) -> bool {
        self.jobs.is_none() && self.nodes.as_ref().is_some_and(|nodes| nodes.contains(&node))
    }
}

/// Changes that were left out, by job where they are a job's, and why.
pub type LeftOut = Vec<(Option<JobId>, Rule)>;

/// The part of `plan` that may be carried out, and what was left out of it. What is left passes the
/// environment's guard.
///
/// A policy need not know of quotas: of a plan that exceeds them the last changes in favour of that
/// tenant are left out.
///
/// # Errors
/// Every [`Violation`] of the whole plan: it could not be at all, so its policy is not to be
/// trusted.
pub fn admit(
    rules: &GuardConfig,
    guard: &mut Guard,
    view: &ClusterView<'_>,
    plan: &Plan,
    about: &Circumstances,
) -> Result<(Plan, LeftOut), Vec<Violation>> {
    if let Err(violations) = guard.check(view, plan)
        && violations.iter().any(|violation| !matches!(violation, Violation::Quota { .. }))
    {
        return Err(violations);
    }
    // A change that changes nothing must not use up a budget.
    let unchanged = |change: &Change| view.job(change.job).is_some_and(|job| job.state.placement == change.placement);
    let mut wanted = plan.clone();
    wanted.changes.retain(|change| !unchanged(change));
    let mut without_room = LeftOut::new();
    loop {
        let (kept, refused, homeless) = admit_once(rules, guard, view, &wanted, about);
        let spent = refused.iter().any(|(_, rule)| rule.is_budget());
        let jobs: BTreeSet<JobId> = homeless.iter().filter_map(|(job, _)| *job).collect();
        without_room.extend(homeless);
        if !kept.changes.is_empty() || !spent || jobs.is_empty() {
            return Ok((kept, refused.into_iter().chain(without_room).collect()));
        }
        // What found no room has spent the budget of the changes that were refused, and nothing is left: the policy
        // would ask for this plan again and again. So these changes are asked without those that found no room.
        wanted.changes.retain(|change| !jobs.contains(&change.job));
        // Loans and replicas come without a job, and are judged anew in the next turn.
        without_room.retain(|(job, _)| job.is_some());
    }
}

/// The part of `wanted` that may be carried out, what a rule refused, and what found no room or no quota.
fn admit_once(
    rules: &GuardConfig,
    guard: &mut Guard,
    view: &ClusterView<'_>,
    wanted: &Plan,
    about: &Circumstances,
) -> (Plan, LeftOut, LeftOut) {
    let (mut left_out, mut homeless) = (LeftOut::new(), LeftOut::new());
    let mut kept = wanted.clone();
    let mut budget = Budget::new(rules, view, about);
    // Two jobs that share accelerators are changed together or not at all; engines run one job on
    // one accelerator.
    kept.changes.retain(|change| match budget.refuses(rules, view, about, change) {
        None => true,
        Some(rule) => {
            left_out.push((Some(change.job), rule));
            false
        }
    });
    pools::leave_out(view, about, budget.actions, &mut kept, &mut left_out);
    // What was to be released may have been left out: then there is no room, and no quota, for what
    // was to take it.
    while let Err(violations) = guard.check(view, &kept) {
        let before = kept.changes.len();
        let short: BTreeSet<NodeId> = violations.iter().filter_map(short_node).collect();
        let over: BTreeSet<u32> = violations.iter().filter_map(tenant_over).collect();
        let gains = |change: &Change| change.placement.slices().iter().any(|slice| short.contains(&slice.node));
        let exceeds = |change: &Change| {
            let tenant = view.job(change.job).map(|job| job.request().tenant);
            !change.placement.is_empty() && tenant.is_some_and(|tenant| over.contains(&tenant))
        };
        if let Some(at) = kept.changes.iter().rposition(exceeds) {
            homeless.push((Some(kept.changes.remove(at).job), Rule::Quota));
            continue;
        }
        if pools::leave_out_homeless(view, &violations, &BTreeSet::new(), &mut kept) {
            homeless.push((None, Rule::NoRoom));
            continue;
        }
        let Some(at) = kept.changes.iter().rposition(gains) else {
            if pools::leave_out_homeless(view, &violations, &short, &mut kept) {
                homeless.push((None, Rule::NoRoom));
                continue;
            }
            // No single change explains the violation, so nothing of the plan is safe.
            homeless.extend(kept.changes.drain(..).map(|change| (Some(change.job), Rule::NoRoom)));
            kept = Plan::keep();
            break;
        };
        homeless.push((Some(kept.changes.remove(at).job), Rule::NoRoom));
        debug_assert!(kept.changes.len() < before);
    }
    (kept, left_out, homeless)
}

fn tenant_over(violation: &Violation) -> Option<u32> {
    match violation {
        Violation::Quota { tenant, .. } => Some(*tenant),
        _ => None,
    }
}

fn short_node(violation: &Violation) -> Option<NodeId> {
    match violation {
        Violation::Capacity { node, .. } => Some(*node),
        _ => None,
    }
}

struct Budget {
    actions: usize,
    /// Accelerators that running jobs may still be asked to leave.
    preempted: u32,
    /// Jobs lost in a mass failure that may still be changed.
    vanished: usize,
}

impl Budget {
    fn new(rules: &GuardConfig, view: &ClusterView<'_>, about: &Circumstances) -> Self {
        let total = f64::from(view.cluster().total_gpus());
        let canary = about.canary.as_ref().map_or(usize::MAX, |canary| canary.budget);
        // At least the largest job may be moved, or in a small cluster none ever could.
        let largest = view.jobs().map(|job| job.gpus()).max().unwrap_or(0);
        let preempted = ((rules.preempt_percent / 100.0 * total).floor() as u32).max(largest);
        Self { actions: rules.max_actions.min(canary), preempted, vanished: about.vanished_budget }
    }

    fn refuses(
        &mut self,
        rules: &GuardConfig,
        view: &ClusterView<'_>,
        about: &Circumstances,
        change: &Change,
    ) -> Option<Rule> {
        // A plan about an unknown job has been refused by the guard already.
        let job = view.job(change.job)?;
        if about.under_way.contains(&change.job) {
            return Some(Rule::UnderWay);
        }
        if about.hands_off.contains(&change.job) {
            return Some(Rule::HandsOff);
        }
        if change.partner.is_some() {
            return Some(Rule::Capability);
        }
        let nodes = || change.placement.slices().iter().chain(job.state.placement.slices()).map(|slice| slice.node);
        // A job may leave a closed node, but none may start there.
        if change.placement.slices().iter().any(|slice| about.closed.contains(&slice.node)) {
            return Some(Rule::NodeNotUp);
        }
        // A node that the engine itself cannot lend is lent by others, for their jobs.
        if !about.can_lend && nodes().any(|node| view.lent(node)) {
            return Some(Rule::Capability);
        }
        if about.canary.as_ref().is_some_and(|canary| !canary.allows(change.job, nodes())) {
            return Some(Rule::Canary);
        }
        let held = job.gpus();
        if held > 0 {
            if (view.now - job.state.changed).as_secs_f64() < rules.min_run_secs {
                return Some(Rule::MinRunTime);
            }
            let last = about.preempted.get(&change.job);
            if last.is_some_and(|&last| (view.now - last).as_secs_f64() < rules.preempt_every_secs) {
                return Some(Rule::PreemptRate);
            }
            if held > self.preempted {
                return Some(Rule::PreemptShare);
            }
        }
        let vanished = about.vanished.contains(&change.job);
        if vanished && self.vanished == 0 {
            return Some(Rule::MassFailure);
        }
        if self.actions == 0 {
            return Some(Rule::ActionCap);
        }
        // Nothing refuses the change from here on, so budgets are spent only now.
        self.actions -= 1;
        self.vanished -= usize::from(vanished);
        self.preempted -= if held > 0 { held } else { 0 };
        None
    }
}
