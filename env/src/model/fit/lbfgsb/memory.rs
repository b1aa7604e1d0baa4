//! Curvature from the last steps, in the compact form `B = scale * I - W M W'`.

use super::super::loss::Theta;
use super::dot;
use super::linear::Factors;

/// Steps that are remembered: scipy's `maxcor`.
const STEPS: usize = 10;

/// Last steps with the changes of the gradient over them, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct StepMemory {
    pairs: Vec<(Theta, Theta)>,
    /// Multiple of the identity that the curvature starts from.
    scale: f64,
    /// Factors of the inverse of `M`.
    middle: Factors,
}

impl Default for StepMemory {
    fn default() -> Self {
        Self { pairs: Vec::new(), scale: 1.0, middle: Factors::default() }
    }
}

impl StepMemory {
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// Row of `W` for parameter `index`.
    pub(super) fn row(&self, index: usize) -> Vec<f64> {
        let changes = self.pairs.iter().map(|(_, change)| change[index]);
        changes.chain(self.pairs.iter().map(|(step, _)| self.scale * step[index])).collect()
    }

    /// Product of `W'` and a vector.
    pub(super) fn project(&self, vector: &Theta) -> Vec<f64> {
        let changes = self.pairs.iter().map(|(_, change)| dot(change, vector));
        changes.chain(self.pairs.iter().map(|(step, _)| self.scale * dot(step, vector))).collect()
    }

    /// Product of `M` and a vector.
    pub(super) fn middle(&self, vector: &[f64]) -> Vec<f64> {
        self.middle.solve(vector)
    }

    /// Takes a step of length factor `length` with the change of the gradient, given the slopes at both ends. A step
    /// over which the slope hardly rises tells nothing and is left out.
    pub(super) fn take(&mut self, step: Theta, change: Theta, slopes: [f64; 2], length: f64) {
        let rise = (slopes[1] - slopes[0]) * length;
        if rise <= f64::EPSILON * -slopes[0] * length {
            return;
        }
        if self.pairs.len() == STEPS {
            self.pairs.remove(0);
        }
        self.pairs.push((step, change));
        self.scale = dot(&change, &change) / rise;
        self.middle = Factors::new(self.inverse_middle());
    }

    /// Inverse of `M`: `[[-D, L'], [L, scale * S'S]]` with `D` the diagonal and `L` the part below it of `S'Y`.
    fn inverse_middle(&self) -> Vec<Vec<f64>> {
        let count = self.pairs.len();
        let step_change = |one: usize, other: usize| dot(&self.pairs[one].0, &self.pairs[other].1);
        let entry = |row: usize, column: usize| match (row < count, column < count) {
            (true, true) if row == column => -step_change(row, row),
            (true, true) => 0.0,
            (true, false) if column - count > row => step_change(column - count, row),
            (false, true) if row - count > column => step_change(row - count, column),
            (true, false) | (false, true) => 0.0,
            (false, false) => self.scale * dot(&self.pairs[row - count].0, &self.pairs[column - count].0),
        };
        (0..2 * count).map(|row| (0..2 * count).map(|column| entry(row, column)).collect()).collect()
    }
}
