//! The cross-entropy method (Rubinstein 1999; Szita and Lorincz 2006 with decaying noise): search
//! without gradients.
//!
//! Ask for a population, score it in any order and on any number of threads, tell the scores. Each
//! generation draws from a stream of its own, so the whole state is the mean, the deviations and
//! the generation's number.

use goodput_env::seed::{Stream, keyed};
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CemConfig {
    /// Candidates of a generation, at least 2.
    pub population: usize,
    /// The best of them, from which the next generation is drawn; at least 1.
    pub elites: usize,
    /// Initial standard deviation of each weight.
    pub deviation: f64,
    /// Added to the deviations at first and decaying to nothing, against collapsing too early.
    pub noise: f64,
    /// Generations in which the noise decays.
    pub noise_generations: u64,
}

impl Default for CemConfig {
    fn default() -> Self {
        Self { population: 64, elites: 8, deviation: 1.0, noise: 0.2, noise_generations: 30 }
    }
}

/// State of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cem {
    config: CemConfig,
    seed: u64,
    generation: u64,
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Cem {
    /// A search around `mean`.
    pub fn new(config: CemConfig, mean: Vec<f64>, seed: u64) -> Self {
        let deviation = vec![config.deviation; mean.len()];
        Self { config, seed, generation: 0, mean, deviation }
    }

    /// The candidates of this generation; the same ones until [`Self::tell`]. The first is the mean
    /// itself.
    pub fn ask(&self) -> Vec<Vec<f64>> {
        let mut random = keyed(self.seed, Stream::Exploration, self.generation);
        let mut population = vec![self.mean.clone()];
        population.resize_with(self.config.population.max(2), || {
            let draw = |(mean, deviation): (&f64, &f64)| {
                let z: f64 = StandardNormal.sample(&mut random);
                mean + deviation * z
            };
            self.mean.iter().zip(&self.deviation).map(draw).collect()
        });
        population
    }

    /// Takes the scores of what [`Self::ask`] gave, in its order; more is better and NaN is worst.
    ///
    /// # Panics
    /// When there is not one score per candidate.
    pub fn tell(&mut self, scores: &[f64]) {
        // The draw is a function of the generation, so it is repeated here and never stored.
        let population = self.ask();
        assert_eq!(scores.len(), population.len(), "one score per candidate");
        let score = |i: usize| if scores[i].is_nan() { f64::NEG_INFINITY } else { scores[i] };
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
        let elites = &order[..self.config.elites.clamp(1, order.len())];
        let count = elites.len() as f64;
        let left = 1.0 - self.generation as f64 / self.config.noise_generations.max(1) as f64;
        let noise = self.config.noise * left.max(0.0);
        for (d, (centre, deviation)) in self.mean.iter_mut().zip(&mut self.deviation).enumerate() {
            *centre = elites.iter().map(|&e| population[e][d]).sum::<f64>() / count;
            let variance = elites.iter().map(|&e| (population[e][d] - *centre).powi(2)).sum::<f64>() / count;
            *deviation = variance.sqrt() + noise;
        }
        self.generation += 1;
    }

    /// The centre of the search: its answer.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Standard deviation of each weight.
    pub fn deviation(&self) -> &[f64] {
        &self.deviation
    }

    /// Number of generations told so far.
    pub const fn generation(&self) -> u64 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_top_of_a_hill_and_repeats_itself() {
        let target = [1.5, -2.0, 0.25, 4.0];
        let search = || {
            let mut cem = Cem::new(CemConfig::default(), vec![0.0; 4], 9);
            for _ in 0..60 {
                let scores: Vec<f64> = cem
                    .ask()
                    .iter()
                    .map(|x| -x.iter().zip(&target).map(|(a, b)| (a - b).powi(2)).sum::<f64>())
                    .collect();
                cem.tell(&scores);
            }
            cem
        };
        let cem = search();
        for (found, want) in cem.mean().iter().zip(&target) {
            assert!((found - want).abs() < 1e-3, "{:?}", cem.mean());
        }
        assert_eq!(cem, search());
    }

    #[test]
    fn a_candidate_that_failed_is_never_an_elite() {
        let mut cem = Cem::new(CemConfig { population: 4, elites: 1, ..CemConfig::default() }, vec![0.0], 1);
        let second = cem.ask()[2].clone();
        cem.tell(&[f64::NAN, f64::NEG_INFINITY, -1.0, f64::NAN]);
        assert_eq!(cem.mean(), second);
    }
}
