//! Linear algebra of ridge regressions: one Cholesky factorisation, in place.
//!
//! Every linear model here is a small symmetric system that is solved rarely, so a plain dense
//! factorisation is enough and a linear-algebra library is not.

/// Solves `A x = b` for each column of `b` in place, `A` symmetric positive definite of size `n`,
/// both row-major; `b` has `columns` columns.
///
/// Only the lower triangle of `A` is read, and it is overwritten by the factor. A pivot that is not
/// positive, which is a direction without any information, is taken as infinite: its coefficient
/// becomes 0.
pub fn solve_spd(a: &mut [f64], n: usize, b: &mut [f64], columns: usize) {
    factor(a, n);
    solve_factored(a, n, b, columns);
}

/// Replaces the lower triangle of `a` by its Cholesky factor.
pub(crate) fn factor(a: &mut [f64], n: usize) {
    for row in 0..n {
        let (above, current) = a.split_at_mut(row * n);
        for column in 0..row {
            let other = &above[column * n..column * n + column + 1];
            let sum = current[column] - dot(&current[..column], &other[..column]);
            current[column] = if other[column].is_finite() { sum / other[column] } else { 0.0 };
        }
        let pivot = current[row] - dot(&current[..row], &current[..row]);
        // A pivot within the rounding error of its own subtraction carries no information.
        let enough = current[row].abs() * 1e-13;
        current[row] = if pivot > enough { pivot.sqrt() } else { f64::INFINITY };
    }
}

/// Solves with a factor made by [`factor`].
pub(crate) fn solve_factored(a: &[f64], n: usize, b: &mut [f64], columns: usize) {
    for row in 0..n {
        let (solved, current) = b.split_at_mut(row * columns);
        let current = &mut current[..columns];
        for (column, weight) in a[row * n..row * n + row].iter().enumerate() {
            subtract(current, *weight, &solved[column * columns..(column + 1) * columns]);
        }
        divide(current, a[row * n + row]);
    }
    for row in (0..n).rev() {
        let (current, solved) = b.split_at_mut((row + 1) * columns);
        let current = &mut current[row * columns..];
        for below in row + 1..n {
            let start = (below - row - 1) * columns;
            subtract(current, a[below * n + row], &solved[start..start + columns]);
        }
        divide(current, a[row * n + row]);
    }
}

/// Sum of products, in four lanes so that it runs at the speed of the processor and gives the same
/// bits everywhere.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (a4, a1) = a.as_chunks::<4>();
    let (b4, b1) = b[..a.len()].as_chunks::<4>();
    for (a, b) in a4.iter().zip(b4) {
        for lane in 0..4 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a1.iter().zip(b1).map(|(a, b)| a * b).sum();
    (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]) + rest
}

/// Subtracts a multiple of a row: `target -= weight * other`.
fn subtract(target: &mut [f64], weight: f64, other: &[f64]) {
    if weight != 0.0 {
        for (target, other) in target.iter_mut().zip(other) {
            *target -= weight * other;
        }
    }
}

fn divide(values: &mut [f64], by: f64) {
    for value in values {
        *value /= by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_worked_system_of_two_with_two_right_sides() {
        // [4 2; 2 3] x = [8; 7] gives x = (1.25, 1.5), and = [4; 2] gives (1, 0).
        let mut a = [4.0, 2.0, 2.0, 3.0];
        let mut b = [8.0, 4.0, 7.0, 2.0];
        solve_spd(&mut a, 2, &mut b, 2);
        for (got, want) in b.iter().zip([1.25, 1.0, 1.5, 0.0]) {
            assert!((got - want).abs() < 1e-12, "{b:?}");
        }
    }

    #[test]
    fn a_direction_without_information_gets_no_weight() {
        let mut a = [1.0, 0.0, 0.0, 0.0];
        let mut b = [3.0, 5.0];
        solve_spd(&mut a, 2, &mut b, 1);
        assert_eq!(b, [3.0, 0.0]);
    }

    #[test]
    fn a_dot_product_of_any_length_is_that() {
        let a: Vec<f64> = (0..11).map(f64::from).collect();
        assert_eq!(dot(&a, &a), 385.0);
    }
}
