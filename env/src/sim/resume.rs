//! A simulation that goes on from what was observed of a cluster: what would come of it under one
//! policy or another.

use std::sync::Arc;

use super::events::{Event, EventKind};
use super::{SimError, Simulator};
use crate::scenario::Scenario;
use crate::state::{ClusterState, JobState, Observed, ObservedError, Phase};
use crate::time::SimTime;

impl Simulator {
    /// Goes on from `seen`, the inverse of [`Simulator::observed`]: age, attained service, progress
    /// and profiles of jobs are as they were, and the first decision is due at once. Jobs of the
    /// scenario that were submitted before and are not among those observed do not come; later ones do.
    /// Observations tell nothing of
    /// services, requests, faults, rented nodes and overlapped changes of size; `scenario` is to be
    /// one without them, on the cluster as it was observed.
    ///
    /// # Errors
    /// [`SimError::Observed`] where `seen` does not fit the scenario, and [`SimError::Profile`]
    /// where a job runs outside its measurements.
    pub fn resume(scenario: Arc<Scenario>, seen: &Observed) -> Result<Self, SimError> {
        // This only checks the observation; the run builds its own state and its books below.
        ClusterState::observed(scenario.clone(), seen, 0)?;
        let mut run = Self::new(scenario);
        let period = run.state.scenario.options.rounds.period.map_or(1, |period| period.as_millis().max(1));
        let round = SimTime::from_millis(seen.now.as_millis().div_euclid(period) * period);
        (run.state.now, run.decisions.last_round, run.decisions.wake) = (seen.now, round, seen.now);
        let submitted = run.state.scenario.workload.jobs.partition_point(|job| job.request.submit <= seen.now);
        // A live cluster may show a job that its clock has not reached yet.
        run.jobs.arrived = seen.jobs.last().map_or(submitted, |last| submitted.max(last.id.index() + 1));
        for job in &seen.jobs {
            run.state.jobs.insert(JobState::observed(job, seen.now, 0));
            run.jobs.share_what_was_measured(&mut run.state, job.id);
            run.records.in_system += 1;
            if job.placement.is_empty() {
                run.records.fragments.count_waiting(&run.state, job.id, 1);
                continue;
            }
            if job.partner.is_none_or(|partner| job.id < partner) {
                let full = |slice: &&crate::placement::Slice| {
                    // Cards that others have shares of already take nothing more.
                    let of_share = job.placement.share().map_or(0, |(node, share)| {
                        let open = |card: &&u16| run.state.cards.get(node, **card).is_some();
                        share.cards.iter().filter(open).count() as u32
                    });
                    run.state.idle.on(slice.node) < slice.gpus - of_share
                };
                if let Some(slice) = job.placement.slices().iter().find(full) {
                    return Err(ObservedError::Overfull { node: slice.node }.into());
                }
                run.take(job.id, &job.placement);
            }
        }
        // All jobs are known by now, so each one can be told what any of them has measured.
        for job in &seen.jobs {
            run.jobs.know_what_others_measured(&mut run.state, job.id);
            match job.phase {
                Phase::Pending => {}
                Phase::Running => {
                    // An observation of a live cluster does not tell how jobs split their batches.
                    if job.batch.atomic == 0 {
                        run.state.choose_batch(job.id);
                    }
                    run.run_segment(job.id)?;
                }
                Phase::Starting { until } => {
                    let (at, kind) = (until.max(seen.now), EventKind::Phase);
                    let generation = run.state.jobs.state(job.id).generation;
                    run.queue.push(Event::of_job(at, kind, job.id, generation));
                }
            }
        }
        run.update_sharing()?;
        run.update_interference()?;
        Ok(run)
    }
}
