//! The fair share of KAI's queues (github.com/NVIDIA/KAI-Scheduler, `docs/fairness`).
//!
//! Everybody gets what he deserves, as far as he asks for it. What is left is divided among those who want more, by weight, in rounds: all parts of a
//! round are computed from what is left at its start, so no order of queues matters. With time-aware fairness (`docs/developer/designs/
//! time-aware-fairness`) a weight counts as `max(0, w + k (w - u))`, where w is normalised over the round and u is past usage over capacity.

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareQueue {
    /// Accelerators it has a right to.
    pub deserved: f64,
    /// Its part of what is left.
    pub weight: f64,
    /// Accelerators it holds or asks for.
    pub request: f64,
    /// Its past usage, as a part of the capacity.
    pub usage: f64,
}

/// Accelerators that each queue should have of `total`; `k` is how much past usage counts, 0: not at all.
pub fn fair_shares(total: f64, queues: &[ShareQueue], k: f64) -> Vec<f64> {
    let mut shares: Vec<f64> = queues.iter().map(|queue| queue.deserved.min(queue.request)).collect();
    // Each round satisfies somebody or gives all there is.
    for _ in 0..=queues.len() {
        let left = total - shares.iter().sum::<f64>();
        let hungry: Vec<usize> = (0..queues.len()).filter(|&at| queues[at].request - shares[at] > 1e-9).collect();
        let weights: f64 = hungry.iter().map(|&at| queues[at].weight).sum();
        if left <= 1e-9 || weights <= 0.0 {
            break;
        }
        let portion = |at: &usize| {
            let weight = queues[*at].weight / weights;
            (weight + k * (weight - queues[*at].usage)).max(0.0)
        };
        let portions: Vec<f64> = hungry.iter().map(portion).collect();
        let whole: f64 = portions.iter().sum();
        if whole <= 0.0 {
            break;
        }
        for (&at, portion) in hungry.iter().zip(&portions) {
            shares[at] += (left * portion / whole).min(queues[at].request - shares[at]);
        }
    }
    shares
}
