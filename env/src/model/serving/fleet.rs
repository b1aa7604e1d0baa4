//! Replicas of a service as a queueing system, over an interval with a constant rate.

use smallvec::SmallVec;

use super::queueing::{Latency, Work, occupancy};
use crate::service::{AnswerProfile, Service, ServingProfile, TokenLatency};

/// Number of latency classes: one up to each [`edge`], and one above the last.
pub const BINS: usize = 49;

/// Index of the class that ends at the objective itself.
const AT_SLO: usize = 24;

/// Assumed duration of a level of load below capacity, seconds. It bounds the utilisation at which
/// a queue reaches equilibrium: nearer to one, the relaxation takes longer than this.
const LEVEL_SECS: f64 = 3600.0;

/// Remaining part of the spread of speeds at arrivals, because each request experiences several
/// speeds.
const SPREAD: f64 = 0.5;

/// Number of steps in which requests that find a backlog are counted.
const STEPS: u32 = 16;

/// Upper edge of latency class `bin`, in multiples of the objective: quarter octaves from 1/64 on.
pub fn edge(bin: usize) -> f64 {
    ((bin as f64 - AT_SLO as f64) / 4.0).exp2()
}

/// Demand on a service: rate, variability and latency objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Requests per second.
    pub rate: f64,
    /// Squared coefficient of variation of the time between requests.
    pub arrival_cv2: f64,
    /// Squared coefficient of variation of the work in a request.
    pub work_cv2: f64,
    /// Longest latency that keeps the objective, seconds.
    pub slo_secs: f64,
}

impl Demand {
    /// Demand on `service` at a rate in milli-requests per second.
    pub fn of(service: &Service, rate_milli: u32) -> Self {
        Self {
            rate: f64::from(rate_milli) / 1e3,
            arrival_cv2: service.arrival_cv2,
            work_cv2: service.work_cv2,
            slo_secs: service.slo.latency.as_secs_f64(),
        }
    }
}

/// Outcome of an interval, micro-requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Requests of the interval with a latency above the objective.
    pub violated: u64,
    /// Requests that wait at the end of the interval.
    pub waiting: u64,
    /// Requests of the interval by latency class; of a language model, by the time to the first token.
    pub latencies: [u64; BINS],
    /// Requests of the interval that missed one of the objectives.
    pub late: LateTokens,
}

/// Requests that missed one objective of a language model, micro-requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LateTokens {
    /// Requests with a time to the first token above its objective; of whole answers, with a latency above it.
    pub ttft: u64,
    /// Requests with a time of a further token above its objective. Requests that came while no replica was ready are
    /// not among them.
    pub tpot: u64,
}

/// Replicas by the profile of their accelerator type. Requests are divided in proportion to
/// throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet<'a>(pub SmallVec<[(&'a ServingProfile, u32); 2]>);

/// Requests of each group of replicas: their share of all requests, and their latency.
type Groups = SmallVec<[(f64, Latency); 2]>;

/// Requests of each group of replicas, by what the replicas run.
enum Latencies<'a> {
    Answers(Groups),
    Tokens(SmallVec<[(f64, TokenLatency<'a>); 2]>),
}

impl Latencies<'_> {
    fn sum<T>(groups: &[(f64, T)], of: impl Fn(&T) -> f64) -> f64 {
        groups.iter().map(|(share, latency)| share * of(latency)).sum()
    }

    /// Share of requests with a latency above `secs`, where `slo_secs` keep the objective. The objective of further
    /// tokens does not count.
    fn exceed(&self, secs: f64, slo_secs: f64) -> f64 {
        match self {
            Self::Answers(groups) => Self::sum(groups, |latency| latency.exceeds(secs)),
            Self::Tokens(groups) => Self::sum(groups, |latency| latency.ttft_exceeds(secs / slo_secs)),
        }
    }

    /// Share of requests that miss an objective when they wait `delay_secs` longer.
    fn violate(&self, slo_secs: f64, delay_secs: f64) -> f64 {
        match self {
            Self::Answers(_) => self.exceed(slo_secs - delay_secs, slo_secs),
            Self::Tokens(groups) => Self::sum(groups, |latency| latency.either_exceeds(1.0 - delay_secs / slo_secs)),
        }
    }

    /// Share of requests that miss the objective of further tokens.
    fn late_tokens(&self) -> f64 {
        match self {
            Self::Answers(_) => 0.0,
            Self::Tokens(groups) => Self::sum(groups, TokenLatency::tpot_exceeds),
        }
    }

    /// Latency below which there is no request, seconds.
    fn least_secs(&self) -> f64 {
        match self {
            Self::Answers(groups) => {
                let fastest = groups.iter().map(|(_, latency)| latency.service_secs * latency.work.constant);
                fastest.fold(f64::INFINITY, f64::min)
            }
            Self::Tokens(_) => 0.0,
        }
    }
}

impl<'a> Fleet<'a> {
    /// Fleet of `count` equal replicas.
    pub fn of(profile: &'a ServingProfile, count: u32) -> Self {
        Self(SmallVec::from_iter([(profile, count)]))
    }

    /// Requests per second that the replicas can answer.
    pub fn capacity(&self) -> f64 {
        self.0.iter().map(|(profile, count)| profile.throughput() * f64::from(*count)).sum()
    }

    /// Latency of whole answers without a backlog, by group of replicas; empty where there is no
    /// replica.
    pub fn latencies(&self, demand: &Demand) -> Groups {
        self.answers_after(demand, LEVEL_SECS)
    }

    /// Latency by group when the load has been at this level for `level_secs` only. Replicas of a language model with a
    /// backlog are full.
    fn latencies_after(&self, demand: &Demand, level_secs: f64, backlog: bool) -> Latencies<'a> {
        if !self.0.iter().any(|(profile, _)| matches!(profile, ServingProfile::Tokens(_))) {
            return Latencies::Answers(self.answers_after(demand, level_secs));
        }
        let capacity = self.capacity();
        let load = if backlog { 1.0 } else { (demand.rate / capacity).min(1.0) };
        let group = |&(profile, count): &(&'a ServingProfile, u32)| match profile {
            ServingProfile::Tokens(tokens) if count > 0 => {
                Some((tokens.per_sec * f64::from(count) / capacity, tokens.at(load, count)))
            }
            ServingProfile::Tokens(_) | ServingProfile::Answers(_) => None,
        };
        Latencies::Tokens(self.0.iter().filter_map(group).collect())
    }

    /// Latency by group when the load has been at this level for `level_secs` only. Queues with a
    /// relaxation time above that, about `variation / capacity / (1 - utilisation)^2` in heavy
    /// traffic, have not reached equilibrium, so the utilisation is capped.
    fn answers_after(&self, demand: &Demand, level_secs: f64) -> Groups {
        let capacity = self.capacity();
        if capacity <= 0.0 {
            return Groups::new();
        }
        let variation = demand.arrival_cv2 + demand.work_cv2;
        // Cap the utilisation where the relaxation time would exceed `level_secs`.
        let most = (1.0 - (variation / (capacity * level_secs)).sqrt()).clamp(0.5, 0.999);
        let utilization = (demand.rate / capacity).min(most);
        let group = |(profile, count): (&AnswerProfile, u32)| {
            let throughput = profile.throughput() * f64::from(count);
            let rate = utilization * throughput;
            let places = count * profile.concurrency();
            let full_secs = profile.latency_secs(f64::from(profile.concurrency()));
            let secs = |state: u32| profile.latency_secs(f64::from(state) / f64::from(count));
            let near = rate * profile.latency_at_rate(rate / f64::from(count));
            let found = occupancy(rate, places, near as u32, secs);
            // Little's law gives the mean service of all requests, and from it the mean of requests
            // that do not wait.
            let mean_secs = if rate > 0.0 { found.mean / rate } else { secs(1) };
            let free_secs = (mean_secs - found.full * full_secs) / (1.0 - found.full);
            let latency = Latency {
                service_secs: free_secs.clamp(secs(1), full_secs),
                work: Work::with_cv2((1.0 + demand.work_cv2) * (1.0 + SPREAD * found.spread) - 1.0),
                waits: found.full,
                wait_secs: wait_factor(demand, utilization) / (throughput - rate),
                full_secs,
                full_work: Work::with_cv2(demand.work_cv2),
            };
            (throughput / capacity, latency)
        };
        let answers = |&(profile, count): &(&'a ServingProfile, u32)| match profile {
            ServingProfile::Answers(answers) if count > 0 => Some((answers, count)),
            ServingProfile::Answers(_) | ServingProfile::Tokens(_) => None,
        };
        self.0.iter().filter_map(answers).map(group).collect()
    }

    /// Fraction of requests that miss the objective without a backlog; 1 from capacity on.
    pub fn late_share(&self, demand: &Demand) -> f64 {
        if demand.rate >= self.capacity() {
            return if demand.rate > 0.0 { 1.0 } else { 0.0 };
        }
        self.latencies_after(demand, LEVEL_SECS, false).violate(demand.slo_secs, 0.0)
    }

    /// Outcome of an interval of `secs` with `requests` micro-requests at the rate of `demand`,
    /// after an interval that left `backlog` waiting.
    pub fn interval(&self, demand: &Demand, backlog: u64, requests: u64, secs: f64) -> Interval {
        let (capacity, waiting_before) = (self.capacity(), backlog as f64 / 1e6);
        if capacity <= 0.0 {
            let mut latencies = [0; BINS];
            latencies[BINS - 1] = requests;
            let late = LateTokens { ttft: requests, tpot: 0 };
            return Interval { violated: requests, waiting: backlog + requests, latencies, late };
        }
        let growth = demand.rate - capacity;
        // Above capacity the fluid backlog determines the growth of the queue; the random part of
        // the wait has only this interval to develop.
        let level_secs = if growth < 0.0 { LEVEL_SECS } else { secs };
        let served = (capacity * secs * 1e6) as u64;
        let waiting = (backlog + requests).saturating_sub(served);
        // Part of the interval in which arrivals find a backlog.
        let busy_secs = if growth < 0.0 { (waiting_before / -growth).min(secs) } else { secs };
        let mut counts = Counts::new(requests);
        // Only the first tokens of language models depend on whether requests wait.
        let calm = (busy_secs < secs).then(|| self.latencies_after(demand, level_secs, false));
        if busy_secs > 0.0 {
            let found = match &calm {
                Some(Latencies::Answers(calm)) => Latencies::Answers(calm.clone()),
                _ => self.latencies_after(demand, level_secs, true),
            };
            let delay = |at: f64| ((waiting_before + growth * at) / capacity).max(0.0);
            for step in 0..STEPS {
                let (from, to) = (f64::from(step) / f64::from(STEPS), f64::from(step + 1) / f64::from(STEPS));
                // All requests of a step get the delay at the middle of the step.
                let delay_secs = delay(0.5 * (from + to) * busy_secs);
                counts.add(to * busy_secs / secs, &found, demand.slo_secs, delay_secs);
            }
        }
        if let Some(calm) = calm {
            counts.add(1.0, &calm, demand.slo_secs, 0.0);
        }
        counts.outcome(waiting)
    }
}

/// Counts of requests by latency class, in whole micro-requests that add up exactly.
struct Counts {
    requests: u64,
    counted: u64,
    bins: [u64; BINS],
    /// Requests that missed either objective of a language model, and those that missed that of further tokens.
    late_tokens: Option<(u64, u64)>,
}

impl Counts {
    fn new(requests: u64) -> Self {
        Self { requests, counted: 0, bins: [0; BINS], late_tokens: None }
    }

    fn outcome(self, waiting: u64) -> Interval {
        let late: u64 = self.bins[AT_SLO + 1..].iter().sum();
        let (either, tpot) = self.late_tokens.unwrap_or((late, 0));
        let violated = either.clamp(late, self.requests);
        Interval { violated, waiting, latencies: self.bins, late: LateTokens { ttft: late, tpot } }
    }

    /// Counts the requests up to the share `upto` of all; each waits `delay_secs` longer than
    /// `found` says.
    fn add(&mut self, upto: f64, found: &Latencies<'_>, slo_secs: f64, delay_secs: f64) {
        let whole = |share: f64, of: u64| ((share * of as f64).round() as u64).min(of);
        // Rounding must not count a request twice.
        let upto = if upto >= 1.0 { self.requests } else { whole(upto, self.requests).max(self.counted) };
        let part = upto - self.counted;
        self.counted = upto;
        if matches!(found, Latencies::Tokens(_)) {
            let (either, tpot) = self.late_tokens.unwrap_or_default();
            let more = (whole(found.violate(slo_secs, delay_secs), part), whole(found.late_tokens(), part));
            self.late_tokens = Some((either + more.0, tpot + more.1));
        }
        // The two ends of the loop save most of its cost: no request is faster than the constant
        // part of the work, and the loop stops when no request is left.
        let fastest = found.least_secs() + delay_secs;
        let first = (4.0 * (fastest / slo_secs).log2() + AT_SLO as f64).floor().clamp(0.0, (BINS - 1) as f64) as usize;
        let mut left = part;
        for bin in first..BINS - 1 {
            let above = whole(found.exceed(slo_secs * edge(bin) - delay_secs, slo_secs), part).min(left);
            self.bins[bin] += left - above;
            left = above;
            if left == 0 {
                return;
            }
        }
        self.bins[BINS - 1] += left;
    }
}

/// Wait in multiples of the wait with exponential interarrival times and exponential work (Allen
/// and Cunneen), with the correction of Kraemer and Langenbach-Belz (1976) for arrivals that are
/// burstier than exponential.
fn wait_factor(demand: &Demand, utilization: f64) -> f64 {
    let (arrivals, work) = (demand.arrival_cv2, demand.work_cv2);
    let bursty = if arrivals > 1.0 { (1.0 - utilization) * (arrivals - 1.0) / (arrivals + 4.0 * work) } else { 0.0 };
    0.5 * (arrivals + work) * (-bursty).exp()
}
