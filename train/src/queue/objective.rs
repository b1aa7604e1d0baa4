//! Costs of a run that learners of an order are told, by what the order is learned for.

use goodput_configs::experiment::QueueObjective;
use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;
use goodput_eval::metrics::{RunFacts, bounded_slowdown, jct_secs};

use super::choices::QueueStep;
use super::runs::mean;

/// Names of the figures of a training.
pub(super) struct FigureNames {
    /// Mean over runs.
    pub rollout: &'static str,
    /// Mean of logarithms over runs.
    pub rollout_log: &'static str,
    /// Best mean over the validation workloads so far.
    pub validation: &'static str,
}

/// Names of the figures of an objective.
pub(super) fn names(objective: QueueObjective) -> FigureNames {
    match objective {
        QueueObjective::BoundedSlowdown => FigureNames {
            rollout: "rollout/bounded_slowdown_mean",
            rollout_log: "rollout/log_bounded_slowdown",
            validation: "eval/bounded_slowdown_mean",
        },
        QueueObjective::Utilization => FigureNames {
            rollout: "rollout/inverse_utilization",
            rollout_log: "rollout/log_inverse_utilization",
            validation: "eval/inverse_utilization",
        },
    }
}

/// Cost of a run, above 0: the mean bounded slowdown of its jobs, or 1 over its utilisation.
pub(super) fn cost(objective: QueueObjective, scenario: &Scenario, outcome: &Outcome) -> f64 {
    match objective {
        QueueObjective::BoundedSlowdown => mean(&outcome.jobs.iter().filter_map(bounded_slowdown).collect::<Vec<_>>()),
        QueueObjective::Utilization => {
            let facts = RunFacts::with_isolated(outcome, scenario.cluster.total_gpus(), &[], None);
            let share = facts.share_of_capacity(facts.held_gpu_secs).filter(|share| *share > 0.0);
            // A run in which no job held anything is the worst one.
            share.map_or(f64::MAX, f64::recip)
        }
    }
}

/// Parts of the cost `cost` of a run by the times from which no choice changes them, in order of time. The bounded
/// slowdown of a job stands when the job starts. All choices of a run share its utilisation.
pub(super) fn steps(objective: QueueObjective, outcome: &Outcome, cost: f64) -> Vec<QueueStep> {
    if objective == QueueObjective::Utilization {
        return vec![QueueStep { at: SimTime::NEVER, cost }];
    }
    let started = |job: &_| {
        let (slowdown, jct) = (bounded_slowdown(job)?, jct_secs(job)?);
        let waited = SimTime::from_secs_f64((jct - job.executed.as_secs_f64()).max(0.0));
        Some(QueueStep { at: job.submit + waited, cost: slowdown })
    };
    let mut steps: Vec<QueueStep> = outcome.jobs.iter().filter_map(started).collect();
    steps.sort_by_key(|step| step.at);
    steps
}
