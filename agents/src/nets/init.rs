//! Orthogonal initialisation (Saxe et al. 2014), drawn from our own stream so that a seed means the
//! same on every backend.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// A `rows x cols` matrix, row by row, with orthonormal columns (or rows, whichever are fewer)
/// times `gain`.
pub fn orthogonal(rows: usize, cols: usize, gain: f32, random: &mut impl Rng) -> Vec<f32> {
    let (long, short) = (rows.max(cols), rows.min(cols));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(short);
    while basis.len() < short {
        let mut vector: Vec<f64> = (0..long).map(|_| StandardNormal.sample(random)).collect();
        // Twice is enough (Kahan, Parlett): the second pass removes what rounding left of the
        // first.
        for _ in 0..2 {
            for earlier in &basis {
                let along = dot(&vector, earlier);
                vector.iter_mut().zip(earlier).for_each(|(v, e)| *v -= along * e);
            }
        }
        let norm = dot(&vector, &vector).sqrt();
        // A vector that lies in the span of the earlier ones is drawn again.
        if norm > 1e-6 {
            vector.iter_mut().for_each(|v| *v /= norm);
            basis.push(vector);
        }
    }
    let at = |row: usize, col: usize| if rows >= cols { basis[col][row] } else { basis[row][col] };
    (0..rows)
        .flat_map(|row| (0..cols).map(move |col| (row, col)))
        .map(|(row, col)| (f64::from(gain) * at(row, col)) as f32)
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::seed::{Stream, rng};

    #[test]
    fn columns_or_rows_are_orthogonal_with_the_gain_as_length() {
        for (rows, cols) in [(5, 3), (3, 5), (4, 4), (7, 1), (1, 6)] {
            let m = orthogonal(rows, cols, 2.0, &mut rng(3, Stream::Initialisation));
            let line = |i: usize| -> Vec<f32> {
                if rows >= cols {
                    (0..rows).map(|r| m[r * cols + i]).collect()
                } else {
                    m[i * cols..(i + 1) * cols].to_vec()
                }
            };
            for i in 0..rows.min(cols) {
                for j in 0..rows.min(cols) {
                    let product: f32 = line(i).iter().zip(line(j)).map(|(a, b)| a * b).sum();
                    assert!(
                        (product - if i == j { 4.0 } else { 0.0 }).abs() < 1e-5,
                        "{rows}x{cols}: {i}.{j} = {product}"
                    );
                }
            }
        }
    }
}
