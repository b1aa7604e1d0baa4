//! Small dense systems of linear equations.

/// Factors of a square matrix, rows exchanged for the largest pivots.
#[derive(Clone, Debug, Default)]
pub(super) struct Factors {
    rows: Vec<Vec<f64>>,
    order: Vec<usize>,
}

impl Factors {
    /// Factors of `rows`.
    pub(super) fn new(mut rows: Vec<Vec<f64>>) -> Self {
        let count = rows.len();
        let mut order: Vec<usize> = (0..count).collect();
        for column in 0..count {
            let pivot = (column..count)
                .max_by(|&one, &other| rows[one][column].abs().total_cmp(&rows[other][column].abs()))
                .unwrap_or(column);
            rows.swap(column, pivot);
            order.swap(column, pivot);
            let (above, below) = rows.split_at_mut(column + 1);
            let pivot = &above[column];
            for row in below {
                let factor = row[column] / pivot[column];
                row[column] = factor;
                row.iter_mut().zip(pivot).skip(column + 1).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
        Self { rows, order }
    }

    /// Solution of the system with this right-hand side.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let count = self.rows.len();
        let mut solution: Vec<f64> = self.order.iter().map(|&row| right[row]).collect();
        for row in 0..count {
            let known: f64 = (0..row).map(|k| self.rows[row][k] * solution[k]).sum();
            solution[row] -= known;
        }
        for row in (0..count).rev() {
            let known: f64 = (row + 1..count).map(|k| self.rows[row][k] * solution[k]).sum();
            solution[row] = (solution[row] - known) / self.rows[row][row];
        }
        solution
    }
}
