//! Isolated allocation: an equal part of the cluster for each job, below which sharing must not
//! fall (Gavel, section 4.2).

use super::instance::{GavelInstance, TimeShares};

/// Gives each job `count / jobs` accelerators of each type, divided by the accelerators that it
/// needs at once. A job that would then run more than all of the time is cut back on all types
/// alike.
pub fn isolated(instance: &GavelInstance) -> TimeShares {
    let mut allocation = TimeShares::zero(instance);
    for job in 0..instance.jobs.len() {
        let shares: Vec<f64> = isolated_shares(instance, job).collect();
        allocation.row_mut(job).copy_from_slice(&shares);
    }
    allocation
}

/// Gives each job an equal part of the time of each type, whatever the number of accelerators that it needs at once,
/// and at most all of the time: Gandiva-Fair (Chaudhary et al., EuroSys'20) as Shockwave's artifact has it.
pub fn equal_time(instance: &GavelInstance) -> TimeShares {
    let mut allocation = TimeShares::zero(instance);
    let parts = instance.jobs.len() as f64;
    let time: f64 = instance.counts.iter().map(|&count| f64::from(count) / parts).sum();
    for job in 0..instance.jobs.len() {
        for (share, &count) in allocation.row_mut(job).iter_mut().zip(&instance.counts) {
            *share = f64::from(count) / parts / time.max(1.0);
        }
    }
    allocation
}

/// Steps per second of `job` under its isolated shares; types that the job cannot run on count as
/// zero.
pub fn isolated_rate(instance: &GavelInstance, job: usize) -> f64 {
    isolated_shares(instance, job).zip(instance.rates(job)).map(|(share, rate)| share * rate.unwrap_or(0.0)).sum()
}

fn isolated_shares(instance: &GavelInstance, job: usize) -> impl Iterator<Item = f64> + '_ {
    let parts = instance.jobs.len() as f64;
    let gpus = f64::from(instance.jobs[job].gpus);
    let equal = move |count: u32| f64::from(count) / parts / gpus;
    let time: f64 = instance.counts.iter().map(|&count| equal(count)).sum();
    instance.counts.iter().map(move |&count| equal(count) / time.max(1.0))
}
