//! Softmax of the scores of a round, as objectives read it: four numbers a row, on the host, and
//! the way back from their slopes to those of the scores.

use crate::nets::distribution::exp;
use crate::nets::shard::Shard;
use crate::nets::simd::widest;

/// Numbers of each row, `[rows]`, or the slopes of a loss along them.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Score of the action that was taken.
    pub score: Vec<f32>,
    /// Logarithm of its probability.
    pub log_prob: Vec<f32>,
    /// Entropy over the logarithm of the number of allowed actions; 0 where only one is allowed.
    pub entropy: Vec<f32>,
    /// `KL(reference || policy)`; 0 without a reference.
    pub divergence: Vec<f32>,
}

/// Masked softmax of the rows of a shard.
pub(crate) struct Softmax {
    /// Actions kept of each row.
    actions: usize,
    /// Index of each row's action among the kept actions.
    taken: Vec<usize>,
    /// `[rows, actions kept]`: far below 0 where not allowed.
    log_probs: Vec<f32>,
    /// `[rows, actions kept]`: exactly 0 where not allowed.
    probabilities: Vec<f32>,
    /// Of a reference, `[rows, actions kept]`.
    reference: Option<Vec<f32>>,
    /// `[rows]`: mean logarithm of the probability, and what makes an entropy of it.
    mean_log: Vec<f32>,
    scale: Vec<f32>,
}

impl Softmax {
    /// Of scores `[rows, actions kept]`.
    pub fn new(mut scores: Vec<f32>, shard: &Shard, taken: Vec<usize>, reference: Option<Vec<f32>>) -> (Self, Columns) {
        let (rows, actions) = (shard.rows, shard.actions());
        let room = || Vec::with_capacity(rows);
        let mut columns = Columns { score: room(), log_prob: room(), entropy: room(), divergence: vec![0.0; rows] };
        let mut probabilities = vec![0.0; scores.len()];
        let (mut mean_log, mut scale) = (room(), room());
        let each = scores.chunks_exact_mut(actions).zip(probabilities.chunks_exact_mut(actions));
        for (row, (z, p)) in each.enumerate() {
            let penalty = &shard.penalty[row * actions..(row + 1) * actions];
            z.iter_mut().zip(penalty).for_each(|(z, &penalty)| *z += penalty);
            columns.score.push(z[taken[row]]);
            let peak = z.iter().fold(f32::NEG_INFINITY, |peak, &z| if z > peak { z } else { peak });
            widest(|| p.iter_mut().zip(&*z).for_each(|(p, &z)| *p = exp(z - peak)));
            let total: f32 = p.iter().sum();
            let (share, shift) = (1.0 / total, peak + total.ln());
            p.iter_mut().for_each(|p| *p *= share);
            z.iter_mut().for_each(|z| *z -= shift);
            columns.log_prob.push(z[taken[row]]);
            let allowed = shard.allowed[row];
            // A forbidden action has a probability of 0 and a finite logarithm, so it adds nothing.
            mean_log.push(z.iter().zip(&*p).map(|(z, p)| z * p).sum());
            scale.push(if allowed > 1 { -1.0 / (allowed as f32).ln() } else { 0.0 });
            columns.entropy.push(mean_log[row] * scale[row]);
        }
        if let Some(reference) = &reference {
            for ((divergence, q), z) in
                columns.divergence.iter_mut().zip(reference.chunks_exact(actions)).zip(scores.chunks_exact(actions))
            {
                *divergence = q.iter().zip(z).filter(|(q, _)| **q > 0.0).map(|(q, z)| q * (q.ln() - z)).sum();
            }
        }
        (Self { actions, taken, log_probs: scores, probabilities, reference, mean_log, scale }, columns)
    }

    /// Whether the action of each row is the most probable.
    pub fn most_probable(&self) -> Vec<bool> {
        let rows = self.log_probs.chunks_exact(self.actions).zip(&self.taken);
        rows.map(|(row, &taken)| row.iter().all(|&other| other <= row[taken])).collect()
    }

    /// The slopes of the scores from those of the columns.
    pub fn slopes(self, of: &Columns) -> Vec<f32> {
        let Self { actions, log_probs: mut slopes, probabilities, reference, .. } = self;
        for (row, (slopes, p)) in slopes.chunks_exact_mut(actions).zip(probabilities.chunks_exact(actions)).enumerate()
        {
            let (taken, mean_log) = (self.taken[row], self.mean_log[row]);
            // Along z: mean_log has p (ln p - mean_log), ln p[taken] has 1[taken] - p, and the
            // divergence p - q.
            let along = of.entropy[row] * self.scale[row];
            let shared = of.divergence[row] - of.log_prob[row];
            for (slope, &p) in slopes.iter_mut().zip(p) {
                *slope = p * (along * (*slope - mean_log) + shared);
            }
            slopes[taken] += of.log_prob[row] + of.score[row];
            if let Some(reference) = &reference {
                let q = &reference[row * actions..(row + 1) * actions];
                slopes.iter_mut().zip(q).for_each(|(slope, q)| *slope -= of.divergence[row] * q);
            }
        }
        slopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rows of four actions, some of them masked, one with a single action.
    fn shard() -> Shard {
        let allowed = [[1, 1, 0, 1], [1, 1, 1, 1], [0, 0, 1, 0]];
        let penalty = allowed.as_flattened().iter().map(|&allowed| if allowed == 0 { -1e9 } else { 0.0 }).collect();
        let counts = allowed.iter().map(|row| row.iter().sum()).collect();
        Shard { rows: 3, slots: 0, features: Vec::new(), globals: Vec::new(), penalty, allowed: counts }
    }

    #[test]
    fn slopes_are_those_of_the_columns() {
        let scores = [0.3, -1.2, 5.0, 0.8, 1.0, 0.2, -0.4, 0.9, 0.0, 0.0, 0.7, 0.0];
        let reference = vec![0.2, 0.5, 0.0, 0.3, 0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 1.0, 0.0];
        let columns = |scores: &[f32]| Softmax::new(scores.to_vec(), &shard(), vec![3, 1, 2], Some(reference.clone()));
        // One column at a time, with another weight for each row.
        for which in 0..4 {
            let weights = |at: usize| if at == which { vec![0.5, -2.0, 1.5] } else { vec![0.0; 3] };
            let along =
                Columns { score: weights(0), log_prob: weights(1), entropy: weights(2), divergence: weights(3) };
            let total = |scores: &[f32]| {
                let (_, now) = columns(scores);
                let of = |column: Vec<f32>, weights: &[f32]| {
                    column.iter().zip(weights).map(|(x, w)| f64::from(x * w)).sum::<f64>()
                };
                of(now.score, &along.score)
                    + of(now.log_prob, &along.log_prob)
                    + of(now.entropy, &along.entropy)
                    + of(now.divergence, &along.divergence)
            };
            let slopes = columns(&scores).0.slopes(&along);
            for (at, &slope) in slopes.iter().enumerate().filter(|(at, _)| shard().penalty[*at] == 0.0) {
                let moved = |by: f32| {
                    let mut scores = scores;
                    scores[at] += by;
                    total(&scores)
                };
                let want = (moved(0.01) - moved(-0.01)) / 0.02;
                assert!((f64::from(slope) - want).abs() < 2e-3, "column {which}, score {at}: {slope} {want}");
            }
        }
    }
}
