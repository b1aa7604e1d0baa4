//! Form of Gavel: the paper, or one of the systems that were built on its mechanism.

use std::sync::Arc;

/// Form of the policy that runs.
#[derive(Clone, Debug, PartialEq)]
pub enum GavelForm {
    /// The policy as the paper describes it.
    Published,
    /// The artifact's simulator, defects included.
    Artifact,
    /// The simulator of Shockwave (NSDI'23), which is Gavel's with rounds of exactly their length.
    ShockwaveSimulator,
    /// The scheduler of Shockwave on machines, as its artifact drives 32 of them.
    ShockwaveCluster(ClusterRun),
}

/// Properties of a run on machines that its scheduler does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterRun {
    /// Work by job that the scheduler expects beyond the end of the job, in the job's unit: the run ends jobs at a
    /// limit of their run time. Jobs past the end of the list have none.
    pub unexpected_end: Arc<[f64]>,
    /// Length that a round gains for each unit of ln(1 + k), where k jobs leave their accelerators at its end, seconds.
    /// The next round waits until the last of these jobs has saved its state.
    pub saving_secs: f64,
}
