//! A categorical distribution over the allowed actions, on the host.
//!
//! What is not allowed has probability exactly zero, never merely a tiny one: a denormal there once
//! cost a factor of five in speed, and a sampled forbidden action costs a run. The exponential is
//! our own polynomial, so a decision does not depend on the machine's maths library.

use super::simd::widest;

/// Probabilities of a masked categorical distribution, kept unnormalised until asked.
#[derive(Clone, Debug, Default)]
pub struct Categorical {
    weights: Vec<f32>,
    total: f32,
    peak: f32,
}

impl Categorical {
    /// Room for `actions` actions.
    pub fn with_capacity(actions: usize) -> Self {
        Self { weights: Vec::with_capacity(actions), total: 0.0, peak: 0.0 }
    }

    /// Takes scores `[A]` and their mask `[A]` (1 = allowed). At least one action must be allowed.
    pub fn set(&mut self, logits: &[f32], mask: &[u8]) {
        debug_assert_eq!(logits.len(), mask.len());
        debug_assert!(mask.iter().any(|&allowed| allowed != 0), "no action is allowed");
        let peak = logits
            .iter()
            .zip(mask)
            .filter(|&(_, &allowed)| allowed != 0)
            .fold(f32::NEG_INFINITY, |m, (&l, _)| m.max(l));
        self.weights.resize(logits.len(), 0.0);
        widest(|| {
            for ((weight, &logit), &allowed) in self.weights.iter_mut().zip(logits).zip(mask) {
                // A forbidden score may exceed the peak: cut before the exponential, zero after it.
                let below = logit - peak;
                *weight = exp(if below > 0.0 { 0.0 } else { below }) * f32::from(u8::from(allowed != 0));
            }
        });
        self.total = self.weights.iter().sum();
        self.peak = peak;
    }

    /// Probability of `action`; exactly 0 where it is not allowed.
    pub fn probability(&self, action: usize) -> f32 {
        self.weights[action] / self.total
    }

    /// Logarithm of the probability of an allowed action, given its score.
    pub fn log_probability(&self, logit: f32) -> f32 {
        logit - self.peak - self.total.ln()
    }

    /// The action at `uniform` in [0, 1) of the cumulative distribution; always an allowed one.
    pub fn sample(&self, uniform: f32) -> usize {
        let target = uniform * self.total;
        let (mut cumulated, mut last) = (0.0, 0);
        for (action, &weight) in self.weights.iter().enumerate() {
            if weight > 0.0 {
                cumulated += weight;
                last = action;
                if target < cumulated {
                    break;
                }
            }
        }
        last
    }

    /// Entropy in nats, over allowed actions.
    pub fn entropy(&self) -> f32 {
        let mean: f32 = self.weights.iter().filter(|&&w| w > 0.0).map(|&w| w * w.ln()).sum();
        self.total.ln() - mean / self.total
    }
}

/// The allowed action of the greatest score, the first of equals.
pub fn argmax(logits: &[f32], mask: &[u8]) -> usize {
    let mut best: Option<usize> = None;
    for (action, (&logit, &allowed)) in logits.iter().zip(mask).enumerate() {
        if allowed != 0 && best.is_none_or(|b| logit > logits[b]) {
            best = Some(action);
        }
    }
    debug_assert!(best.is_some(), "no action is allowed");
    best.unwrap_or(logits.len().saturating_sub(1))
}

/// `e^x` for `x <= 0`, to 2e-7 relative; 0 below -87, where results would be denormal.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    /// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer without a call into libm.
    const ROUND: f32 = 12_582_912.0;
    let clipped = if x < -87.0 { -87.0 } else { x };
    let shifted = clipped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts: the first has few bits, so that n * part is exact.
    let r = (clipped - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let p = 1.987_569_2e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_6e-1;
    let p = p * r + 5.000_000_3e-1;
    let y = p * r * r + r + 1.0;
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    if x < -87.0 { 0.0 } else { y * scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exp_is_accurate_and_never_denormal() {
        for i in 0..=90_000 {
            let x = -(i as f32) / 1000.0;
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            assert!(
                if x < -87.0 { got == 0.0 } else { (got / want - 1.0).abs() < 2e-7 },
                "exp({x}) = {got}, not {want}"
            );
        }
    }

    proptest! {
        #[test]
        fn probabilities_are_exact_zeros_or_the_softmax_of_what_is_allowed(
            scores in prop::collection::vec((-30f32..30.0, any::<bool>()), 1..40), uniform in 0f32..1.0
        ) {
            let logits: Vec<f32> = scores.iter().map(|s| s.0).collect();
            let mut mask: Vec<u8> = scores.iter().map(|s| u8::from(s.1)).collect();
            mask[0] = 1;
            let mut d = Categorical::default();
            d.set(&logits, &mask);
            let peak = logits.iter().zip(&mask).filter(|p| *p.1 == 1).map(|p| f64::from(*p.0)).fold(f64::MIN, f64::max);
            let total: f64 = logits.iter().zip(&mask).filter(|p| *p.1 == 1).map(|p| (f64::from(*p.0) - peak).exp()).sum();
            let mut entropy = 0.0;
            for a in 0..logits.len() {
                if mask[a] == 0 {
                    prop_assert_eq!(d.probability(a), 0.0);
                } else {
                    let log_p = f64::from(logits[a]) - peak - total.ln();
                    prop_assert!((f64::from(d.probability(a)) - log_p.exp()).abs() < 1e-6);
                    prop_assert!((f64::from(d.log_probability(logits[a])) - log_p).abs() < 1e-5);
                    entropy -= log_p.exp() * log_p;
                }
            }
            prop_assert!((f64::from(d.entropy()) - entropy).abs() < 1e-5);
            prop_assert_eq!(mask[d.sample(uniform)], 1);
            prop_assert_eq!(mask[argmax(&logits, &mask)], 1);
        }
    }

    #[test]
    fn sampling_inverts_the_cumulative_distribution() {
        let mut d = Categorical::default();
        d.set(&[0.0, 9.0, 0.0, 0.0], &[1, 0, 1, 1]);
        let drawn: Vec<usize> = [0.0, 0.3, 0.4, 0.6, 0.7, 0.999].iter().map(|&u| d.sample(u)).collect();
        assert_eq!(drawn, [0, 0, 2, 2, 3, 3]);
    }
}
