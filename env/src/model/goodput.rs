//! The batch size that learns fastest on a given allocation.
//!
//! Throughput rises with the batch and efficiency falls, so every allocation has a best batch in between; what an
//! allocation is worth to a policy is the goodput there (Pollux, OSDI'21). Policies ask for it for every job and every
//! size they consider, millions of times a run, so [`GoodputModel::best`] bounds all candidates cheaply from above and
//! takes powers only where the bound could still win. The answer is exactly that of the full search.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::batch::{BatchConfig, BatchLimits};
use super::efficiency::GradientStats;
use super::throughput::ThroughputParams;

/// Candidate total batch sizes, the default of `numpy.geomspace` (Pollux artifact `goodput.py`, `optimize`).
const CANDIDATES: usize = 50;
/// More than rounding can take from an upper bound.
const ROUNDING: f64 = 1.0 + 1e-12;

/// Everything a policy knows about the speed of a job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoodputModel {
    /// How long steps take.
    pub params: ThroughputParams,
    /// What they are worth now, measured at `limits.init`.
    pub stats: GradientStats,
    /// Batch sizes allowed.
    pub limits: BatchLimits,
}

/// A batch and what it achieves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// How each replica processes a step.
    pub batch: BatchConfig,
    /// Useful samples per second with it.
    pub goodput: f64,
}

/// A batch with what bounds its goodput.
#[derive(Clone, Copy)]
struct Candidate {
    batch: BatchConfig,
    /// Seconds of one bare pass.
    pass_secs: f64,
    /// Samples of one step times their efficiency.
    useful: f64,
}

impl GoodputModel {
    /// Useful samples per second: throughput times efficiency (Pollux, definition of goodput), on `nodes >= 1` and
    /// `replicas >= nodes`.
    ///
    /// Meaningful for totals of at least `limits.init`, below which efficiency would exceed 1.
    #[must_use]
    pub fn goodput(&self, nodes: u32, replicas: u32, batch: BatchConfig) -> f64 {
        self.params.throughput(nodes, replicas, batch) * self.stats.efficiency(batch.total(replicas), self.limits.init)
    }

    /// The batch of highest goodput among 50 totals in geometric progression from the smallest that `replicas` can work
    /// on to `limits.max`; among equals the smallest total (Pollux artifact `goodput.py`, `optimize`).
    ///
    /// `None` if no total is allowed: more replicas than `limits.max` feeds, or micro-batches always below `min_local`.
    /// Rounding up per replica may push the realised total above `limits.max`; see [`best_capped`](Self::best_capped).
    #[must_use]
    pub fn best(&self, nodes: u32, replicas: u32) -> Option<Choice> {
        let sync_secs = self.params.sync_time(nodes, replicas);
        let gamma = self.params.gamma;
        let candidates = self.candidates(replicas);

        // The norm is convex in the pass time, so it lies above the larger side and above each of its tangents. The
        // tangent where both sides are equal serves to guess the winner, the tangent at the guess to dismiss the rest.
        let mut bound = LowerBound::balanced(sync_secs, gamma);
        let guess = candidates.iter().map(|c| c.useful / bound.step_secs(c)).enumerate().fold((0, f64::MIN), larger).0;
        let guess = candidates.get(guess)?;
        bound.touch(self.params.optim_time(nodes, replicas, guess.batch.atomic), guess.pass_secs, gamma);
        let mut to_beat = self.goodput(nodes, replicas, guess.batch);

        let mut best: Option<Choice> = None;
        for candidate in &candidates {
            if candidate.useful * ROUNDING < to_beat * bound.step_secs(candidate) {
                continue;
            }
            let goodput = self.goodput(nodes, replicas, candidate.batch);
            if best.is_none_or(|best| goodput > best.goodput) {
                best = Some(Choice { batch: candidate.batch, goodput });
                to_beat = goodput.max(to_beat);
            }
        }
        best
    }

    /// [`best`](Self::best) with its total kept within `limits.max`, as a running job applies it (artifact
    /// `simulator.py`, `update_local_bsz`), and the goodput of the batch so capped.
    #[must_use]
    pub fn best_capped(&self, nodes: u32, replicas: u32) -> Option<Choice> {
        let choice = self.best(nodes, replicas)?;
        let batch = self.limits.capped(choice.batch, replicas);
        let unchanged = batch == choice.batch;
        Some(if unchanged { choice } else { Choice { batch, goodput: self.goodput(nodes, replicas, batch) } })
    }

    /// Best goodput relative to `base` useful samples per second, such as the best goodput of the fair share; 0 if no
    /// batch is allowed (artifact `speedup.py`).
    #[must_use]
    pub fn speedup(&self, nodes: u32, replicas: u32, base: f64) -> f64 {
        self.best(nodes, replicas).map_or(0.0, |choice| choice.goodput / base)
    }

    /// The allowed batches of the geometric grid, ascending, without repetition of neighbours.
    fn candidates(&self, replicas: u32) -> SmallVec<[Candidate; CANDIDATES]> {
        let mut candidates = SmallVec::new();
        let limits = &self.limits;
        let replica_count = f64::from(replicas);
        let (start, end) = (limits.smallest_total(replicas) as f64, f64::from(limits.max));
        if replicas == 0 || start > end {
            return candidates;
        }
        let GradientStats { sqr, var } = self.stats;
        let sqr_per_sample = sqr / f64::from(limits.init);
        let last = CANDIDATES - 1;
        let factor = ((end / start).ln() / last as f64).exp();
        let mut total = start;
        let mut previous = BatchConfig::default();
        for index in 0..CANDIDATES {
            // Both ends exact; in between within 1e-14 of the published 10^linspace.
            let local = if index == last { end } else { total } / replica_count;
            total *= factor;
            let needs_two = replicas == 1 && local > f64::from(limits.init) + 1e-8;
            let batch = limits.accumulate(local, needs_two);
            if batch == previous || !limits.allows_local(batch.atomic) {
                continue;
            }
            previous = batch;
            let realised = replica_count * f64::from(batch.atomic) * (f64::from(batch.accumulation) + 1.0);
            // Samples times gain / scale with one division; the exact formula decides where it matters.
            let noise = var + sqr_per_sample * realised;
            let useful = if noise > 0.0 { realised * (var + sqr) / noise } else { f64::from(limits.init) };
            candidates.push(Candidate { batch, pass_secs: self.params.grad_time(batch.atomic), useful });
        }
        candidates
    }
}

/// A lower bound of the time of a synchronised pass as a function of the time of a bare one.
struct LowerBound {
    sync_secs: f64,
    /// `(value at 0, slope)` of tangents of the norm.
    tangents: [(f64, f64); 2],
}

impl LowerBound {
    fn balanced(sync_secs: f64, gamma: f64) -> Self {
        let slope = (1.0 / gamma - 1.0).exp2();
        Self { sync_secs, tangents: [(slope * sync_secs, slope), (0.0, 0.0)] }
    }

    /// Adds the tangent at a pass of `pass_secs`, where the norm is `optim_secs`.
    fn touch(&mut self, optim_secs: f64, pass_secs: f64, gamma: f64) {
        let slope = if pass_secs > 0.0 { (pass_secs / optim_secs).powf(gamma - 1.0) } else { 0.0 };
        self.tangents[1] = (optim_secs - slope * pass_secs, slope);
    }

    /// At most the seconds of a whole step.
    fn step_secs(&self, candidate: &Candidate) -> f64 {
        let pass_secs = candidate.pass_secs;
        let [first, second] = self.tangents.map(|(at_zero, slope)| at_zero + slope * pass_secs);
        let optim_secs = pass_secs.max(self.sync_secs).max(first).max(second);
        f64::from(candidate.batch.accumulation) * pass_secs + optim_secs
    }
}

/// Keeps the entry of the larger value, the earlier one if they are equal.
fn larger(best: (usize, f64), next: (usize, f64)) -> (usize, f64) {
    if next.1 > best.1 { next } else { best }
}
