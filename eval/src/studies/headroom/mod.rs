//! Headroom: how far the policies of a comparison are from one that knows the future.

mod probe;

use rayon::prelude::*;

use goodput_agents::compose::{NamedPolicy, lookahead_base};

use super::bound::{self, Bound};
use crate::report::plots::{Figure, HeadroomRow, headroom};
use crate::run::RunHead;
use crate::sweep::{Sweep, SweepError};

/// Most policies that the probe plays: the best ones of the workload. A look costs a run to the end for each of them.
const PLAYERS: usize = 4;

/// Mean completion times of a workload side by side, seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Headroom {
    /// Name of the workload.
    pub workload: String,
    /// The best published policy of the comparison; `None` where there is none.
    pub published: Option<(String, f64)>,
    /// The best policy that is trained or plans ahead; `None` where there is none.
    pub ours: Option<(String, f64)>,
    /// The foresight probe; `None` where it cannot be played.
    pub probe_secs: Option<f64>,
    /// The bound; `None` where the workload has none.
    pub bound: Option<Bound>,
}

impl Headroom {
    /// Ratio of a mean completion time to that of the best published policy.
    pub fn against_published(&self, secs: f64) -> Option<f64> {
        Some(secs / self.published.as_ref()?.1)
    }

    /// Mean completion time of our best policy, seconds.
    pub fn ours_secs(&self) -> Option<f64> {
        Some(self.ours.as_ref()?.1)
    }

    /// Bound of the mean completion time, seconds.
    pub fn bound_secs(&self) -> Option<f64> {
        Some(self.bound.as_ref()?.jct_mean_secs)
    }
}

/// Picture of the workloads that have a published policy: each relative to the best one.
pub fn picture(found: &[Headroom]) -> Figure {
    let row = |row: &Headroom| {
        let ratio = |secs: Option<f64>| row.against_published(secs?);
        Some(HeadroomRow {
            name: row.workload.clone(),
            published: row.published.as_ref()?.0.clone(),
            ours: ratio(row.ours_secs()),
            probe: ratio(row.probe_secs),
            bound: ratio(row.bound_secs()),
        })
    };
    headroom(&found.iter().filter_map(row).collect::<Vec<_>>())
}

/// Headroom of a comparison by workload.
///
/// # Errors
/// [`SweepError`] where a workload cannot be set up.
pub fn of(sweep: &Sweep, heads: &[RunHead]) -> Result<Vec<Headroom>, SweepError> {
    let layout = sweep.layout();
    let bounds = bound::of(layout, heads, |index| sweep.scenario(index))?;
    let of_workload =
        |workload: usize| (0..layout.scenarios.len()).filter(move |&at| layout.scenarios[at].workload == workload);
    let mean = |secs: Option<Vec<f64>>| secs.map(|secs| secs.iter().sum::<f64>() / secs.len().max(1) as f64);
    let of_policy = |policy: usize, workload: usize| {
        let start = layout.runs_of(policy).start;
        mean(of_workload(workload).map(|at| heads[start + at].complete_jct_secs).collect())
    };
    let workloads = 0..layout.workloads.len();
    let players: Vec<Vec<usize>> =
        workloads.clone().map(|workload| players(&layout.policies, |policy| of_policy(policy, workload))).collect();
    let probe = |at: usize| {
        sweep.on_scenario(at, |scenario, entries, seed| {
            let players = &players[layout.scenarios[at].workload];
            probe::play(scenario, &players.iter().map(|&policy| &entries[policy]).collect::<Vec<_>>(), seed)
        })
    };
    let probed: Vec<Option<f64>> =
        (0..layout.scenarios.len()).into_par_iter().map(probe).collect::<Result<_, SweepError>>()?;
    let found = workloads.map(|workload| {
        let name = &layout.workloads[workload];
        let best = |published: bool| {
            let named = layout.policies.iter().enumerate().filter(|(_, name)| is_published(name) == published);
            let secs = named.filter_map(|(policy, name)| Some((name.clone(), of_policy(policy, workload)?)));
            secs.min_by(|one, other| one.1.total_cmp(&other.1))
        };
        Headroom {
            workload: name.clone(),
            published: best(true),
            ours: best(false),
            probe_secs: mean(of_workload(workload).map(|at| probed[at]).collect()),
            bound: bounds.iter().find(|(known, ..)| known == name).map(|(_, bound, _)| *bound),
        }
    });
    Ok(found.collect())
}

/// Whether a name is that of a published policy as it stands, and not of a trained one or of one that plans ahead.
fn is_published(name: &str) -> bool {
    lookahead_base(name).is_none() && name.parse::<NamedPolicy>().is_ok()
}

/// The policies that take least time, the best first. Those without a mean are left out, and those that plan ahead
/// themselves.
fn players(policies: &[String], secs: impl Fn(usize) -> Option<f64>) -> Vec<usize> {
    let named = policies.iter().enumerate().filter(|(_, name)| lookahead_base(name).is_none());
    let mut timed: Vec<(usize, f64)> = named.filter_map(|(policy, _)| Some((policy, secs(policy)?))).collect();
    timed.sort_by(|one, other| one.1.total_cmp(&other.1));
    timed.into_iter().take(PLAYERS).map(|(policy, _)| policy).collect()
}
