//! KAI, NVIDIA's scheduler for shared GPU clusters (github.com/NVIDIA/KAI-Scheduler): queues
//! ordered by how far they are below their fair share, and reclaim from queues above theirs.
//!
//! The next job is that of the tenant with the smallest saturation (held over fair share). Where
//! the job does not fit, running jobs are reclaimed in two cases: the job leaves its tenant within
//! its fair share and at most as saturated as each victim's tenant, or within its quota while the
//! victims' tenants are above theirs. A victim is protected until it has run for a minimum time.
//! Accelerators of all types count alike. A tenant's deserved quota is its nominal quota, and
//! nothing where the run has no quotas.

pub mod fair_share;
pub mod usage;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::tenant::{QuotaTree, Usage};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allocation::queue::{Line, Lines};
use crate::heuristic::parameters::{Parameterised, secs};
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::Free;
use fair_share::{ShareQueue, fair_shares};
use usage::DecayedUsage;

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "kai",
        about: "tenants by how far they are below their fair share; reclaims from those above theirs",
        source: "NVIDIA KAI Scheduler",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Parameterised { defaults: KaiConfig::default, build: |config, _| Box::new(Kai::new(*config)) },
        replica: None,
    },
    ListedPolicy {
        name: "kai-time-aware",
        about: "kai with past usage counted against a tenant, and jobs protected in their first minutes",
        source: "NVIDIA KAI Scheduler, time-aware fairness",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Parameterised { defaults: KaiConfig::time_aware, build: |config, _| Box::new(Kai::new(*config)) },
        replica: None,
    },
];

/// Settings of KAI.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KaiConfig {
    /// Least time that a job runs before it may be reclaimed.
    #[serde(rename = "min_runtime_secs", with = "secs")]
    #[schemars(with = "f64", range(min = 0.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "KAI, reclaim-min-runtime of a queue"))]
    pub min_runtime: SimTime,
    /// Weight of past usage in the fair share; 0 ignores it.
    #[serde(rename = "usage_weight")]
    #[schemars(range(min = 0.0), extend("x-source" = "KAI, time-aware fairness, kValue"))]
    pub k: f64,
    /// Half-life of past usage.
    #[serde(rename = "usage_half_life_secs", with = "secs")]
    #[schemars(with = "f64", range(min = 1.0, max = 1e9))]
    #[schemars(extend("x-unit" = "s", "x-source" = "KAI, time-aware fairness, half-life period"))]
    pub half_life: SimTime,
}

impl Default for KaiConfig {
    /// Settings as shipped: no protection, no past usage.
    fn default() -> Self {
        Self { min_runtime: SimTime::ZERO, k: 0.0, half_life: SimTime::from_secs(86_400) }
    }
}

impl KaiConfig {
    /// Ten minutes of protection, and a half-life of a day at weight 1.
    pub fn time_aware() -> Self {
        Self { min_runtime: SimTime::from_secs(600), k: 1.0, ..Self::default() }
    }
}

/// KAI over a cluster.
#[derive(Clone, Debug)]
pub struct Kai {
    config: KaiConfig,
    usage: DecayedUsage,
    free: Free,
    wake: Option<SimTime>,
}

impl Kai {
    /// A policy with the given settings.
    pub fn new(config: KaiConfig) -> Self {
        Self { config, usage: DecayedUsage::new(config.half_life), free: Free::default(), wake: None }
    }
}

impl Policy for Kai {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.usage.advance(view.now);
        self.free.reset(view);
        let mut cycle = KaiCycle::new(view, self);
        cycle.run();
        let protected = cycle.protected_until();
        let KaiCycle { plan, tenants, .. } = cycle;
        for (&tenant, state) in &tenants {
            self.usage.hold(tenant, state.held);
        }
        self.wake = [protected, view.tenants().next_change(view.now)].into_iter().flatten().min();
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }

    fn keeps_allocation(&self) -> bool {
        true
    }
}

/// Tenant at one decision.
struct KaiTenant {
    held: u32,
    deserved: f64,
    share: f64,
    waiting: Line,
}

impl KaiTenant {
    /// Saturation with `more` accelerators: held over fair share.
    fn saturation(&self, more: u32) -> f64 {
        let held = f64::from(self.held + more);
        if held == 0.0 { 0.0 } else { held / self.share.max(1e-9) }
    }
}

/// Running job that may be reclaimed.
#[derive(Clone, Copy)]
struct Victim {
    job: JobId,
    tenant: u32,
    kind: TypeId,
    gpus: u32,
    priority: i32,
    since: SimTime,
}

/// State of one decision.
struct KaiCycle<'a, 'v> {
    view: &'a ClusterView<'v>,
    config: KaiConfig,
    free: &'a mut Free,
    quotas: Option<(&'v QuotaTree, Usage)>,
    tenants: BTreeMap<u32, KaiTenant>,
    running: Vec<Victim>,
    /// (Tenant, accelerators, type) that cannot be reclaimed for.
    unreclaimable: BTreeSet<(u32, u32, TypeId)>,
    /// Whether a job still waits.
    unserved: bool,
    plan: Plan,
}

impl<'a, 'v> KaiCycle<'a, 'v> {
    fn new(view: &'a ClusterView<'v>, policy: &'a mut Kai) -> Self {
        let mut tenants: BTreeMap<u32, KaiTenant> = BTreeMap::new();
        let mut running = Vec::new();
        let mut quotas = view.quotas().map(|tree| (tree, Usage::default()));
        if let Some((tree, usage)) = &mut quotas {
            usage.reset(tree);
        }
        let mut asked: BTreeMap<u32, u32> = BTreeMap::new();
        let mut lines = Lines::new(view.shapes());
        let fresh = || KaiTenant { held: 0, deserved: 0.0, share: 0.0, waiting: Line::default() };
        for job in view.jobs() {
            let Some(first) = job.state.placement.slices().first() else {
                lines.push(job.id(), view.priority(&job));
                continue;
            };
            let (id, tenant) = (job.id(), job.request().tenant);
            let state = tenants.entry(tenant).or_insert_with(fresh);
            *asked.entry(tenant).or_default() += job.gpus().max(job.request().gpus);
            let (kind, gpus) = (view.cluster().type_of(first.node), job.gpus());
            state.held += gpus;
            running.push(Victim {
                job: id,
                tenant,
                kind,
                gpus,
                priority: job.request().priority,
                since: job.state.changed,
            });
            if let Some((tree, usage)) = quotas.as_mut().filter(|(tree, _)| (tenant as usize) < tree.tenants()) {
                tree.add(usage, tenant as usize, kind, u64::from(gpus));
            }
        }
        for (shape, count) in lines.counts() {
            let shape = view.shapes().get(shape);
            *asked.entry(shape.tenant).or_default() += shape.gpus * count as u32;
        }
        for (tenant, line) in lines.by_tenant() {
            tenants.entry(tenant).or_insert_with(fresh).waiting = line;
        }
        running.sort_by_key(|of| (of.priority, Reverse(of.since), of.job));
        let capacity = crate::allocation::quotas::capacity(view).iter().sum::<u64>() as u32;
        let queues: Vec<ShareQueue> = tenants
            .keys()
            .map(|&tenant| {
                let own =
                    |tree: &QuotaTree| tree.resources().map(|kind| tree.subtree(tenant as usize, kind)).sum::<u64>();
                let tree = view.quotas().filter(|tree| (tenant as usize) < tree.tenants());
                ShareQueue {
                    deserved: tree.map_or(0, own) as f64,
                    weight: f64::from(view.tenants().weight_milli(tenant)),
                    request: f64::from(asked[&tenant]),
                    usage: policy.usage.part(tenant, capacity),
                }
            })
            .collect();
        let shares = fair_shares(f64::from(capacity), &queues, policy.config.k);
        for ((state, queue), share) in tenants.values_mut().zip(&queues).zip(shares) {
            (state.deserved, state.share) = (queue.deserved, share);
        }
        let (config, free) = (policy.config, &mut policy.free);
        Self {
            view,
            config,
            free,
            quotas,
            tenants,
            running,
            unreclaimable: BTreeSet::new(),
            unserved: false,
            plan: Plan::keep(),
        }
    }

    fn run(&mut self) {
        loop {
            let waiting = self.tenants.iter().filter(|(_, state)| !state.waiting.is_empty());
            // The smallest saturation first, then the largest share: the tenant furthest below its
            // share.
            let next =
                waiting.map(|(&tenant, state)| (state.saturation(0), -state.share, tenant)).min_by(|one, other| {
                    one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2))
                });
            let Some((.., tenant)) = next else { return };
            let Some((id, shape)) = self.line(tenant, Line::first).flatten() else { continue };
            let Some(job) = self.view.job(id) else { continue };
            let kinds = &self.view.shapes().get(shape).kinds;
            let mut started = kinds.iter().any(|&kind| self.start(&job, kind));
            if !started {
                started = kinds.iter().any(|&kind| self.reclaim(&job, kind) && self.start(&job, kind));
                self.unserved |= !started;
            }
            let key = |&kind: &TypeId| (tenant, job.request().gpus, kind);
            // Until a job is evicted the free accelerators only become fewer, so an equal job would
            // fail too.
            let blocked = !started && kinds.iter().all(|kind| self.unreclaimable.contains(&key(kind)));
            self.line(tenant, if blocked { Line::bar } else { Line::pop });
        }
    }

    fn line<T>(&mut self, tenant: u32, of: impl FnOnce(&mut Line) -> T) -> Option<T> {
        self.tenants.get_mut(&tenant).map(|state| of(&mut state.waiting))
    }

    /// Starts the job on free accelerators of type `kind`.
    fn start(&mut self, job: &JobView<'_>, kind: TypeId) -> bool {
        let (tenant, gpus) = (job.request().tenant, job.request().gpus);
        if let Some((tree, usage)) = &self.quotas {
            let known = (tenant as usize) < tree.tenants();
            if !known || tree.available(usage, tenant as usize, kind) < i64::from(gpus) {
                return false;
            }
        }
        let Some(placement) = self.free.pack(kind, gpus) else { return false };
        if let Some((tree, usage)) = &mut self.quotas {
            tree.add(usage, tenant as usize, kind, u64::from(gpus));
        }
        if let Some(state) = self.tenants.get_mut(&tenant) {
            state.held += gpus;
        }
        self.plan.set(job.id(), placement);
        true
    }

    /// Evicts the fewest jobs that make room for `job` on `kind`, least important and newest first.
    /// Evicts none where that is not allowed or not enough.
    fn reclaim(&mut self, job: &JobView<'_>, kind: TypeId) -> bool {
        let (tenant, gpus) = (job.request().tenant, job.request().gpus);
        if !self.view.preempts() {
            // No equal job can reclaim either.
            self.unreclaimable.insert((tenant, gpus, kind));
            return false;
        }
        if self.unreclaimable.contains(&(tenant, gpus, kind)) {
            return false;
        }
        let Some(own) = self.tenants.get(&tenant) else { return false };
        let after = f64::from(own.held + gpus);
        let (within_share, within_quota) = (after <= own.share + 1e-9, after <= own.deserved);
        let saturation = own.saturation(gpus);
        let mut left = self.free.of_type(kind);
        let mut lost: BTreeMap<u32, u32> = BTreeMap::new();
        let mut victims: Vec<Victim> = Vec::new();
        let mut candidates: Vec<Victim> = self
            .running
            .iter()
            .filter(|of| of.tenant != tenant && of.kind == kind && !self.is_protected(of))
            .copied()
            .collect();
        while left < gpus && !candidates.is_empty() {
            // A victim of the most saturated tenant, in the order of candidates.
            let still = |of: &Victim| {
                let state = &self.tenants[&of.tenant];
                (state, state.held - lost.get(&of.tenant).copied().unwrap_or(0))
            };
            let ratio = |of: &Victim| {
                let (state, held) = still(of);
                f64::from(held) / state.share.max(1e-9)
            };
            let most = candidates.iter().map(ratio).fold(0.0, f64::max);
            let Some(at) = candidates.iter().position(|of| ratio(of) >= most) else { break };
            let victim = candidates.remove(at);
            let (state, held) = still(&victim);
            let rest = f64::from(held - victim.gpus);
            let over_share = f64::from(held) > state.share + 1e-9 && saturation <= rest / state.share.max(1e-9) + 1e-9;
            let over_quota = f64::from(held) > state.deserved && rest + 1e-9 >= state.deserved;
            if within_share && over_share || within_quota && over_quota {
                *lost.entry(victim.tenant).or_default() += victim.gpus;
                left += victim.gpus;
                victims.push(victim);
            }
        }
        if left < gpus || !self.within_quota(tenant, kind, gpus, &victims) {
            self.unreclaimable.insert((tenant, gpus, kind));
            return false;
        }
        // Later victims may have made earlier ones superfluous; the last ones are spared first.
        for at in (0..victims.len()).rev() {
            if left - victims[at].gpus >= gpus {
                left -= victims.remove(at).gpus;
            }
        }
        victims.iter().for_each(|victim| self.evict(victim));
        true
    }

    /// Whether the tenant's quota covers the job once the victims are gone; true where there are no
    /// quotas.
    fn within_quota(&self, tenant: u32, kind: TypeId, gpus: u32, victims: &[Victim]) -> bool {
        let Some((tree, usage)) = &self.quotas else { return true };
        let mut usage = usage.clone();
        for of in victims.iter().filter(|of| (of.tenant as usize) < tree.tenants()) {
            tree.remove(&mut usage, of.tenant as usize, of.kind, u64::from(of.gpus));
        }
        (tenant as usize) < tree.tenants() && tree.available(&usage, tenant as usize, kind) >= i64::from(gpus)
    }

    fn evict(&mut self, victim: &Victim) {
        if let Some(job) = self.view.job(victim.job) {
            self.free.release(&job.state.placement);
        }
        if let Some(state) = self.tenants.get_mut(&victim.tenant) {
            state.held -= victim.gpus;
        }
        if let Some((tree, usage)) = &mut self.quotas
            && (victim.tenant as usize) < tree.tenants()
        {
            tree.remove(usage, victim.tenant as usize, victim.kind, u64::from(victim.gpus));
        }
        self.running.retain(|of| of.job != victim.job);
        // An eviction makes room, so shapes that fitted nowhere are tried again.
        self.unreclaimable.clear();
        self.tenants.values_mut().for_each(|state| state.waiting.reopen());
        self.plan.set(victim.job, Placement::none());
    }

    fn is_protected(&self, of: &Victim) -> bool {
        self.view.now - of.since < self.config.min_runtime
    }

    /// End of the next running job's protection, while a job waits.
    fn protected_until(&self) -> Option<SimTime> {
        if !self.unserved {
            return None;
        }
        let protected = self.running.iter().filter(|of| self.is_protected(of));
        protected.map(|of| of.since + self.config.min_runtime).min()
    }
}
