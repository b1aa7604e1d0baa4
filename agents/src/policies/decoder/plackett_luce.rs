//! Plackett and Luce's model of choice (Plackett 1975; Luce 1959) under a budget: pairs are taken one by one, each with probability proportional
//! to the exponential of its score among those that are still allowed, until none is.
//!
//! **Pairs are upgrades.** A pair says how much its group has once it is taken, and costs only what that is more than the group has. It is
//! allowed while its group has less and the difference is left. So sizes of one job exclude each other without a constraint of their own, and
//! a walk along scores that fall with the size of a job is the climb along the steps of its hull ([`crate::allocation::knapsack::Hull`]).
//!
//! **What is allowed only shrinks**: a group's upgrade takes as much from what is left as it takes off what the group's larger pairs cost. So a
//! sequence can be drawn by adding one Gumbel number to each score and walking down the sorted list (Gumbel 1954; Yellott 1977), and all
//! normalisers of a sequence come out of one pass from its end: `O(N log N)` for `N` pairs to draw one, and for the exact log-probability,
//! entropy and their gradients up to another logarithm.

use rand::{Rng, RngExt};

/// A (job, size) pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The job, numbered from 0.
    pub group: u32,
    /// Accelerators that it has with this pair.
    pub weight: u32,
    /// Score; any finite number.
    pub score: f64,
}

/// Pairs and a budget.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The pairs.
    pub pairs: &'a [Pair],
    /// Number of groups.
    pub groups: usize,
    /// Accelerators.
    pub capacity: u32,
}

/// Indices of pairs, in the order in which they were taken.
pub type Sequence = Vec<u32>;

/// What is left while a sequence grows, and what each group has.
struct Room {
    left: u32,
    held: Vec<u32>,
}

impl Room {
    /// What `pair` takes beyond what its group has; `None` where the group has as much.
    fn cost(&self, pair: &Pair) -> Option<u32> {
        pair.weight.checked_sub(self.held[pair.group as usize]).filter(|&cost| cost > 0)
    }

    /// Takes `pair` if it is allowed; whether it was.
    fn take(&mut self, pair: &Pair) -> bool {
        let Some(left) = self.cost(pair).and_then(|cost| self.left.checked_sub(cost)) else { return false };
        self.left = left;
        self.held[pair.group as usize] = pair.weight;
        true
    }
}

impl Choice<'_> {
    /// The sequence of greatest probability at every step; of equal scores the earlier pair comes first.
    pub fn greedy(&self) -> Sequence {
        self.walk(|score| score)
    }

    /// A sequence drawn by its probability.
    pub fn sample(&self, random: &mut impl Rng) -> Sequence {
        self.walk(|score| score - (-(1.0 - random.random::<f64>()).ln()).ln())
    }

    /// The score of the first pair that finds no room on the greedy walk: what an accelerator is worth at the margin. `None`: there is room for
    /// all, and in whatever order they are taken, each group ends with its largest.
    pub fn margin(&self) -> Option<f64> {
        let mut room = self.room();
        let order = self.order(|score| score);
        let mut pairs = order.into_iter().map(|at| &self.pairs[at as usize]);
        pairs.find(|pair| !room.take(pair) && room.cost(pair).is_some()).map(|pair| pair.score)
    }

    fn room(&self) -> Room {
        Room { left: self.capacity, held: vec![0; self.groups] }
    }

    fn order(&self, mut key: impl FnMut(f64) -> f64) -> Vec<u32> {
        let mut order: Vec<(f64, u32)> = (0..).zip(self.pairs).map(|(at, pair)| (key(pair.score), at)).collect();
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, at)| at).collect()
    }

    fn walk(&self, key: impl FnMut(f64) -> f64) -> Sequence {
        let mut room = self.room();
        self.order(key).into_iter().filter(|&at| room.take(&self.pairs[at as usize])).collect()
    }

    /// `sequence` step by step; `None` where it cannot be drawn.
    pub fn steps(&self, sequence: &[u32]) -> Option<Steps> {
        let allowed = self.allowed(sequence)?;
        // What leaves after a step is in all normalisers up to it: sums from the end, so that nothing is subtracted.
        let mut last = vec![Sum::default(); sequence.len()];
        for (pair, &allowed) in self.pairs.iter().zip(&allowed) {
            if let Some(step) = (allowed as usize).checked_sub(1) {
                last[step].add(pair.score, pair.score, 1);
            }
        }
        let mut sum = Sum::default();
        for step in last.iter_mut().rev() {
            sum.add(step.log, step.mean, step.count);
            *step = sum;
        }
        Some(Steps { normalisers: last, allowed })
    }

    /// In how many steps of `sequence` each pair was allowed; `None` where the sequence cannot be drawn.
    fn allowed(&self, sequence: &[u32]) -> Option<Vec<u32>> {
        let mut room = self.room();
        let mut left = vec![room.left];
        // Group, step and what the group has after it.
        let mut takes: Vec<(u32, u32, u32)> = Vec::with_capacity(sequence.len());
        for (step, &at) in (1..).zip(sequence) {
            let pair = self.pairs.get(at as usize)?;
            if !room.take(pair) {
                return None;
            }
            left.push(room.left);
            takes.push((pair.group, step, pair.weight));
        }
        takes.sort_unstable();
        let moments: Vec<usize> = (0..left.len()).collect();
        let steps_of = |pair: &Pair| {
            let of_group =
                takes.partition_point(|take| take.0 < pair.group)..takes.partition_point(|take| take.0 <= pair.group);
            let own = &takes[of_group];
            let held = |moment: usize| match own.partition_point(|take| take.1 as usize <= moment) {
                0 => 0,
                takes => own[takes - 1].2,
            };
            // Both the group's own upgrades and what is left for it go one way, so searches find where they end.
            let outgrown = own.get(own.partition_point(|take| take.2 < pair.weight)).map_or(u32::MAX, |take| take.1);
            let fits = moments.partition_point(|&moment| left[moment] + held(moment) >= pair.weight) as u32;
            if pair.weight == 0 { 0 } else { outgrown.min(fits) }
        };
        let allowed: Vec<u32> = self.pairs.iter().map(steps_of).collect();
        // A sequence goes on while anything is allowed.
        allowed.iter().all(|&steps| steps as usize <= sequence.len()).then_some(allowed)
    }

    /// The logarithm of the probability of `sequence`; minus infinity for one that cannot be drawn.
    pub fn log_prob(&self, sequence: &[u32]) -> f64 {
        self.steps(sequence).map_or(f64::NEG_INFINITY, |steps| steps.log_prob(self, sequence))
    }
}

/// A sequence step by step.
#[derive(Clone, Debug)]
pub struct Steps {
    /// By step: over what is allowed.
    normalisers: Vec<Sum>,
    /// By pair: in how many steps, from the first on, it was allowed.
    allowed: Vec<u32>,
}

/// A sum of exponentials of scores.
#[derive(Clone, Copy, Debug)]
struct Sum {
    /// Logarithm of the sum.
    log: f64,
    /// Mean of the scores, each weighed by its exponential.
    mean: f64,
    /// How many there are.
    count: u32,
}

impl Default for Sum {
    fn default() -> Self {
        Self { log: f64::NEG_INFINITY, mean: 0.0, count: 0 }
    }
}

impl Sum {
    fn add(&mut self, log: f64, mean: f64, count: u32) {
        if log == f64::NEG_INFINITY {
            return;
        }
        self.log = log_add(self.log, log);
        self.mean += (mean - self.mean) * (log - self.log).exp();
        self.count += count;
    }
}

impl Steps {
    /// The logarithm of the probability of the sequence.
    pub fn log_prob(&self, choice: &Choice<'_>, sequence: &[u32]) -> f64 {
        let scores = sequence.iter().map(|&at| choice.pairs[at as usize].score);
        scores.zip(&self.normalisers).map(|(score, sum)| score - sum.log).sum()
    }

    /// Adds `scale` times the gradient of [`Self::log_prob`] to `scores`, by pair.
    pub fn add_log_prob_gradient(&self, choice: &Choice<'_>, sequence: &[u32], scale: f64, scores: &mut [f64]) {
        for (gradient, visits) in scores.iter_mut().zip(self.visits(choice)) {
            *gradient -= scale * visits.often;
        }
        for &at in sequence {
            scores[at as usize] += scale;
        }
    }

    /// The sum over steps of the entropy of what is taken there, nats, and of the largest that it could be.
    pub fn entropy(&self) -> (f64, f64) {
        let of = self.normalisers.iter().map(|sum| (sum.log - sum.mean, f64::from(sum.count).ln()));
        of.fold((0.0, 0.0), |(sum, most), (entropy, largest)| (sum + entropy, most + largest))
    }

    /// Adds `scale` times the gradient of that sum to `scores`, the steps taken as given.
    pub fn add_entropy_gradient(&self, choice: &Choice<'_>, scale: f64, scores: &mut [f64]) {
        for ((gradient, pair), visits) in scores.iter_mut().zip(choice.pairs).zip(self.visits(choice)) {
            *gradient -= scale * visits.often * (pair.score - visits.mean);
        }
    }

    /// The sum over steps of `KL(reference || choice)` of what is taken there, nats; `reference` has the same pairs under other scores, and `self`
    /// and `other` are the steps of one sequence under `choice` and under it.
    pub fn divergence(&self, choice: &Choice<'_>, other: &Self, reference: &Choice<'_>) -> f64 {
        let of_sums = self.normalisers.iter().zip(&other.normalisers).map(|(own, reference)| own.log - reference.log);
        let of_pairs = other.visits(reference).into_iter().zip(reference.pairs.iter().zip(choice.pairs));
        of_sums.sum::<f64>()
            + of_pairs.map(|(visits, (reference, own))| visits.often * (reference.score - own.score)).sum::<f64>()
    }

    /// Adds `scale` times the gradient of that sum to `scores`, the steps taken as given.
    pub fn add_divergence_gradient(
        &self,
        choice: &Choice<'_>,
        other: &Self,
        reference: &Choice<'_>,
        scale: f64,
        scores: &mut [f64],
    ) {
        let visits = self.visits(choice).into_iter().zip(other.visits(reference));
        for (gradient, (own, reference)) in scores.iter_mut().zip(visits) {
            *gradient += scale * (own.often - reference.often);
        }
    }

    /// By pair, over the steps in which it was allowed.
    fn visits(&self, choice: &Choice<'_>) -> Vec<Visits> {
        // By number of steps: the logarithm of the sum of one over the normalisers, and the mean of their means weighed by that.
        let mut shares = vec![Sum::default()];
        shares.extend(self.normalisers.iter().scan(Sum::default(), |sum, normaliser| {
            sum.add(-normaliser.log, normaliser.mean, 1);
            Some(*sum)
        }));
        let of = |(pair, &allowed): (&Pair, &u32)| {
            let Sum { log, mean, .. } = shares[allowed as usize];
            Visits { often: (pair.score + log).exp(), mean }
        };
        choice.pairs.iter().zip(&self.allowed).map(of).collect()
    }
}

/// What is expected of a pair.
struct Visits {
    /// How often it is taken: the sum of its probabilities.
    often: f64,
    /// The mean score at those steps, each weighed by the pair's probability.
    mean: f64,
}

/// `ln(e^a + e^b)`.
fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}
