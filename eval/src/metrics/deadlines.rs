//! Jobs that have a deadline, such as the key jobs of a reserve.

use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;

use super::jct_secs;

/// A job with a deadline, as a run left it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineFacts {
    /// Whether the job was done by its deadline.
    pub met: bool,
    /// Completion time of the job, seconds; `None` where it was not done.
    pub jct_secs: Option<f64>,
}

/// Jobs of a run with a deadline before the end of the run, in order of their ids. A job that was refused has
/// missed its deadline.
pub fn deadline_facts(scenario: &Scenario, outcome: &Outcome) -> Vec<DeadlineFacts> {
    let jobs = outcome.jobs.iter().filter_map(|job| {
        let deadline = scenario.workload.jobs[job.job.index()].request.deadline?;
        let facts = DeadlineFacts { met: job.finish.is_some_and(|finish| finish <= deadline), jct_secs: jct_secs(job) };
        // Nothing is known of a deadline that the run did not reach, unless the job was sent away before it.
        (facts.met || deadline <= outcome.end || job.refused.is_some()).then_some(facts)
    });
    jobs.collect()
}
