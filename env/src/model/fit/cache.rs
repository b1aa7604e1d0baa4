//! Fits that a thread has made. Jobs of an application measure equal step times, so most fits recur.
//!
//! A fit is a function of its samples alone, so a fit that is known is the result to the bit, on whichever thread. The
//! cache is the one state of `env` that outlives a run.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{AgentFit, Sample, fit_by};
use crate::model::ThroughputParams;

/// Largest size of each half of what is kept, in samples of 32 bytes: about 10 MB for both.
const MOST_SAMPLES: usize = 150_000;
/// Size of a fit beside its samples.
const OVERHEAD: usize = 5;

thread_local! {
    static FITS: RefCell<KnownFits> = const { RefCell::new(KnownFits::new()) };
}

/// Search and samples, bit by bit.
type FitKey = (AgentFit, Vec<[u64; 4]>);

/// Fits in two halves, so that those in use stay when there is no room for all.
struct KnownFits {
    recent: BTreeMap<FitKey, ThroughputParams>,
    /// Size of the recent fits.
    samples: usize,
    /// Fits that go when the recent ones have filled their half.
    older: BTreeMap<FitKey, ThroughputParams>,
}

impl KnownFits {
    const fn new() -> Self {
        Self { recent: BTreeMap::new(), samples: 0, older: BTreeMap::new() }
    }

    fn get(&mut self, key: &FitKey) -> Option<ThroughputParams> {
        if let Some(found) = self.recent.get(key) {
            return Some(*found);
        }
        let (key, found) = self.older.remove_entry(key)?;
        self.keep(key, found);
        Some(found)
    }

    fn keep(&mut self, key: FitKey, found: ThroughputParams) {
        let size = key.1.len() + OVERHEAD;
        if self.samples + size > MOST_SAMPLES {
            self.older = std::mem::take(&mut self.recent);
            self.samples = 0;
        }
        self.samples += size;
        self.recent.insert(key, found);
    }
}

/// Fits as [`fit_by`], or takes the result from a fit of this thread to equal samples in equal order.
#[must_use]
pub(crate) fn known_fit(search: AgentFit, samples: &[Sample]) -> ThroughputParams {
    let key = (search, samples.iter().map(bits).collect());
    let known = FITS.with_borrow_mut(|known| known.get(&key));
    known.unwrap_or_else(|| {
        let found = fit_by(search, samples);
        FITS.with_borrow_mut(|known| known.keep(key, found));
        found
    })
}

fn bits(sample: &Sample) -> [u64; 4] {
    let Sample { nodes, replicas, atomic, step_secs, sync_secs } = *sample;
    let shape = u64::from(nodes) << 32 | u64::from(replicas);
    [shape, u64::from(atomic), step_secs.to_bits(), sync_secs.to_bits()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Sample = Sample { nodes: 1, replicas: 2, atomic: 8, step_secs: 0.1, sync_secs: 0.02 };

    fn kept() -> usize {
        FITS.with_borrow(|known| known.recent.len())
    }

    fn numbers(params: ThroughputParams) -> [u64; 7] {
        let ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma } = params;
        [alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma].map(f64::to_bits)
    }

    #[test]
    fn a_known_fit_is_the_fit_to_the_bit() {
        let larger = |replicas: u32| Sample { replicas, step_secs: 0.1 + 0.01 * f64::from(replicas), ..ONE };
        let samples: Vec<Sample> = (2..8).map(larger).collect();
        for round in 0..2 {
            for count in [0, 1, 3, 6] {
                for search in [AgentFit::Converged, AgentFit::Lbfgsb] {
                    let (known, fitted) = (known_fit(search, &samples[..count]), fit_by(search, &samples[..count]));
                    assert_eq!(numbers(known), numbers(fitted), "{count} samples, {search:?}");
                }
            }
            assert_eq!(kept(), 8, "in round {round}");
        }
    }

    #[test]
    fn fits_to_other_samples_are_other_fits() {
        let others = [
            ONE,
            Sample { nodes: 2, ..ONE },
            Sample { replicas: 3, ..ONE },
            Sample { atomic: 9, ..ONE },
            Sample { step_secs: 0.2, ..ONE },
            Sample { sync_secs: 0.03, ..ONE },
        ];
        for sample in others {
            assert_eq!(known_fit(AgentFit::Converged, &[sample]), fit_by(AgentFit::Converged, &[sample]));
        }
        assert_eq!(kept(), others.len());
    }

    #[test]
    fn fits_in_use_stay_and_no_more_are_kept_than_is_stated() {
        let key = |of: u64| (AgentFit::Converged, vec![[of; 4]; MOST_SAMPLES / 10 - OVERHEAD]);
        let fitted = fit_by(AgentFit::Converged, &[ONE]);
        let mut known = KnownFits::new();
        known.keep(key(0), fitted);
        for of in 1..100 {
            known.keep(key(of), fitted);
            assert!(known.recent.len() <= 10 && known.older.len() <= 10);
            assert!(known.get(&key(of)).is_some(), "fit {of} was just made");
            assert!(known.get(&key(0)).is_some(), "fit 0 is in use");
        }
        assert!(known.get(&key(1)).is_none(), "fit 1 was not used for long");
    }
}
