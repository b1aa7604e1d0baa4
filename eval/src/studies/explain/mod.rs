//! One decision of a policy beside what published policies would do at the same moment.

mod page;

use goodput_agents::compose;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::Information;
use goodput_env::view::{ClusterView, JobView};
use serde::Serialize;

use crate::stats::kendall_tau;

pub use page::ExplainPage;

/// Published policies beside which a decision is shown, and the key by which each ranks jobs;
/// Pollux has no ranking.
const PUBLISHED_POLICIES: [(&str, Option<RankingKey>); 3] =
    [("tiresias", Some(attained)), ("srtf", Some(remaining)), ("pollux", None)];

type RankingKey = fn(&JobView<'_>) -> Option<f64>;

/// Least attained accelerator time first: Tiresias's rule, without its few queues, which tell jobs
/// of one queue apart by entry only.
fn attained(job: &JobView<'_>) -> Option<f64> {
    Some(job.attained_gpu_millis() as f64)
}

/// Shortest remaining time first, at the requested size.
fn remaining(job: &JobView<'_>) -> Option<f64> {
    job.remaining_secs(job.request().gpus).filter(|secs| secs.is_finite())
}

/// Position of a job under one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobStanding {
    /// Place in its order, from 1; `None` where it has no order or the job no place in it.
    pub rank: Option<usize>,
    /// Accelerators that the policy would give to the job.
    pub gpus: u32,
    /// Accelerator type that the policy would give, where the cluster has several types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
}

impl JobStanding {
    /// Allocation that the policy would give, in words: `16`, or `16 a100`.
    pub fn gives(&self) -> String {
        match &self.accelerator {
            Some(accelerator) => format!("{} {accelerator}", self.gpus),
            None => self.gpus.to_string(),
        }
    }
}

/// A policy beside the one that is explained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherPolicy {
    /// Name of the policy.
    pub policy: &'static str,
    /// Information level that the policy was given.
    pub information: String,
    /// Agreement of the two orders, Kendall's tau-b.
    pub tau_order: Option<f64>,
    /// Agreement of the sizes.
    pub tau_sizes: Option<f64>,
    /// Jobs that get the same number of accelerators.
    pub same_size: usize,
    /// By active job.
    #[serde(skip)]
    pub standings: Vec<JobStanding>,
}

/// A decision beside others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedDecision {
    /// Active jobs in the order of the policy that is explained; those it does not rank come last,
    /// by id.
    pub queue: Vec<JobRow>,
    /// Policies beside it.
    pub beside: Vec<OtherPolicy>,
}

/// An active job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobRow {
    /// Name of the job in the trace.
    pub job: String,
    /// Identifier of the job.
    #[serde(skip)]
    pub id: JobId,
    /// The model it trains.
    pub model: String,
    /// Seconds since submission.
    pub age_secs: f64,
    /// Accelerator seconds had so far.
    pub attained_gpu_secs: f64,
    /// Number of accelerators that the job holds.
    pub held: u32,
    /// Score under the policy that is explained.
    pub score: Option<f64>,
    /// Position of the job under the explained policy.
    pub own: JobStanding,
    /// Positions of the job under the other policies, in the order of [`ComparedDecision::beside`].
    pub others: Vec<JobStanding>,
}

/// Puts a decision beside those of published policies that are asked at one moment, as if they had
/// just taken over. `scores` are by active job; the highest is served first. A policy that needs
/// lengths which the run does not give is told the true ones.
pub fn compare_decision(view: &ClusterView<'_>, plan: &Plan, scores: &[Option<f64>]) -> ComparedDecision {
    let own: Vec<Option<f64>> = scores.iter().map(|score| score.map(|score| -score)).collect();
    let mine = standings(view, plan, &own);
    let beside: Vec<OtherPolicy> =
        PUBLISHED_POLICIES.iter().filter_map(|(name, key)| ask(view, name, *key, &own, &mine)).collect();
    let row = |(at, job): (usize, JobView<'_>)| JobRow {
        job: job.request().name.clone(),
        id: job.id(),
        model: job.model_name().to_owned(),
        age_secs: job.age().as_secs_f64(),
        attained_gpu_secs: job.attained_gpu_millis() as f64 / 1e3,
        held: job.gpus(),
        score: scores.get(at).copied().flatten(),
        own: mine[at].clone(),
        others: beside.iter().map(|other| other.standings[at].clone()).collect(),
    };
    let mut queue: Vec<JobRow> = view.jobs().enumerate().map(row).collect();
    queue.sort_by_key(|row| (row.own.rank.unwrap_or(usize::MAX), row.id));
    ComparedDecision { queue, beside }
}

fn ask(
    view: &ClusterView<'_>,
    name: &'static str,
    key: Option<RankingKey>,
    own: &[Option<f64>],
    mine: &[JobStanding],
) -> Option<OtherPolicy> {
    let mut policy = compose::by_name(name, 0)?;
    let mut told = *view;
    if !told.information.allows(policy.needs()) {
        told.information = Information::Oracle;
    }
    let plan = policy.decide(&told);
    let keys: Vec<Option<f64>> = told.jobs().map(|job| key.and_then(|key| key(&job))).collect();
    let standings = standings(&told, &plan, &keys);
    let both = || own.iter().zip(&keys).filter_map(|(own, key)| Some((-(*own)?, -(*key)?)));
    let (a, b): (Vec<f64>, Vec<f64>) = both().unzip();
    let sizes = |of: &[JobStanding]| of.iter().map(|standing| f64::from(standing.gpus)).collect::<Vec<f64>>();
    Some(OtherPolicy {
        policy: name,
        information: told.information.to_string(),
        tau_order: kendall_tau(&a, &b),
        tau_sizes: kendall_tau(&sizes(mine), &sizes(&standings)),
        same_size: mine.iter().zip(&standings).filter(|(mine, theirs)| mine.gpus == theirs.gpus).count(),
        standings,
    })
}

/// Ranks by ascending key, ties by (submission, id), and accelerators after `plan`, by active job.
fn standings(view: &ClusterView<'_>, plan: &Plan, keys: &[Option<f64>]) -> Vec<JobStanding> {
    let mut order: Vec<(f64, usize)> = keys.iter().enumerate().filter_map(|(at, key)| Some(((*key)?, at))).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let cluster = view.cluster();
    let several = cluster.types.len() > 1;
    let accelerator = |placement: &Placement| {
        let node = placement.slices().first().filter(|_| several)?.node.index();
        Some(cluster.types[cluster.nodes[node].accelerator.index()].name.clone())
    };
    let standing =
        |placement: &Placement| JobStanding { rank: None, gpus: placement.gpus(), accelerator: accelerator(placement) };
    let mut standings: Vec<JobStanding> = view.jobs().map(|job| standing(&job.state.placement)).collect();
    for (rank, (_, at)) in order.into_iter().enumerate() {
        standings[at].rank = Some(rank + 1);
    }
    let ids: Vec<JobId> = view.jobs().map(|job| job.id()).collect();
    for change in &plan.changes {
        if let Ok(at) = ids.binary_search(&change.job) {
            standings[at] = JobStanding { rank: standings[at].rank, ..standing(&change.placement) };
        }
    }
    standings
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use goodput_env::cluster::{Cluster, NodeId};
    use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
    use goodput_env::scenario::{Scenario, SimOptions};
    use goodput_env::sim::{Simulator, Status};
    use goodput_env::time::SimTime;

    use super::*;

    fn job(name: &str, gpus: u32, secs: i64) -> JobSpec {
        let request = JobRequest { name: name.into(), gpus, ..JobRequest::default() };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(secs) } }
    }

    #[test]
    fn a_decision_is_ranked_beside_others_told_what_they_need() {
        let jobs = vec![job("long", 4, 900), job("short", 4, 100), job("middle", 2, 300), job("wide", 8, 50)];
        let workload = Arc::new(Workload::new(Vec::new(), jobs));
        let options = SimOptions { information: Information::Profiled, ..SimOptions::standard() };
        let scenario = Scenario::new(Arc::new(Cluster::homogeneous(1, 4)), workload, options, 1);
        let mut simulator = Simulator::new(Arc::new(scenario));
        assert!(matches!(simulator.run_until_decision(), Ok(Status::Decision)));
        let view = simulator.view();
        // Everything for the first job; the last one is not scored.
        let mut plan = Plan::keep();
        plan.set(JobId(0), goodput_env::placement::Placement::on(NodeId(0), 4));
        let compared = compare_decision(&view, &plan, &[Some(3.0), Some(1.0), Some(2.0), None]);
        let order: Vec<(&str, Option<usize>, u32)> =
            compared.queue.iter().map(|row| (row.job.as_str(), row.own.rank, row.own.gpus)).collect();
        let expected = [("long", Some(1), 4), ("middle", Some(2), 0), ("short", Some(3), 0), ("wide", None, 0)];
        assert_eq!(order, expected);
        let [tiresias, srtf, pollux] = &compared.beside[..] else { panic!("three policies") };
        assert_eq!((tiresias.information.as_str(), srtf.information.as_str()), ("profiled", "oracle"));
        let ranks: Vec<Option<usize>> = srtf.standings.iter().map(|standing| standing.rank).collect();
        assert_eq!(ranks, [Some(4), Some(2), Some(3), Some(1)], "by id");
        assert_eq!(srtf.standings[1].gpus, 4, "the shortest that fits");
        // Of the three jobs that both rank, all pairs are the other way round.
        assert_eq!(srtf.tau_order, Some(-1.0));
        assert_eq!(tiresias.tau_order, None, "nobody has had anything yet");
        assert!(pollux.standings.iter().all(|standing| standing.rank.is_none()));
        assert!(compared.beside.iter().all(|other| other.standings.iter().map(|s| s.gpus).sum::<u32>() <= 4));
    }
}
