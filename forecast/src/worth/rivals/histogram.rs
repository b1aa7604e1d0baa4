//! Load-adjusted histogram with exponentially decayed weights (Rzadca et al., EuroSys 2020, section 3.2.2).
//!
//! The weight of a bin is its load times the decayed number of measurements in it, so that a percentile is one of the
//! load served, and not of time.

/// Number of bins.
const BINS: usize = 400;

/// Decayed numbers of measurements by load.
pub(in crate::worth) struct UsageHistogram {
    width: f64,
    keep: f64,
    counts: Vec<f64>,
}

impl UsageHistogram {
    /// Histogram of loads up to twice `most`, with a half-life of `half_life` steps.
    pub fn new(most: f64, half_life: f64) -> Self {
        let width = (2.0 * most / BINS as f64).max(f64::MIN_POSITIVE);
        Self { width, keep: 0.5_f64.powf(1.0 / half_life.max(1.0)), counts: vec![0.0; BINS] }
    }

    /// Ages what is known by a step and adds a load; a load beyond the last bin counts in it.
    pub fn add(&mut self, load: f64) {
        self.counts.iter_mut().for_each(|count| *count *= self.keep);
        // `as` saturates at 0.
        self.counts[((load / self.width) as usize).min(BINS - 1)] += 1.0;
    }

    /// Upper end of the bin in which the share `level` of the load is reached.
    pub fn percentile(&self, level: f64) -> f64 {
        let load = |bin: usize| (bin + 1) as f64 * self.width;
        let total: f64 = self.counts.iter().enumerate().map(|(bin, count)| load(bin) * count).sum();
        let mut below = 0.0;
        let reached = self.counts.iter().enumerate().position(|(bin, count)| {
            below += load(bin) * count;
            below >= level * total
        });
        load(reached.unwrap_or(BINS - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_of_load_and_forgets() {
        let mut usage = UsageHistogram::new(200.0, 10.0);
        (0..1000).for_each(|step| usage.add(if step % 10 == 0 { 90.5 } else { 9.5 }));
        // Half of the load comes in a tenth of the steps.
        assert_eq!((usage.percentile(0.4), usage.percentile(0.95)), (10.0, 91.0));
        (0..200).for_each(|_| usage.add(9.5));
        assert_eq!(usage.percentile(0.95), 10.0);
    }
}
