//! The simulator behind the seam of real machines: what drives a live cluster is rehearsed here, in
//! simulated time.

use std::collections::BTreeSet;
use std::sync::Arc;

use goodput_env::cluster::{NodeId, Pool};
use goodput_env::job::{JobId, Work};
use goodput_env::placement::{CardShare, Placement};
use goodput_env::plan::Plan;
use goodput_env::scenario::Scenario;
use goodput_env::service::ServiceId;
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::state::{Loan, Observed, ObservedJob, ObservedService, Phase, Replica, ReplicaPhase};
use goodput_env::time::SimTime;

use super::{
    Attempt, Capabilities, ClusterSnapshot, Engine, EngineAction, EngineError, JobPhase, JobSeen, LoanSeen, NodeHealth,
    NodeSeen, OnNode, Order, OrderProgress, RecallSeen, Receipt, ReplicaSeen, ReplicaStage, ServiceSeen, ServiceSpec,
    StepOutcome, Submission,
};

/// A simulated cluster. Time stands still until [`SimEngine::advance`].
#[derive(Clone, Debug)]
pub struct SimEngine {
    simulator: Simulator,
    version: u64,
    starts: Vec<u32>,
    ended: Vec<JobId>,
    complete: bool,
    /// Nodes on which nothing starts; what runs there stays.
    drained: BTreeSet<NodeId>,
}

impl SimEngine {
    /// The scenario's cluster at time zero, its jobs arriving by themselves. Decisions fall on
    /// churn and whenever time is to stop.
    pub fn new(scenario: Scenario) -> Self {
        let mut scenario = scenario;
        scenario.options.rounds.on_churn = true;
        Self::of(Simulator::new(Arc::new(scenario)))
    }

    /// A simulation as it stands.
    pub fn of(simulator: Simulator) -> Self {
        let starts = vec![0; simulator.scenario().workload.jobs.len()];
        Self { simulator, version: 0, starts, ended: Vec::new(), complete: false, drained: BTreeSet::new() }
    }

    /// Lets time pass up to `at`, or to the next moment at which something happened that a policy
    /// is asked about. Returns the time it is.
    ///
    /// # Errors
    /// [`EngineError::Refused`] where the simulation cannot go on.
    pub fn advance(&mut self, at: SimTime) -> Result<SimTime, EngineError> {
        if self.complete || at <= self.simulator.now() {
            return Ok(self.simulator.now());
        }
        let before: Vec<JobId> = self.simulator.view().jobs().map(|job| job.id()).collect();
        self.simulator.wake_at(Some(at));
        match self.simulator.run_until_decision() {
            Ok(Status::Decision) => {}
            Ok(Status::Complete | Status::Truncated) => self.complete = true,
            Err(error) => return Err(EngineError::Refused { engine: "sim", problem: error.to_string() }),
        }
        let view = self.simulator.view();
        // The simulator does not say which jobs ended, so those that are gone are found by
        // comparison.
        self.ended.extend(before.into_iter().filter(|&job| view.job(job).is_none()));
        Ok(self.simulator.now())
    }

    /// Whether every job is complete.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// StepOutcome of the jobs.
    pub fn outcome(&self) -> Outcome {
        self.simulator.clone().outcome()
    }

    /// Simulator behind the engine.
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// The key of a job: its number first, so that keys sort as ids do.
    pub fn key(&self, job: JobId) -> String {
        format!("{:06}-{}", job.0, self.simulator.scenario().workload.jobs[job.index()].request.name)
    }

    fn job_of(&self, key: &str) -> Option<JobId> {
        let id = key.split('-').next()?.parse().ok().map(JobId)?;
        (id.index() < self.starts.len()).then_some(id)
    }

    fn node_of(name: &str) -> Option<NodeId> {
        name.strip_prefix('n')?.parse().ok().map(NodeId)
    }

    fn node_seen(&self, seen: &Observed, node: usize) -> NodeSeen {
        let machine = seen.cluster.nodes[node];
        let down = seen.down.get(node).is_some_and(|&down| down > 0);
        let drained = self.drained.contains(&NodeId(node as u32));
        let lent = matches!(seen.loans.get(node), Some(Loan::Lent { .. } | Loan::Returning { .. }));
        NodeSeen {
            name: format!("n{node}"),
            accelerator: seen.cluster.types[machine.accelerator.index()].name.clone(),
            gpus: machine.gpus,
            free: seen.idle[node],
            pool: machine.pool,
            lent: lent && machine.pool == Pool::Inference,
            loan: seen.loans.get(node).and_then(loan_seen),
            memory_mib: seen.cluster.types[machine.accelerator.index()].memory_mib,
            health: match (down, drained) {
                (true, _) => NodeHealth::Down,
                (false, true) => NodeHealth::Drained,
                (false, false) => NodeHealth::Up,
            },
            note: String::new(),
        }
    }

    fn service_seen(&self, seen: &ObservedService, now: SimTime) -> ServiceSeen {
        let service = &self.simulator.scenario().workload.services[seen.id.index()];
        let replica = |replica: &Replica| ReplicaSeen {
            node: format!("n{}", replica.node),
            phase: match replica.phase {
                ReplicaPhase::Starting { until } => ReplicaStage::Starting { ready_ms: Some(until.as_millis()) },
                ReplicaPhase::Ready => ReplicaStage::Ready,
                ReplicaPhase::Draining { until } => ReplicaStage::Draining { free_ms: Some(until.as_millis()) },
            },
        };
        ServiceSeen {
            name: service.name.clone(),
            spec: ServiceSpec::of(service, ""),
            rate: Some(f64::from(seen.rate_milli) / 1e3),
            backlog: Some(seen.backlog as f64 / 1e6),
            retired: now >= service.rates.end(),
            replicas: seen.replicas.iter().map(replica).collect(),
        }
    }

    fn job_seen(&self, job: ObservedJob) -> JobSeen {
        let workload = &self.simulator.scenario().workload;
        let starts = self.starts[job.id.index()];
        let on = job.placement.slices().iter();
        let placement: Vec<OnNode> = on
            .map(|slice| OnNode { node: format!("n{}", slice.node), gpus: slice.gpus, ..OnNode::default() })
            .collect();
        let cards = job.placement.share().map_or(Vec::new(), |(_, share)| share.cards.to_vec());
        let holds = job.phase != Phase::Pending;
        let since_ms = job.changed.as_millis();
        let spec = workload.jobs[job.id.index()].clone();
        let named = matches!(spec.work, Work::Application { .. });
        JobSeen {
            key: self.key(job.id),
            application: named.then(|| workload.application_name(job.id).to_string()),
            tenant: String::new(),
            owner: String::new(),
            phase: if holds { JobPhase::Running } else { JobPhase::Held },
            starts,
            attempt: holds.then(|| Attempt { number: starts.saturating_sub(1), placement, cards, since_ms }),
            failures: job.failures,
            hands_off: false,
            ended_itself: !holds && starts > 0,
            members: None,
            done: Some(job.done),
            epoch: job.epoch,
            batch: None,
            history: Some(Box::new(job)),
            note: String::new(),
            spec,
        }
    }

    /// Carries out an order on a node: a drained node takes no job until the drain ends. `false`: the order is
    /// about something else.
    fn drain(&mut self, action: &EngineAction) -> Result<bool, StepOutcome> {
        let (node, drained) = match action {
            EngineAction::Drain { node, .. } => (node, true),
            EngineAction::Undrain { node } => (node, false),
            _ => return Ok(false),
        };
        let nodes = self.simulator.scenario().cluster.nodes.len();
        let known = Self::node_of(node).filter(|node| node.index() < nodes);
        let node = known.ok_or_else(|| StepOutcome::Refused { reason: "there is no such node".into() })?;
        if drained {
            self.drained.insert(node)
        } else {
            self.drained.remove(&node)
        };
        Ok(true)
    }

    /// Whether `placement` takes more of a drained node than the job has there.
    fn starts_on_drained(&self, job: JobId, placement: &[OnNode]) -> bool {
        let drained = |on: &&OnNode| Self::node_of(&on.node).is_some_and(|node| self.drained.contains(&node));
        let mut there = placement.iter().filter(drained).peekable();
        if there.peek().is_none() {
            return false;
        }
        let seen = self.simulator.observed().jobs.into_iter().find(|seen| seen.id == job);
        let held = seen.map_or_else(Placement::none, |seen| seen.placement);
        there.any(|on| {
            let on_node = held.slices().iter().filter(|slice| Self::node_of(&on.node) == Some(slice.node));
            on.gpus > on_node.map(|slice| slice.gpus).sum()
        })
    }

    /// Adds what `order` wants to `plan`; why not where it cannot be wanted now.
    fn plan(&self, order: &Order, plan: &mut Plan) -> Result<(), StepOutcome> {
        let refused = |reason: &str| StepOutcome::Refused { reason: reason.into() };
        let node = |name: &str| Self::node_of(name).ok_or_else(|| refused("there is no such node"));
        match &order.action {
            EngineAction::Lend { node: name } => plan.lend(node(name)?),
            EngineAction::Return { node: name, deadline_ms } => {
                plan.reclaim(node(name)?, SimTime::from_millis(*deadline_ms));
            }
            EngineAction::Scale { service, node: name, replicas } => {
                let services = &self.simulator.scenario().workload.services;
                let at = services.iter().position(|known| known.name == *service);
                let at = at.ok_or_else(|| refused("there is no such service"))?;
                plan.scale(ServiceId(at as u32), node(name)?, *replicas);
            }
            action => {
                let id = self.job_of(&order.job).ok_or_else(|| refused("there is no such job"))?;
                let view = self.simulator.view();
                let job = view.job(id).ok_or_else(|| refused("the job is over, or has not come yet"))?;
                let running = job.gpus() > 0;
                if self.starts[id.index()] != order.starts {
                    return Err(refused("the order is for another attempt"));
                }
                if self.starts_on_drained(id, action.placement().unwrap_or_default()) {
                    return Err(refused("the node is drained"));
                }
                match (action, running) {
                    (EngineAction::Place { placement, share: Some(_) }, false) => {
                        let asked =
                            job.request().share.ok_or_else(|| refused("the job asks for whole accelerators"))?;
                        let on = placement.first().ok_or_else(|| refused("the placement is empty"))?;
                        let cards = on.accelerators.iter().map(|number| number.parse());
                        let cards = cards.collect::<Result<_, _>>().map_err(|_| refused("a card has no number"))?;
                        plan.set(id, Placement::shared(node(&on.node)?, CardShare { cards, amount: asked }));
                    }
                    (EngineAction::Place { .. }, false)
                    | (EngineAction::Resize { .. } | EngineAction::Migrate { .. }, true) => {
                        let slices = action.placement().unwrap_or_default().iter();
                        let slices = slices.map(|on| Ok((node(&on.node)?, on.gpus)));
                        plan.set(id, slices.collect::<Result<_, StepOutcome>>()?);
                    }
                    (EngineAction::Stop { .. }, true) => plan.set(id, Placement::none()),
                    (EngineAction::Stop { .. }, false) => return Err(StepOutcome::Accepted),
                    _ => return Err(refused("the simulator cannot do that to this job now")),
                }
            }
        }
        Ok(())
    }
}

impl Engine for SimEngine {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { fractional: true, hold: true, lend: true, scale: true, ..Capabilities::default() }
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        self.version += 1;
        let seen = self.simulator.observed();
        let nodes = (0..seen.cluster.nodes.len()).map(|node| self.node_seen(&seen, node)).collect();
        let services = seen.services.iter().map(|service| self.service_seen(service, seen.now)).collect();
        let mut jobs: Vec<JobSeen> = seen.jobs.into_iter().map(|job| self.job_seen(job)).collect();
        let workload = &self.simulator.scenario().workload;
        // The bound keeps the snapshots of long runs small.
        jobs.extend(self.ended.iter().rev().take(256).map(|&id| JobSeen {
            phase: JobPhase::Done,
            starts: self.starts[id.index()],
            ended_itself: true,
            ..JobSeen::held(self.key(id), workload.jobs[id.index()].clone())
        }));
        Ok(ClusterSnapshot {
            version: self.version,
            at_ms: seen.now.as_millis(),
            nodes,
            jobs,
            services,
            said: Vec::new(),
        })
    }

    async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        let mut plan = Plan::keep();
        let mut receipts = Vec::with_capacity(orders.len());
        let mut started = Vec::new();
        for order in orders {
            let outcome = match self.drain(&order.action) {
                Ok(true) => Ok(()),
                Ok(false) => self.plan(order, &mut plan),
                Err(outcome) => Err(outcome),
            };
            let outcome = outcome.err().unwrap_or(StepOutcome::Accepted);
            if outcome == StepOutcome::Accepted && order.action.placement().is_some() {
                started.extend(self.job_of(&order.job));
            }
            receipts.push(Receipt { id: order.id.clone(), outcome });
        }
        match self.simulator.apply(&plan) {
            // A start counts only where the plan was carried out.
            Ok(()) => started.into_iter().for_each(|job| self.starts[job.index()] += 1),
            Err(error) => {
                let reason = error.to_string();
                let accepted = receipts.iter_mut().filter(|receipt| receipt.outcome == StepOutcome::Accepted);
                // One plan carries all orders, so all of them have to wait.
                accepted.for_each(|receipt| receipt.outcome = StepOutcome::Later { reason: reason.clone() });
            }
        }
        Ok(receipts)
    }

    fn verify(&self, order: &Order, snapshot: &ClusterSnapshot) -> OrderProgress {
        super::verify(order, snapshot)
    }

    async fn submit(&mut self, _job: &Submission) -> Result<String, EngineError> {
        let problem = "the jobs of a simulated cluster come from its workload".into();
        Err(EngineError::Refused { engine: "sim", problem })
    }
}

/// Times of a loan, on the clock of the simulation.
fn loan_seen(loan: &Loan) -> Option<LoanSeen> {
    match *loan {
        Loan::Lent { since } => Some(LoanSeen { since_ms: since.as_millis(), ..LoanSeen::default() }),
        Loan::Returning { since, called, deadline } => {
            let recall = RecallSeen { called_ms: called.as_millis(), deadline_ms: deadline.as_millis() };
            Some(LoanSeen { since_ms: since.as_millis(), recall: Some(recall), ..LoanSeen::default() })
        }
        Loan::Home | Loan::Elsewhere => None,
    }
}
