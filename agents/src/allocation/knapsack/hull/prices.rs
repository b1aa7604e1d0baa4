//! Prices by type at which groups, each choosing for itself, would take about what there is.
//!
//! They minimise the Lagrangian dual, `sum over groups of max(0, value - price weight) + sum over
//! types of price capacity`, which bounds the optimum from above. Its subgradient is what is left
//! of each type; prices follow it in shrinking steps, multiplied rather than added to, because
//! worths differ by orders of magnitude between workloads.

use super::Groups;

/// Steps; with these, climbs are within a percent of the optimum on average (a test compares).
const STEPS: u32 = 30;
/// A price is at least this part of the highest, so that a type without demand still costs
/// something.
const LEAST: f64 = 1e-6;

/// The search with its buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct TypePrices {
    now: Vec<f64>,
    wanted: Vec<u64>,
    tried: Vec<f64>,
    /// Prices with the least dual so far, and the dual.
    tightest: (Vec<f64>, f64),
}

impl TypePrices {
    /// The prices of every step, a row of one for each type of `capacity`.
    pub fn find(&mut self, groups: &Groups, capacity: &[u32]) -> &[f64] {
        self.start(groups, capacity);
        self.tried.clear();
        self.tightest.1 = f64::INFINITY;
        for step in 0..STEPS {
            let dual = self.ask(groups, capacity);
            if dual < self.tightest.1 {
                self.tightest.0.clone_from(&self.now);
                self.tightest.1 = dual;
            }
            // A subgradient does not vanish at the optimum, so only shrinking steps settle there.
            let size = 1.0 / (1.0 + 0.15 * f64::from(step));
            for ((price, &wanted), &capacity) in self.now.iter_mut().zip(&self.wanted).zip(capacity) {
                let excess = (wanted as f64 - f64::from(capacity)) / f64::from(capacity.max(1));
                // The clamp keeps one step from changing a price by more than a factor of e.
                *price *= (size * excess.clamp(-1.0, 1.0)).exp();
            }
            let highest = self.now.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            self.now.iter_mut().for_each(|price| *price = price.max(LEAST * highest));
            self.tried.extend_from_slice(&self.now);
        }
        &self.tried
    }

    /// The prices of the last search with the least dual.
    pub fn tightest(&self) -> &[f64] {
        &self.tightest.0
    }

    /// Sets the prices with the least dual, which are known.
    pub fn set(&mut self, prices: &[f64]) {
        self.tightest.0.clear();
        self.tightest.0.extend_from_slice(prices);
    }

    /// All types alike: the sum of the groups' best values, for each unit of capacity.
    fn start(&mut self, groups: &Groups, capacity: &[u32]) {
        let best = |group: usize| groups.of(group).iter().map(|offer| offer.value).fold(0.0, f64::max);
        let worth: f64 = (0..groups.len()).map(best).sum();
        let units: f64 = capacity.iter().copied().map(f64::from).sum();
        self.now.clear();
        // A price of zero could never grow by multiplication.
        self.now.resize(capacity.len(), (worth / units.max(1.0)).max(f64::MIN_POSITIVE));
    }

    /// Asks for the demand of the groups at the present prices, and returns the dual.
    fn ask(&mut self, groups: &Groups, capacity: &[u32]) -> f64 {
        self.wanted.clear();
        self.wanted.resize(capacity.len(), 0);
        let mut dual: f64 = self.now.iter().zip(capacity).map(|(price, &units)| price * f64::from(units)).sum();
        for group in 0..groups.len() {
            let (mut most, mut taken) = (0.0, None);
            // What can never be had must not count as demand.
            for offer in groups.of(group).iter().filter(|offer| offer.weight <= capacity[offer.kind.index()]) {
                let surplus = offer.value - self.now[offer.kind.index()] * f64::from(offer.weight);
                if surplus > most {
                    (most, taken) = (surplus, Some(offer));
                }
            }
            if let Some(offer) = taken {
                self.wanted[offer.kind.index()] += u64::from(offer.weight);
                dual += most;
            }
        }
        dual
    }
}
