//! Every policy on the trace and on traces that are drawn from it, and the changes that are worth a look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput_agents::compose::loaning::Sharing;
use goodput_agents::compose::{NamedPolicy, PolicyNameError};
use goodput_datasets::resample::resample;
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::scenario::{Information, Rounds, Scenario, SimOptions};
use goodput_env::sim::{SimError, Simulator};
use goodput_env::time::SimTime;
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use super::change::ClusterChange;
use super::figures::{FIGURES, GroupFigures, JobGroup, figures};
use crate::stats::{Estimate, Interval, quantile};

/// Policy of the change [`ClusterChange::ElasticJobs`].
const ELASTIC: &str = "afs-l";

/// Policy of the change [`ClusterChange::DoubleWeight`].
const WEIGHTED: &str = "kueue";

/// Quantiles of the traces drawn that bound a spread.
const BOUNDS: [f64; 2] = [0.05, 0.95];

/// A question: what would these policies have done with these jobs on this cluster?
#[derive(Clone, Debug)]
pub struct AdviceQuestion {
    /// Machines that the jobs run on.
    pub cluster: Arc<Cluster>,
    /// Jobs of the trace, with their tenants where there are several.
    pub workload: Arc<Workload>,
    /// Policies; the first is what the others are compared with.
    pub policies: Vec<NamedPolicy>,
    /// Number of traces drawn.
    pub resamples: u64,
    /// Length of a block of arrivals.
    pub block: SimTime,
    /// Standard deviation of the logarithm of the run times that policies are told, where they have to know run times
    /// and a job has no time limit.
    pub sigma: f64,
}

/// Reason for which there is no advice.
#[derive(Debug, Error)]
pub enum AdviceError {
    /// A policy of a change is not listed.
    #[error(transparent)]
    Policy(#[from] PolicyNameError),
    /// A policy has to know more than an estimate.
    #[error("policy {policy} has to know run times exactly, which no user does before a job has run")]
    Information {
        /// Name of the policy.
        policy: String,
    },
    /// A run failed.
    #[error("policy {policy}, {change}: {source}")]
    Run {
        /// Name of the policy.
        policy: String,
        /// The change, in words.
        change: String,
        /// Error of the simulator.
        source: Box<SimError>,
    },
}

/// Figures of one policy for one group of jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdviceRow {
    /// Name of the policy.
    pub policy: String,
    /// Change under which the policy ran.
    pub change: ClusterChange,
    /// Jobs that the figures are about.
    pub group: JobGroup,
    /// Number of jobs on the trace.
    pub jobs: usize,
    /// Figures by name, each with the range of nine of ten traces drawn; no range where none was drawn.
    pub figures: BTreeMap<&'static str, Estimate>,
    /// Figures less those of the first policy, or of this policy without the change, trace by trace. Absent for the
    /// first policy.
    pub difference: Option<BTreeMap<&'static str, Estimate>>,
}

/// Answer to an [`AdviceQuestion`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Number of jobs of the trace.
    pub jobs: usize,
    /// From the first submission to the last one, hours.
    pub span_hours: f64,
    /// Accelerators of the cluster.
    pub gpus: u32,
    /// Number of traces drawn.
    pub resamples: u64,
    /// Length of a block of arrivals, hours.
    pub block_hours: f64,
    /// Names of the tenants, by index; empty where there is one.
    pub tenants: Vec<String>,
    /// Policies that were asked about, in their order.
    pub policies: Vec<String>,
    /// Policy with the shortest mean wait on the trace.
    pub best: String,
    /// Policy with the shortest mean wait of those that never stop a running job; absent where every policy does.
    pub best_without_stops: Option<String>,
    /// Figures of policies with nothing changed, and then of changes.
    pub rows: Vec<AdviceRow>,
}

impl Advice {
    /// Figures of a policy for a group of jobs, with nothing changed.
    pub fn plain(&self, policy: &str, group: &JobGroup) -> Option<&AdviceRow> {
        self.rows.iter().find(|row| row.policy == policy && row.group == *group && row.change == ClusterChange::Nothing)
    }

    /// Figures of the first policy, with nothing changed.
    pub fn rows_of_first(&self) -> impl Iterator<Item = &AdviceRow> {
        self.rows.iter().filter(|row| row.change == ClusterChange::Nothing && row.policy == self.policies[0])
    }
}

/// Figures of a run by group.
type RunFigures = BTreeMap<JobGroup, GroupFigures>;

/// A policy under a change, with the row that it is compared with.
struct AdviceCase {
    policy: NamedPolicy,
    change: ClusterChange,
    against: Option<usize>,
}

impl AdviceQuestion {
    /// Runs all policies. `progress` is told how many traces are done, and how many there are.
    ///
    /// # Errors
    /// [`AdviceError`] where a policy cannot be told enough, or a run fails.
    pub fn answer(&self, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Advice, AdviceError> {
        let plain: Vec<AdviceCase> = self.policies.iter().map(|policy| self.plain(policy.clone())).collect();
        let on_trace: Vec<RunFigures> =
            plain.par_iter().map(|case| self.run(case, &self.workload, 0)).collect::<Result<_, _>>()?;
        let wait = |figures: &RunFigures| figures[&JobGroup::All].values[0].unwrap_or(f64::INFINITY);
        let shortest = |a: &usize, b: &usize| wait(&on_trace[*a]).total_cmp(&wait(&on_trace[*b]));
        let best = (0..plain.len()).min_by(shortest).unwrap_or(0);
        let stops = |policy: &usize| self.policies[*policy].traits().preemptive;
        let best_without_stops = (0..plain.len()).filter(|policy| !stops(policy)).min_by(shortest);
        let cases = self.cases(plain, best, &on_trace[0])?;
        let (done, total) = (AtomicUsize::new(0), self.resamples + 1);
        let of_trace = |index: u64| {
            let workload = match index {
                0 => self.workload.clone(),
                seed => Arc::new(resample(&self.workload, self.block, seed)),
            };
            // The policies as they are have run on the trace itself.
            let mut found = if index == 0 { on_trace.clone() } else { Vec::new() };
            for case in &cases[found.len()..] {
                found.push(self.run(case, &workload, index)?);
            }
            progress(done.fetch_add(1, Ordering::Relaxed) as u64 + 1, total);
            Ok(found)
        };
        let all: Vec<Result<Vec<RunFigures>, AdviceError>> = (0..total).into_par_iter().map(of_trace).collect();
        let runs: Vec<Vec<RunFigures>> = all.into_iter().collect::<Result<_, _>>()?;
        let rows = (0..cases.len()).flat_map(|case| rows(&cases, case, &runs)).collect();
        let submits = || self.workload.jobs.iter().map(|job| job.request.submit.as_secs_f64());
        Ok(Advice {
            jobs: self.workload.jobs.len(),
            span_hours: (submits().fold(0.0, f64::max) - submits().fold(f64::INFINITY, f64::min)) / 3600.0,
            gpus: self.cluster.total_gpus(),
            resamples: self.resamples,
            block_hours: self.block.as_secs_f64() / 3600.0,
            tenants: self.workload.tenants.iter().map(|tenant| tenant.name.clone()).collect(),
            policies: self.policies.iter().map(ToString::to_string).collect(),
            best: self.policies[best].to_string(),
            best_without_stops: best_without_stops.map(|policy| self.policies[policy].to_string()),
            rows,
        })
    }

    fn plain(&self, policy: NamedPolicy) -> AdviceCase {
        AdviceCase { policy, change: ClusterChange::Nothing, against: None }
    }

    /// Policies as they are, and the changes: one more node under the first policy and the best one, elastic jobs, and
    /// twice the weight for the tenant with the longest mean wait under the first policy.
    fn cases(&self, plain: Vec<AdviceCase>, best: usize, first: &RunFigures) -> Result<Vec<AdviceCase>, AdviceError> {
        let mut cases = plain;
        cases.iter_mut().skip(1).for_each(|case| case.against = Some(0));
        let shown = if best == 0 { vec![0] } else { vec![0, best] };
        for kind in &self.cluster.types {
            for &policy in &shown {
                let change = ClusterChange::OneMoreNode { accelerator: kind.name.clone() };
                cases.push(AdviceCase { policy: cases[policy].policy.clone(), change, against: Some(policy) });
            }
        }
        let mut under = |name: &str, change: ClusterChange| {
            let policy: NamedPolicy = name.parse()?;
            let same =
                cases.iter().position(|case| case.change == ClusterChange::Nothing && case.policy.to_string() == name);
            let against = same.unwrap_or_else(|| {
                cases.push(AdviceCase { policy: policy.clone(), change: ClusterChange::Nothing, against: Some(0) });
                cases.len() - 1
            });
            cases.push(AdviceCase { policy, change, against: Some(against) });
            Ok::<(), AdviceError>(())
        };
        under(ELASTIC, ClusterChange::ElasticJobs)?;
        let waits = first.iter().filter_map(|(group, figures)| match group {
            JobGroup::Tenant(tenant) => Some((*tenant, figures.values[0]?)),
            _ => None,
        });
        let longest = waits.max_by(|(_, a), (_, b)| a.total_cmp(b));
        if let Some(tenant) = longest.and_then(|(tenant, _)| self.workload.tenants.get(tenant)) {
            under(WEIGHTED, ClusterChange::DoubleWeight { tenant: tenant.name.clone() })?;
        }
        Ok(cases)
    }

    fn run(&self, case: &AdviceCase, workload: &Arc<Workload>, seed: u64) -> Result<RunFigures, AdviceError> {
        let mut policy = case.policy.build(seed, &Sharing::default());
        let information = match policy.information() {
            Information::Profiled => Information::Profiled,
            Information::Estimate { .. } | Information::Oracle => Information::Estimate { sigma: self.sigma },
        };
        if !information.allows(policy.needs()) {
            return Err(AdviceError::Information { policy: case.policy.to_string() });
        }
        let options = SimOptions {
            rounds: Rounds { period: policy.round(), on_churn: true },
            batching: policy.batching(),
            information,
            ..SimOptions::standard()
        };
        let workload = case.change.workload(workload.clone());
        let scenario = Arc::new(Scenario::new(case.change.cluster(&self.cluster), workload, options, seed));
        let outcome = Simulator::new(scenario.clone()).run(&mut *policy).map_err(|source| AdviceError::Run {
            policy: case.policy.to_string(),
            change: case.change.words(),
            source: Box::new(source),
        })?;
        Ok(figures(&scenario, &outcome))
    }
}

/// Rows of a case, one for each group of jobs. `runs` has the figures by trace and case; the first trace is the real
/// one.
fn rows(cases: &[AdviceCase], case: usize, runs: &[Vec<RunFigures>]) -> Vec<AdviceRow> {
    let AdviceCase { policy, change, against } = &cases[case];
    let groups = runs[0][case].iter();
    let row = |(group, own): (&JobGroup, &GroupFigures)| {
        let value = |trace: &Vec<RunFigures>, case: usize, figure: usize| trace[case].get(group)?.values[figure];
        let of_figure = |of: &dyn Fn(&Vec<RunFigures>, usize) -> Option<f64>| {
            let named = FIGURES.iter().enumerate();
            named.filter_map(|(at, figure)| Some((*figure, spread(runs, &|trace| of(trace, at))?))).collect()
        };
        let difference = against
            .map(|other| of_figure(&|trace, figure| Some(value(trace, case, figure)? - value(trace, other, figure)?)));
        AdviceRow {
            policy: policy.to_string(),
            change: change.clone(),
            group: group.clone(),
            jobs: own.jobs,
            figures: of_figure(&|trace, figure| value(trace, case, figure)),
            difference,
        }
    };
    groups.map(row).collect()
}

/// A value and its range over the traces, of which the first is the real one.
fn spread(runs: &[Vec<RunFigures>], of: &dyn Fn(&Vec<RunFigures>) -> Option<f64>) -> Option<Estimate> {
    let (real, drawn) = runs.split_first()?;
    let mut values: Vec<f64> = drawn.iter().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    let [low, high] = BOUNDS.map(|bound| quantile(&values, bound));
    let ci = low.zip(high).map(|(low, high)| Interval { low, high });
    Some(Estimate { value: of(real)?, ci })
}
