//! Every plan passes here, in simulation and live: no policy can break the cluster.

mod balance;
mod pools;
mod quotas;
mod share_limits;
mod shares;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cluster::NodeId;
use crate::job::JobId;
use crate::placement::Placement;
use crate::plan::{Change, Plan};
use crate::request::{Assign, RequestId, Target};
use crate::service::ServiceId;
use crate::view::ClusterView;
use balance::Balance;
use quotas::QuotaCheck;
use shares::ShareCheck;

/// A rule that a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Violation {
    /// The job is not active.
    #[error("job {} is not active", .job.0)]
    UnknownJob {
        /// Job of the change.
        job: JobId,
    },
    /// Two changes for one job.
    #[error("job {} is changed twice", .job.0)]
    Twice {
        /// Job of the change.
        job: JobId,
    },
    /// The node does not exist.
    #[error("job {} is placed on node {node}, which does not exist", .job.0)]
    UnknownNode {
        /// Job of the change.
        job: JobId,
        /// Node of the placement.
        node: NodeId,
    },
    /// The node has failed.
    #[error("job {} is placed on node {node}, which has failed", .job.0)]
    Unhealthy {
        /// Job of the change.
        job: JobId,
        /// Node of the placement.
        node: NodeId,
    },
    /// All or nothing: the job cannot run on that many accelerators.
    #[error("job {} runs on {min} to {max} accelerators, not on {gpus}", .job.0)]
    Gang {
        /// Job of the change.
        job: JobId,
        /// Number of accelerators in the plan.
        gpus: u32,
        /// Fewest accelerators that the job runs on.
        min: u32,
        /// Most accelerators that the job can use.
        max: u32,
    },
    /// A running job would be stopped in a run without preemption.
    #[error("job {} would be stopped, and this run goes without preemption", .job.0)]
    Preempted {
        /// Job of the change.
        job: JobId,
    },
    /// One job on two types of accelerator.
    #[error("job {} is placed on more than one type of accelerator", .job.0)]
    MixedTypes {
        /// Job of the change.
        job: JobId,
    },
    /// Two jobs on the same accelerators are changed together, to the same placement, and were
    /// measured together.
    #[error("job {} cannot share accelerators with job {}: {problem}", .job.0, .partner.0)]
    Sharing {
        /// Job of the change.
        job: JobId,
        /// The other one.
        partner: JobId,
        /// Reason of the refusal.
        problem: String,
    },
    /// A tenant would come to hold more compute or memory than its limit.
    #[error("tenant {tenant} would hold {held} {of}, and its limit is {limit}")]
    ShareLimit {
        /// Index of the tenant.
        tenant: u32,
        /// Unit of the amounts: percent of an accelerator, or MiB.
        of: &'static str,
        /// Amount after the plan.
        held: u64,
        /// Limit of the tenant.
        limit: u64,
    },
    /// A share of cards cannot be held so.
    #[error("job {} cannot have a share of cards of node {node}: {problem}", .job.0)]
    Share {
        /// Job of the change.
        job: JobId,
        /// Node of the cards.
        node: NodeId,
        /// Reason of the refusal.
        problem: String,
    },
    /// A tenant would come to hold more than its quota and what it may borrow; a policy that does
    /// not know quotas cannot be used in a run that has them.
    #[error("tenant {tenant} would hold {excess} accelerators of type {accelerator} more than its quota allows")]
    Quota {
        /// Index of the tenant.
        tenant: u32,
        /// Name of the accelerator type.
        accelerator: String,
        /// Number of accelerators above the quota.
        excess: u64,
    },
    /// Training runs on nodes for training, and on servers of the inference pool while they are lent.
    #[error("job {} is placed on node {node}, where training may not run: it belongs to inference and is not lent", .job.0)]
    NotForTraining {
        /// Job of the change.
        job: JobId,
        /// Node of the placement.
        node: NodeId,
    },
    /// A server cannot be lent or called back.
    #[error("node {node}: {problem}")]
    Loan {
        /// Node of the loan.
        node: NodeId,
        /// Reason of the refusal.
        problem: String,
    },
    /// A service cannot be scaled like this.
    #[error("service {} on node {node}: {problem}", .service.0)]
    Service {
        /// Service of the change.
        service: ServiceId,
        /// Node of the replicas.
        node: NodeId,
        /// Reason of the refusal.
        problem: String,
    },
    /// Fewer or more replicas than the service allows.
    #[error("service {} has {min} to {max} replicas, not {replicas}", .service.0)]
    Replicas {
        /// Service of the change.
        service: ServiceId,
        /// After the plan.
        replicas: u32,
        /// Smallest number of replicas that the service allows.
        min: u32,
        /// Largest number of replicas that the service allows.
        max: u32,
    },
    /// A request cannot be answered so.
    #[error("request {} cannot be answered so: {problem}", .request.0)]
    Assignment {
        /// Request that is assigned.
        request: RequestId,
        /// Reason of the refusal.
        problem: String,
    },
    /// Only a job that waits can be refused, and the plan does nothing else with it.
    #[error("job {} cannot be refused: {problem}", .job.0)]
    Refusal {
        /// Job that would be refused.
        job: JobId,
        /// Reason for which it cannot be.
        problem: String,
    },
    /// More accelerators than the node has.
    #[error("node {node} would be short of {missing} accelerators")]
    Capacity {
        /// Node that is short of accelerators.
        node: NodeId,
        /// Number of accelerators that are missing.
        missing: u32,
    },
}

/// The check, with buffers of its own so that checking allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    balance: Balance,
    seen: Vec<JobId>,
    shares: ShareCheck,
    quotas: QuotaCheck,
}

impl Guard {
    /// A guard with room for plans of `changes` changes on `nodes` nodes.
    pub fn with_capacity(nodes: usize, changes: usize) -> Self {
        Self { balance: Balance::with_capacity(nodes), seen: Vec::with_capacity(changes), ..Self::default() }
    }

    /// Checks `plan` against `view`: known jobs, each once; known nodes that have not failed;
    /// gangs; one accelerator type a job; pools, loans, replicas and requests; capacity and quotas
    /// after all releases.
    ///
    /// # Errors
    /// Every [`Violation`], in the order of the plan, capacity last; quotas are looked at where all
    /// else is in order.
    pub fn check(&mut self, view: &ClusterView<'_>, plan: &Plan) -> Result<(), Vec<Violation>> {
        let mut violations = Vec::new();
        self.balance.reset(view.idle.len());
        self.seen.clear();
        self.seen.extend(plan.changes.iter().map(|change| change.job));
        self.seen.sort_unstable();
        violations.extend(
            self.seen.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| Violation::Twice { job: pair[0] }),
        );
        for change in &plan.changes {
            let job = change.job;
            let Some(known) = view.job(job) else {
                violations.push(Violation::UnknownJob { job });
                continue;
            };
            // What two jobs share is free when both have left, and is taken once: it counts for the
            // first of them.
            let left = |partner: JobId| plan.changes.iter().any(|change| change.job == partner);
            let shares = |placement: &Placement| placement.share().is_some();
            if known.state.partner.is_none_or(|partner| job < partner && left(partner))
                && !shares(&known.state.placement)
            {
                for held in known.state.placement.slices() {
                    self.balance.add(held.node, i64::from(held.gpus));
                }
            }
            if let Some(partner) = change.partner
                && let Some(problem) = unfit(view, plan, change, partner)
            {
                violations.push(Violation::Sharing { job, partner, problem: problem.into() });
            }
            let (min, max, gpus) = (known.min_gpus(), known.request().max_gpus(), change.placement.gpus());
            let mixes = change.partner.is_none() && view.may_mix(&known, &change.placement);
            if gpus > 0 && !(min..=max).contains(&gpus) && !mixes {
                violations.push(Violation::Gang { job, gpus, min, max });
            }
            if gpus == 0 && known.gpus() > 0 && !view.preempts() {
                violations.push(Violation::Preempted { job });
            }
            let mut accelerator = None;
            for slice in change.placement.slices() {
                let Some(node) = view.cluster().nodes.get(slice.node.index()) else {
                    violations.push(Violation::UnknownNode { job, node: slice.node });
                    continue;
                };
                if !view.healthy(slice.node) {
                    violations.push(Violation::Unhealthy { job, node: slice.node });
                }
                if change.counts() && !shares(&change.placement) {
                    self.balance.add(slice.node, -i64::from(slice.gpus));
                }
                if *accelerator.get_or_insert(node.accelerator) != node.accelerator && !mixes {
                    violations.push(Violation::MixedTypes { job });
                }
            }
        }
        self.shares.check(view, plan, &mut self.balance, &mut violations);
        pools::check_training(view, plan, &mut violations);
        pools::check_loans(view, plan, &mut violations);
        pools::check_services(view, plan, &mut self.balance, &mut violations);
        self.check_assignments(view, plan, &mut violations);
        self.check_refusals(view, plan, &mut violations);
        let short = self.balance.short(view);
        violations.extend(short.map(|(node, missing)| Violation::Capacity { node, missing }));
        if violations.is_empty() {
            share_limits::check(view, plan, &mut violations);
        }
        // Quotas are summed over placements, so only a plan that is otherwise sound can be looked
        // at.
        if let Some(tree) = view.quotas().filter(|_| violations.is_empty()) {
            self.quotas.check(view, plan, tree, &mut violations);
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }
}

impl Guard {
    /// Jobs that wait, each once, and that the plan does not change.
    fn check_refusals(&self, view: &ClusterView<'_>, plan: &Plan, violations: &mut Vec<Violation>) {
        for (at, &job) in plan.refuse.iter().enumerate() {
            let problem = match view.job(job) {
                None => Some("it is not active"),
                Some(known) if known.state.is_allocated() => Some("it holds accelerators"),
                Some(_) if self.seen.binary_search(&job).is_ok() => Some("the plan changes it too"),
                Some(_) if plan.refuse[..at].contains(&job) => Some("it is refused twice"),
                Some(_) => None,
            };
            violations.extend(problem.map(|problem| Violation::Refusal { job, problem: problem.into() }));
        }
    }

    /// Requests that wait, each once, on idle instances of their model, each once, or on known
    /// nodes, where they may be answered after the plan. What is not held yet is taken.
    fn check_assignments(&mut self, view: &ClusterView<'_>, plan: &Plan, violations: &mut Vec<Violation>) {
        for (at, &Assign { request, target }) in plan.assign.iter().enumerate() {
            let twice = plan.assign[..at].iter().any(|other| match target {
                Target::Instance(_) => other.request == request || other.target == target,
                Target::Node(_) => other.request == request,
            });
            let waits = view.waiting_requests().binary_search(&request).is_ok();
            let model = view.request(request).map(|request| request.model);
            let (problem, node) = match target {
                _ if twice => (Some("it, or its instance, is named twice"), None),
                _ if !waits => (Some("it does not wait"), None),
                Target::Node(node) if !self.balance.knows(node) => (Some("there is no such node"), None),
                Target::Node(node) => (pools::unanswerable(view, plan, node), Some(node)),
                Target::Instance(id) => match view.instances().get(id) {
                    None => (Some("there is no such instance"), None),
                    Some(instance) if Some(instance.model) != model => (Some("the instance is of another model"), None),
                    Some(instance) if !instance.is_idle() => (Some("the instance is busy"), None),
                    Some(instance) => {
                        let problem = pools::unanswerable(view, plan, instance.node);
                        (problem, instance.is_free().then_some(instance.node))
                    }
                },
            };
            violations.extend(problem.map(|problem| Violation::Assignment { request, problem: problem.into() }));
            if let Some(node) = node {
                self.balance.add(node, -1);
            }
        }
    }
}

/// Reasons why a change to shared accelerators cannot be made.
fn unfit(view: &ClusterView<'_>, plan: &Plan, change: &Change, partner: JobId) -> Option<&'static str> {
    if partner == change.job {
        return Some("it is the same job");
    }
    let back = plan.changes.iter().find(|other| other.job == partner && other.partner == Some(change.job));
    let Some(back) = back else { return Some("that job is not to share with it") };
    if back.placement != change.placement {
        return Some("their placements differ");
    }
    let node = change.placement.slices().first().and_then(|slice| view.cluster().nodes.get(slice.node.index()));
    match node {
        None => Some("they would hold nothing"),
        Some(node) if view.shared_rates(change.job, partner, node.accelerator).is_none() => {
            Some("they were not measured together on this type of accelerator")
        }
        Some(_) => None,
    }
}
