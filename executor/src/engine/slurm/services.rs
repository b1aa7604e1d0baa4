//! Services under Slurm: the replicas of a service are the jobs of its name in the reservation of
//! the deployment, and the nodes of the reservation are the inference pool.
//!
//! A training job that runs in the reservation has borrowed its node. That is shown; Slurm has no
//! state for a node that is lent and empty, so the engine itself lends none.

use goodput_env::cluster::Pool;

use super::SlurmEngine;
use super::commands::Commands;
use super::id::SlurmJobId;
use super::read::{RawJob, RawState, hostlist};
use super::script::Seat;
use super::steps::plain;
use crate::engine::{
    DeclaredService, EngineError, JobSeen, Lender, LoanSeen, NodeSeen, ReplicaSeen, ReplicaStage, ServiceSeen,
    StepOutcome,
};
use crate::job::{ExitMeaning, Fence, RetryBudget, RetryDecision, RetryHistory};
use crate::machine::wall_ms;

/// Services of a deployment, and the reservation in which they run.
#[derive(Debug, Default)]
pub(super) struct SlurmServices {
    declared: Vec<DeclaredService>,
    reservation: String,
    /// Nodes of the reservation, as last seen.
    nodes: Vec<String>,
}

impl SlurmServices {
    pub fn new(declared: Vec<DeclaredService>, reservation: &str) -> Self {
        Self { declared, reservation: reservation.into(), nodes: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// Asks Slurm which nodes are reserved.
    pub async fn look(&mut self, commands: &Commands) -> Result<(), EngineError> {
        if !self.is_empty() {
            let answer = commands.run("scontrol", &["show", "reservation", "--oneliner"], "").await?;
            self.nodes = reserved(&answer, &self.reservation);
        }
        Ok(())
    }

    /// Service that a job is a replica of.
    pub fn of(&self, job: &RawJob) -> Option<&DeclaredService> {
        let declared = self.declared.iter().find(|declared| declared.name == job.name);
        declared.filter(|_| job.reservation == self.reservation && !job.foreign)
    }

    /// A training job in the terms of the seam. One that waits in the reservation can start nowhere
    /// else, and whether it borrows a node is the business of its user: it is left alone.
    pub fn training(&self, job: &RawJob) -> JobSeen {
        let seen = job.seen();
        let reserved = !self.is_empty() && job.reservation == self.reservation;
        JobSeen { hands_off: seen.hands_off || reserved && !seen.phase.holds(), ..seen }
    }

    /// Adds pools to nodes, and the loans of those on which training jobs run in the reservation.
    pub fn show_loans<'a>(&self, nodes: &mut [NodeSeen], training: impl Iterator<Item = &'a RawJob> + Clone) {
        for node in nodes.iter_mut().filter(|_| !self.is_empty()) {
            node.pool = if self.nodes.contains(&node.name) { Pool::Inference } else { Pool::Training };
            let there = training.clone().filter(|job| job.held.iter().any(|on| on.node == node.name));
            let since_ms = there.map(|job| job.start_ms).min().filter(|_| node.pool == Pool::Inference);
            node.loan = since_ms.map(|since_ms| LoanSeen { since_ms, by: Lender::Users, recall: None });
            node.lent = node.loan.is_some();
        }
    }
}

/// Nodes of an active reservation in the answer of `scontrol show reservation --oneliner`.
fn reserved(text: &str, name: &str) -> Vec<String> {
    let field = |line: &str, name: &str| {
        line.split_whitespace().find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    };
    let mut lines = text.lines().filter(|line| field(line, "ReservationName").as_deref() == Some(name));
    let active = lines.find(|line| field(line, "State").as_deref() == Some("ACTIVE"));
    active.and_then(|line| field(line, "Nodes")).map(|nodes| hostlist(&nodes)).unwrap_or_default()
}

/// Node on which a job runs, or is to run.
fn node_of(job: &RawJob) -> Option<&String> {
    job.held.first().map(|on| &on.node).or_else(|| job.required_nodes.first())
}

impl SlurmEngine {
    /// Services that the deployment declares, with their replicas.
    pub(super) fn services_seen(&self, at_ms: i64) -> Vec<ServiceSeen> {
        self.services.declared.iter().map(|declared| self.service_seen(declared, at_ms)).collect()
    }

    fn replicas_of(&self, declared: &DeclaredService) -> Vec<&RawJob> {
        let is_replica = |job: &&RawJob| self.services.of(job).is_some_and(|of| of.name == declared.name);
        self.jobs.values().filter(is_replica).collect()
    }

    fn service_seen(&self, declared: &DeclaredService, at_ms: i64) -> ServiceSeen {
        let (mut replicas, mut loads) = (Vec::new(), Vec::new());
        for job in self.replicas_of(declared) {
            // A job that waits for accelerators is no replica yet.
            let Some(on) = job.held.first() else { continue };
            let load = self.mailbox.load(&job.id.to_string(), at_ms);
            let warm_ms = job.start_ms + declared.spec.cold_start_ms;
            let phase = match job.state {
                RawState::Running if load.is_some() || at_ms >= warm_ms => ReplicaStage::Ready,
                RawState::Running => ReplicaStage::Starting { ready_ms: Some(warm_ms) },
                RawState::Completing => ReplicaStage::Draining { free_ms: None },
                _ => continue,
            };
            if phase == ReplicaStage::Ready {
                loads.push(load);
            }
            replicas.push((job.start_ms, ReplicaSeen { node: on.node.clone(), phase }));
        }
        replicas.sort_by_key(|(start_ms, _)| *start_ms);
        ServiceSeen::of(declared, replicas.into_iter().map(|(_, replica)| replica).collect(), &loads)
    }

    /// Takes the next step towards `replicas` replicas of `service` on `node`: submits what is
    /// missing, cancels what is too much, what waits first, then the youngest.
    pub(super) async fn scale(&mut self, service: &str, node: &str, replicas: u32) -> Result<StepOutcome, EngineError> {
        let refused = |reason: String| Ok(StepOutcome::Refused { reason });
        let declared = self.services.declared.iter().find(|declared| declared.name == service).cloned();
        let Some(declared) = declared else { return refused("there is no such service".into()) };
        if let Err(outcome) = plain(node) {
            return Ok(outcome);
        }
        let there = self.replicas_of(&declared).into_iter().filter(|job| node_of(job).is_some_and(|on| on == node));
        let mut there: Vec<(bool, SlurmJobId)> = there
            .filter(|job| matches!(job.state, RawState::Pending { .. } | RawState::Running | RawState::Suspended))
            .map(|job| (job.held.is_empty(), job.id))
            .collect();
        there.sort_unstable();
        let now = there.len() as u32;
        for (_, id) in there.into_iter().skip(replicas as usize) {
            self.commands.run("scancel", &[&id.to_string()], "").await?;
        }
        if now >= replicas {
            return Ok(StepOutcome::Accepted);
        }
        if !self.services.nodes.iter().any(|known| known == node) {
            return refused(format!("node {node} is not in the reservation {}", self.services.reservation));
        }
        if let Some(wait) = self.waits(SlurmJobId::default()).or_else(|| self.failed_lately(&declared)) {
            return Ok(wait);
        }
        for _ in now..replicas {
            self.start_replica(&declared, node).await?;
        }
        Ok(StepOutcome::Accepted)
    }

    /// Reason why no replica is started yet: replicas ended by themselves, and a wait that doubles
    /// with each of them is not over.
    fn failed_lately(&self, declared: &DeclaredService) -> Option<StepOutcome> {
        let replicas = self.replicas_of(declared);
        let ended = replicas.iter().filter(|job| matches!(job.state, RawState::Failed | RawState::Completed));
        let mut ended: Vec<i64> = ended.map(|job| job.end_ms).collect();
        ended.sort_unstable();
        let budget = RetryBudget { failures: u32::MAX, ..RetryBudget::default() };
        let (mut history, now_ms) = (RetryHistory::default(), wall_ms());
        let last = ended.into_iter().map(|end_ms| history.judge(ExitMeaning::Failed, &budget, end_ms)).last();
        let Some(RetryDecision::Requeue { not_before_ms }) = last else { return None };
        let wait_s = (not_before_ms - now_ms) / 1000 + 1;
        (not_before_ms > now_ms).then(|| StepOutcome::Later {
            reason: format!("{} replicas ended by themselves; the next one waits {wait_s} s", history.failures()),
        })
    }

    async fn start_replica(&mut self, declared: &DeclaredService, node: &str) -> Result<(), EngineError> {
        let fence = Fence::random();
        let fence = fence.map_err(|error| EngineError::Refused { engine: "slurm", problem: error.to_string() })?;
        let seat = Seat { reservation: &self.services.reservation, node };
        let mut replica = declared.replica.clone();
        replica.spec.request.submit = goodput_env::time::SimTime::from_millis(wall_ms());
        let id = self.hand_in(&replica, &fence, Some(seat)).await?;
        // The next snapshot shows it; until then it counts.
        let job = RawJob {
            id,
            name: declared.name.clone(),
            reservation: self.services.reservation.clone(),
            state: RawState::Pending { held: false },
            required_nodes: vec![node.into()],
            ..RawJob::default()
        };
        self.jobs.insert(id, job);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_of_an_active_reservation_are_found() {
        let text = "ReservationName=web StartTime=1 EndTime=2 Nodes=n[1-2],n7 NodeCnt=3 Users=root State=ACTIVE\n\
                    ReservationName=web2 StartTime=1 EndTime=2 Nodes=n4 NodeCnt=1 Users=root State=INACTIVE\n";
        assert_eq!(reserved(text, "web"), ["n1", "n2", "n7"]);
        assert_eq!(reserved(text, "web2"), Vec::<String>::new(), "it has not begun");
        assert_eq!(reserved("No reservations in the system\n", "web"), Vec::<String>::new());
    }
}
