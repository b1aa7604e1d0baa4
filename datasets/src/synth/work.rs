//! Training length of each job. By the catalog every job of an application does the same work, and
//! then an application's name tells how long its jobs take. Users do not train that way, and a
//! policy must not win by it, so each job does a random part of its application's work.
//!
//! The factor is log-normal of mean 1 and keeps the load. It comes from a stream of its own: the
//! same jobs arrive with and without it.

use goodput_env::job::WHOLE;
use goodput_env::seed::{Stream, rng};
use rand_distr::{Distribution, StandardNormal};

use super::{JobDraw, JobTask};

/// Least and most of its application's work that a job does, in thousandths.
const RANGE: [f64; 2] = [10.0, 100_000.0];

/// Draws a factor for each job that trains an application; `spread` is the standard deviation of
/// its logarithm.
pub(super) fn randomise(draws: &mut [JobDraw], spread: f64, seed: u64) {
    let mut rng = rng(seed, Stream::Work);
    for draw in draws {
        let normal: f64 = StandardNormal.sample(&mut rng);
        // Half the variance is subtracted, so that the factor has mean 1 and the load stays.
        let factor = (spread * normal - 0.5 * spread * spread).exp();
        if let JobTask::Application { work_milli, .. } = &mut draw.task {
            *work_milli = (factor * f64::from(WHOLE)).round().clamp(RANGE[0], RANGE[1]) as u32;
        }
    }
}
