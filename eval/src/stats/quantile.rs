//! Quantiles by linear interpolation between order statistics: numpy's default, Hyndman and Fan's
//! type 7.

/// The `q`-quantile, 0 <= q <= 1, of ascending `sorted`; `None` where it is empty.
///
/// With `n` values the quantile sits at position `q * (n - 1)`, between two neighbours on a
/// straight line.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let share = position - below as f64;
    // Equal neighbours must give themselves, whatever rounding would make of the mix.
    if sorted[below] == sorted[above] {
        return Some(sorted[below]);
    }
    Some(sorted[below] + (sorted[above] - sorted[below]) * share)
}

/// Several quantiles of unordered `values`.
pub fn quantiles<const N: usize>(values: &[f64], qs: [f64; N]) -> Option<[f64; N]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return None;
    }
    Some(qs.map(|q| quantile(&sorted, q).unwrap_or(f64::NAN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_numpy() {
        // numpy.quantile([1, 2, 4, 8], [0, .25, .5, .9, .99, 1])
        let values = [8.0, 1.0, 4.0, 2.0];
        let got = quantiles(&values, [0.0, 0.25, 0.5, 0.9, 0.99, 1.0]).unwrap();
        let want = [1.0, 1.75, 3.0, 6.8, 7.88, 8.0];
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12), "{got:?}");
    }

    #[test]
    fn of_one_value_is_that_value_and_of_none_is_none() {
        assert_eq!(quantile(&[3.0], 0.99), Some(3.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantiles::<1>(&[], [0.5]), None);
    }
}
