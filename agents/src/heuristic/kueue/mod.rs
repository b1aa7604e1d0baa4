//! Kueue (github.com/kubernetes-sigs/kueue): quotas in cohorts, fair sharing of what is idle, and
//! preemption that keeps shares in order.
//!
//! A job is admitted whole, at the size it asked for, once its tenant's quota, or what the tenant
//! may borrow, covers it. A [`tournament`] decides which job is admitted next; [`preemption`]
//! decides which jobs are evicted when nothing is left. A job that cannot be admitted does not
//! block those behind it (`BestEffortFIFO`).
//!
//! A job that was evicted may run again where there is room, but evicts no other job until a job
//! has come or gone. With mixed sizes and priorities the published rules alone can go in circles,
//! which a cluster prevents by Kueue's requeuing backoff. Where a run has no quotas, all tenants
//! borrow from one cohort that owns the cluster, by their weights.
//!
//! Flavours are accelerator types, tried in the cluster's order: the first that fits, else the
//! first on which preemption would help (`whenCanBorrow: Borrow`, `whenCanPreempt: TryNextFlavor`).
//! Types count as different resources in shares.

pub mod claim;
pub mod preemption;
pub mod tournament;
mod victims;

use std::collections::{BTreeMap, BTreeSet};

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::tenant::{Quota, QuotaTree, Usage};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use crate::allocation::queue::{Line, Lines};
use crate::allocation::quotas::Quotas;
use crate::heuristic::parameters::{Fixed, Parameterised};
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::Free;
use claim::JobClaim;
use preemption::{Evict, NEVER, PreemptionRules, fair_preemption};

const SOURCE: &str = "Kueue, KEP-79 and KEP-1714";

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "kueue",
        about: "fair sharing between tenants: idle quota is lent, and taken back by preemption",
        source: SOURCE,
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Parameterised {
            defaults: PreemptionRules::default,
            build: |rules, _| Box::new(Kueue::new(rules.clone())),
        },
        replica: None,
    },
    ListedPolicy {
        name: "kueue-lend",
        about: "fair sharing between tenants: idle quota is lent, and given back only as jobs end",
        source: SOURCE,
        traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Kueue::lending())),
        replica: None,
    },
    ListedPolicy {
        name: "kueue-static",
        about: "every tenant keeps to what it owns, or to its weighted part of the cluster; nothing is lent",
        source: SOURCE,
        traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Kueue::partitioned(Evict::Never))),
        replica: None,
    },
    ListedPolicy {
        name: "kueue-static-preemptive",
        about: "as kueue-static, and a tenant's jobs evict its own jobs of lower priority",
        source: SOURCE,
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Kueue::partitioned(Evict::LowerPriority))),
        replica: None,
    },
];

/// Kueue over a cluster.
#[derive(Clone, Debug)]
pub struct Kueue {
    rules: PreemptionRules,
    lends: bool,
    /// Whether the allocation of the run decides, and not one of the policy's own.
    keeps_allocation: bool,
    quotas: Quotas,
    usage: Usage,
    free: Free,
    wake: Option<SimTime>,
    /// Jobs evicted since a job last came or went, and the time of the last look.
    evicted: BTreeSet<JobId>,
    decided: SimTime,
}

impl Default for Kueue {
    /// Borrowing and preemption: of lower priorities within a tenant, of any borrower within a
    /// cohort.
    fn default() -> Self {
        Self::new(PreemptionRules::default())
    }
}

impl Kueue {
    /// A policy that lets tenants borrow, and preempts by `rules`.
    pub fn new(rules: PreemptionRules) -> Self {
        Self {
            rules,
            lends: true,
            keeps_allocation: true,
            quotas: Quotas::shared(),
            usage: Usage::default(),
            free: Free::default(),
            wake: None,
            evicted: BTreeSet::new(),
            decided: SimTime::ZERO,
        }
    }

    /// A policy that lets tenants borrow and never preempts.
    pub fn lending() -> Self {
        Self { keeps_allocation: false, ..Self::new(PreemptionRules::within_tenants(Evict::Never)) }
    }

    /// A policy without borrowing: quotas partition the cluster. Jobs evict those of their own tenant that `evict`
    /// says.
    pub fn partitioned(evict: Evict) -> Self {
        let of_its_own = Self { keeps_allocation: false, ..Self::new(PreemptionRules::within_tenants(evict)) };
        Self { lends: false, quotas: Quotas::partitioned(), ..of_its_own }
    }
}

impl Policy for Kueue {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let trigger = view.trigger;
        if view.now > self.decided && (trigger.arrival || trigger.completion || self.wake == Some(view.now)) {
            self.evicted.clear();
        }
        self.decided = view.now;
        self.wake = view.tenants().next_change(view.now);
        self.free.reset(view);
        // The quotas leave `self`, because the cycle borrows the rest of it.
        let mut quotas = std::mem::take(&mut self.quotas);
        let declared = quotas.tree(view);
        // Where no tenant owns anything, a limit to what is owned would admit no job.
        let owns = |tenant: usize| declared.resources().any(|kind| declared.subtree(tenant, kind) > 0);
        let parts = (!self.lends && (0..declared.tenants()).any(owns)).then(|| {
            declared.with_quotas(|_, _, quota| Quota { borrowing_limit: Some(0), lending_limit: None, ..quota })
        });
        let mut cycle = KueueCycle::new(view, parts.as_ref().unwrap_or(declared), self);
        cycle.run();
        let plan = cycle.plan;
        self.quotas = quotas;
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }

    fn keeps_allocation(&self) -> bool {
        self.keeps_allocation
    }
}

/// State of one admission cycle.
struct KueueCycle<'a, 'v> {
    view: &'a ClusterView<'v>,
    tree: &'a QuotaTree,
    rules: &'a PreemptionRules,
    usage: &'a mut Usage,
    free: &'a mut Free,
    evicted: &'a mut BTreeSet<JobId>,
    /// Claims of the jobs that ran before and were not evicted.
    running: Vec<JobClaim>,
    /// Waiting jobs by tenant.
    waiting: BTreeMap<u32, Line>,
    /// (Tenant, resource, amount, priority) of claims that cannot be admitted.
    inadmissible: BTreeSet<(usize, TypeId, u64, i32)>,
    plan: Plan,
}

impl<'a, 'v> KueueCycle<'a, 'v> {
    fn new(view: &'a ClusterView<'v>, tree: &'a QuotaTree, policy: &'a mut Kueue) -> Self {
        let Kueue { rules, usage, free, evicted, .. } = policy;
        let rules = if view.preempts() { &*rules } else { &NEVER };
        usage.reset(tree);
        let (mut running, mut lines) = (Vec::new(), Lines::new(view.shapes()));
        let known = |tenant: u32| (tenant as usize) < tree.tenants();
        for job in view.jobs() {
            match job.state.placement.slices().first() {
                None => lines.push(job.id(), view.priority(&job)),
                Some(_) if !known(job.request().tenant) => {}
                Some(first) => {
                    let kind = view.cluster().type_of(first.node);
                    let claim = claim(&job, kind, job.gpus(), job.state.changed);
                    tree.add(usage, claim.tenant, claim.resource, claim.amount);
                    running.push(claim);
                }
            }
        }
        let waiting = lines.by_tenant();
        let (plan, inadmissible) = (Plan::keep(), BTreeSet::new());
        Self { view, tree, rules, usage, free, evicted, running, waiting, inadmissible, plan }
    }

    fn run(&mut self) {
        let preempts = (self.rules.within_tenant, self.rules.within_cohort) != (Evict::Never, Evict::Never);
        let mut nominees = Vec::new();
        while preempts || self.free.total() > 0 {
            nominees.clear();
            for tenant in 0..self.tree.tenants() {
                nominees.extend(self.nominee(tenant));
            }
            let Some(next) = tournament::winner(self.tree, self.usage, &nominees) else { return };
            if !self.admit(&next) {
                self.inadmissible.insert(shape_of(&next));
            }
        }
    }

    /// The tenant's most important job that may still be admitted; jobs before it that may not are
    /// passed over.
    fn nominee(&mut self, tenant: usize) -> Option<JobClaim> {
        loop {
            let (id, shape) = self.waiting.get_mut(&(tenant as u32))?.first()?;
            let job = self.view.job(id)?;
            let kinds = &self.view.shapes().get(shape).kinds;
            let claims = kinds.iter().map(|&kind| claim(&job, kind, job.request().gpus, job.request().submit));
            let admissible: Vec<JobClaim> =
                claims.filter(|claim| !self.inadmissible.contains(&shape_of(claim))).collect();
            let was_evicted = self.evicted.contains(&id);
            // A type that fits before one that needs preemption, then the cluster's order of types.
            let best = admissible
                .iter()
                .filter(|claim| !was_evicted || self.fits(claim))
                .min_by_key(|claim| !self.fits(claim));
            if let Some(claim) = best {
                return Some(*claim);
            }
            let line = self.waiting.get_mut(&(tenant as u32))?;
            if admissible.is_empty() { line.bar() } else { line.pop() }
        }
    }

    fn fits(&self, claim: &JobClaim) -> bool {
        let amount = claim.amount;
        self.tree.available(self.usage, claim.tenant, claim.resource) >= amount as i64
            && self.free.of_type(claim.resource) >= amount as u32
    }

    /// Starts the job, evicting others where that is needed and allowed.
    fn admit(&mut self, claim: &JobClaim) -> bool {
        if !self.fits(claim) {
            let evicted = fair_preemption(self.tree, self.usage, &self.running, claim, self.rules);
            let victims: BTreeSet<JobId> = evicted.iter().map(|(job, _)| *job).collect();
            let freed: u64 = self.running.iter().filter(|of| victims.contains(&of.job)).map(|of| of.amount).sum();
            let free = u64::from(self.free.of_type(claim.resource));
            // Jobs of unknown tenants hold accelerators that no quota counts, so the room is
            // checked too.
            if victims.is_empty() || free + freed < claim.amount {
                return false;
            }
            self.evict(&victims);
        }
        let kind = claim.resource;
        let Some(placement) = self.free.pack(kind, claim.amount as u32) else { return false };
        self.tree.add(self.usage, claim.tenant, claim.resource, claim.amount);
        self.plan.set(claim.job, placement);
        if let Some(line) = self.waiting.get_mut(&(claim.tenant as u32)) {
            line.pop();
        }
        true
    }

    fn evict(&mut self, victims: &BTreeSet<JobId>) {
        let (view, tree) = (self.view, self.tree);
        for claim in self.running.iter().filter(|claim| victims.contains(&claim.job)) {
            tree.remove(self.usage, claim.tenant, claim.resource, claim.amount);
            if let Some(job) = view.job(claim.job) {
                self.free.release(&job.state.placement);
            }
            self.plan.set(claim.job, Placement::none());
        }
        self.evicted.extend(victims);
        self.running.retain(|claim| !victims.contains(&claim.job));
        self.inadmissible.clear();
        self.waiting.values_mut().for_each(Line::reopen);
    }
}

fn claim(job: &JobView<'_>, kind: TypeId, gpus: u32, since: SimTime) -> JobClaim {
    JobClaim {
        job: job.id(),
        tenant: job.request().tenant as usize,
        resource: kind,
        amount: u64::from(gpus),
        priority: job.request().priority,
        since,
    }
}

fn shape_of(claim: &JobClaim) -> (usize, TypeId, u64, i32) {
    (claim.tenant, claim.resource, claim.amount, claim.priority)
}
