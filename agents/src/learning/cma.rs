//! CMA-ES: search without gradients that learns which directions of the weights belong together
//! (Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, 2016; its default settings
//! throughout).
//!
//! Ask for a population, score it in any order and on any number of threads, tell the scores. Each
//! generation draws from a stream of its own, so the state is a handful of vectors and resuming is
//! exact.

use goodput_env::seed::{Stream, keyed};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// State of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cma {
    seed: u64,
    population: usize,
    generation: u64,
    mean: Vec<f64>,
    /// Overall step size.
    sigma: f64,
    /// Covariance, row by row.
    covariance: Vec<f64>,
    path_sigma: Vec<f64>,
    path_c: Vec<f64>,
}

/// Constants of a search in `n` dimensions.
struct Settings {
    /// Weights of the better half, best first; they sum to 1.
    weights: Vec<f64>,
    mu_eff: f64,
    c_sigma: f64,
    d_sigma: f64,
    c_c: f64,
    c_1: f64,
    c_mu: f64,
    /// Expected length of a normal vector.
    chi: f64,
}

impl Settings {
    fn new(n: usize, population: usize) -> Self {
        let half = population / 2;
        // These are the defaults of Table 1 of the tutorial, with positive weights alone.
        let raw: Vec<f64> = (0..half).map(|i| ((population as f64 + 1.0) / 2.0).ln() - (i as f64 + 1.0).ln()).collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / sum).collect();
        let mu_eff = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
        let n = n as f64;
        let c_sigma = (mu_eff + 2.0) / (n + mu_eff + 5.0);
        let c_1 = 2.0 / ((n + 1.3).powi(2) + mu_eff);
        Self {
            d_sigma: 1.0 + 2.0 * (((mu_eff - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + c_sigma,
            c_c: (4.0 + mu_eff / n) / (n + 4.0 + 2.0 * mu_eff / n),
            c_mu: (1.0 - c_1).min(2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / ((n + 2.0).powi(2) + mu_eff)),
            chi: n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)),
            weights,
            mu_eff,
            c_sigma,
            c_1,
        }
    }
}

impl Cma {
    /// A search around `mean` with a first step of `sigma` times `scales`, one for each weight, and
    /// at least 4 candidates a generation.
    pub fn new(population: usize, mean: Vec<f64>, scales: &[f64], sigma: f64, seed: u64) -> Self {
        let n = mean.len();
        let mut covariance = vec![0.0; n * n];
        scales.iter().enumerate().take(n).for_each(|(i, scale)| covariance[i * n + i] = scale * scale);
        let (path_sigma, path_c) = (vec![0.0; n], vec![0.0; n]);
        Self { seed, population: population.max(4), generation: 0, mean, sigma, covariance, path_sigma, path_c }
    }

    /// The candidates of this generation; the same ones until [`Self::tell`].
    pub fn ask(&self) -> Vec<Vec<f64>> {
        let (vectors, lengths) = eigen(&self.covariance, self.mean.len());
        self.draw(&vectors, &lengths).into_iter().map(|step| self.at(&step)).collect()
    }

    fn at(&self, step: &[f64]) -> Vec<f64> {
        self.mean.iter().zip(step).map(|(mean, step)| mean + self.sigma * step).collect()
    }

    /// Steps `B D z`, without the overall step size.
    fn draw(&self, vectors: &[f64], lengths: &[f64]) -> Vec<Vec<f64>> {
        let n = self.mean.len();
        let mut random = keyed(self.seed, Stream::Exploration, self.generation);
        let step = |_| {
            let z: Vec<f64> = lengths.iter().map(|length| length * normal(&mut random)).collect();
            (0..n).map(|i| (0..n).map(|k| vectors[i * n + k] * z[k]).sum()).collect()
        };
        (0..self.population).map(step).collect()
    }

    /// Takes the costs of what [`Self::ask`] gave, in its order; less is better and NaN is worst.
    ///
    /// # Panics
    /// When there is not one cost per candidate.
    pub fn tell(&mut self, costs: &[f64]) {
        assert_eq!(costs.len(), self.population, "one cost per candidate");
        let n = self.mean.len();
        let set = Settings::new(n, self.population);
        let (vectors, lengths) = eigen(&self.covariance, n);
        let steps = self.draw(&vectors, &lengths);
        let cost = |i: usize| if costs[i].is_nan() { f64::INFINITY } else { costs[i] };
        let mut order: Vec<usize> = (0..costs.len()).collect();
        order.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)).then(a.cmp(&b)));
        let best: Vec<(f64, &Vec<f64>)> = set.weights.iter().zip(&order).map(|(&w, &i)| (w, &steps[i])).collect();
        // The shift is in units of sigma, as the evolution paths are.
        let shift: Vec<f64> = (0..n).map(|d| best.iter().map(|(w, step)| w * step[d]).sum()).collect();
        self.mean = self.at(&shift);

        // C^-1/2 times the shift: through the eigenvectors and back.
        let turned = (0..n).map(|k| (0..n).map(|i| vectors[i * n + k] * shift[i]).sum::<f64>() / lengths[k]);
        let turned: Vec<f64> = turned.collect();
        // This factor keeps the path a standard normal vector where selection is by chance.
        let push = (set.c_sigma * (2.0 - set.c_sigma) * set.mu_eff).sqrt();
        for i in 0..n {
            let whitened: f64 = (0..n).map(|k| vectors[i * n + k] * turned[k]).sum();
            self.path_sigma[i] = (1.0 - set.c_sigma) * self.path_sigma[i] + push * whitened;
        }
        let length = self.path_sigma.iter().map(|x| x * x).sum::<f64>().sqrt();
        let settled = (1.0 - (1.0 - set.c_sigma).powf(2.0 * (self.generation as f64 + 1.0))).sqrt();
        // While the path is long, sigma is about to grow; the covariance must not stretch along it
        // as well.
        let stalls = length / settled >= (1.4 + 2.0 / (n as f64 + 1.0)) * set.chi;
        let pull = if stalls { 0.0 } else { (set.c_c * (2.0 - set.c_c) * set.mu_eff).sqrt() };
        for (path, shift) in self.path_c.iter_mut().zip(&shift) {
            *path = (1.0 - set.c_c) * *path + pull * shift;
        }
        // The last term makes up for the variance that a stalled path does not add.
        let kept = 1.0 - set.c_1 - set.c_mu + if stalls { set.c_1 * set.c_c * (2.0 - set.c_c) } else { 0.0 };
        for i in 0..n {
            for j in 0..n {
                let rank_mu: f64 = best.iter().map(|(w, step)| w * step[i] * step[j]).sum();
                let cell = &mut self.covariance[i * n + j];
                *cell = kept * *cell + set.c_1 * self.path_c[i] * self.path_c[j] + set.c_mu * rank_mu;
            }
        }
        // In one generation the step grows by a factor of e at most.
        self.sigma *= ((set.c_sigma / set.d_sigma) * (length / set.chi - 1.0)).min(1.0).exp();
        self.generation += 1;
    }

    /// The centre of the search: its answer.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Number of generations told so far.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The overall step.
    pub const fn sigma(&self) -> f64 {
        self.sigma
    }
}

fn normal(random: &mut impl rand::Rng) -> f64 {
    StandardNormal.sample(random)
}

/// Eigenvectors, in columns, and roots of the eigenvalues of a symmetric matrix: cyclic Jacobi
/// rotations (Golub and Van Loan, section 8.5).
fn eigen(matrix: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut v = vec![0.0; n * n];
    (0..n).for_each(|i| v[i * n + i] = 1.0);
    for _ in 0..50 {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i * n + j].powi(2)).sum();
        let on: f64 = (0..n).map(|i| a[i * n + i].powi(2)).sum();
        if off <= 1e-24 * on {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p * n + q] == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
                // Of the two roots, the smaller one turns by 45 degrees at most, which is the
                // stable choice.
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = t.hypot(1.0).recip();
                let s = t * c;
                for k in 0..n {
                    (a[k * n + p], a[k * n + q]) = rotated(a[k * n + p], a[k * n + q], c, s);
                }
                for k in 0..n {
                    (a[p * n + k], a[q * n + k]) = rotated(a[p * n + k], a[q * n + k], c, s);
                    (v[k * n + p], v[k * n + q]) = rotated(v[k * n + p], v[k * n + q], c, s);
                }
            }
        }
    }
    // Rounding may leave an eigenvalue at or below 0, and whitening divides by its root.
    let lengths = (0..n).map(|i| a[i * n + i].max(1e-20).sqrt()).collect();
    (v, lengths)
}

fn rotated(x: f64, y: f64, c: f64, s: f64) -> (f64, f64) {
    (c * x - s * y, s * x + c * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(cost: impl Fn(&[f64]) -> f64, start: &[f64], generations: usize) -> Cma {
        let mut cma = Cma::new(12, start.to_vec(), &vec![1.0; start.len()], 0.5, 7);
        for _ in 0..generations {
            let costs: Vec<f64> = cma.ask().iter().map(|x| cost(x)).collect();
            cma.tell(&costs);
        }
        cma
    }

    #[test]
    fn finds_the_bottom_of_a_long_valley_and_repeats_itself() {
        let rosenbrock =
            |x: &[f64]| x.windows(2).map(|p| 100.0 * (p[1] - p[0] * p[0]).powi(2) + (1.0 - p[0]).powi(2)).sum::<f64>();
        let cma = search(rosenbrock, &[0.0; 5], 400);
        assert!(cma.mean().iter().all(|x| (x - 1.0).abs() < 1e-3), "{:?}", cma.mean());
        assert_eq!(cma, search(rosenbrock, &[0.0; 5], 400));
    }

    #[test]
    fn learns_that_one_weight_matters_a_million_times_more() {
        let ellipsoid = |x: &[f64]| (0..6).map(|i| 10f64.powi(i as i32) * (x[i] - 0.3).powi(2)).sum::<f64>();
        let cma = search(ellipsoid, &[1.0; 6], 400);
        assert!(ellipsoid(cma.mean()) < 1e-9, "{:?}", cma.mean());
    }

    #[test]
    fn eigenvectors_give_the_matrix_back() {
        let n = 4;
        let root: Vec<f64> = (0..16).map(|i| ((i * 7 + 3) % 11) as f64 - 5.0).collect();
        let entry = |i: usize, j: usize| (0..n).map(|k| root[i * n + k] * root[j * n + k]).sum::<f64>();
        let matrix: Vec<f64> = (0..16).map(|at| entry(at / n, at % n)).collect();
        let (v, d) = eigen(&matrix, n);
        for at in 0..16 {
            let back: f64 = (0..n).map(|k| v[at / n * n + k] * d[k] * d[k] * v[at % n * n + k]).sum();
            assert!((back - matrix[at]).abs() < 1e-9 * (1.0 + matrix[at].abs()), "{back} {}", matrix[at]);
        }
    }

    #[test]
    fn a_candidate_that_failed_is_never_followed() {
        let mut cma = Cma::new(4, vec![0.0, 0.0], &[1.0, 1.0], 1.0, 3);
        let asked = cma.ask();
        cma.tell(&[f64::NAN, -1.0, -2.0, f64::NAN]);
        let w = &Settings::new(2, 4).weights;
        let expected = w[0] * asked[2][0] + w[1] * asked[1][0];
        assert!((cma.mean()[0] - expected).abs() < 1e-12);
    }
}
