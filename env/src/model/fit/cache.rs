//! Fits that a thread has made. Jobs of an application measure equal step times, so most fits recur.
//!
//! A fit is a function of its samples alone, so a fit that is known is the result to the bit, on whichever thread. The
//! cache is the one state of `env` that outlives a run.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{AgentFit, Sample, fit_by};
use crate::model::ThroughputParams;

/// Largest size of what is kept, in samples of 32 bytes: about 4 MB.
const MOST_SAMPLES: usize = 100_000;
/// Size of a fit beside its samples.
const OVERHEAD: usize = 5;

thread_local! {
    static FITS: RefCell<KnownFits> = const { RefCell::new(KnownFits { fits: BTreeMap::new(), samples: 0 }) };
}

/// Search and samples, bit by bit.
type FitKey = (AgentFit, Vec<[u64; 4]>);

struct KnownFits {
    fits: BTreeMap<FitKey, ThroughputParams>,
    /// Size of all fits.
    samples: usize,
}

impl KnownFits {
    fn keep(&mut self, key: FitKey, found: ThroughputParams) {
        // Fits that recur are soon known again.
        let size = key.1.len() + OVERHEAD;
        if self.samples + size > MOST_SAMPLES {
            self.fits.clear();
            self.samples = 0;
        }
        self.samples += size;
        self.fits.insert(key, found);
    }
}

/// Fits as [`fit_by`], or takes the result from a fit of this thread to equal samples in equal order.
#[must_use]
pub(crate) fn known_fit(search: AgentFit, samples: &[Sample]) -> ThroughputParams {
    let key = (search, samples.iter().map(bits).collect());
    let known = FITS.with_borrow(|known| known.fits.get(&key).copied());
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
        FITS.with_borrow(|known| known.fits.len())
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
    fn no_more_samples_are_kept_than_are_stated() {
        let key = |of: u64| (AgentFit::Converged, vec![[of; 4]; MOST_SAMPLES / 10 - OVERHEAD]);
        let mut known = KnownFits { fits: BTreeMap::new(), samples: 0 };
        for of in 0..25 {
            known.keep(key(of), fit_by(AgentFit::Converged, &[ONE]));
            assert!(known.samples <= MOST_SAMPLES && known.fits.contains_key(&key(of)));
        }
        assert_eq!(known.fits.len(), 5);
    }
}
