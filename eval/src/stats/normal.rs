//! The standard normal distribution.

/// Probability of more than `z`, to about 1e-14.
pub(super) fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    let x = z / std::f64::consts::SQRT_2;
    // Near 0 the series is short, far from it the continued fraction.
    0.5 * if x < 2.5 { 1.0 - erf_series(x) } else { erfc_fraction(x) }
}

/// 2/sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (2n+1)!!: all terms are positive, so nothing
/// cancels.
fn erf_series(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    let mut n = 0.0;
    while term > sum * 1e-17 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

/// exp(-x^2)/sqrt(pi) * 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))), from the inside out.
fn erfc_fraction(x: f64) -> f64 {
    let inner = (1..=80).rev().fold(x, |tail, k| x + f64::from(k) / 2.0 / tail);
    (-x * x).exp() / (std::f64::consts::PI.sqrt() * inner)
}

#[cfg(test)]
mod tests {
    use super::upper_tail;

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.norm.sf
        let table = [
            (0.0, 0.5),
            (0.5, 0.308_537_538_725_986_9),
            (1.959_963_984_540_054, 0.025),
            (3.5, 2.326_290_790_355_250_4e-4),
            (5.0, 2.866_515_718_791_939e-7),
            (-1.0, 0.841_344_746_068_542_9),
        ];
        for (z, want) in table {
            assert!((upper_tail(z) / want - 1.0).abs() < 1e-10, "{z}: {} != {want}", upper_tail(z));
        }
    }
}
