//! Never ship a policy worse than its teacher: what a policy has to pass before it is exported.

use goodput_agents::bundle::PolicyBundle;

use crate::error::TrainError;
use crate::validate::Validation;
use goodput_configs::experiment::Experiment;
use goodput_eval::entries;

/// A policy's and its teacher's mean completion time on validation seeds, seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct GateVerdict {
    /// The teacher's name.
    pub teacher: String,
    /// The teacher's result.
    pub teacher_jct_secs: f64,
    /// The policy's result.
    pub learned_jct_secs: f64,
    /// Allowed excess over the teacher's mean completion time, percent.
    pub allowed_percent: f64,
    /// Late requests of the worst service beyond those that may be late, relative to these.
    pub late_excess: f64,
}

impl GateVerdict {
    /// Whether the policy is as good as its teacher, but for what is allowed, and services keep
    /// their objectives or what they had under it.
    pub fn passes(&self) -> bool {
        self.late_excess <= 0.0 && self.learned_jct_secs <= self.teacher_jct_secs * (1.0 + self.allowed_percent / 100.0)
    }
}

/// Compares `bundle` with the experiment's teacher on validation seeds; `None` where it has no
/// teacher.
///
/// # Errors
/// [`TrainError`] where a run fails.
pub fn judge(experiment: &Experiment, bundle: &PolicyBundle) -> Result<Option<GateVerdict>, TrainError> {
    let Some(teacher) = experiment.agent.as_ref().and_then(|agent| agent.teacher()) else { return Ok(None) };
    let setup = experiment.setup()?;
    let validation = Validation::without_heuristics(experiment, &setup)?;
    let taught = validation.score_of(entries::heuristic(experiment, teacher, &setup)?)?;
    let learned = validation.score_whole(bundle)?;
    Ok(Some(GateVerdict {
        teacher: teacher.to_owned(),
        teacher_jct_secs: taught.jct_secs,
        learned_jct_secs: learned.jct_secs,
        late_excess: learned.served.excess(&taught.served),
        allowed_percent: experiment.train.gate_percent,
    }))
}
