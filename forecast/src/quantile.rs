//! Quantiles of a finite sample.

/// The `level` quantile of values in ascending order, interpolated between neighbours; `None` for
/// an empty sample.
///
/// Definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", The American
/// Statistician 50(4), 1996: position `level * (n - 1)`, the default of numpy and R.
pub(crate) fn of_sorted(ascending: &[f64], level: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let position = level.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let (lower, upper) = (ascending[below], ascending[above]);
    Some(lower + (position - below as f64) * (upper - lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_numpy() {
        // numpy.quantile([1, 2, 4, 8], [0, .1, .5, .9, 1]) = [1, 1.3, 3, 6.8, 8]
        for (level, expected) in [(0.0, 1.0), (0.1, 1.3), (0.5, 3.0), (0.9, 6.8), (1.0, 8.0)] {
            let quantile = of_sorted(&[1.0, 2.0, 4.0, 8.0], level).unwrap();
            assert!((quantile - expected).abs() < 1e-12, "level {level}: {quantile}");
        }
    }

    #[test]
    fn one_value_is_every_quantile_and_none_has_none() {
        assert_eq!(of_sorted(&[5.0], 0.99), Some(5.0));
        assert_eq!(of_sorted(&[], 0.5), None);
    }
}
