//! Replicas of a service as a queueing system, over an interval with a constant rate.

use smallvec::SmallVec;

use super::queueing::{Latency, Work, occupancy};
use crate::service::{Service, ServingProfile};

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
    /// Requests of the interval by latency class.
    pub latencies: [u64; BINS],
}

/// Replicas by the profile of their accelerator type. Requests are divided in proportion to
/// throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet<'a>(pub SmallVec<[(&'a ServingProfile, u32); 2]>);

/// Requests of each group of replicas: their share of all requests, and their latency.
type Groups = SmallVec<[(f64, Latency); 2]>;

impl<'a> Fleet<'a> {
    /// Fleet of `count` equal replicas.
    pub fn of(profile: &'a ServingProfile, count: u32) -> Self {
        Self(SmallVec::from_iter([(profile, count)]))
    }

    /// Requests per second that the replicas can answer.
    pub fn capacity(&self) -> f64 {
        self.0.iter().map(|(profile, count)| profile.throughput() * f64::from(*count)).sum()
    }

    /// Latency of requests without a backlog, by group of replicas; empty where there is no
    /// replica.
    pub fn latencies(&self, demand: &Demand) -> Groups {
        self.latencies_after(demand, LEVEL_SECS)
    }

    /// Latency by group when the load has been at this level for `level_secs` only. Queues with a
    /// relaxation time above that, about `variation / capacity / (1 - utilisation)^2` in heavy
    /// traffic, have not reached equilibrium, so the utilisation is capped.
    fn latencies_after(&self, demand: &Demand, level_secs: f64) -> Groups {
        let capacity = self.capacity();
        if capacity <= 0.0 {
            return Groups::new();
        }
        let variation = demand.arrival_cv2 + demand.work_cv2;
        // Cap the utilisation where the relaxation time would exceed `level_secs`.
        let most = (1.0 - (variation / (capacity * level_secs)).sqrt()).clamp(0.5, 0.999);
        let utilization = (demand.rate / capacity).min(most);
        let group = |(profile, count): &(&ServingProfile, u32)| {
            let throughput = profile.throughput() * f64::from(*count);
            let rate = utilization * throughput;
            let places = count * profile.concurrency();
            let full_secs = profile.latency_secs(f64::from(profile.concurrency()));
            let secs = |state: u32| profile.latency_secs(f64::from(state) / f64::from(*count));
            let near = rate * profile.latency_at_rate(rate / f64::from(*count));
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
        self.0.iter().filter(|(_, count)| *count > 0).map(group).collect()
    }

    /// Fraction of requests that miss the objective without a backlog; 1 from capacity on.
    pub fn late_share(&self, demand: &Demand) -> f64 {
        if demand.rate >= self.capacity() {
            return if demand.rate > 0.0 { 1.0 } else { 0.0 };
        }
        exceed(&self.latencies(demand), demand.slo_secs)
    }

    /// Outcome of an interval of `secs` with `requests` micro-requests at the rate of `demand`,
    /// after an interval that left `backlog` waiting.
    pub fn interval(&self, demand: &Demand, backlog: u64, requests: u64, secs: f64) -> Interval {
        let (capacity, waiting_before) = (self.capacity(), backlog as f64 / 1e6);
        if capacity <= 0.0 {
            let mut latencies = [0; BINS];
            latencies[BINS - 1] = requests;
            return Interval { violated: requests, waiting: backlog + requests, latencies };
        }
        let growth = demand.rate - capacity;
        // Above capacity the fluid backlog determines the growth of the queue; the random part of
        // the wait has only this interval to develop.
        let groups = self.latencies_after(demand, if growth < 0.0 { LEVEL_SECS } else { secs });
        let served = (capacity * secs * 1e6) as u64;
        let waiting = (backlog + requests).saturating_sub(served);
        // Part of the interval in which arrivals find a backlog.
        let busy_secs = if growth < 0.0 { (waiting_before / -growth).min(secs) } else { secs };
        let mut counts = Counts::new(requests);
        if busy_secs > 0.0 {
            let delay = |at: f64| ((waiting_before + growth * at) / capacity).max(0.0);
            for step in 0..STEPS {
                let (from, to) = (f64::from(step) / f64::from(STEPS), f64::from(step + 1) / f64::from(STEPS));
                // All requests of a step get the delay at the middle of the step.
                let delay_secs = delay(0.5 * (from + to) * busy_secs);
                counts.add(to * busy_secs / secs, &groups, demand.slo_secs, delay_secs);
            }
        }
        if busy_secs < secs {
            counts.add(1.0, &groups, demand.slo_secs, 0.0);
        }
        Interval { violated: counts.bins[AT_SLO + 1..].iter().sum(), waiting, latencies: counts.bins }
    }
}

/// Counts of requests by latency class, in whole micro-requests that add up exactly.
struct Counts {
    requests: u64,
    counted: u64,
    bins: [u64; BINS],
}

impl Counts {
    fn new(requests: u64) -> Self {
        Self { requests, counted: 0, bins: [0; BINS] }
    }

    /// Counts the requests up to the share `upto` of all; each waits `delay_secs` longer than
    /// `groups` say.
    fn add(&mut self, upto: f64, groups: &Groups, slo_secs: f64, delay_secs: f64) {
        let whole = |share: f64, of: u64| ((share * of as f64).round() as u64).min(of);
        // Rounding must not count a request twice.
        let upto = if upto >= 1.0 { self.requests } else { whole(upto, self.requests).max(self.counted) };
        let part = upto - self.counted;
        self.counted = upto;
        // The two ends of the loop save most of its cost: no request is faster than the constant
        // part of the work, and the loop stops when no request is left.
        let fastest = groups.iter().map(|(_, latency)| latency.service_secs * latency.work.constant);
        let fastest = fastest.fold(f64::INFINITY, f64::min) + delay_secs;
        let first = (4.0 * (fastest / slo_secs).log2() + AT_SLO as f64).floor().clamp(0.0, (BINS - 1) as f64) as usize;
        let mut left = part;
        for bin in first..BINS - 1 {
            let above = whole(exceed(groups, slo_secs * edge(bin) - delay_secs), part).min(left);
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

fn exceed(groups: &Groups, secs: f64) -> f64 {
    groups.iter().map(|(share, latency)| share * latency.exceeds(secs)).sum()
}
