//! Themis (Mahajan et al., NSDI'20): accelerators are leased in auctions to the jobs that sharing
//! has treated worst.
//!
//! A job's finish-time fairness `rho` is its completion time in the shared cluster over the
//! completion time on its own `1/n` of the cluster; here `n` is the mean number of jobs in the
//! system since the job came. When accelerators become available, at the end of leases and at
//! churn, they are offered to the fraction `1 - f` of jobs with the worst `rho`. These bid `1 /
//! rho` for each number of accelerators, together and spread over nodes (`bids`), a partial
//! allocation auction ([`auction`]) decides, and what it leaves goes to the others.
//!
//! The published text leaves some points open, or was not at hand. They are settled here as
//! follows:
//! - A job without accelerators has an infinite `rho`; such jobs are ordered by the `rho` they
//!   would reach on their fair share from now on.
//! - Of the worst jobs only as many take part as can each have the fewest accelerators they run on,
//!   or the product would be 0 in every division.
//! - A winner keeps at least the fewest accelerators it runs on: with whole accelerators a payment
//!   could take all that it won, and a gang runs on no less.
//! - All accelerators of a job are one lease. Where one of the worst jobs needs more than is
//!   available, leases given now end with the last of those that run, so that the job finds
//!   everything free at once and no gang starves.
//! - Leftovers go one by one, in turns of (submission, id), to jobs that did not take part, then to
//!   those that did, as long as they make a job faster; the paper draws at random.

pub mod auction;
mod bids;
mod contention;
mod standing;

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::state::Trigger;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::parameters::{Parameterised, secs};
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::{Free, resize};
use bids::{AcceleratorOffer, ThemisBid};
use contention::Contention;
use standing::AgentStanding;

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "themis",
    about: "leases by auction to the fifth of jobs that sharing has treated worst",
    source: "Mahajan et al., NSDI 2020",
    traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
    constructor: &Parameterised { defaults: ThemisConfig::default, build: |config, _| Box::new(Themis::new(*config)) },
    replica: None,
}];

/// Most auctions of one decision: the first, and those with corrected bids.
const AUCTIONS: u32 = 4;

/// Settings of [`Themis`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThemisConfig {
    /// Fairness knob `f`: fraction of the jobs, those best treated, that see no offer.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-source" = "NSDI 2020, fairness knob f"))]
    pub fairness_knob: f64,
    /// Length of a lease.
    #[serde(rename = "lease_secs", with = "secs")]
    #[schemars(with = "f64", range(min = 1.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "NSDI 2020, leases of 20 minutes"))]
    pub lease: SimTime,
}

impl Default for ThemisConfig {
    /// The paper's settings: `f` = 0.8, leases of 20 minutes.
    fn default() -> Self {
        Self { fairness_knob: 0.8, lease: SimTime::from_secs(20 * 60) }
    }
}

/// Themis over a cluster. Ties are broken by (submission, id).
#[derive(Clone, Debug)]
pub struct Themis {
    config: ThemisConfig,
    /// Ends of the leases of jobs that hold accelerators, by job.
    leases: Vec<(JobId, SimTime)>,
    /// Free accelerators without a taker at the last decision.
    unwanted: u32,
    contention: Contention,
    free: Free,
}

/// End of the leases that an auction grants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeaseEnds {
    /// Each lease lasts its full term.
    AfterOwnTerm,
    /// New leases end with the latest present lease, so that enough accelerators come free at once for one of
    /// the worst jobs, which needs more than is available now.
    WithLatest,
}

impl Themis {
    /// A policy with the given settings.
    pub fn new(config: ThemisConfig) -> Self {
        Self { config, leases: Vec::new(), unwanted: 0, contention: Contention::default(), free: Free::default() }
    }

    /// Starts the leases of jobs that have none.
    fn grant(&mut self, now: SimTime, jobs: &[AgentStanding<'_>], counts: &[u32], ends: LeaseEnds) {
        let together = ends == LeaseEnds::WithLatest;
        let last = self.leases.iter().map(|(_, end)| *end).max().filter(|_| together);
        let end = last.unwrap_or(now + self.config.lease);
        let starts = jobs.iter().zip(counts).filter(|(job, count)| job.leased == 0 && **count > 0);
        self.leases.extend(starts.map(|(job, _)| (job.job.id(), end)));
        self.leases.sort_unstable();
    }

    /// The worst treated jobs, to which the available accelerators are offered, and the end of the leases that follow.
    fn invite(&self, jobs: &[AgentStanding<'_>], available: u32) -> (Vec<usize>, LeaseEnds) {
        let mut order: Vec<usize> = (0..jobs.len()).filter(|&at| jobs[at].leased < jobs[at].max).collect();
        order.sort_by(|&a, &b| {
            let (a_worse, b_worse) = (jobs[a].worse, jobs[b].worse);
            b_worse.0.total_cmp(&a_worse.0).then(b_worse.1.total_cmp(&a_worse.1)).then(a.cmp(&b))
        });
        let offered = (order.len() as f64 * (1.0 - self.config.fairness_knob)).ceil().max(1.0) as usize;
        let (mut needed, mut ends) = (0, LeaseEnds::AfterOwnTerm);
        let mut bidders = Vec::new();
        for at in order {
            let least = if jobs[at].leased == 0 { jobs[at].job.min_gpus() } else { 0 };
            if bidders.len() == offered {
                break;
            }
            // A job that cannot run on what is left, or has no known end, does not bid.
            if needed + least <= available && jobs[at].rho(jobs[at].leased.max(jobs[at].job.min_gpus()), 0).is_finite()
            {
                needed += least;
                bidders.push(at);
            } else if least > available {
                ends = LeaseEnds::WithLatest;
            }
        }
        bidders.sort_unstable();
        (bidders, ends)
    }

    /// Holds the auction until no winner has bid for accelerators together that it cannot have, at most [`AUCTIONS`]
    /// times, and returns the division under which the bidders' product of true valuations is largest.
    fn divide(&mut self, view: &ClusterView<'_>, jobs: &[AgentStanding<'_>], bidders: &[usize]) -> Division {
        let leased: u32 = jobs.iter().map(|job| job.leased).sum();
        let capacity = view.total_free() + jobs.iter().map(|job| job.job.gpus()).sum::<u32>();
        let available = capacity - leased;
        let ended = jobs.iter().filter(|job| job.leased == 0).map(|job| &job.job.state.placement);
        let offer = AcceleratorOffer::new(view.cluster(), view.free(), ended);
        let mut bids: Vec<ThemisBid> = bidders.iter().map(|&at| ThemisBid::new(&jobs[at], available, &offer)).collect();
        let mut best: Option<Division> = None;
        for _ in 0..AUCTIONS {
            let mut counts: Vec<u32> = jobs.iter().map(|job| job.leased).collect();
            let values: Vec<Vec<f64>> = bids.iter().map(ThemisBid::values).collect();
            for (&at, win) in bidders.iter().zip(auction::partial_allocation(available, &values)) {
                let least = jobs[at].job.min_gpus();
                if counts[at] + win.gpus >= least {
                    counts[at] = least.max(counts[at] + win.kept());
                }
            }
            let mut left = capacity - counts.iter().sum::<u32>();
            let bid_of = |at: usize| bidders.binary_search(&at).ok();
            let rate = |at: usize, gpus: u32| {
                let apart = match bid_of(at) {
                    Some(bid) => bids[bid].is_apart(gpus - jobs[at].leased),
                    None => gpus > jobs[at].leased && !offer.has_together(gpus, jobs[at].keeps()),
                };
                if apart { jobs[at].job.rate_over(jobs[at].job.kind(), gpus, 1) } else { jobs[at].job.rate(gpus) }
            };
            give_leftovers(jobs, &mut counts, &mut left, |at| bid_of(at).is_none(), rate);
            give_leftovers(jobs, &mut counts, &mut left, |at| bid_of(at).is_some(), rate);
            let mut plan = Plan::keep();
            let sizes: Vec<(JobView<'_>, u32)> =
                jobs.iter().map(|standing| standing.job).zip(counts.iter().copied()).collect();
            resize(view, &mut self.free, &sizes, &mut plan);
            let (mut welfare, mut corrected) = (0.0, false);
            for (&at, bid) in bidders.iter().zip(&mut bids) {
                let job = &jobs[at];
                let changed = plan.changes.iter().find(|change| change.job == job.job.id());
                let placement = changed.map_or(&job.job.state.placement, |change| &change.placement);
                let fewest = fewest_nodes(view, placement);
                welfare += job.value_of(placement, fewest).ln();
                if changed.is_some() && placement.nodes() > fewest && placement.gpus() > job.leased {
                    corrected |= bid.correct(placement.gpus() - job.leased);
                }
            }
            if best.as_ref().is_none_or(|best| welfare > best.welfare) {
                best = Some(Division { counts, plan, welfare });
            }
            if !corrected {
                break;
            }
        }
        best.unwrap_or_default()
    }
}

/// Outcome of an auction.
#[derive(Default)]
struct Division {
    /// Accelerators by job, in the order of the jobs.
    counts: Vec<u32>,
    plan: Plan,
    /// Sum of the logarithms of the bidders' valuations of what they have now.
    welfare: f64,
}

/// Accelerators that jobs hold once the plan is carried out.
fn held_after(view: &ClusterView<'_>, plan: &Plan) -> u32 {
    let changed = |job: JobId| plan.changes.iter().find(|change| change.job == job);
    let held = view.jobs().map(|job| changed(job.id()).map_or(job.gpus(), |change| change.placement.gpus()));
    held.sum()
}

/// Fewest nodes for what `placement` holds.
fn fewest_nodes(view: &ClusterView<'_>, placement: &Placement) -> u32 {
    let kind = placement.slices().first().map(|slice| view.cluster().type_of(slice.node));
    kind.map_or(0, |kind| placement.gpus().div_ceil(view.cluster().gpus_per_node_of(kind)))
}

/// Gives `left` accelerators in turns to those of `jobs` for which `may` holds, as long as they
/// make a job faster by its `rate`.
fn give_leftovers(
    jobs: &[AgentStanding<'_>],
    counts: &mut [u32],
    left: &mut u32,
    may: impl Fn(usize) -> bool,
    rate: impl Fn(usize, u32) -> Option<f64>,
) {
    let mut turn: Vec<usize> = (0..jobs.len()).filter(|&at| may(at)).collect();
    // Each round offers every job one step, so that no job takes everything.
    while *left > 0 && !turn.is_empty() {
        turn.retain(|&at| {
            let (job, held) = (&jobs[at], counts[at]);
            let step = job.step(held);
            let faster = || held == 0 || rate(at, held + step) > rate(at, held);
            let takes = step <= *left && held + step <= job.max && faster();
            if takes {
                counts[at] += step;
                *left -= step;
            }
            takes
        });
    }
}

impl Policy for Themis {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.contention.update(view);
        let Trigger { arrival, completion, fault, .. } = view.trigger;
        // Other free accelerators than were left over last time are a change that no trigger names.
        let churn = arrival || completion || fault || view.total_free() != self.unwanted;
        self.leases.retain(|(job, end)| *end > view.now && view.job(*job).is_some_and(|job| job.state.is_allocated()));
        let leased = |job: &JobView<'_>| self.leases.binary_search_by_key(&job.id(), |lease| lease.0).is_ok();
        let expired = view.jobs().any(|job| job.state.is_allocated() && !leased(&job));
        let anything = expired || (churn && view.total_free() > 0);
        if !anything {
            return Plan::keep();
        }
        let capacity = view.total_free() + view.jobs().map(|job| job.gpus()).sum::<u32>();
        let jobs: Vec<AgentStanding<'_>> = view
            .jobs()
            .map(|job| {
                let fair_share = f64::from(capacity) / self.contention.mean(&job);
                AgentStanding::new(job, if leased(&job) { job.gpus() } else { 0 }, fair_share, capacity)
            })
            .collect();
        let available = capacity - jobs.iter().map(|job| job.leased).sum::<u32>();
        let (bidders, ends) = self.invite(&jobs, available);
        let division = self.divide(view, &jobs, &bidders);
        self.unwanted = capacity - held_after(view, &division.plan);
        self.grant(view.now, &jobs, &division.counts, ends);
        division.plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.leases.iter().map(|(_, end)| *end).min()
    }

    fn information(&self) -> Information {
        Information::Estimate { sigma: 0.0 }
    }

    fn needs(&self) -> Information {
        self.information()
    }
}
