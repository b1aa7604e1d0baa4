//! Integrated gradients of a score whose derivatives are not at hand, as that of an ONNX graph: from differences.
//!
//! The line from the usual job to this job is cut into equal parts. In the middle of each part, the change of the score
//! while one feature alone crosses the part stands for its slope times its way (Sundararajan et al., ICML 2017,
//! equation 1, with central differences). A score that is straight within a part has no error there.

/// Parts of the line: at first, and at most.
const PARTS: (usize, usize) = (64, 1024);

/// Contributions of the features that lie from `start` on in an observation, from the values `usual` to those of
/// `observation`. They sum to `difference` but for `tolerance`, or come from the largest number of parts.
pub(super) fn integrated(
    mut score: impl FnMut(&[f32]) -> f64,
    observation: &[f32],
    usual: &[f32],
    start: usize,
    (difference, tolerance): (f64, f64),
) -> Vec<f64> {
    let mut at = observation.to_vec();
    let mut parts = PARTS.0;
    loop {
        let mut sums = vec![0.0; usual.len()];
        for part in 0..parts {
            let share = (part as f32 + 0.5) / parts as f32;
            let moved = |feature: usize| observation[start + feature] - usual[feature];
            for feature in 0..usual.len() {
                at[start + feature] = usual[feature] + share * moved(feature);
            }
            for feature in (0..usual.len()).filter(|&feature| moved(feature) != 0.0) {
                let (middle, half) = (at[start + feature], 0.5 * moved(feature) / parts as f32);
                at[start + feature] = middle + half;
                let after = score(&at);
                at[start + feature] = middle - half;
                sums[feature] += after - score(&at);
                at[start + feature] = middle;
            }
        }
        if (difference - sums.iter().sum::<f64>()).abs() <= tolerance || parts >= PARTS.1 {
            return sums;
        }
        parts *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::integrated;

    #[test]
    fn a_product_is_shared_as_its_integrals_say() {
        // From (0, 1) to (2, 3) along the line, x y^2 changes by 18, of which x has the integral of 2 (1 + 2 t)^2 and y
        // that of 2 * 2t * 2 (1 + 2 t).
        let score = |at: &[f32]| f64::from(at[1]) * f64::from(at[2]) * f64::from(at[2]);
        let found = integrated(score, &[7.0, 2.0, 3.0], &[0.0, 1.0], 1, (18.0, 1e-3));
        let expected = [26.0 / 3.0, 28.0 / 3.0];
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-3), "{found:?}");
        // A feature that does not move gets nothing.
        assert_eq!(integrated(score, &[7.0, 2.0, 3.0], &[2.0, 1.0], 1, (16.0, 1e-3))[0], 0.0);
    }
}
