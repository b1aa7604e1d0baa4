//! One policy of three schedulers: inference, orchestrator, training.
//!
//! They know each other only by messages, as in Aryl, so any training scheduler of the list can be
//! put in, and each goes on when another is gone: without an orchestrator services scale on the
//! servers they have, and training runs on those it was left with.

use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::plan::Plan;
use goodput_env::policy::{ExpectedLoad, Look, Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, TrainingViewBuffers};

use super::orchestrator::{LoanDecision, Orchestrator};
use super::{Body, Message, Party};
use crate::compose::serving::{Autoscaler, Claim, Replicas, allot};

/// Composite of three schedulers: replicas, loans, training jobs.
pub struct Composite {
    autoscaler: Autoscaler,
    orchestrator: Option<Orchestrator>,
    training: Box<dyn Policy>,
    replicas: Replicas,
    after: TrainingViewBuffers,
    log: Vec<Message>,
    wanted: Vec<Claim>,
    last_need: Option<u32>,
}

impl Composite {
    /// Puts the three together; without an orchestrator nothing is ever lent.
    pub fn new(autoscaler: Autoscaler, orchestrator: Option<Orchestrator>, training: Box<dyn Policy>) -> Self {
        Self {
            autoscaler,
            orchestrator,
            training,
            replicas: Replicas::default(),
            after: TrainingViewBuffers::default(),
            log: Vec::new(),
            wanted: Vec::new(),
            last_need: None,
        }
    }

    /// Messages of the three schedulers so far.
    pub fn messages(&self) -> &[Message] {
        &self.log
    }

    /// The orchestrator, while there is one.
    pub fn orchestrator(&mut self) -> Option<&mut Orchestrator> {
        self.orchestrator.as_mut()
    }

    /// Ends the orchestrator, as a crash would.
    pub fn kill_orchestrator(&mut self) {
        self.orchestrator = None;
    }

    /// Services and loans; what training loses by them.
    fn share(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        self.wanted = self.autoscaler.claims(view);
        let utilisation = self.autoscaler.utilisation();
        let loans = match &mut self.orchestrator {
            Some(orchestrator) => orchestrator.decide(view, &self.wanted, utilisation, &mut plan),
            None => LoanDecision::default(),
        };
        self.report(view.now, &loans, &plan);
        self.replicas.reset(view, &plan, &loans.home);
        let targets = self.targets(view);
        let mut services: Vec<_> = view.services().zip(self.wanted.iter().zip(targets)).collect();
        // Services of one type take its room before those that may use any.
        services.sort_by_key(|(_, (claim, _))| claim.kind.is_none());
        for (service, (claim, target)) in services {
            self.replicas.scale(view, &service, target, claim.kind, &mut plan);
        }
        plan
    }

    /// Replicas by service. Services of one type divide the room of it. Services that may use all types have what they
    /// would have if all services divided all room.
    fn targets(&self, view: &ClusterView<'_>) -> Vec<u32> {
        let mut kinds: Vec<TypeId> = self.wanted.iter().filter_map(|claim| claim.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut targets = self.divided(view, &self.wanted, None);
        for kind in kinds {
            let of_kind = self.wanted.iter().copied().enumerate().filter(|(_, claim)| claim.kind == Some(kind));
            let (at, claims): (Vec<usize>, Vec<Claim>) = of_kind.unzip();
            let divided = self.divided(view, &claims, Some(kind));
            at.into_iter().zip(divided).for_each(|(at, target)| targets[at] = target);
        }
        targets
    }

    /// Replicas for `claims` on accelerators of type `kind`; `None`: of every type.
    fn divided(&self, view: &ClusterView<'_>, claims: &[Claim], kind: Option<TypeId>) -> Vec<u32> {
        let on = |node: &NodeId| kind.is_none_or(|kind| view.cluster().type_of(*node) == kind);
        let nodes = || view.cluster().node_ids().filter(on);
        let free = nodes().map(|node| self.replicas.free_on(node)).sum();
        let served: u32 = nodes().map(|node| view.served_on(node)).sum();
        allot(claims, free + served, free)
    }

    fn report(&mut self, at: SimTime, loans: &LoanDecision, plan: &Plan) {
        use Party::{Inference, Orchestrator, Training};
        let mut say = |from, to, body| self.log.push(Message { at, from, to, body });
        if self.orchestrator.is_some() && self.last_need != Some(loans.need) {
            self.last_need = Some(loans.need);
            say(Inference, Orchestrator, Body::Need { gpus: loans.need, pool: loans.pool });
        }
        if !plan.lend.is_empty() {
            say(Orchestrator, Training, Body::Lent { servers: plan.lend.clone() });
        }
        if !plan.reclaim.is_empty() {
            let servers = plan.reclaim.iter().map(|reclaim| reclaim.node).collect();
            let (preempted, deadline) = (loans.preempted, loans.deadline);
            say(Orchestrator, Training, Body::CallBack { servers, preempted, deadline });
        }
        if !loans.home.is_empty() {
            say(Orchestrator, Inference, Body::Returned { servers: loans.home.clone() });
        }
    }

    /// Whether anything happened that training has to answer.
    fn concerns_training(&self, view: &ClusterView<'_>, plan: &Plan) -> bool {
        let trigger = view.trigger;
        // A wake-up may be meant for loans alone.
        let woken = trigger.wake && self.training.wake_at().is_some_and(|at| at <= view.now);
        let loans = !(plan.lend.is_empty() && plan.reclaim.is_empty() && plan.changes.is_empty());
        let jobs = trigger.arrival || trigger.completion || trigger.request || trigger.fault;
        jobs || trigger.round || woken || loans || !plan.scale.is_empty()
    }
}

impl Policy for Composite {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        if view.services().len() == 0 && !view.cluster().has_pools() {
            return self.training.decide(view);
        }
        // Nothing that services or loans go by changes when a job comes or goes.
        let trigger = view.trigger;
        let due = trigger.load || trigger.round || trigger.wake || trigger.fault || self.wanted.is_empty();
        let mut plan = if due { self.share(view) } else { Plan::keep() };
        if self.concerns_training(view, &plan) {
            let seen = view.for_training(&plan, &mut self.after);
            let mut answer = self.training.decide(&seen);
            // Where training answers for a job, its answer replaces what the loans took.
            plan.changes.retain(|lost| answer.changes.iter().all(|change| change.job != lost.job));
            plan.changes.append(&mut answer.changes);
            let Plan { changes, lend, reclaim, scale, .. } = plan;
            plan = Plan { changes, lend, reclaim, scale, ..answer };
        }
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        let loans = self.orchestrator.as_ref().map(Orchestrator::next);
        let soonest = [self.training.wake_at(), loans].into_iter().flatten().min();
        // Zero means at once, which is no time to wake up at.
        soonest.filter(|at| *at > SimTime::ZERO)
    }

    fn expected_loads(&self) -> &[ExpectedLoad] {
        self.autoscaler.expected_loads()
    }

    fn last_look(&self) -> Option<&Look> {
        self.training.last_look()
    }

    fn round(&self) -> Option<SimTime> {
        self.training.round()
    }

    fn batching(&self) -> Batching {
        self.training.batching()
    }

    fn scope(&self) -> Scope {
        Scope::Everything
    }

    fn information(&self) -> Information {
        self.at_least(self.training.information())
    }

    fn needs(&self) -> Information {
        self.at_least(self.training.needs())
    }
}

impl Composite {
    fn at_least(&self, training: Information) -> Information {
        let orchestrator = self.orchestrator.as_ref().map_or(Information::Profiled, Orchestrator::needs);
        let needs = [self.autoscaler.needs(), orchestrator];
        needs.into_iter().fold(training, |most, need| if most.allows(need) { most } else { need })
    }
}
