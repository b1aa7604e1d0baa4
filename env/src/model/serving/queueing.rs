//! Waiting and latency in a queue with many servers.
//!
//! The probability of waiting is Erlang's C, generalised to service that slows down with the number
//! of requests. The mean wait is that of Allen and Cunneen (Probability, Statistics, and Queueing
//! Theory, 1990): the wait with exponential times, multiplied by (ca2 + cs2) / 2. A wait that is
//! not zero is taken as exponential, which is exact for M/M/c and in heavy traffic (Kingman).

/// Distribution of the work in a request, in multiples of its mean: a constant part plus one of two
/// exponentials, fitted to the first two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Constant part of the work, in [0, 1].
    pub constant: f64,
    /// (probability, mean) of each exponential on top of the constant part.
    pub phases: [(f64, f64); 2],
}

impl Work {
    /// Work with mean 1 and squared coefficient of variation `cv2`: shifted exponential up to 1,
    /// hyperexponential with balanced means above.
    pub fn with_cv2(cv2: f64) -> Self {
        if cv2 <= 1.0 {
            let spread = cv2.max(0.0).sqrt();
            return Self { constant: 1.0 - spread, phases: [(1.0, spread), (0.0, 0.0)] };
        }
        let first = 0.5 * (1.0 + ((cv2 - 1.0) / (cv2 + 1.0)).sqrt());
        let second = 1.0 - first;
        Self { constant: 0.0, phases: [(first, 0.5 / first), (second, 0.5 / second)] }
    }
}

/// Distribution of the latency of a request, which either finds a free place or waits for one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Mean service of a request that does not wait, seconds.
    pub service_secs: f64,
    /// Distribution of the work of a request that does not wait.
    pub work: Work,
    /// Probability of waiting.
    pub waits: f64,
    /// Mean of a wait that is not zero, seconds.
    pub wait_secs: f64,
    /// Mean service of a request that waited, seconds.
    pub full_secs: f64,
    /// Distribution of the work of a request that waited.
    pub full_work: Work,
}

impl Latency {
    /// Probability that a request takes longer than `secs`.
    pub fn exceeds(&self, secs: f64) -> f64 {
        let free = if self.waits < 1.0 { tail(secs, self.service_secs, &self.work, 0.0) } else { 0.0 };
        let full = if self.waits > 0.0 { tail(secs, self.full_secs, &self.full_work, self.wait_secs) } else { 0.0 };
        ((1.0 - self.waits) * free + self.waits * full).clamp(0.0, 1.0)
    }

    /// Mean latency, seconds.
    pub fn mean_secs(&self) -> f64 {
        (1.0 - self.waits) * self.service_secs + self.waits * (self.full_secs + self.wait_secs)
    }

    /// Quantile of the latency: the seconds that a fraction of `1 - share` of all requests exceeds.
    pub fn quantile(&self, share: f64) -> f64 {
        // The tail has no closed inverse: double until the quantile is bracketed, then bisect.
        let (mut low, mut high) = (0.0, self.mean_secs());
        while self.exceeds(high) > 1.0 - share && high < 1e12 {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.exceeds(middle) > 1.0 - share { low = middle } else { high = middle }
        }
        high
    }
}

/// Probability that service and an exponential wait of mean `wait_secs` together exceed `secs`.
fn tail(secs: f64, service_secs: f64, work: &Work, wait_secs: f64) -> f64 {
    let over = secs - service_secs * work.constant;
    if over < 0.0 {
        return 1.0;
    }
    let wait = decay(over, wait_secs);
    let phase = |&(probability, mean): &(f64, f64)| {
        let mean = mean * service_secs;
        let service = decay(over, mean);
        // Tail of the sum of two exponentials. Where both means agree, the general formula is 0 / 0
        // and its limit is used.
        probability
            * match mean - wait_secs {
                gap if gap.abs() > 1e-9 * mean.max(wait_secs) => (mean * service - wait_secs * wait) / gap,
                _ => (1.0 + over / mean.max(1e-300)) * service,
            }
    };
    work.phases.iter().filter(|phase| phase.0 > 0.0).map(phase).sum()
}

fn decay(secs: f64, mean: f64) -> f64 {
    if mean > 0.0 { (-secs / mean).exp() } else { 0.0 }
}

/// Occupancy of replicas in equilibrium: the requests that they process at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Probability that all places are taken.
    pub full: f64,
    /// Mean number of taken places.
    pub mean: f64,
    /// Squared coefficient of variation of the service time of an arrival that finds a free place.
    pub spread: f64,
}

/// Equilibrium of a birth-death process: requests arrive at `rate` per second and `places` of them
/// are served at a time, each for `secs(n)` seconds on average while there are `n`.
///
/// With constant seconds `full` is Erlang's C. For shared service the result depends on the mean of
/// the work only (insensitivity), as long as no request waits. The cost is proportional to the
/// square root of `places`.
///
/// `rate` must be below `places / secs(places)`, and `near` must be a likely state.
pub fn occupancy(rate: f64, places: u32, near: u32, secs: impl Fn(u32) -> f64) -> Occupancy {
    const LEAST: f64 = 1e-12;
    let ratio = |state: u32| rate * secs(state) / f64::from(state);
    let near = near.min(places - 1);
    let (mut total, mut taken, mut service, mut square) = (0.0, 0.0, 0.0, 0.0);
    let mut enter = |state: u32, probability: f64| {
        let next = secs(state + 1);
        total += probability;
        taken += probability * f64::from(state);
        service += probability * next;
        square += probability * next * next;
    };
    // Walk outwards from a likely state on unnormalised probabilities: no power or factorial can
    // overflow, and each walk ends where the tail is negligible.
    enter(near, 1.0);
    let mut probability = 1.0;
    for state in (0..near).rev() {
        probability /= ratio(state + 1);
        enter(state, probability);
        if probability < LEAST {
            break;
        }
    }
    probability = 1.0;
    let mut state = near;
    while state + 1 < places && probability > LEAST {
        state += 1;
        probability *= ratio(state);
        enter(state, probability);
    }
    let free = total;
    let full = if state + 1 == places { probability * ratio(places) / (1.0 - ratio(places)) } else { 0.0 };
    let all = free + full;
    let spread = (square * free / (service * service) - 1.0).max(0.0);
    Occupancy { full: full / all, mean: (taken + full * f64::from(places)) / all, spread }
}
