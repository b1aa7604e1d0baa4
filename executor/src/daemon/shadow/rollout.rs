//! One observation, played to the end by two policies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use goodput_configs::live::policy::ShadowConfig;
use goodput_env::cluster::NodeId;
use goodput_env::job::{JobId, WHOLE, Work};
use goodput_env::model::SwitchCost;
use goodput_env::plan::Plan;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::sim::{Simulator, Status};
use goodput_env::state::Observed;
use goodput_env::time::SimTime;
use serde::{Deserialize, Serialize};

use super::{JobDifference, JobDifferences, Maker, RolloutPolicy, ShadowComparison};
use crate::engine::OnNode;

/// State of the cluster now, with the names of nodes and jobs.
#[derive(Debug)]
pub struct RolloutStart {
    scenario: Arc<Scenario>,
    seen: Observed,
    assumed: Assumed,
    nodes: Vec<String>,
    keys: BTreeMap<JobId, String>,
    horizon: SimTime,
}

/// Number of jobs for which something had to be assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumed {
    /// All jobs at hand.
    pub jobs: usize,
    /// Jobs without a duration stated by their users: an hour on the accelerators they asked for.
    pub unknown: usize,
    /// Jobs that have run for longer than their users stated: taken to be half way.
    pub overdue: usize,
    /// Jobs with a speed that was fitted to their reports. The speed of the others is linear, or
    /// the catalog's.
    pub fitted: usize,
}

impl Assumed {
    /// Assumptions as a sentence.
    pub fn words(&self) -> String {
        let Self { jobs, unknown, overdue, fitted } = *self;
        format!(
            "speed of {fitted} jobs as measured; remaining work as users stated for {}, an hour assumed for {unknown}, half way for {overdue} over their time; no arrivals, no failures",
            jobs.saturating_sub(unknown + overdue)
        )
    }
}

/// Outcome of one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolloutOutcome {
    /// Name of the policy.
    pub policy: String,
    /// Mean time from submission to completion, seconds of the policy's clock; of jobs that are not
    /// complete, to the end of what was looked ahead.
    pub mean_jct_secs: f64,
    /// Jobs that are not complete then.
    pub unfinished: usize,
    /// Changes of accelerators after now.
    pub restarts: u32,
}

/// Simulation to the end under one policy.
struct PlayedOut {
    rolled: RolloutOutcome,
    /// Plan of the first decision.
    first: Plan,
    /// Completion of each job that is seen; `None` where the simulation ended before.
    finishes: Vec<Option<SimTime>>,
}

impl RolloutStart {
    /// Scene of the cluster now. `unknown`: jobs without a stated duration.
    pub fn new(
        scenario: &Scenario,
        seen: Observed,
        unknown: &[JobId],
        names: (Vec<String>, BTreeMap<JobId, String>),
        settings: &ShadowConfig,
        round: SimTime,
    ) -> Self {
        let mut workload = (*scenario.workload).clone();
        // A simulation does not go on from services: both policies are compared on training alone.
        workload.services = Vec::new();
        let seen = Observed { services: Vec::new(), ..seen };
        let mut assumed = Assumed { jobs: seen.jobs.len(), unknown: unknown.len(), ..Assumed::default() };
        for job in &seen.jobs {
            assumed.fitted += usize::from(!job.profile.types().is_empty());
            let work = &mut workload.jobs[job.id.index()].work;
            let total = match *work {
                Work::Fixed { duration } => duration.as_secs_f64(),
                Work::Application { index, work_milli } => {
                    workload.applications[usize::from(index)].total_work() * f64::from(work_milli) / f64::from(WHOLE)
                }
                Work::Steps { steps, .. } => steps,
            };
            if job.done < total {
                continue;
            }
            assumed.overdue += 1;
            // A job counts as overdue or as unknown, not as both.
            assumed.unknown -= usize::from(unknown.contains(&job.id));
            let times = 2.0 * job.done / total.max(f64::MIN_POSITIVE);
            match work {
                Work::Fixed { duration } => *duration = SimTime::from_secs_f64(2.0 * job.done),
                Work::Application { work_milli, .. } => *work_milli = (f64::from(*work_milli) * times).ceil() as u32,
                Work::Steps { steps, .. } => *steps = 2.0 * job.done,
            }
        }
        let horizon = seen.now + SimTime::from_secs_f64(settings.horizon_secs);
        let options = SimOptions {
            rounds: Rounds { period: Some(round), on_churn: true },
            switch_cost: SwitchCost::Constant { millis: (1e3 * settings.restart_secs) as i64 },
            horizon: Some(horizon),
            faults: None,
            ..scenario.options.clone()
        };
        let cluster = Arc::new(seen.cluster.clone());
        let scenario = Arc::new(Scenario::new(cluster, Arc::new(workload), options, scenario.seed));
        let (nodes, keys) = names;
        Self { scenario, seen, assumed, nodes, keys, horizon }
    }

    /// Plays the rollout to its end under one policy.
    fn play(&self, (name, maker): &(String, Maker)) -> Result<PlayedOut, String> {
        let made = maker(&self.seen.cluster).map_err(|why| format!("policy {name}: {why}"))?;
        let RolloutPolicy { mut policy, information, program } = made;
        let fault = |error: goodput_env::sim::SimError| format!("{name}: {error}");
        let mut scenario = (*self.scenario).clone();
        scenario.options.information = information;
        let mut run = Simulator::resume(Arc::new(scenario), &self.seen).map_err(fault)?;
        let mut first = None;
        while run.run_until_decision().map_err(fault)? == Status::Decision {
            let plan = policy.decide(&run.view());
            // The plan of a lost turn is not that of the policy.
            if let Some(lost) = program.as_ref().and_then(|program| program.faults().last) {
                return Err(format!("policy {name} lost a turn: {lost}"));
            }
            run.apply(&plan).map_err(fault)?;
            run.wake_at(policy.wake_at());
            first.get_or_insert(plan);
        }
        let records = run.outcome().jobs;
        let mut finishes = Vec::with_capacity(self.seen.jobs.len());
        let mut rolled = RolloutOutcome { policy: name.clone(), ..RolloutOutcome::default() };
        for job in &self.seen.jobs {
            let record = &records[job.id.index()];
            rolled.unfinished += usize::from(record.finish.is_none());
            rolled.restarts += record.restarts.saturating_sub(job.restarts);
            finishes.push(record.finish);
            rolled.mean_jct_secs += (record.finish.unwrap_or(self.horizon) - record.submit).as_secs_f64();
        }
        rolled.mean_jct_secs /= self.seen.jobs.len().max(1) as f64;
        Ok(PlayedOut { rolled, first: first.unwrap_or_default(), finishes })
    }

    /// Difference of the completion of each job, `one` minus `other`.
    fn differences(&self, one: &PlayedOut, other: &PlayedOut) -> JobDifferences {
        let finishes = one.finishes.iter().zip(&other.finishes);
        JobDifferences::of(self.seen.jobs.iter().zip(finishes).map(|(job, (&one, &other))| {
            let secs = one.unwrap_or(self.horizon).as_secs_f64() - other.unwrap_or(self.horizon).as_secs_f64();
            let job = self.keys.get(&job.id).cloned().unwrap_or_default();
            JobDifference { job, secs, open: one.is_none() || other.is_none() }
        }))
    }

    /// Placement of a job after a plan.
    fn after(&self, plan: &Plan, job: JobId) -> Vec<OnNode> {
        let held = self.seen.jobs.iter().find(|seen| seen.id == job).map(|seen| &seen.placement);
        let change = plan.changes.iter().find(|change| change.job == job).map(|change| &change.placement);
        let slices = change.or(held).into_iter().flat_map(|placement| placement.slices());
        let named = |node: NodeId| self.nodes.get(node.index()).cloned().unwrap_or_default();
        slices.map(|slice| OnNode { node: named(slice.node), gpus: slice.gpus, ..OnNode::default() }).collect()
    }
}

/// Plays a scene with both.
pub(super) fn compare(
    scene: &RolloutStart,
    incumbent: &(String, Maker),
    candidate: &(String, Maker),
) -> Result<ShadowComparison, String> {
    let began = Instant::now();
    let one = scene.play(incumbent)?;
    let other = scene.play(candidate)?;
    let differs = scene.keys.iter().filter_map(|(&job, key)| {
        let there = scene.after(&other.first, job);
        (there != scene.after(&one.first, job)).then(|| (key.clone(), there))
    });
    Ok(ShadowComparison {
        at_secs: scene.seen.now.as_secs_f64(),
        horizon_secs: (scene.horizon - scene.seen.now).as_secs_f64(),
        assumed: scene.assumed,
        differs: differs.collect(),
        completions: scene.differences(&one, &other),
        incumbent: one.rolled,
        candidate: other.rolled,
        took_ms: began.elapsed().as_secs_f64() * 1e3,
    })
}
