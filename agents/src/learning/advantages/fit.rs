//! The fit, by minibatches and Adam.

use burn::tensor::Device;
use rand::Rng;

use super::{AdvantageConfig, ChangeSample};
use crate::learning::learner::{Diverged, Learner};
use crate::nets::backward::{NetOutput, forward};
use crate::nets::shard::Shard;
use crate::nets::weights::Weights;

/// Samples that an error is computed of at once.
const PART: usize = 128;

impl Learner {
    /// Fits the scores to `samples`. The weights of the pass with the least error on `left_out` are kept, and those of
    /// the last pass where nothing is left out. The result is the weighted mean squared error on `left_out` of scores
    /// of 0, and that of the weights that are kept.
    ///
    /// # Errors
    /// [`Diverged`] when a gradient is not finite; the weights are those before that minibatch.
    pub fn fit_advantages(
        &mut self,
        config: &AdvantageConfig,
        samples: &[ChangeSample],
        left_out: &[ChangeSample],
        random: &mut impl Rng,
    ) -> Result<[f64; 2], Diverged> {
        let nothing = mean_square(left_out);
        let mut best = (self.advantage_error(left_out), self.weights().clone());
        for epoch in 0..config.epochs {
            for (at, rows) in Self::minibatches(samples.len(), config.minibatch, random).into_iter().enumerate() {
                let chosen: Vec<&ChangeSample> = rows.iter().map(|&row| &samples[row as usize]).collect();
                let mut gradient = gradient(self.weights(), &chosen, self.device());
                self.step(&mut gradient, config.max_grad_norm, config.learning_rate, epoch * samples.len() + at)?;
            }
            let error = self.advantage_error(left_out);
            if error < best.0 || left_out.is_empty() {
                best = (error, self.weights().clone());
            }
        }
        self.set_weights(best.1);
        Ok([nothing, best.0])
    }

    /// Weighted mean squared error of the scores on samples.
    pub fn advantage_error(&self, samples: &[ChangeSample]) -> f64 {
        let of_part = |part: &[ChangeSample]| {
            let part: Vec<&ChangeSample> = part.iter().collect();
            let (output, _) = forward(self.weights(), &shard(self.weights(), &part), self.device());
            misses(&part, &output)
                .map(|(_, sample, miss)| f64::from(sample.weight) * f64::from(miss).powi(2))
                .sum::<f64>()
        };
        let total: f64 = samples.iter().map(|sample| f64::from(sample.weight)).sum();
        samples.chunks(PART).map(of_part).sum::<f64>() / total.max(1e-12)
    }

    /// Gradient of that error, in the order of the flat vector.
    pub fn advantage_gradient(&self, samples: &[ChangeSample]) -> Vec<f32> {
        gradient(self.weights(), &samples.iter().collect::<Vec<_>>(), self.device())
    }
}

fn mean_square(samples: &[ChangeSample]) -> f64 {
    let total: f64 = samples.iter().map(|sample| f64::from(sample.weight)).sum();
    let square = |sample: &ChangeSample| f64::from(sample.weight) * f64::from(sample.target).powi(2);
    samples.iter().map(square).sum::<f64>() / total.max(1e-12)
}

/// The samples as rows, cut to the most changes that one of them has.
fn shard(weights: &Weights, samples: &[&ChangeSample]) -> Shard {
    let layout = weights.layout();
    let slots = samples.iter().map(|sample| sample.signs.len()).max().unwrap_or(1).max(1);
    let actions = slots * layout.verbs + layout.others();
    let mut shard = Shard {
        rows: samples.len(),
        slots,
        features: Vec::with_capacity(samples.len() * slots * layout.slot_features),
        globals: Vec::with_capacity(samples.len() * layout.globals),
        penalty: vec![0.0; samples.len() * actions],
        allowed: vec![actions as u32; samples.len()],
    };
    for sample in samples {
        let (changes, cluster) = sample.features.split_at(sample.features.len() - layout.globals);
        let end = shard.features.len() + slots * layout.slot_features;
        shard.features.extend_from_slice(changes);
        shard.features.resize(end, 0.0);
        shard.globals.extend_from_slice(cluster);
    }
    shard
}

/// By sample, the place of its first score, the sample, and how far the sum of the scores is beyond the target.
fn misses<'a>(
    samples: &'a [&'a ChangeSample],
    output: &'a NetOutput,
) -> impl Iterator<Item = (usize, &'a ChangeSample, f32)> {
    let actions = output.scores.len() / samples.len().max(1);
    samples.iter().enumerate().map(move |(row, sample)| {
        let first = row * actions;
        let sum: f32 = sample.signs.iter().zip(&output.scores[first..]).map(|(sign, score)| sign * score).sum();
        (first, *sample, sum / sample.root() - sample.target)
    })
}

fn gradient(weights: &Weights, samples: &[&ChangeSample], device: &Device) -> Vec<f32> {
    let shard = shard(weights, samples);
    let (output, pass) = forward(weights, &shard, device);
    let total: f32 = samples.iter().map(|sample| sample.weight).sum::<f32>().max(1e-8);
    let mut slopes = NetOutput { scores: vec![0.0; output.scores.len()], values: vec![0.0; samples.len()] };
    for (first, sample, miss) in misses(samples, &output) {
        let slope = 2.0 * sample.weight / total * miss / sample.root();
        sample.signs.iter().zip(&mut slopes.scores[first..]).for_each(|(sign, into)| *into = slope * sign);
    }
    let mut gradient = vec![0.0; weights.data().len()];
    pass.backward(&slopes, &mut gradient);
    gradient
}

impl ChangeSample {
    /// Root of the number of changes that were tried: the spread of what they save grows with it.
    fn root(&self) -> f32 {
        (self.signs.iter().filter(|sign| **sign != 0.0).count().max(1) as f32).sqrt()
    }
}
