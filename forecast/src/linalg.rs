//! Least squares with a ridge: one Cholesky factorisation, in place.
//!
//! Every linear model here is a small symmetric system that is solved rarely, so a plain dense factorisation is enough and a linear-algebra library is not.

/// Solves `A x = b` for each column of `b` in place, `A` symmetric positive definite of size `n`, both row-major; `b` has `columns` columns.
///
/// Only the lower triangle of `A` is read, and it is overwritten by the factor. A pivot that is not positive, which is a direction without any information, is
/// taken as infinite: its coefficient becomes 0.
pub(crate) fn solve_spd(a: &mut [f64], n: usize, b: &mut [f64], columns: usize) {
    factor(a, n);
    solve_factored(a, n, b, columns);
}

/// Replaces the lower triangle of `a` by its Cholesky factor.
pub(crate) fn factor(a: &mut [f64], n: usize) {
    for column in 0..n {
        let (above, below) = a.split_at_mut((column + 1) * n);
        let row = &mut above[column * n..];
        let pivot = row[column] - dot(&row[..column], &row[..column]);
        let enough = row[column].abs() * 1e-13;
        row[column] = if pivot > enough { pivot.sqrt() } else { f64::INFINITY };
        let (row, pivot) = (&row[..column], row[column]);
        let finish = |value: &mut f64, product: f64| {
            let sum = *value - product;
            *value = if pivot.is_finite() { sum / pivot } else { 0.0 };
        };
        // Four rows at a time, so that their sums do not wait for each other.
        let mut fours = below.chunks_exact_mut(4 * n);
        for four in &mut fours {
            let products = std::array::from_fn(|at| &four[at * n..at * n + column]);
            for (at, product) in dots(products, row).into_iter().enumerate() {
                finish(&mut four[at * n + column], product);
            }
        }
        for other in fours.into_remainder().chunks_exact_mut(n) {
            let product = dot(&other[..column], row);
            finish(&mut other[column], product);
        }
    }
}

/// Solves with a factor made by [`factor`].
pub(crate) fn solve_factored(a: &[f64], n: usize, b: &mut [f64], columns: usize) {
    for row in 0..n {
        let (solved, current) = b.split_at_mut(row * columns);
        let current = &mut current[..columns];
        subtract(current, a[row * n..row * n + row].iter().copied(), solved, columns);
        divide(current, a[row * n + row]);
    }
    for row in (0..n).rev() {
        let (current, solved) = b.split_at_mut((row + 1) * columns);
        let current = &mut current[row * columns..];
        subtract(current, (row + 1..n).map(|below| a[below * n + row]), solved, columns);
        divide(current, a[row * n + row]);
    }
}

/// Sum of products, in four lanes so that it runs at the speed of the processor and gives the same bits everywhere.
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

/// [`dot`] of each of `a` with `b`, to the same bits.
fn dots(a: [&[f64]; 4], b: &[f64]) -> [f64; 4] {
    let (b4, b1) = b.as_chunks::<4>();
    let a4 = a.map(|a| &a.as_chunks::<4>().0[..b4.len()]);
    let mut lanes = [[0.0; 4]; 4];
    for (at, b) in b4.iter().enumerate() {
        for (lanes, a) in lanes.iter_mut().zip(a4) {
            for lane in 0..4 {
                lanes[lane] += a[at][lane] * b[lane];
            }
        }
    }
    let done = b.len() - b1.len();
    std::array::from_fn(|row| {
        let rest: f64 = a[row][done..].iter().zip(b1).map(|(a, b)| a * b).sum();
        let lanes = lanes[row];
        (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]) + rest
    })
}

/// Columns of which [`subtract`] keeps the sums in registers.
const BLOCK: usize = 16;

/// `target -= weight * row` for each of `weights` and of the rows of `rows`, each `width` long, in their order.
pub(crate) fn subtract(target: &mut [f64], weights: impl Iterator<Item = f64> + Clone, rows: &[f64], width: usize) {
    let columns = target.len().min(width);
    let target = &mut target[..columns];
    let weighted = || weights.clone().zip(rows.chunks_exact(width.max(1))).filter(|(weight, _)| *weight != 0.0);
    let (blocks, rest) = target.as_chunks_mut::<BLOCK>();
    for (number, block) in blocks.iter_mut().enumerate() {
        let mut sums = *block;
        for (weight, row) in weighted() {
            for (sum, other) in sums.iter_mut().zip(&row[number * BLOCK..(number + 1) * BLOCK]) {
                *sum -= weight * other;
            }
        }
        *block = sums;
    }
    let done = columns - rest.len();
    if !rest.is_empty() {
        for (weight, row) in weighted() {
            for (target, other) in rest.iter_mut().zip(&row[done..columns]) {
                *target -= weight * other;
            }
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
    fn blocks_give_the_bits_of_one_row_and_one_column_at_a_time() {
        let value = |i: usize, j: usize| ((i * 37 + j * 101 + i * j) % 97) as f64 / 97.0 - 0.4;
        for n in [1, 4, 7, 21] {
            // Diagonally dominant, with a direction of no information.
            let mut a: Vec<f64> = (0..n * n).map(|at| value((at / n).max(at % n), (at / n).min(at % n))).collect();
            (0..n).for_each(|i| a[i * n + i] = if i == 2 { 0.0 } else { 40.0 });
            let columns = BLOCK + 3;
            let b: Vec<f64> = (0..n * columns).map(|at| value(at, 5)).collect();
            let mut slow = a.clone();
            for row in 0..n {
                for column in 0..row {
                    let (above, current) = slow.split_at_mut(row * n);
                    let other = &above[column * n..column * n + column + 1];
                    let sum = current[column] - dot(&current[..column], &other[..column]);
                    current[column] = if other[column].is_finite() { sum / other[column] } else { 0.0 };
                }
                let known = &slow[row * n..row * n + row + 1];
                let pivot = known[row] - dot(&known[..row], &known[..row]);
                slow[row * n + row] = if pivot > known[row].abs() * 1e-13 { pivot.sqrt() } else { f64::INFINITY };
            }
            factor(&mut a, n);
            assert_eq!(a, slow);
            let mut together = b.clone();
            solve_factored(&a, n, &mut together, columns);
            for column in 0..columns {
                let mut alone: Vec<f64> = b.iter().skip(column).step_by(columns).copied().collect();
                solve_factored(&a, n, &mut alone, 1);
                assert!(alone.iter().eq(together.iter().skip(column).step_by(columns)), "{n} rows, column {column}");
            }
        }
    }

    #[test]
    fn a_dot_product_of_any_length_is_that() {
        let a: Vec<f64> = (0..11).map(f64::from).collect();
        assert_eq!(dot(&a, &a), 385.0);
    }
}
