//! The last resize of a running job, and what else changed in its decision: the reason in terms that every policy has.

use std::collections::BTreeSet;

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::view::{ClusterView, JobView};
use serde::{Deserialize, Serialize};

use crate::daemon::predict::answer::accelerators;

/// Other jobs that are named.
const NAMED: usize = 4;

/// Decision that gave a running job another number of accelerators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastResize {
    /// Policy that decided.
    pub by: String,
    /// Time of the decision, milliseconds of the Unix epoch.
    pub at_ms: i64,
    /// Accelerators before the decision.
    pub from: u32,
    /// Accelerators that the policy gives the job.
    pub to: u32,
    /// Whether the job takes in and lets go of members while it trains, so that it does not stop for the resize.
    pub in_place: bool,
    /// Accelerators that were free when the policy decided.
    pub free: u32,
    /// Other jobs that the policy gives another number of accelerators in the decision, largest changes first.
    pub others: Vec<OtherChange>,
}

/// Another job of the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherChange {
    /// Name of the job.
    pub name: String,
    /// Accelerators before the decision.
    pub from: u32,
    /// Accelerators that the policy gives the job.
    pub to: u32,
    /// Whether the guard left the change out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

impl LastResize {
    /// The resizes of running jobs in `plan`, by job: the part of the policy's plan `wanted` that the guard admitted.
    /// `in_place` says whether a job trains on while it is resized.
    pub fn of_plan(
        plan: &Plan,
        wanted: &Plan,
        view: &ClusterView<'_>,
        in_place: impl Fn(JobId) -> bool,
    ) -> impl Iterator<Item = (JobId, Self)> {
        let admitted: BTreeSet<JobId> = plan.changes.iter().map(|change| change.job).collect();
        let changed = wanted.changes.iter().filter_map(|change| {
            let job = view.job(change.job)?;
            (job.gpus() != change.placement.gpus()).then_some((job, change.placement.gpus()))
        });
        let mut changed: Vec<(JobView<'_>, u32)> = changed.collect();
        changed.sort_by_key(|(job, to)| {
            (!admitted.contains(&job.id()), std::cmp::Reverse(job.gpus().abs_diff(*to)), job.id())
        });
        let free = view.total_free();
        let other = |(job, to): &(JobView<'_>, u32)| {
            let name = job.request().name.clone();
            OtherChange { name, from: job.gpus(), to: *to, left_out: !admitted.contains(&job.id()) }
        };
        let resizes = |(job, to): &&(JobView<'_>, u32)| job.gpus() > 0 && *to > 0 && admitted.contains(&job.id());
        let resized = changed.iter().filter(resizes).map(|(job, to)| {
            let others = changed.iter().filter(|(of, _)| of.id() != job.id()).take(NAMED).map(other).collect();
            let (from, to, in_place) = (job.gpus(), *to, in_place(job.id()));
            (job.id(), Self { from, to, in_place, free, others, ..Self::default() })
        });
        resized.collect::<Vec<_>>().into_iter()
    }

    /// The resize as a sentence.
    pub fn words(&self) -> String {
        let how = if self.in_place { "without a stop" } else { "with a restart" };
        let Self { by, from, to, free, .. } = self;
        let to = accelerators(*to);
        let free = format!("{free} {} free", if *free == 1 { "was" } else { "were" });
        let one = |other: &OtherChange| {
            let change = match (other.from, other.to) {
                (0, to) => format!("{} starts on {to}", other.name),
                (from, 0) => format!("{} leaves {from}", other.name),
                (from, to) => format!("{} goes from {from} to {to}", other.name),
            };
            if other.left_out { format!("{change} (left out by the guard)") } else { change }
        };
        let others: Vec<String> = self.others.iter().map(one).collect();
        let others = match others.is_empty() {
            true => "no other job changes".into(),
            false => format!("in the same decision {}", others.join(", ")),
        };
        format!("{by} resizes it from {from} to {to} {how}; {free}, and {others}")
    }
}
