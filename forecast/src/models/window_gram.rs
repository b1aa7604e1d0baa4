//! Sums of products over sliding windows, from which closed-form linear models are solved.
//!
//! In the Gram matrix of windows a diagonal differs from its neighbour only at its two ends, so all
//! sums over `n` values cost `O(n w)` for windows of `w` values, and not `O(n w^2)`.

use crate::linalg;

/// Gram matrix of sliding windows of `width` values: the sums over windows of `x_i x_j`.
pub(super) struct WindowGram {
    width: usize,
    pub windows: usize,
    products: Vec<f64>,
    /// Sums over windows of `x_i`.
    pub sums: Vec<f64>,
}

impl WindowGram {
    pub fn new(y: &[f64], width: usize) -> Option<Self> {
        let windows = (y.len() + 1).checked_sub(width).filter(|&windows| windows > 0)?;
        let mut products = vec![0.0; width * width];
        let mut sums = vec![0.0; width];
        for lag in 0..width {
            // Along the diagonal of `lag`, one product leaves at the old end and one enters at the
            // new one.
            let mut sum = linalg::dot(&y[lag..lag + windows], &y[..windows]);
            products[lag * width] = sum;
            for i in 1..width - lag {
                sum += y[i + windows - 1] * y[i + lag + windows - 1] - y[i - 1] * y[i + lag - 1];
                products[(i + lag) * width + i] = sum;
            }
        }
        let mut sum: f64 = y[..windows].iter().sum();
        sums[0] = sum;
        for i in 1..width {
            sum += y[i + windows - 1] - y[i - 1];
            sums[i] = sum;
        }
        Some(Self { width, windows, products, sums })
    }

    pub fn at(&self, i: usize, j: usize) -> f64 {
        let (high, low) = if i > j { (i, j) } else { (j, i) };
        self.products[high * self.width + low]
    }

    pub fn add(&mut self, other: &Self) {
        self.windows += other.windows;
        for (sum, other) in self.products.iter_mut().zip(&other.products) {
            *sum += other;
        }
        for (sum, other) in self.sums.iter_mut().zip(&other.sums) {
            *sum += other;
        }
    }
}
