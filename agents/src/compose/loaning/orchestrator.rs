//! The orchestrator: every five minutes it lends what services will not need, and calls servers
//! back as soon as they may.

use goodput_env::cluster::{NodeId, Pool};
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::Information;
use goodput_env::state::Loan;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::{Occupant, Prices, RecallPricing, cheapest};
use crate::compose::serving::{Claim, Outlook, beside_waiting, kind_for, needed_for};

/// Terms of loans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Share of the need that is kept on top of it. The paper keeps a little; 2 % is what we
    /// remember of it.
    pub headroom: f64,
    /// Time between decisions to lend.
    pub period: SimTime,
    /// From calling a server back until training has to be gone.
    pub deadline: SimTime,
    /// A server is lent if it is not expected to be needed for so long; at least until the next
    /// decision could take effect.
    pub lease: SimTime,
}

impl Default for Terms {
    fn default() -> Self {
        let (period, deadline) = (SimTime::from_secs(300), SimTime::from_secs(60));
        Self { headroom: 0.02, period, deadline, lease: SimTime::ZERO }
    }
}

/// Whole servers of `per_server` accelerators that a pool of `pool` can lend when `need` of them
/// will be used: what is left after the need and its headroom, rounded down.
pub fn lendable(pool: u32, need: f64, headroom: f64, per_server: u32) -> u32 {
    let spare = f64::from(pool) - need * (1.0 + headroom);
    // Tolerates the rounding of the product, which must not cost a server.
    if spare <= 0.0 { 0 } else { ((spare + 1e-9) / f64::from(per_server.max(1))) as u32 }
}

/// Decides about loans.
pub struct Orchestrator {
    outlook: Box<dyn Outlook>,
    terms: Terms,
    judge: RecallPricing,
    /// Time of the next decision about lending.
    next: SimTime,
    /// Until when it lends nothing because it called back.
    rests: SimTime,
    /// Servers to keep at home and empty, for another cluster.
    owed: u32,
}

/// One decision about loans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoanDecision {
    /// Accelerators of the inference pool.
    pub pool: u32,
    /// Accelerators that services will need.
    pub need: u32,
    /// Called back, and empty once the plan is carried out.
    pub home: Vec<NodeId>,
    /// Number of jobs preempted by recalls.
    pub preempted: u32,
    /// Times at which recalled servers have to be empty.
    pub deadline: SimTime,
}

impl Orchestrator {
    /// Lends by what `outlook` expects.
    pub fn new(outlook: Box<dyn Outlook>, terms: Terms) -> Self {
        Self { outlook, terms, judge: RecallPricing::default(), next: SimTime::ZERO, rests: SimTime::ZERO, owed: 0 }
    }

    /// Departs from the published rule as `judge` says.
    #[must_use]
    pub fn judging(self, judge: RecallPricing) -> Self {
        Self { judge, ..self }
    }

    /// The least that has to be known.
    pub fn needs(&self) -> Information {
        self.outlook.needs()
    }

    /// Time at which the orchestrator wants to decide again.
    pub fn next(&self) -> SimTime {
        self.next
    }

    /// Keeps `servers` servers at home and empty from its next decision on, which is due at once:
    /// they are to go to another cluster.
    pub fn owe(&mut self, servers: u32) {
        self.owed = servers;
        self.next = SimTime::ZERO;
    }

    /// Adds loans and returns to `plan`, and what jobs lose by them. `wanted` are the replicas each
    /// service is to have now, at `utilisation`.
    pub fn decide(
        &mut self,
        view: &ClusterView<'_>,
        wanted: &[Claim],
        utilisation: f64,
        plan: &mut Plan,
    ) -> LoanDecision {
        let pool = Servers::of(view);
        let soon = self.terms.period + self.terms.deadline;
        let need = self.need(view, wanted, utilisation, soon);
        let deadline = view.now + self.terms.deadline;
        let mut loans = LoanDecision { pool: pool.gpus, need, deadline, ..LoanDecision::default() };
        let lending = self.judge.lending;
        let may_be_away = self.may_be_away(&pool, need, 0.0);
        // The call is due with tolerance, but once it is due all that is missing comes back.
        if self.may_be_away(&pool, need, lending.tolerated_servers) < pool.lent.len() {
            self.call_back(view, &pool.lent, pool.lent.len() - may_be_away, &mut loans, plan);
            self.rests = view.now + lending.rest(&self.terms);
        // Lending waits for its period, while calls are made at any decision.
        } else if view.now >= self.next.max(self.rests) {
            let for_long = match self.terms.lease > soon {
                true => {
                    let need = self.need(view, wanted, utilisation, self.terms.lease);
                    self.may_be_away(&pool, need, 0.0)
                }
                false => may_be_away,
            };
            // Services are packed on low ids, so the high ones stay empty longest.
            let more = for_long.saturating_sub(pool.lent.len());
            pool.empty.iter().rev().take(more).for_each(|&node| plan.lend(node));
        }
        if view.now >= self.next {
            self.next = view.now + self.terms.period;
        }
        loans
    }

    /// Servers that may be away if `missing` ones may miss at home.
    fn may_be_away(&self, pool: &Servers, need: u32, missing: f64) -> usize {
        let kept = (self.judge.lending.margin_servers - missing) * f64::from(pool.per_server);
        let kept = f64::from(need) * (1.0 + self.terms.headroom) + kept;
        let lendable = lendable(pool.gpus, kept.max(0.0), 0.0, pool.per_server);
        lendable.saturating_sub(self.owed) as usize
    }

    /// Accelerators that services will need within `time`, and until a replica started at its end
    /// is warm, or have now if that is more.
    fn need(&mut self, view: &ClusterView<'_>, wanted: &[Claim], utilisation: f64, time: SimTime) -> u32 {
        let of_service = |service: goodput_env::view::ServiceView<'_>| {
            let now = wanted.get(service.id().index()).map_or(0, |claim| claim.most);
            let soon = kind_for(view, &service).map_or(0, |kind| {
                let expected = self.outlook.expect(&service, view.now + time + service.cold_start());
                let expected = beside_waiting(&service, self.judge.lending.expected(expected));
                needed_for(&service, kind, expected, utilisation)
            });
            now.max(soon) * service.gpus_per_replica()
        };
        view.services().map(of_service).sum()
    }

    fn call_back(
        &self,
        view: &ClusterView<'_>,
        lent: &[NodeId],
        count: usize,
        loans: &mut LoanDecision,
        plan: &mut Plan,
    ) {
        let on_loans = |job: &JobView<'_>| job.state.placement.slices().iter().any(|slice| view.lent(slice.node));
        let jobs: Vec<JobView<'_>> = view.jobs().filter(on_loans).collect();
        let prices = self.judge.prices(&jobs);
        let occupants: Vec<Occupant> = jobs.iter().zip(prices).map(|(job, prices)| occupant(job, prices)).collect();
        let returned = cheapest(lent, &occupants, count);
        loans.preempted = returned.preempted.len() as u32;
        // The sorted copy allows a binary search; the order of choice stays in `returned`.
        let mut gone = returned.servers.clone();
        gone.sort_unstable();
        let away = |node: NodeId| gone.binary_search(&node).is_ok();
        let mut left: Vec<(NodeId, u32)> = gone.iter().map(|&node| (node, view.trained_on(node))).collect();
        for occupant in occupants.iter().filter(|occupant| occupant.servers.iter().any(|(node, _)| away(*node))) {
            let Some(job) = view.job(occupant.job) else { continue };
            let held = &job.state.placement;
            let kept: Placement = match returned.preempted.contains(&occupant.job) {
                true => Placement::none(),
                false => {
                    held.slices().iter().filter(|slice| !away(slice.node)).map(|held| (held.node, held.gpus)).collect()
                }
            };
            // What two jobs share is held once.
            if job.state.counts() {
                for slice in held.slices() {
                    if let Ok(at) = left.binary_search_by_key(&slice.node, |(node, _)| *node) {
                        left[at].1 = left[at].1.saturating_sub(slice.gpus);
                    }
                }
            }
            plan.set(occupant.job, kept);
        }
        loans.home = left.into_iter().filter(|(_, gpus)| *gpus == 0).map(|(node, _)| node).collect();
        returned.servers.iter().for_each(|&node| plan.reclaim(node, loans.deadline));
    }
}

/// The inference pool.
struct Servers {
    gpus: u32,
    per_server: u32,
    /// Lent and not called back.
    lent: Vec<NodeId>,
    /// At home without replicas.
    empty: Vec<NodeId>,
}

impl Servers {
    fn of(view: &ClusterView<'_>) -> Self {
        let mut pool = Self { gpus: 0, per_server: 1, lent: Vec::new(), empty: Vec::new() };
        for (node, id) in view.cluster().nodes.iter().zip(view.cluster().node_ids()) {
            if node.pool != Pool::Inference || !view.owned(id) || node.gpus == 0 {
                continue;
            }
            pool.gpus += node.gpus;
            pool.per_server = pool.per_server.max(node.gpus);
            match view.loan(id) {
                Loan::Lent { .. } => pool.lent.push(id),
                Loan::Home if view.served_on(id) == 0 && view.idle_on(id) == node.gpus => pool.empty.push(id),
                Loan::Home | Loan::Elsewhere | Loan::Returning { .. } => {}
            }
        }
        pool
    }
}

/// A job on lent servers. One that shares its accelerators with another stands or falls with it.
fn occupant(job: &JobView<'_>, prices: Prices) -> Occupant {
    let slices = job.state.placement.slices();
    let mut servers: Vec<(NodeId, u32)> = Vec::with_capacity(slices.len());
    for slice in slices {
        match servers.iter_mut().find(|(node, _)| *node == slice.node) {
            Some((_, gpus)) => *gpus += slice.gpus,
            None => servers.push((slice.node, slice.gpus)),
        }
    }
    // Scaling in would leave two partners with different placements.
    let alone = job.state.partner.is_none();
    let spare = if alone { job.gpus().saturating_sub(job.min_gpus()) } else { 0 };
    let id: JobId = job.id();
    Occupant { job: id, servers, spare, prices }
}
