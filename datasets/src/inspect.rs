//! Demand of a workload on a cluster, for `goodput data inspect`.

use std::collections::BTreeMap;

use crate::catalog::Catalog;
use crate::fit::ideal_secs;
use crate::jobs::JobRow;

/// Levels of the quantiles that are shown.
pub const QUANTILES: [f64; 7] = [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0];

/// Figures of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct DemandSummary {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of tenants.
    pub tenants: usize,
    /// Seconds from the first submission to the last.
    pub span_secs: f64,
    /// Jobs per hour over the span.
    pub jobs_per_hour: f64,
    /// GPU hours of all jobs as requested and undisturbed.
    pub gpu_hours: f64,
    /// Jobs with an unknown run time, because their application is unknown; the GPU hours leave
    /// them out.
    pub unknown: usize,
    /// GPU hours per hour of the span over the GPUs of the cluster: above 1 the queue grows while
    /// jobs arrive.
    pub load: Option<f64>,
    /// Run time as requested and undisturbed, seconds, at [`QUANTILES`].
    pub run_secs: [f64; 7],
    /// Accelerators asked for at [`QUANTILES`].
    pub gpus: [f64; 7],
    /// Seconds between submissions at [`QUANTILES`].
    pub gaps_secs: [f64; 7],
    /// Figures by application; jobs without one are under the empty name.
    pub applications: BTreeMap<String, ApplicationShare>,
}

/// Figures of one application in a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApplicationShare {
    /// Number of jobs.
    pub jobs: usize,
    /// GPU hours as requested and undisturbed.
    pub gpu_hours: f64,
}

/// Summarises jobs over the applications of `catalog` on a cluster of `cluster_gpus`, where one is
/// given.
pub fn summarise(jobs: &[JobRow], catalog: &Catalog, cluster_gpus: Option<u32>) -> DemandSummary {
    let mut ideal = IdealTimes { catalog, known: BTreeMap::new() };
    let mut applications: BTreeMap<String, ApplicationShare> = BTreeMap::new();
    let mut run_secs = Vec::with_capacity(jobs.len());
    let mut gpu_hours = 0.0;
    for job in jobs {
        let share = match applications.get_mut(job.application.as_deref().unwrap_or_default()) {
            Some(share) => share,
            None => applications.entry(job.application.clone().unwrap_or_default()).or_default(),
        };
        share.jobs += 1;
        if let Some(secs) = ideal.run_secs(job) {
            let hours = secs * f64::from(job.gpus) / 3600.0;
            share.gpu_hours += hours;
            gpu_hours += hours;
            run_secs.push(secs);
        }
    }
    let mut submits: Vec<f64> = jobs.iter().map(|job| job.submit.as_secs_f64()).collect();
    submits.sort_by(f64::total_cmp);
    let span_secs = submits.last().zip(submits.first()).map_or(0.0, |(last, first)| last - first);
    let span_hours = span_secs / 3600.0;
    let mut tenants: Vec<Option<&str>> = jobs.iter().map(|job| job.tenant.as_deref()).collect();
    tenants.sort_unstable();
    tenants.dedup();
    let gaps = submits.windows(2).map(|pair| pair[1] - pair[0]).collect();
    DemandSummary {
        jobs: jobs.len(),
        tenants: tenants.len(),
        span_secs,
        jobs_per_hour: if span_hours > 0.0 { jobs.len() as f64 / span_hours } else { 0.0 },
        gpu_hours,
        unknown: jobs.len() - run_secs.len(),
        load: cluster_gpus
            .filter(|&gpus| gpus > 0 && span_hours > 0.0)
            .map(|gpus| gpu_hours / span_hours / f64::from(gpus)),
        run_secs: quantiles(run_secs),
        gpus: quantiles(jobs.iter().map(|job| f64::from(job.gpus)).collect()),
        gaps_secs: quantiles(gaps),
        applications,
    }
}

/// Undisturbed run times by application, size and batch size; a trace repeats few of them.
struct IdealTimes<'a> {
    catalog: &'a Catalog,
    known: BTreeMap<(u16, u32, u32), Option<f64>>,
}

impl IdealTimes<'_> {
    fn run_secs(&mut self, job: &JobRow) -> Option<f64> {
        match job.application.as_deref().and_then(|name| self.catalog.index(name)) {
            None => job.duration.map(goodput_env::time::SimTime::as_secs_f64),
            Some(index) => {
                let application = &self.catalog.applications[usize::from(index)];
                let batch = job.batch_size.unwrap_or(application.limits.init);
                let compute = || ideal_secs(application, job.gpus, batch);
                *self.known.entry((index, job.gpus, batch)).or_insert_with(compute)
            }
        }
    }
}

/// Values at [`QUANTILES`], linear between ranks; NaN without values.
fn quantiles(mut values: Vec<f64>) -> [f64; 7] {
    values.sort_by(f64::total_cmp);
    QUANTILES.map(|share| {
        let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
        let rank = share * last as f64;
        let below = values[rank as usize];
        let above = values[(rank as usize + 1).min(last)];
        below + (above - below) * rank.fract()
    })
}
