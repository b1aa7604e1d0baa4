//! Fairness among jobs.

/// Finish-time fairness rho of Themis (Mahajan et al., NSDI 2020): the completion time in the
/// shared cluster over the completion time alone on a fair share of it, see
/// [`super::isolated_secs`]. At most 1: sharing cost the job nothing.
pub fn finish_time_fairness(jct_secs: f64, isolated_secs: f64) -> f64 {
    jct_secs / isolated_secs
}

/// Jain's fairness index: square of the sum over `n` times the sum of squares. In (0, 1]: 1 where
/// all values are equal, `1/n` where one has everything; 1 by convention where all are zero or
/// there are none.
pub fn jain_index(values: &[f64]) -> f64 {
    // Scaling by the largest keeps the squares finite.
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return 1.0;
    }
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), value| {
        let scaled = value / largest;
        (sum + scaled, squares + scaled * scaled)
    });
    (sum * sum / (values.len() as f64 * squares)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::jain_index;

    #[test]
    fn known_values() {
        assert_eq!(jain_index(&[1.0; 4]), 1.0);
        assert_eq!(jain_index(&[4.0, 0.0, 0.0, 0.0]), 0.25);
        assert!((jain_index(&[3.0, 1.0]) - 0.8).abs() < 1e-15);
        assert!((jain_index(&[8.0, 4.0, 2.0, 2.0]) - 0.727_273).abs() < 1e-6);
        assert_eq!(jain_index(&[0.0; 3]), 1.0);
        assert_eq!(jain_index(&[]), 1.0);
    }
}
