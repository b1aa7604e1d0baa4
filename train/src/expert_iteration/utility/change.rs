//! Changes that the expert tries.

use goodput_agents::policies::utility::{ClaimSituation, Lever, Nudge};
use goodput_env::job::JobId;
use goodput_env::time::SimTime;
use rand::{Rng, RngExt};

/// Claims of jobs at one moment, each of which is moved up or down at random. What a change saves is due to all of
/// them, and over many changes a fit tells them apart (simultaneous perturbation: Spall, IEEE Transactions on Automatic
/// Control 37, 1992).
pub struct ClaimChange {
    signs: Vec<(JobId, [f64; Lever::ALL.len()])>,
    /// Sum of the features of the moved claims by their signs, divided by the root of the number of jobs. So it is as
    /// large as the features of one job.
    pub features: [f64; Lever::FEATURES],
}

impl ClaimChange {
    /// Change of at most `most` of the jobs at a moment; `None` where there are none.
    pub fn drawn(mut situations: Vec<ClaimSituation>, most: usize, random: &mut impl Rng) -> Option<Self> {
        // What all weights have in common changes no division.
        for at in Lever::Weight.features() {
            let sum: f64 = situations.iter().map(|situation| situation.features[at]).sum();
            let mean = sum / situations.len() as f64;
            situations.iter_mut().for_each(|situation| situation.features[at] -= mean);
        }
        let mut change = Self { signs: Vec::new(), features: [0.0; Lever::FEATURES] };
        for _ in 0..most.min(situations.len()) {
            let chosen = (random.random::<f64>() * situations.len() as f64) as usize % situations.len();
            let ClaimSituation { job, features } = situations.swap_remove(chosen);
            let signs = Lever::ALL.map(|_| if random.random::<bool>() { 1.0 } else { -1.0 });
            for (lever, sign) in Lever::ALL.into_iter().zip(signs) {
                lever.features().for_each(|at| change.features[at] += sign * features[at]);
            }
            change.signs.push((job, signs));
        }
        if change.signs.is_empty() {
            return None;
        }
        let root = change.root();
        change.features.iter_mut().for_each(|feature| *feature /= root);
        Some(change)
    }

    /// The change with moves of the size `by`, until a time.
    pub fn times(&self, by: f64, until: SimTime) -> Nudge {
        Nudge { by: self.signs.iter().map(|(job, signs)| (*job, signs.map(|sign| sign * by))).collect(), until }
    }

    /// A saving of the change, on the scale of its features.
    pub fn averaged(&self, saved: f64) -> f64 {
        saved / self.root()
    }

    fn root(&self) -> f64 {
        (self.signs.len() as f64).sqrt()
    }
}
