//! Dominant resource fairness (Ghodsi et al., NSDI'11): the next task goes to the user with the
//! smallest dominant share, the largest share of any resource.
//!
//! [`fill`] is the paper's progressive filling over any resources, a task at a time. The policy is
//! its online form on a cluster, where the resources are the accelerator types: a tenant's dominant
//! share is its largest fraction of any one type. As in the paper nothing is preempted: a task is a
//! job at the size it asked for, and runs to its end. A tenant is passed over if its oldest job
//! does not fit, so that no accelerator idles for that job.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use goodput_env::cluster::{Cluster, TypeId};
use goodput_env::job::JobId;
use goodput_env::placement::{Placement, pack};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::view::{ClusterView, JobView};

use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};

/// Entries of DRF in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "drf",
    about: "the next grant to the tenant with the smallest dominant share; not preemptive",
    source: "Ghodsi et al., NSDI 2011",
    traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
    constructor: &Fixed(|_| Box::new(Drf::default())),
    replica: None,
}];

/// Fraction of a resource. Compared exactly, so that no order depends on rounding.
#[derive(Clone, Copy, Debug)]
pub struct ResourceFraction {
    /// Units that are held.
    pub part: u64,
    /// Units in all; not 0.
    pub whole: u64,
}

impl ResourceFraction {
    /// Fraction as a number in [0, 1].
    pub fn value(self) -> f64 {
        self.part as f64 / self.whole as f64
    }
}

impl Ord for ResourceFraction {
    fn cmp(&self, other: &Self) -> Ordering {
        // The product of two numbers of 64 bits always fits into 128.
        let cross = |a: u64, b: u64| u128::from(a) * u128::from(b);
        cross(self.part, other.whole).cmp(&cross(other.part, self.whole))
    }
}

impl PartialOrd for ResourceFraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ResourceFraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ResourceFraction {}

/// Largest share of any resource that `held` is of `capacity`; resources that do not exist count
/// for nothing.
pub fn dominant_share(held: &[u64], capacity: &[u64]) -> ResourceFraction {
    let shares = held.iter().zip(capacity).filter(|(_, whole)| **whole > 0);
    shares
        .map(|(&part, &whole)| ResourceFraction { part, whole })
        .max()
        .unwrap_or(ResourceFraction { part: 0, whole: 1 })
}

/// Allocation by progressive filling, as [`fill`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filling {
    /// Number of tasks by user.
    pub tasks: Vec<u64>,
    /// Users in the order they were granted a task.
    pub order: Vec<usize>,
    /// Dominant share by user.
    pub shares: Vec<ResourceFraction>,
}

/// Progressive filling (the paper's algorithm 1): tasks are granted one at a time to the user with
/// the smallest dominant share, the first on ties, until no user's next task fits.
/// `demands[user][resource]` is for one task; a user that asks for nothing gets nothing.
///
/// The example of the paper's section 4.1: nine processors and 18 GB, for tasks of one processor
/// and 4 GB, and of three processors and 1 GB.
///
/// ```
/// use goodput_agents::heuristic::drf::fill;
///
/// assert_eq!(fill(&[9, 18], &[vec![1, 4], vec![3, 1]]).tasks, [3, 2]);
/// ```
pub fn fill(capacity: &[u64], demands: &[Vec<u64>]) -> Filling {
    let mut used = vec![0; capacity.len()];
    let mut held: Vec<Vec<u64>> = demands.iter().map(|demand| vec![0; demand.len()]).collect();
    let (mut tasks, mut order) = (vec![0; demands.len()], Vec::new());
    let asks = |user: &usize| demands[*user].iter().any(|&amount| amount > 0);
    let share = |held: &[u64]| dominant_share(held, capacity);
    let mut queue: BTreeSet<(ResourceFraction, usize)> =
        (0..demands.len()).filter(asks).map(|user| (share(&held[user]), user)).collect();
    while let Some((_, user)) = queue.pop_first() {
        let demand = &demands[user];
        if demand.iter().zip(&used).zip(capacity).any(|((amount, used), whole)| used + amount > *whole) {
            continue;
        }
        for ((used, held), amount) in used.iter_mut().zip(&mut held[user]).zip(demand) {
            *used += amount;
            *held += amount;
        }
        tasks[user] += 1;
        order.push(user);
        queue.insert((share(&held[user]), user));
    }
    Filling { tasks, order, shares: held.iter().map(|held| share(held)).collect() }
}

/// Online dominant resource fairness over accelerator types. A job gets the type with most free
/// accelerators of those it runs on, on as few nodes as possible. Ties go to the lower tenant, and
/// within a tenant by (submission, id).
#[derive(Clone, Debug, Default)]
pub struct Drf {
    free: Vec<u32>,
}

/// Tenant at one decision.
struct DrfTenant {
    /// Accelerators held, by type.
    held: Vec<u64>,
    waiting: VecDeque<JobId>,
}

impl Policy for Drf {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let cluster = view.cluster();
        let mut plan = Plan::keep();
        self.free.clear();
        self.free.extend_from_slice(view.free());
        let capacity = by_type(cluster, cluster.nodes.iter().map(|node| node.gpus));
        let mut free = by_type(cluster, self.free.iter().copied());
        if free.iter().all(|&gpus| gpus == 0) {
            return plan;
        }

        let mut tenants: BTreeMap<u32, DrfTenant> = BTreeMap::new();
        for job in view.jobs() {
            let fresh = || DrfTenant { held: vec![0; capacity.len()], waiting: VecDeque::new() };
            let tenant = tenants.entry(job.request().tenant).or_insert_with(fresh);
            if job.state.is_allocated() {
                for slice in job.state.placement.slices() {
                    let kind = cluster.type_of(slice.node);
                    tenant.held[kind.index()] += u64::from(slice.gpus);
                }
            } else {
                tenant.waiting.push_back(job.id());
            }
        }

        let share = |tenant: &DrfTenant| dominant_share(&tenant.held, &capacity);
        let mut queue: BTreeSet<(ResourceFraction, u32)> =
            tenants.iter().map(|(&id, tenant)| (share(tenant), id)).collect();
        while let Some((_, id)) = queue.pop_first() {
            let Some(tenant) = tenants.get_mut(&id) else { continue };
            let Some(job) = tenant.waiting.pop_front().and_then(|job| view.job(job)) else { continue };
            let Some((kind, placement)) = self.grant(cluster, &free, &job) else { continue };
            let gpus = u64::from(placement.gpus());
            free[kind.index()] -= gpus;
            tenant.held[kind.index()] += gpus;
            plan.set(job.id(), placement);
            queue.insert((share(tenant), id));
        }
        plan
    }
}

impl Drf {
    /// Takes what the job asked for; `None` where no type that the job runs on has that many free.
    fn grant(&mut self, cluster: &Cluster, free: &[u64], job: &JobView<'_>) -> Option<(TypeId, Placement)> {
        let gpus = job.request().gpus;
        let kinds = TypeId::first(free.len()).filter(|&kind| job.runs_on(kind));
        // The minimum of reversed keys is the first of equals; `max_by_key` gives the last.
        let roomiest = kinds.min_by_key(|&kind| std::cmp::Reverse(free[kind.index()]))?;
        if free[roomiest.index()] < u64::from(gpus) {
            return None;
        }
        Some((roomiest, pack(cluster, &mut self.free, roomiest, gpus)?))
    }
}

/// Sums by accelerator type what is counted by node.
fn by_type(cluster: &Cluster, nodes: impl Iterator<Item = u32>) -> Vec<u64> {
    let mut sums = vec![0; cluster.types.len()];
    for (node, gpus) in cluster.nodes.iter().zip(nodes) {
        sums[node.accelerator.index()] += u64::from(gpus);
    }
    sums
}
