//! Reliability: losses of a run by faults, and costs of its checkpoints.

use goodput_env::sim::{JobRecord, Outcome};

/// Sums over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reliability {
    /// Faults of the hardware: accelerators, nodes, networks.
    pub faults: u32,
    /// Jobs given up because they failed too often.
    pub failed_jobs: usize,
    /// Accelerator time of work that was undone, GPU-hours.
    pub lost_gpu_hours: f64,
    /// Accelerator time of checkpoints over accelerator time held; `None` where none was held.
    pub writing_share: Option<f64>,
    /// Effective training time ratio; `None` where no job ran.
    pub ettr: Option<f64>,
}

impl Reliability {
    /// Adds up the jobs of a run.
    pub fn new(outcome: &Outcome) -> Self {
        let jobs = &outcome.jobs;
        let sum = |of: fn(&JobRecord) -> i64| jobs.iter().map(of).sum::<i64>() as f64;
        let hardware = outcome.hardware;
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        Self {
            faults: hardware.accelerators + hardware.nodes + hardware.networks,
            failed_jobs: jobs.iter().filter(|job| job.faults.failed.is_some()).count(),
            lost_gpu_hours: sum(|job| job.faults.lost_gpu_millis) / 3.6e6,
            writing_share: ratio(sum(|job| job.faults.writing_gpu_millis), sum(|job| job.attained_gpu_millis)),
            ettr: ratio(
                sum(JobRecord::kept_gpu_millis),
                jobs.iter().map(|job| wall_gpu_millis(job, outcome)).sum::<f64>(),
            ),
        }
    }
}

/// From the first accelerator to the end, at the job's mean size.
fn wall_gpu_millis(job: &JobRecord, outcome: &Outcome) -> f64 {
    let Some(start) = job.start else { return 0.0 };
    let wall = (job.left().unwrap_or(outcome.end) - start).as_millis();
    let executed = job.executed.as_millis();
    if executed == 0 { 0.0 } else { job.attained_gpu_millis as f64 * (wall as f64 / executed as f64) }
}
