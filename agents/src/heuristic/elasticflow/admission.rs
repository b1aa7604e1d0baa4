//! Admission control: a new job is refused where its deadline, or that of an admitted job, could not be kept.

use std::collections::BTreeSet;

use goodput_env::job::JobId;
use goodput_env::time::SimTime;

use super::course::{Course, DeadlineDemand};

/// Jobs that were judged, and the way in which they are.
///
/// The artifact judges all jobs that arrive at one decision together, and refuses all of them where any deadline is
/// not kept. A late job, admitted or not, therefore has every arrival refused until it ends. As published, arrivals
/// are judged one by one, in order of submission, and only what a job makes late counts against it.
#[derive(Clone, Debug)]
pub struct DeadlineAdmission {
    together: bool,
    admitted: BTreeSet<JobId>,
    refused: BTreeSet<JobId>,
}

impl DeadlineAdmission {
    /// Admission as published.
    pub fn published() -> Self {
        Self { together: false, admitted: BTreeSet::new(), refused: BTreeSet::new() }
    }

    /// Admission as the artifact has it.
    pub fn artifact() -> Self {
        Self { together: true, ..Self::published() }
    }

    /// Whether the job was refused.
    pub fn has_refused(&self, job: JobId) -> bool {
        self.refused.contains(&job)
    }

    /// Judges the new ones of `demands`, which are all active jobs in order of deadline; gives those that are refused
    /// now. `courses` plans for the given jobs.
    pub fn refuse<'a>(
        &mut self,
        demands: &'a [DeadlineDemand],
        courses: impl Fn(&mut dyn Iterator<Item = &'a DeadlineDemand>) -> Vec<Course>,
    ) -> Vec<JobId> {
        let active: BTreeSet<JobId> = demands.iter().map(|demand| demand.job).collect();
        let is_new = |job: JobId| !self.admitted.contains(&job) && !self.refused.contains(&job);
        let new: BTreeSet<JobId> = demands.iter().map(|demand| demand.job).filter(|&job| is_new(job)).collect();
        self.admitted.retain(|job| active.contains(job));
        self.refused.retain(|job| active.contains(job));
        // A policy that is made while jobs run finds them admitted.
        let running = |job: &JobId| demands.iter().any(|of| of.job == *job && of.held > 0);
        let (running, new): (BTreeSet<JobId>, BTreeSet<JobId>) = new.into_iter().partition(running);
        self.admitted.extend(&running);
        if new.is_empty() {
            return Vec::new();
        }
        let late = |among: &BTreeSet<JobId>| {
            let chosen: Vec<&DeadlineDemand> = demands.iter().filter(|demand| among.contains(&demand.job)).collect();
            let ends = courses(&mut chosen.iter().copied());
            let late = chosen.iter().zip(ends).filter(|(demand, course)| course.end() > demand.deadline);
            late.map(|(demand, _)| demand.job).collect::<BTreeSet<JobId>>()
        };
        let best_effort = |job: &JobId| demands.iter().any(|of| of.job == *job && of.deadline == SimTime::NEVER);
        // What is planned now: the admitted jobs, and those that were refused and are still there.
        let mut planned: BTreeSet<JobId> = self.admitted.union(&self.refused).copied().collect();
        let (free, mut judged): (BTreeSet<JobId>, BTreeSet<JobId>) = new.into_iter().partition(best_effort);
        planned.extend(&free);
        self.admitted.extend(&free);
        let mut refused = Vec::new();
        if self.together {
            let all: BTreeSet<JobId> = planned.union(&judged).copied().collect();
            if judged.is_empty() || late(&all).is_empty() {
                self.admitted.append(&mut judged);
            }
            refused.extend(judged);
        } else if !judged.is_empty() {
            let mut hopeless = late(&planned);
            for job in judged {
                planned.insert(job);
                let now_late = late(&planned);
                if now_late.is_subset(&hopeless) {
                    hopeless = now_late;
                    self.admitted.insert(job);
                } else {
                    planned.remove(&job);
                    refused.push(job);
                }
            }
        }
        self.refused.extend(&refused);
        refused
    }
}
