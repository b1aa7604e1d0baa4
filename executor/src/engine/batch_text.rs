//! Batch limits as text, for the comments of Slurm's jobs and the annotations of Kubernetes' Jobs.

use goodput_env::model::BatchLimits;

/// First and largest batch of the job, then the least and most of a replica: `INIT:MAX:LOCAL_MIN:LOCAL_MAX`.
pub(super) fn write(limits: BatchLimits) -> String {
    format!("{}:{}:{}:{}", limits.init, limits.max, limits.min_local, limits.max_local)
}

/// Limits of a text that [`write`] made; `None` for any other text.
pub(super) fn read(text: &str) -> Option<BatchLimits> {
    let numbers: Vec<u32> = text.split(':').map_while(|number| number.parse().ok()).collect();
    let [init, max, min_local, max_local] = numbers[..] else { return None };
    BatchLimits::new(init, max, min_local, max_local).ok()
}
