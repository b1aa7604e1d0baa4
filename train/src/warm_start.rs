//! Imitation before reinforcement: a heuristic labels the learner's own states, and the learner
//! takes over step by step (DAgger). The critic learns the returns of the mixture meanwhile.

use goodput_agents::learning::gae::GaeConfig;
use goodput_agents::learning::imitation::{ImitationBatch, ImitationConfig};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::teacher::Teacher;
use goodput_env::gym::ClusterEnv;
use goodput_env::seed::{Stream, keyed};

use crate::entries::published;
use crate::error::TrainError;
use crate::guide::Guide;
use crate::recorder::Recorder;
use crate::rollout::{Collect, ExperienceBuffer, Rollout};
use crate::run_dir::RunDir;
use crate::scaling::ReturnScale;
use crate::{Hooks, Progress};
use goodput_configs::experiment::WarmStart;

/// Iterations of imitation are numbered from here, so that their random streams are not those of
/// reinforcement.
const FIRST_ITERATION: u64 = 1 << 32;

/// Parts of a training loop that imitation changes.
pub struct ImitationStudent<'a> {
    pub learner: &'a mut Learner,
    pub rollout: &'a mut Rollout<ClusterEnv>,
    pub experience: &'a mut ExperienceBuffer,
    pub scale: &'a mut ReturnScale,
}

/// Imitates until the decisions are used up. Returns `false` where the caller asked to stop: a warm
/// start is short and begins anew on resume.
pub fn imitate(
    plan: &WarmStart,
    gae: GaeConfig,
    seed: u64,
    student: ImitationStudent<'_>,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<bool, TrainError> {
    let ImitationStudent { learner, rollout, experience, scale } = student;
    let teacher = published(&plan.teacher)?;
    let make = || -> Box<dyn Guide<ClusterEnv>> { Box::new(Teacher::new(teacher.training(seed))) };
    let mut recorder = Recorder::new(dir, "imitation", 0)?;
    let config = ImitationConfig { epochs: plan.epochs, minibatch: plan.minibatch, ..ImitationConfig::default() };
    let (rows, total) = (rollout.rows() as u64, plan.decisions);
    for iteration in 0..total.div_ceil(rows) {
        if hooks.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(false);
        }
        let done = (iteration * rows) as f64 / total as f64;
        // The teacher drives for the first third, then hands over.
        let teacher_share = (1.5 - 1.5 * done).clamp(0.0, 1.0) as f32;
        let how = Collect { iteration: FIRST_ITERATION + iteration, seed, gae, teacher_share };
        rollout.collect(learner.weights(), how, Some(&make), scale, experience)?;
        let batch = ImitationBatch {
            observations: &experience.observations,
            masks: &experience.masks,
            actions: &experience.labels,
            weights: None,
            returns: Some(&experience.returns),
        };
        let mut shuffle = keyed(seed, Stream::Exploration, FIRST_ITERATION + iteration);
        let rate = plan.learning_rate * (1.0 - 0.9 * done);
        let stats = learner
            .imitate(&config, rate as f32, &batch, &mut shuffle)
            .map_err(|source| TrainError::Diverged { update: iteration, source })?;
        let decisions = (iteration + 1) * rows;
        let figures = vec![
            ("imitation/cross_entropy", stats.cross_entropy),
            ("imitation/accuracy", stats.accuracy),
            ("imitation/value_loss", stats.value_loss),
            ("imitation/grad_norm", stats.grad_norm),
            ("imitation/teacher_share", f64::from(teacher_share)),
        ];
        recorder.record(decisions, &figures)?;
        (hooks.progress)(Progress {
            phase: "imitate",
            done: decisions.min(total),
            total,
            unit: "decisions",
            validation_jct_secs: None,
            best_heuristic_jct_secs: None,
        });
    }
    Ok(true)
}
