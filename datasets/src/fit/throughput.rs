//! Throughput parameters for whole training runs.
//!
//! The published loss weighs every profiled placement alike, and a job is rarely on most of them.
//! Here an error is that of the completion time of a run, and it counts by how likely such a run
//! is: on few nodes, at batch sizes near the best one for the size. Levenberg-Marquardt on
//! logarithms with numeric derivatives; this runs when the catalog is made, never in a simulation.

use goodput_env::model::{BatchConfig, ThroughputParams};

/// Rounds after which the best point so far is good enough.
const MOST_ROUNDS: usize = 300;
/// Width of numeric derivatives, relative.
const WIDTH: f64 = 1e-6;
/// Pull of each logarithm to its start, where parameters without evidence stay.
const PULL: f64 = 1e-2;

type LogParameters = [f64; 7];

/// Measured time of a step in one configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitTarget {
    pub(super) nodes: u32,
    pub(super) replicas: u32,
    pub(super) batch: BatchConfig,
    /// Measured seconds of a whole step.
    pub(super) iter_secs: f64,
    /// Weight of an error.
    pub(super) weight: f64,
}

/// Parameters with the least weighted squared log errors, from a start that is about right.
pub(super) fn refine(start: ThroughputParams, targets: &[FitTarget]) -> ThroughputParams {
    let start = to_theta(&start);
    let total: f64 = targets.iter().map(|target| target.weight).sum();
    let residuals = |theta: &LogParameters| -> Vec<f64> {
        let params = from_theta(theta);
        let errors = targets.iter().map(|target| {
            let modelled = params.iter_time(target.nodes, target.replicas, target.batch);
            (target.weight / total).sqrt() * (modelled / target.iter_secs).ln()
        });
        errors.chain((0..7).map(|index| PULL * (theta[index] - start[index]))).collect()
    };
    let loss = |residuals: &[f64]| residuals.iter().map(|residual| residual * residual).sum::<f64>();

    let (mut theta, mut damping) = (start, 1e-2);
    let mut here = residuals(&theta);
    for _ in 0..MOST_ROUNDS {
        // Forward differences suffice: steps are accepted only if they lower the loss.
        let columns: [Vec<f64>; 7] = std::array::from_fn(|index| {
            let mut moved = theta;
            moved[index] += WIDTH;
            residuals(&moved).iter().zip(&here).map(|(there, here)| (there - here) / WIDTH).collect()
        });
        let step = solve(&columns, &here, damping);
        let trial: LogParameters = std::array::from_fn(|index| (theta[index] + step[index]).clamp(-18.0, 3.0));
        let there = residuals(&trial);
        if loss(&there) < loss(&here) {
            (theta, here) = (trial, there);
            // A step that worked asks for less damping, towards Gauss-Newton; a failed one for
            // more.
            damping = (damping * 0.3).max(1e-9);
        } else {
            damping *= 4.0;
            // Not even the shortest step lowers the loss, so this is the minimum.
            if damping > 1e9 {
                break;
            }
        }
    }
    from_theta(&theta)
}

/// Logarithms of the six times, and of the excess of gamma over 1.
fn to_theta(p: &ThroughputParams) -> LogParameters {
    // The logarithm of an excess of 0 could never move, so the excess starts a little above.
    [p.alpha_c, p.beta_c, p.alpha_n, p.beta_n, p.alpha_r, p.beta_r, (p.gamma - 1.0).max(1e-3)]
        .map(|value| value.max(1e-6).ln())
}

fn from_theta(theta: &LogParameters) -> ThroughputParams {
    let [alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, overlap] = theta.map(f64::exp);
    ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma: 1.0 + overlap.min(9.0) }
}

/// The damped Gauss-Newton step, by Gaussian elimination of the normal equations (positive definite
/// thanks to the pull).
fn solve(columns: &[Vec<f64>; 7], residuals: &[f64], damping: f64) -> LogParameters {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut rows: [[f64; 8]; 7] = std::array::from_fn(|i| {
        std::array::from_fn(|j| match j {
            7 => -dot(&columns[i], residuals),
            _ if i == j => dot(&columns[i], &columns[i]) * (1.0 + damping),
            _ => dot(&columns[i], &columns[j]),
        })
    });
    // No pivoting: the matrix is positive definite.
    for pivot in 0..7 {
        for row in pivot + 1..7 {
            let factor = rows[row][pivot] / rows[pivot][pivot];
            let (above, below) = rows.split_at_mut(row);
            for (value, pivotal) in below[0].iter_mut().zip(&above[pivot]).skip(pivot) {
                *value -= factor * pivotal;
            }
        }
    }
    let mut step = [0.0; 7];
    for row in (0..7).rev() {
        let known: f64 = (row + 1..7).map(|column| rows[row][column] * step[column]).sum();
        step[row] = (rows[row][7] - known) / rows[row][row];
    }
    step
}
