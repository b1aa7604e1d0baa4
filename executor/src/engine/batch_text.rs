//! Batch limits as text: on the command line, in the comments of Slurm's jobs and in the annotations of Kubernetes'
//! Jobs.

use goodput_env::model::BatchLimits;

/// First and largest batch of the job, then the least and most of a replica: `INIT:MAX:LOCAL_MIN:LOCAL_MAX`.
pub(super) fn write(limits: BatchLimits) -> String {
    format!("{}:{}:{}:{}", limits.init, limits.max, limits.min_local, limits.max_local)
}

/// Reads limits as in `128:4096:32:512`, the form in which they are written.
///
/// # Errors
/// The text is not four numbers, or the limits contradict each other.
pub fn read(text: &str) -> Result<BatchLimits, String> {
    let numbers: Result<Vec<u32>, _> = text.split(':').map(str::parse).collect();
    let Ok(&[init, max, min_local, max_local]) = numbers.as_deref() else {
        return Err("expected four numbers: initial and largest total, smallest and largest of one replica".into());
    };
    BatchLimits::new(init, max, min_local, max_local).map_err(|error| error.to_string())
}
