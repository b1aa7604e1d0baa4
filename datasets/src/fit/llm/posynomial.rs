//! Least squares for sums of positive terms.
//!
//! A prediction is `sum_k value_k * exp(sum_j x_kj * theta_j)`: each term is a physical cost times an efficiency with a
//! logarithm that is a sum of effects. The fit minimises
//!
//! ```text
//! sum over rows of ln(1 + (e / scale)^2)  +  sum over effects of stiffness_j * (theta_j - start_j)^2
//! ```
//!
//! with `e` the logarithm of prediction over measurement, by Levenberg's and Marquardt's method (Marquardt, SIAM J.
//! 1963). The first sum is the negative log-likelihood of Cauchy's distribution, which outliers hardly move; the second
//! is that of normal effects, so that a group with few rows stays near what it shares with others.

/// A positive term of a prediction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PowerTerm {
    /// Cost before the efficiency.
    pub(super) value: f64,
    /// Effects that multiply it: position, and the number that the effect is multiplied by.
    pub(super) effects: Vec<(usize, f64)>,
}

/// A measurement and the terms of its prediction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MeasuredRow {
    pub(super) terms: Vec<PowerTerm>,
    pub(super) measured: f64,
}

/// An effect before the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prior {
    pub(super) start: f64,
    pub(super) stiffness: f64,
}

/// Most steps of the fit.
const STEPS: usize = 40;
/// Most conjugate gradients of a step, and the share of the first residual at which they end.
const GRADIENTS: usize = 60;
const SOLVED: f64 = 1e-8;
/// Relative improvement at which the fit ends.
const ENOUGH: f64 = 2e-4;

impl PowerTerm {
    /// The term with its efficiency.
    pub(super) fn cost(&self, effects: &[f64]) -> f64 {
        self.value * self.effects.iter().map(|&(at, x)| x * effects[at]).sum::<f64>().exp()
    }
}

/// Sum of the terms.
pub(super) fn predict(terms: &[PowerTerm], effects: &[f64]) -> f64 {
    terms.iter().map(|term| term.cost(effects)).sum()
}

/// The effects that fit best.
pub(super) fn fit(observations: &[MeasuredRow], priors: &[Prior], scale: f64) -> Vec<f64> {
    let mut effects: Vec<f64> = priors.iter().map(|prior| prior.start).collect();
    let mut damping: f64 = 1e-2;
    let mut best = loss(observations, priors, &effects, scale);
    for _ in 0..STEPS {
        let near = Near::new(observations, priors, &effects, scale);
        let before = best;
        loop {
            let step = near.step(damping);
            let tried: Vec<f64> =
                effects.iter().zip(step).map(|(effect, step)| effect + step.clamp(-1.0, 1.0)).collect();
            let now = loss(observations, priors, &tried, scale);
            if now < best {
                (best, effects, damping) = (now, tried, (damping / 5.0).max(1e-7));
                break;
            }
            damping *= 5.0;
            if damping > 1e7 {
                return effects;
            }
        }
        if before - best < ENOUGH * best {
            break;
        }
    }
    effects
}

fn loss(observations: &[MeasuredRow], priors: &[Prior], effects: &[f64], scale: f64) -> f64 {
    let rows = observations.iter().map(|row| {
        let error = (predict(&row.terms, effects) / row.measured).ln() / scale;
        (error * error).ln_1p()
    });
    let held = priors.iter().zip(effects).map(|(prior, effect)| prior.stiffness * (effect - prior.start).powi(2));
    rows.sum::<f64>() + held.sum::<f64>()
}

/// The loss near some effects, with the weights of the rows held.
struct Near<'a> {
    priors: &'a [Prior],
    /// Derivatives of the logarithm of each prediction, and the weight of its row.
    rows: Vec<(Vec<(usize, f64)>, f64)>,
    /// Half of the slope of the loss.
    slope: Vec<f64>,
    /// Diagonal of half of the curvature.
    diagonal: Vec<f64>,
}

impl<'a> Near<'a> {
    fn new(observations: &[MeasuredRow], priors: &'a [Prior], effects: &[f64], scale: f64) -> Self {
        let held = |(prior, effect): (&Prior, &f64)| prior.stiffness * (effect - prior.start);
        let mut slope: Vec<f64> = priors.iter().zip(effects).map(held).collect();
        let mut diagonal: Vec<f64> = priors.iter().map(|prior| prior.stiffness).collect();
        let row = |row: &MeasuredRow| {
            let costs: Vec<f64> = row.terms.iter().map(|term| term.cost(effects)).collect();
            let whole: f64 = costs.iter().sum();
            let error = (whole / row.measured).ln();
            let weight = 1.0 / (1.0 + (error / scale).powi(2)) / (scale * scale);
            let each = row.terms.iter().zip(&costs);
            let derivatives =
                each.flat_map(|(term, cost)| term.effects.iter().map(move |&(at, x)| (at, x * cost / whole)));
            let derivatives: Vec<(usize, f64)> = derivatives.collect();
            for &(at, derivative) in &derivatives {
                slope[at] += weight * error * derivative;
                // An effect belongs to one term, so that it stands once in a row.
                diagonal[at] += weight * derivative * derivative;
            }
            (derivatives, weight)
        };
        let rows = observations.iter().map(row).collect();
        Self { priors, rows, slope, diagonal }
    }

    /// Half of the damped curvature times `direction`.
    fn bend(&self, direction: &[f64], damping: f64) -> Vec<f64> {
        let held = self.priors.iter().zip(&self.diagonal).zip(direction);
        let mut bent: Vec<f64> =
            held.map(|((prior, diagonal), along)| (prior.stiffness + damping * diagonal) * along).collect();
        for (derivatives, weight) in &self.rows {
            let along = weight * derivatives.iter().map(|&(at, derivative)| derivative * direction[at]).sum::<f64>();
            for &(at, derivative) in derivatives {
                bent[at] += along * derivative;
            }
        }
        bent
    }

    /// The step to the least of the damped loss, by conjugate gradients preconditioned with the diagonal.
    fn step(&self, damping: f64) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let eased = |residual: &[f64]| residual.iter().zip(&self.diagonal).map(|(r, d)| r / d).collect::<Vec<_>>();
        let mut step = vec![0.0; self.slope.len()];
        let mut residual: Vec<f64> = self.slope.iter().map(|value| -value).collect();
        let mut direction = eased(&residual);
        let mut power = dot(&residual, &direction);
        let enough = SOLVED * power;
        for _ in 0..GRADIENTS {
            let bent = self.bend(&direction, damping);
            let length = power / dot(&direction, &bent);
            for (at, along) in direction.iter().enumerate() {
                step[at] += length * along;
                residual[at] -= length * bent[at];
            }
            let next = eased(&residual);
            let left = dot(&residual, &next);
            if left <= enough {
                break;
            }
            for (along, next) in direction.iter_mut().zip(next) {
                *along = next + left / power * *along;
            }
            power = left;
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_effects_are_found_among_outliers() {
        let truth = [0.7_f64, -1.2, 0.3];
        let row = |at: usize| {
            let slow = PowerTerm { value: 5.0, effects: vec![(0, 1.0)] };
            let group = if at.is_multiple_of(2) { vec![(1, 1.0), (2, 1.0)] } else { vec![(1, 1.0)] };
            let grows = PowerTerm { value: 1.0 + at as f64, effects: group };
            let terms = vec![slow, grows];
            let measured = predict(&terms, &truth) * if at == 13 { 20.0 } else { 1.0 };
            MeasuredRow { terms, measured }
        };
        let rows: Vec<MeasuredRow> = (0..60).map(row).collect();
        let found = fit(&rows, &[Prior { start: 0.0, stiffness: 1e-6 }; 3], 0.05);
        for (found, truth) in found.iter().zip(truth) {
            assert!((found - truth).abs() < 1e-3, "{found} {truth}");
        }
    }

    #[test]
    fn an_effect_without_rows_stays_at_its_start() {
        let rows = [MeasuredRow { terms: vec![PowerTerm { value: 2.0, effects: vec![(0, 1.0)] }], measured: 6.0 }];
        let priors = [Prior { start: 0.0, stiffness: 1e-6 }, Prior { start: 0.4, stiffness: 1.0 }];
        let found = fit(&rows, &priors, 0.05);
        assert!((found[0] - 3.0_f64.ln()).abs() < 1e-3 && (found[1] - 0.4).abs() < 1e-9, "{found:?}");
    }
}
