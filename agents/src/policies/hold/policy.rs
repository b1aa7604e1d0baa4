//! The policy: the plan of the teacher, without the changes that the net holds back.

use std::collections::BTreeMap;

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::{ExpectedLoad, Look, Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::LearnedHold;
use super::features::observe;
use super::plan::{hold, places};
use crate::compose::PolicyNameError;
use crate::nets::slots::SlotScorer;

/// Policy that holds back changes of its teacher.
pub struct HoldPolicy {
    teacher: Box<dyn Policy>,
    scorer: SlotScorer,
    threshold: f32,
    batching: Batching,
    information: Information,
    orders: HoldOrders,
    moment: ChangeMoment,
}

/// Orders of a counterfactual run about the changes of some jobs for a while, whatever the net says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HoldOrders {
    /// By job, whether its changes are held back.
    pub by_job: BTreeMap<JobId, bool>,
    /// Time at which the orders end.
    pub until: SimTime,
}

/// The changes of one decision that could be held back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeMoment {
    /// Jobs that the changes are about.
    pub jobs: Vec<JobId>,
    /// Features of the changes, change by change, and then those of the cluster.
    pub features: Vec<f32>,
}

impl std::fmt::Debug for HoldPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HoldPolicy").field("threshold", &self.threshold).finish_non_exhaustive()
    }
}

impl HoldPolicy {
    /// As trained under this batching and information level, for a run of this seed.
    ///
    /// # Errors
    /// [`PolicyNameError`] where there is no such teacher.
    pub fn new(
        learned: &LearnedHold,
        batching: Batching,
        information: Information,
        seed: u64,
    ) -> Result<Self, PolicyNameError> {
        Ok(Self {
            teacher: learned.teacher(seed)?,
            scorer: SlotScorer::new(&learned.weights),
            threshold: learned.threshold,
            batching,
            information,
            orders: HoldOrders::default(),
            moment: ChangeMoment::default(),
        })
    }

    /// The policy under orders.
    #[must_use]
    pub fn ordered(self, orders: HoldOrders) -> Self {
        Self { orders, ..self }
    }

    /// The changes of the last decision that could be held back.
    pub fn moment(&self) -> &ChangeMoment {
        &self.moment
    }
}

impl Policy for HoldPolicy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = self.teacher.decide(view);
        let Self { scorer, threshold, orders, moment, .. } = self;
        let places = places(view, &plan);
        moment.jobs.clear();
        moment.jobs.extend(places.iter().map(|&place| plan.changes[place].job));
        if places.is_empty() {
            return plan;
        }
        observe(view, &plan, &places, &mut moment.features);
        let scores = scorer.scores(&moment.features);
        let ordered = |job| orders.by_job.get(&job).copied().filter(|_| view.now < orders.until);
        let judged = moment.jobs.iter().zip(scores).filter_map(|(job, score)| match ordered(*job) {
            Some(held) => held.then_some((f32::INFINITY, *job)),
            None => (*score > *threshold).then_some((*score, *job)),
        });
        let mut held: Vec<(f32, JobId)> = judged.collect();
        held.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let held: Vec<JobId> = held.into_iter().map(|(_, job)| job).collect();
        hold(view, &mut plan, &held);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.teacher.wake_at()
    }

    fn expected_loads(&self) -> &[ExpectedLoad] {
        self.teacher.expected_loads()
    }

    fn last_look(&self) -> Option<&Look> {
        self.teacher.last_look()
    }

    fn round(&self) -> Option<SimTime> {
        self.teacher.round()
    }

    fn batching(&self) -> Batching {
        self.batching
    }

    fn scope(&self) -> Scope {
        self.teacher.scope()
    }

    fn keeps_allocation(&self) -> bool {
        self.teacher.keeps_allocation()
    }

    fn information(&self) -> Information {
        self.information
    }

    fn needs(&self) -> Information {
        self.teacher.needs()
    }
}
