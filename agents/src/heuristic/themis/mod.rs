//! Themis (Mahajan et al., NSDI'20): accelerators are leased in auctions to the jobs that sharing
//! has treated worst.
//!
//! A job's finish-time fairness `rho` is its completion time in the shared cluster over the
//! completion time on its own `1/n` of the cluster; here `n` is the mean number of jobs in the
//! system since the job came. When accelerators become available, at the end of leases and at
//! churn, they are offered to the fraction `1 - f` of jobs with the worst `rho`. These bid `1 /
//! rho` for each number of accelerators, a partial allocation auction ([`auction`]) decides, and
//! what it leaves goes to the others.
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

use goodput_env::job::JobId;
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

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "themis",
    about: "leases by auction to the fifth of jobs that sharing has treated worst",
    source: "Mahajan et al., NSDI 2020",
    traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
    constructor: &Parameterised { defaults: ThemisConfig::default, build: |config, _| Box::new(Themis::new(*config)) },
    replica: None,
}];

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

/// Mean number of jobs in the system over each job's life.
#[derive(Clone, Debug, Default)]
struct Contention {
    /// Job-milliseconds so far, as of `at`, with `active` jobs since then.
    area: i64,
    at: SimTime,
    active: i64,
    /// By id, `area` and time when the job was first seen.
    entered: Vec<Option<(i64, SimTime)>>,
}

impl Contention {
    fn update(&mut self, view: &ClusterView<'_>) {
        self.area += self.active * (view.now - self.at).as_millis();
        (self.at, self.active) = (view.now, view.active() as i64);
        self.entered.resize(view.workload_len(), None);
        // Jobs come in order of id, so the first one that is known ends those that are new.
        for job in view.jobs().rev() {
            let entered = &mut self.entered[job.id().index()];
            if entered.is_some() {
                break;
            }
            *entered = Some((self.area, view.now));
        }
    }

    /// Mean number of jobs since `job` came, itself included.
    fn mean(&self, job: &JobView<'_>) -> f64 {
        let (area, since) = self.entered[job.id().index()].unwrap_or((self.area, self.at));
        let span = (self.at - since).as_millis();
        if span > 0 { (self.area - area) as f64 / span as f64 } else { self.active as f64 }
    }
}

/// Standing of a job in the auction.
struct AgentStanding<'a> {
    job: JobView<'a>,
    /// Accelerators that the job keeps until its lease ends.
    leased: u32,
    max: u32,
    age_secs: f64,
    /// Seconds that the job would take alone on its fair share.
    ideal_secs: f64,
    /// `rho` with the leased accelerators, infinite without; then `rho` on the fair share from now
    /// on.
    worse: (f64, f64),
}

impl<'a> AgentStanding<'a> {
    fn new(job: JobView<'a>, leased: u32, fair_share: f64, capacity: u32) -> Self {
        let max = job.max_gpus().min(capacity);
        let age_secs = job.age().as_secs_f64();
        let speed = speed_on(&job, fair_share, max);
        let left = job.remaining_work().unwrap_or(f64::INFINITY);
        let ideal_secs = (job.state.done(job.request().submit + job.age()) + left) / speed;
        let mut standing = Self { job, leased, max, age_secs, ideal_secs, worse: (f64::INFINITY, 0.0) };
        standing.worse = (standing.rho(leased), (age_secs + left / speed) / ideal_secs);
        standing
    }

    /// Finish-time fairness on `gpus` accelerators from now on.
    fn rho(&self, gpus: u32) -> f64 {
        let secs = self.job.remaining_secs(gpus).filter(|secs| secs.is_finite());
        secs.map_or(f64::INFINITY, |secs| (self.age_secs + secs) / self.ideal_secs)
    }

    /// Fewest further accelerators that are of use.
    fn step(&self, held: u32) -> u32 {
        if held == 0 { self.job.min_gpus() } else { 1 }
    }

    /// Valuation `1 / rho` by number of further accelerators, some of which the job may leave idle.
    fn values(&self, most: u32) -> Vec<f64> {
        let mut best = 0.0_f64;
        let values = (0..=most.min(self.max.saturating_sub(self.leased))).map(|more| {
            let gpus = self.leased + more;
            if gpus >= self.job.min_gpus() {
                best = best.max(self.rho(gpus).recip());
            }
            best
        });
        values.collect()
    }
}

/// Work per second on a fractional share: linear between sizes, in proportion below the smallest,
/// constant above `max`.
fn speed_on(job: &JobView<'_>, share: f64, max: u32) -> f64 {
    let min = job.min_gpus();
    let share = share.min(f64::from(max));
    let rate = |gpus: u32| job.rate(gpus).unwrap_or(0.0);
    if share <= f64::from(min) {
        return rate(min) * share / f64::from(min);
    }
    let (low, part) = (share.floor(), share.fract());
    let low_rate = rate(low as u32);
    if part > 0.0 { low_rate + part * (rate(low as u32 + 1) - low_rate) } else { low_rate }
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

    /// Adds what the auction gives to `counts`, which are in the order of `jobs`. Returns which
    /// jobs took part, and the end of the leases that follow.
    fn auction(&self, jobs: &[AgentStanding<'_>], counts: &mut [u32], available: u32) -> (Vec<bool>, LeaseEnds) {
        let mut takes_part = vec![false; jobs.len()];
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
            if needed + least <= available && jobs[at].rho(jobs[at].leased.max(jobs[at].job.min_gpus())).is_finite() {
                needed += least;
                takes_part[at] = true;
                bidders.push(at);
            } else if least > available {
                ends = LeaseEnds::WithLatest;
            }
        }
        bidders.sort_unstable();
        let values: Vec<Vec<f64>> = bidders.iter().map(|&at| jobs[at].values(available)).collect();
        for (at, win) in bidders.into_iter().zip(auction::partial_allocation(available, &values)) {
            let least = jobs[at].job.min_gpus();
            if counts[at] + win.gpus >= least {
                counts[at] = least.max(counts[at] + win.kept());
            }
        }
        (takes_part, ends)
    }
}

/// Gives `left` accelerators in turns to those of `jobs` for which `may` holds, as long as they
/// make a job faster.
fn give_leftovers(jobs: &[AgentStanding<'_>], counts: &mut [u32], left: &mut u32, may: impl Fn(usize) -> bool) {
    let mut turn: Vec<usize> = (0..jobs.len()).filter(|&at| may(at)).collect();
    // Each round offers every job one step, so that no job takes everything.
    while *left > 0 && !turn.is_empty() {
        turn.retain(|&at| {
            let (job, held) = (&jobs[at], counts[at]);
            let step = job.step(held);
            let faster = || held == 0 || job.job.rate(held + step) > job.job.rate(held);
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
        let mut plan = Plan::keep();
        let Trigger { arrival, completion, fault, .. } = view.trigger;
        // Other free accelerators than were left over last time are a change that no trigger names.
        let churn = arrival || completion || fault || view.total_free() != self.unwanted;
        self.leases.retain(|(job, end)| *end > view.now && view.job(*job).is_some_and(|job| job.state.is_allocated()));
        let leased = |job: &JobView<'_>| self.leases.binary_search_by_key(&job.id(), |lease| lease.0).is_ok();
        let expired = view.jobs().any(|job| job.state.is_allocated() && !leased(&job));
        let anything = expired || (churn && view.total_free() > 0);
        if !anything {
            return plan;
        }
        let capacity = view.total_free() + view.jobs().map(|job| job.gpus()).sum::<u32>();
        let jobs: Vec<AgentStanding<'_>> = view
            .jobs()
            .map(|job| {
                let fair_share = f64::from(capacity) / self.contention.mean(&job);
                AgentStanding::new(job, if leased(&job) { job.gpus() } else { 0 }, fair_share, capacity)
            })
            .collect();
        let mut counts: Vec<u32> = jobs.iter().map(|job| job.leased).collect();
        let available = capacity - counts.iter().sum::<u32>();
        let (takes_part, ends) = self.auction(&jobs, &mut counts, available);
        let mut left = capacity - counts.iter().sum::<u32>();
        give_leftovers(&jobs, &mut counts, &mut left, |at| !takes_part[at]);
        give_leftovers(&jobs, &mut counts, &mut left, |at| takes_part[at]);
        self.unwanted = left;
        self.grant(view.now, &jobs, &counts, ends);
        let sizes: Vec<(JobView<'_>, u32)> = jobs.iter().map(|standing| standing.job).zip(counts).collect();
        resize(view, &mut self.free, &sizes, &mut plan);
        plan
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
