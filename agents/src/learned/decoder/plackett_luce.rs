//! Plackett and Luce's model of choice (Plackett 1975; Luce 1959) under a budget: pairs are taken one by one, each with probability proportional
//! to the exponential of its score among those that are still allowed. A pair is allowed while its group has nothing yet and its weight
//! is left; the sequence ends when none is, or when "stop" is taken, where that has a score.
//!
//! What is allowed only shrinks. So a sequence can be drawn by adding one Gumbel number to each score and walking down the sorted
//! list (Gumbel 1954; Yellott 1977), and all normalisers of a sequence come out of one pass from its end: `O(N log N)` to draw and `O(N)`
//! for the exact log-probability and its gradient, for `N` pairs.

use rand::{Rng, RngExt};

/// A (job, size) pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The job, numbered from 0.
    pub group: u32,
    /// Accelerators it takes.
    pub weight: u32,
    /// Score; any finite number.
    pub score: f64,
}

/// Pairs, a budget and perhaps a stop.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The pairs.
    pub pairs: &'a [Pair],
    /// Number of groups.
    pub groups: usize,
    /// Accelerators.
    pub capacity: u32,
    /// Score of ending the sequence; `None`: it goes on while anything fits.
    pub stop: Option<f64>,
}

/// A sequence of pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Indices of pairs, in the order in which they were taken.
    pub taken: Vec<u32>,
    /// Whether it was ended by stop.
    pub stopped: bool,
}

impl Choice<'_> {
    /// The sequence of greatest probability at every step.
    pub fn greedy(&self) -> Sequence {
        self.walk(|score| score)
    }

    /// A sequence drawn by its probability.
    pub fn sample(&self, random: &mut impl Rng) -> Sequence {
        self.walk(|score| score - (-(1.0 - random.random::<f64>()).ln()).ln())
    }

    fn walk(&self, mut key: impl FnMut(f64) -> f64) -> Sequence {
        let mut order: Vec<(f64, u32)> = (0..).zip(self.pairs).map(|(at, pair)| (key(pair.score), at)).collect();
        let stop = self.stop.map_or(f64::NEG_INFINITY, &mut key);
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut sequence = Sequence::default();
        let mut used = vec![false; self.groups];
        let mut left = self.capacity;
        for (key, at) in order {
            if self.stop.is_some() && stop > key {
                break;
            }
            let Pair { group, weight, .. } = self.pairs[at as usize];
            if weight <= left && !used[group as usize] {
                used[group as usize] = true;
                left -= weight;
                sequence.taken.push(at);
            }
        }
        // Where nothing was left to take, the sequence had ended before stop could be drawn.
        sequence.stopped =
            self.stop.is_some() && self.pairs.iter().any(|pair| pair.weight <= left && !used[pair.group as usize]);
        sequence
    }

    /// The logarithm of the probability of `sequence`; minus infinity for one that cannot be drawn.
    pub fn log_prob(&self, sequence: &Sequence) -> f64 {
        self.evaluate(sequence).map_or(f64::NEG_INFINITY, |steps| steps.log_prob)
    }

    /// Adds `scale` times the gradient of the log-probability to `scores`, by pair, and gives that of the score of stop.
    pub fn add_gradient(&self, sequence: &Sequence, scale: f64, scores: &mut [f64]) -> f64 {
        let Some(steps) = self.evaluate(sequence) else { return 0.0 };
        // By number of steps: the logarithm of the sum over them of one over the normaliser.
        let mut shares = vec![f64::NEG_INFINITY];
        shares.extend(steps.log_normalisers.iter().scan(f64::NEG_INFINITY, |sum, log| {
            *sum = log_add(*sum, -log);
            Some(*sum)
        }));
        for ((gradient, pair), &allowed) in scores.iter_mut().zip(self.pairs).zip(&steps.allowed) {
            *gradient -= scale * (pair.score + shares[allowed as usize]).exp();
        }
        for &at in &sequence.taken {
            scores[at as usize] += scale;
        }
        let all = shares.last().copied().unwrap_or(f64::NEG_INFINITY);
        let stop = self.stop.map_or(0.0, |stop| (stop + all).exp());
        scale * (f64::from(u8::from(sequence.stopped)) - stop)
    }

    fn evaluate(&self, sequence: &Sequence) -> Option<Steps> {
        let taken = sequence.taken.len();
        // By group the step after which it has something; by step what is left before it.
        let mut until = vec![u32::MAX; self.groups];
        let mut left = vec![self.capacity];
        for (step, &at) in (1..).zip(&sequence.taken) {
            let pair = self.pairs.get(at as usize)?;
            let before = *left.last()?;
            if until[pair.group as usize] != u32::MAX {
                return None;
            }
            until[pair.group as usize] = step;
            left.push(before.checked_sub(pair.weight)?);
        }
        // In how many steps each pair was allowed; what is left falls, so a search finds it.
        let steps_of =
            |pair: &Pair| (left.partition_point(|&left| left >= pair.weight) as u32).min(until[pair.group as usize]);
        let allowed: Vec<u32> = self.pairs.iter().map(steps_of).collect();
        let goes_on = allowed.iter().any(|&steps| steps as usize > taken);
        if sequence.stopped != (self.stop.is_some() && goes_on) || (goes_on && !sequence.stopped) {
            return None;
        }
        let steps = taken + usize::from(sequence.stopped);
        let stop = self.stop.unwrap_or(f64::NEG_INFINITY);
        // What leaves after a step is in all normalisers up to it: sums from the end, so that nothing is subtracted.
        let mut log_normalisers = vec![f64::NEG_INFINITY; steps];
        for (pair, &allowed) in self.pairs.iter().zip(&allowed) {
            if let Some(last) = (allowed as usize).min(steps).checked_sub(1) {
                log_normalisers[last] = log_add(log_normalisers[last], pair.score);
            }
        }
        let mut sum = stop;
        for log in log_normalisers.iter_mut().rev() {
            sum = log_add(sum, *log);
            *log = sum;
        }
        let scores = sequence.taken.iter().map(|&at| self.pairs[at as usize].score);
        let scores = scores.chain(sequence.stopped.then_some(stop));
        let log_prob = scores.zip(&log_normalisers).map(|(score, log)| score - log).sum();
        let allowed = allowed.into_iter().map(|allowed| allowed.min(steps as u32)).collect();
        Some(Steps { log_prob, log_normalisers, allowed })
    }
}

/// A sequence step by step.
struct Steps {
    log_prob: f64,
    /// Logarithm of the sum over what is allowed of the exponential of the score.
    log_normalisers: Vec<f64>,
    /// By pair: in how many steps it was allowed.
    allowed: Vec<u32>,
}

/// `ln(e^a + e^b)`.
fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}
