//! Nelder-Mead search: a minimum of a function of a few parameters, without derivatives.
//!
//! Nelder and Mead, "A simplex method for function minimization", The Computer Journal 7(4), 1965,
//! with the usual coefficients 1, 2, 1/2, 1/2.

/// Best point found from `start`, and its cost, with a first simplex of size `size` and
/// `evaluations` evaluations or a few more. A cost of NaN is the worst of all.
pub fn minimise<const N: usize>(
    mut cost: impl FnMut(&[f64; N]) -> f64,
    start: [f64; N],
    size: f64,
    evaluations: usize,
) -> ([f64; N], f64) {
    let mut cost = |point: [f64; N]| {
        let value = cost(&point);
        (point, if value.is_nan() { f64::INFINITY } else { value })
    };
    let mut simplex = vec![cost(start)];
    for dimension in 0..N {
        let mut point = start;
        point[dimension] += size;
        simplex.push(cost(point));
    }
    let mut used = N + 1;
    loop {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (simplex[0].1, simplex[N].1);
        if used >= evaluations || worst - best <= 1e-6 * (1.0 + best.abs()) {
            return simplex.swap_remove(0);
        }
        let mut centre = [0.0; N];
        for (point, _) in &simplex[..N] {
            for (centre, x) in centre.iter_mut().zip(point) {
                *centre += x / N as f64;
            }
        }
        // Along 1 lies the worst vertex itself, along -1 its reflection in the centre.
        let towards = |along: f64| std::array::from_fn(|i| centre[i] + along * (simplex[N].0[i] - centre[i]));
        let reflected = cost(towards(-1.0));
        used += 1;
        let better = if reflected.1 < best {
            let expanded = cost(towards(-2.0));
            used += 1;
            if expanded.1 < reflected.1 { expanded } else { reflected }
        } else if reflected.1 < simplex[N - 1].1 {
            reflected
        } else {
            // The contraction is outside where the reflection beat the worst vertex, else inside.
            let contracted = cost(towards(if reflected.1 < worst { -0.5 } else { 0.5 }));
            used += 1;
            // The contraction failed too, so the whole simplex shrinks towards its best vertex.
            if contracted.1 >= worst.min(reflected.1) {
                let corner = simplex[0].0;
                for vertex in &mut simplex[1..] {
                    *vertex = cost(std::array::from_fn(|i| corner[i] + 0.5 * (vertex.0[i] - corner[i])));
                }
                used += N;
                continue;
            }
            contracted
        };
        simplex[N] = better;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_rosenbrocks_valley() {
        let valley = |x: &[f64; 2]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
        let (point, cost) = minimise(valley, [-1.2, 1.0], 0.5, 2_000);
        assert!(cost < 1e-4 && (point[0] - 1.0).abs() < 0.05, "{point:?} {cost}");
    }

    #[test]
    fn a_cost_that_is_not_a_number_is_avoided() {
        let (point, _) = minimise(|x: &[f64; 1]| if x[0] < 0.0 { f64::NAN } else { x[0] }, [1.0], 0.5, 200);
        assert!(point[0] >= 0.0 && point[0] < 0.01, "{point:?}");
    }
}
