//! Damped Gauss-Newton descent inside a box, for at most seven parameters.
//!
//! A quasi-Newton method has to estimate the curvature from many steps; this loss returns a
//! curvature together with the gradient. Damping scales with the diagonal (Marquardt), because the
//! parameters differ by eight orders of magnitude. A parameter that would leave the box is put on
//! its bound, and the others are solved again.

use super::loss::{Quadratic, Theta};

/// Largest number of evaluations; the best point so far is then good enough.
const MOST_EVALUATIONS: usize = 200;
/// Relative decrease of the loss below which a step counts as no progress.
const NO_DECREASE: f64 = 1e-9;
/// Number of consecutive steps without progress that ends the search.
const PATIENCE: usize = 3;
/// Damping at which steps are too short to matter.
const MOST_DAMPING: f64 = 1e12;
const LEAST_DAMPING: f64 = 1e-9;

/// Local minimum of `expand` in the box `lower..=upper`, by descent from `start`. Equal bounds hold
/// a parameter fixed.
pub(super) fn minimise(expand: impl Fn(&Theta) -> Quadratic, start: Theta, lower: &Theta, upper: &Theta) -> Theta {
    let mut theta = start;
    let mut here = expand(&theta);
    let mut damping = 1e-3;
    let mut idle = 0;
    for _ in 0..MOST_EVALUATIONS {
        let trial = next(&theta, &here, damping, lower, upper);
        let there = expand(&trial);
        // Only descending steps are accepted; after a rejected step more damping shortens the next
        // one.
        if there.value < here.value {
            let decrease = here.value - there.value;
            idle = if decrease > NO_DECREASE * here.value { 0 } else { idle + 1 };
            (theta, here) = (trial, there);
            damping = (damping * 0.1).max(LEAST_DAMPING);
        } else {
            damping *= 8.0;
        }
        if idle == PATIENCE || damping > MOST_DAMPING {
            break;
        }
    }
    theta
}

/// Minimum of the damped quadratic model in the box, up to the choice of the bounds that are
/// active.
fn next(theta: &Theta, model: &Quadratic, damping: f64, lower: &Theta, upper: &Theta) -> Theta {
    let mut moves = [0.0; 7];
    let mut free = [false; 7];
    // A parameter on its bound stays there if descent would push it out of the box.
    for index in 0..7 {
        let pushed_out =
            if model.gradient[index] > 0.0 { theta[index] <= lower[index] } else { theta[index] >= upper[index] };
        free[index] = lower[index] < upper[index] && !pushed_out;
    }
    // The loop ends after at most seven rounds, because each round fixes a parameter or returns.
    loop {
        let solution = solve(model, damping, &free, &moves);
        let mut hit_wall = false;
        for index in (0..7).filter(|&index| free[index]) {
            let target = theta[index] + solution[index];
            let inside = target.clamp(lower[index], upper[index]);
            if target != inside {
                moves[index] = inside - theta[index];
            }
        }
        for index in 0..7 {
            let target = theta[index] + solution[index];
            if free[index] && !(lower[index]..=upper[index]).contains(&target) {
                free[index] = false;
                hit_wall = true;
            }
        }
        if !hit_wall {
            return std::array::from_fn(|index| {
                let moved = theta[index] + if free[index] { solution[index] } else { moves[index] };
                moved.clamp(lower[index], upper[index])
            });
        }
    }
}

/// Moves of the free parameters that minimise the damped model while the fixed parameters make
/// `moves`, by Cholesky factorisation.
fn solve(model: &Quadratic, damping: f64, free: &[bool; 7], moves: &Theta) -> Theta {
    let curvature = |row: usize, column: usize| model.curvature[row.max(column)][row.min(column)];
    let mut factor = [[0.0; 7]; 7];
    let mut solution = [0.0; 7];
    for row in 0..7 {
        if !free[row] {
            factor[row][row] = 1.0;
            continue;
        }
        for column in 0..row {
            if !free[column] {
                continue;
            }
            let known: f64 = (0..column).map(|k| factor[row][k] * factor[column][k]).sum();
            factor[row][column] = (curvature(row, column) - known) / factor[column][column];
        }
        let diagonal = curvature(row, row).max(f64::MIN_POSITIVE);
        let known: f64 = factor[row][..row].iter().map(|x| x * x).sum();
        // Rounding may cancel a nearly dependent pivot completely; the damping is a safe lower
        // bound of it.
        let least = diagonal * damping.max(1e-14);
        factor[row][row] = (diagonal * (1.0 + damping) - known).max(least).sqrt();

        let pull: f64 = (0..7).filter(|&k| !free[k]).map(|k| curvature(row, k) * moves[k]).sum();
        let known: f64 = (0..row).map(|k| factor[row][k] * solution[k]).sum();
        solution[row] = (-model.gradient[row] - pull - known) / factor[row][row];
    }
    for row in (0..7).rev() {
        if free[row] {
            let known: f64 = (row + 1..7).map(|k| factor[k][row] * solution[k]).sum();
            solution[row] = (solution[row] - known) / factor[row][row];
        } else {
            solution[row] = 0.0;
        }
    }
    solution
}
