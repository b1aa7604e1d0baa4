//! Whether two rankings agree.

/// Kendall's tau-b (Kendall 1945): concordant less discordant pairs over the geometric mean of the
/// pairs that each ranking tells apart; 1 for the same order, -1 for the opposite one. `None` where
/// a ranking has only ties. Both have the same length; numbers are finite.
pub fn kendall_tau(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mut sum, mut of_a, mut of_b) = (0_i64, 0_i64, 0_i64);
    for i in 0..a.len().min(b.len()) {
        for j in 0..i {
            let sign = |x: &[f64]| match x[i].total_cmp(&x[j]) {
                // `total_cmp` tells 0 from -0, which are a tie.
                _ if x[i] == x[j] => 0,
                std::cmp::Ordering::Less => -1,
                _ => 1,
            };
            let (in_a, in_b): (i64, i64) = (sign(a), sign(b));
            sum += in_a * in_b;
            of_a += in_a.abs();
            of_b += in_b.abs();
        }
    }
    (of_a > 0 && of_b > 0).then(|| sum as f64 / ((of_a as f64) * (of_b as f64)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::kendall_tau;

    #[test]
    fn tau_is_that_of_the_textbook() {
        let a = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(kendall_tau(&a, &a), Some(1.0));
        assert_eq!(kendall_tau(&a, &[4.0, 3.0, 2.0, 1.0]), Some(-1.0));
        // scipy.stats.kendalltau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]) of its documentation.
        let tau = kendall_tau(&[12.0, 2.0, 1.0, 12.0, 2.0], &[1.0, 4.0, 7.0, 1.0, 0.0]);
        assert!(tau.is_some_and(|tau| (tau + 0.471_404_520_791_031_7).abs() < 1e-12), "{tau:?}");
        assert_eq!(kendall_tau(&a, &[5.0; 4]), None);
        assert_eq!(kendall_tau(&[], &[]), None);
    }
}
