//! Fair share of KAI's queues (github.com/NVIDIA/KAI-Scheduler, `docs/fairness`).
//!
//! Every queue gets the deserved quota, as far as it requests that. What is left is divided among
//! the queues that request more, by weight, in rounds. All shares of a round are computed from what
//! is left at its start, so the order of queues does not matter. With time-aware fairness
//! (`docs/developer/designs/time-aware-fairness`) a weight counts as `max(0, w + k (w - u))`, where
//! w is normalised over the round and u is past usage over capacity.

/// Queue of a tenant, as the fair share sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareQueue {
    /// Deserved quota: accelerators that the queue has a right to.
    pub deserved: f64,
    /// Over-quota weight: relative share of what is left.
    pub weight: f64,
    /// Accelerators that the queue holds or asks for.
    pub request: f64,
    /// Past usage as a fraction of the capacity, in [0, 1].
    pub usage: f64,
}

/// Accelerators that each queue should have of `total`. `k` is the weight of past usage; 0 ignores
/// it.
pub fn fair_shares(total: f64, queues: &[ShareQueue], k: f64) -> Vec<f64> {
    let mut shares: Vec<f64> = queues.iter().map(|queue| queue.deserved.min(queue.request)).collect();
    // Each round satisfies a queue or gives all that is left.
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
