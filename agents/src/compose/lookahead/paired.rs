//! Paired comparison of two candidates on common futures.

/// Probability that the mean of `differences` would be as small as it is if they came from a normal distribution of
/// mean zero: the one-sided paired t-test (Student, Biometrika 1908). 1 where there are fewer than two of them.
pub(super) fn chance_of_less(differences: &[f64]) -> f64 {
    let count = differences.len() as f64;
    if differences.len() < 2 {
        return 1.0;
    }
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|of| (of - mean) * (of - mean)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    match error > 0.0 {
        true => student(mean / error, differences.len() as u32 - 1),
        false => f64::from(u8::from(mean >= 0.0)),
    }
}

/// Mean of `differences` with its 95 % interval: mean, low, high (Student, Biometrika 1908). `None` where there are
/// fewer than two of them.
pub(super) fn interval(differences: &[f64]) -> Option<[f64; 3]> {
    let count = differences.len() as f64;
    if differences.len() < 2 {
        return None;
    }
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|of| (of - mean) * (of - mean)).sum();
    let reach = two_sided(differences.len() as u32 - 1) * (squares / (count - 1.0) / count).sqrt();
    Some([mean, mean - reach, mean + reach])
}

/// Quantile 0.975 of Student's distribution, by bisection: it falls from 12.7 at one degree of freedom.
fn two_sided(freedom: u32) -> f64 {
    let (mut low, mut high) = (1.9, 12.8);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if student(middle, freedom) < 0.975 { low = middle } else { high = middle }
    }
    low
}

/// Probability that a variable of Student's distribution with `freedom` degrees of freedom is below `t`: the finite
/// sums 26.7.3 and 26.7.4 of Abramowitz and Stegun (1964).
fn student(t: f64, freedom: u32) -> f64 {
    let angle = (t.abs() / f64::from(freedom).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if odd { cos } else { 1.0 }, 0.0);
    let mut order = if odd { 1 } else { 0 };
    while order + 2 <= freedom {
        sum += term;
        term *= cos * cos * f64::from(order + 1) / f64::from(order + 2);
        order += 2;
    }
    let within = match odd {
        true => (angle + sin * sum) * std::f64::consts::FRAC_2_PI,
        false => sin * sum,
    };
    if t < 0.0 { 0.5 - 0.5 * within } else { 0.5 + 0.5 * within }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 26.10 of Abramowitz and Stegun: quantiles of Student's distribution.
    #[test]
    fn probabilities_are_those_of_the_tables() {
        for (freedom, quantile, below) in [
            (1, 6.314, 0.95),
            (2, 2.920, 0.95),
            (3, 2.353, 0.95),
            (4, 3.747, 0.99),
            (5, 2.015, 0.95),
            (7, 2.998, 0.99),
            (10, 1.812, 0.95),
            (29, 2.462, 0.99),
            (30, 1.697, 0.95),
        ] {
            assert!((student(quantile, freedom) - below).abs() < 2e-4, "{freedom}: {}", student(quantile, freedom));
            assert!((student(-quantile, freedom) + below - 1.0).abs() < 2e-4, "{freedom}");
        }
    }

    /// Table 26.10 again, and an interval by hand: mean 2, standard deviation 1, three differences.
    #[test]
    fn intervals_are_those_of_student() {
        for (freedom, quantile) in [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042)] {
            assert!((two_sided(freedom) - quantile).abs() < 6e-4, "{freedom}: {}", two_sided(freedom));
        }
        let [mean, low, high] = interval(&[1.0, 2.0, 3.0]).expect("three differences");
        assert!((mean - 2.0).abs() < 1e-12 && (high - 2.0 - 4.303 / 3f64.sqrt()).abs() < 1e-3, "{low} {high}");
        assert!((low + high - 4.0).abs() < 1e-9);
        assert_eq!(interval(&[1.0]), None);
    }

    #[test]
    fn only_differences_of_one_sign_are_beyond_chance() {
        assert!(chance_of_less(&[-3.0, -2.0, -4.0, -3.0]) < 0.01);
        assert!(chance_of_less(&[-3.0, 2.0, -4.0, 5.0]) > 0.4);
        assert!(chance_of_less(&[3.0, 2.0, 4.0, 3.0]) > 0.99);
        assert_eq!(chance_of_less(&[-1.0, -1.0]), 0.0);
        assert_eq!(chance_of_less(&[0.0, 0.0]), 1.0);
        assert_eq!(chance_of_less(&[-1.0]), 1.0);
    }
}
