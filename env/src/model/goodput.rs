//! Batch size of highest goodput on a given allocation.
//!
//! Throughput rises with the batch size and efficiency falls, so each allocation has a best batch
//! size in between. The goodput at that batch is the worth of the allocation to a policy (Pollux,
//! OSDI'21). A run evaluates it millions of times, for all jobs and allocation sizes that a policy
//! considers. So [`GoodputModel::best`] first bounds all candidates cheaply from above and computes
//! powers only where the bound could still win. The result equals that of the full search exactly.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::batch::{BatchConfig, BatchLimits};
use super::efficiency::GradientStats;
use super::throughput::ThroughputParams;

/// Candidate total batch sizes, the default of `numpy.geomspace` (Pollux artifact `goodput.py`,
/// `optimize`).
const CANDIDATES: usize = 50;
/// Factor on upper bounds that exceeds any rounding error in them.
const ROUNDING: f64 = 1.0 + 1e-12;

/// Complete speed model of a job, as a policy knows it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoodputModel {
    /// Parameters of the step time.
    pub params: ThroughputParams,
    /// Current gradient statistics, measured at a batch of `limits.init`.
    pub stats: GradientStats,
    /// Batch sizes that the job may use.
    pub limits: BatchLimits,
}

/// Best batch of an allocation with its goodput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Micro-batches of each replica in a step.
    pub batch: BatchConfig,
    /// Useful samples per second with this batch.
    pub goodput: f64,
}

/// Candidate batch with the quantities that bound its goodput.
#[derive(Clone, Copy)]
struct Candidate {
    batch: BatchConfig,
    /// Seconds of one pass without synchronisation.
    pass_secs: f64,
    /// Samples of one step times their efficiency.
    useful: f64,
}

impl GoodputModel {
    /// Model in which all samples have equal worth, as they do without a true gradient: its goodput is the throughput.
    #[must_use]
    pub fn by_throughput(self) -> Self {
        Self { stats: GradientStats { sqr: 0.0, var: 1.0 }, ..self }
    }

    /// Useful samples per second: throughput times efficiency (Pollux, definition of goodput), on
    /// `nodes >= 1` and `replicas >= nodes`.
    ///
    /// Meaningful for totals of at least `limits.init`, below which efficiency would exceed 1.
    #[must_use]
    pub fn goodput(&self, nodes: u32, replicas: u32, batch: BatchConfig) -> f64 {
        self.params.throughput(nodes, replicas, batch) * self.stats.efficiency(batch.total(replicas), self.limits.init)
    }

    /// Batch of highest goodput among 50 totals in geometric progression, from the smallest that
    /// `replicas` can process to `limits.max`; the smallest total among equals (Pollux artifact
    /// `goodput.py`, `optimize`).
    ///
    /// The result is `None` if no total is allowed: more replicas than `limits.max` can feed, or
    /// micro-batches that are always below `min_local`. Rounding up per replica may push the
    /// realised total above `limits.max`; see [`best_capped`](Self::best_capped).
    #[must_use]
    pub fn best(&self, nodes: u32, replicas: u32) -> Option<Choice> {
        let sync_secs = self.params.sync_time(nodes, replicas);
        let gamma = self.params.gamma;
        let candidates = self.candidates(replicas);

        // The norm is convex in the pass time, so it lies above the larger side and above each of
        // its tangents. The tangent at the point of equal sides predicts the winner. The tangent at
        // the predicted winner rules out most other candidates, so few norms need powers.
        let mut bound = LowerBound::balanced(sync_secs, gamma);
        let guess = candidates.iter().map(|c| c.useful / bound.step_secs(c)).enumerate().fold((0, f64::MIN), larger).0;
        let guess = candidates.get(guess)?;
        bound.touch(self.params.optim_time(nodes, replicas, guess.batch.atomic), guess.pass_secs, gamma);
        let mut to_beat = self.goodput(nodes, replicas, guess.batch);

        let mut best: Option<Choice> = None;
        for candidate in &candidates {
            // Most candidates end here without a power: even the upper bound cannot beat the best
            // goodput.
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

    /// Batch of [`best`](Self::best) with its total capped at `limits.max`, as a running job
    /// applies it (artifact `simulator.py`, `update_local_bsz`), with the goodput of the capped
    /// batch.
    #[must_use]
    pub fn best_capped(&self, nodes: u32, replicas: u32) -> Option<Choice> {
        let choice = self.best(nodes, replicas)?;
        let batch = self.limits.capped(choice.batch, replicas);
        let unchanged = batch == choice.batch;
        Some(if unchanged { choice } else { Choice { batch, goodput: self.goodput(nodes, replicas, batch) } })
    }

    /// Best goodput relative to `base` useful samples per second, such as the best goodput of the
    /// fair share; 0 if no batch is allowed (artifact `speedup.py`).
    #[must_use]
    pub fn speedup(&self, nodes: u32, replicas: u32, base: f64) -> f64 {
        self.best(nodes, replicas).map_or(0.0, |choice| choice.goodput / base)
    }

    /// Allowed batches of the geometric grid, in ascending order, without repeated neighbours.
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
            // Both ends are exact; in between the totals agree within 1e-14 with the published
            // 10^linspace.
            let local = if index == last { end } else { total } / replica_count;
            total *= factor;
            let passes = if replicas == 1 && local > f64::from(limits.init) + 1e-8 { 2 } else { 1 };
            let batch = limits.accumulate(local, passes);
            // Rounding maps neighbouring totals to one batch, which needs one evaluation only.
            if batch == previous || !limits.allows_local(batch.atomic) {
                continue;
            }
            previous = batch;
            let realised = replica_count * f64::from(batch.atomic) * (f64::from(batch.accumulation) + 1.0);
            // Samples times gain / scale with one division. The value only serves bounds; the
            // winner is evaluated with the exact formula.
            let noise = var + sqr_per_sample * realised;
            let useful = if noise > 0.0 { realised * (var + sqr) / noise } else { f64::from(limits.init) };
            candidates.push(Candidate { batch, pass_secs: self.params.grad_time(batch.atomic), useful });
        }
        candidates
    }
}

/// Lower bound of the time of a synchronised pass, as a function of the time of a pass without
/// synchronisation.
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

    /// Lower bound of the seconds of a whole step.
    fn step_secs(&self, candidate: &Candidate) -> f64 {
        let pass_secs = candidate.pass_secs;
        let [first, second] = self.tangents.map(|(at_zero, slope)| at_zero + slope * pass_secs);
        let optim_secs = pass_secs.max(self.sync_secs).max(first).max(second);
        f64::from(candidate.batch.accumulation) * pass_secs + optim_secs
    }
}

/// Entry with the larger value; the earlier entry if the values are equal.
fn larger(best: (usize, f64), next: (usize, f64)) -> (usize, f64) {
    if next.1 > best.1 { next } else { best }
}
