//! Replicas of services: a replica is a job of the engine on one node that no policy places, and
//! that an order to scale its service starts and ends.

use super::AgentsEngine;
use super::live::LiveJob;
use crate::agent::api::{AttemptState, AttemptStatus};
use crate::agent::unix_ms;
use crate::engine::{
    DeclaredService, EngineAction, EngineError, NodeHealth, OnNode, ReplicaSeen, ReplicaStage, ServiceSeen, StepOutcome,
};

impl LiveJob {
    /// Whether the job is a replica of the service that is on `node` and stays there.
    fn serves(&self, service: &str, node: &str) -> bool {
        let stays = |on: &super::live::Current| !on.leaving && on.placement.iter().any(|on| on.node == node);
        self.replica_of.as_deref() == Some(service) && self.current.as_ref().is_some_and(stays)
    }

    /// Whether the job is a replica of the service that failed, and is to be started again.
    fn waits_for(&self, service: &str) -> bool {
        self.replica_of.as_deref() == Some(service) && self.current.is_none() && !self.phase.is_over()
    }
}

impl AgentsEngine {
    /// Services that the deployment declares, with their replicas.
    pub(super) fn services_seen(&self, at_ms: i64) -> Vec<ServiceSeen> {
        self.services.iter().map(|declared| self.service_seen(declared, at_ms)).collect()
    }

    fn service_seen(&self, declared: &DeclaredService, at_ms: i64) -> ServiceSeen {
        let of_it = self.jobs.values().filter(|job| job.replica_of.as_ref() == Some(&declared.name));
        let mut running: Vec<&LiveJob> = of_it.filter(|job| job.current.is_some()).collect();
        running.sort_by_key(|job| job.current.as_ref().map(|current| (current.since_ms, &job.key)));
        let (mut replicas, mut loads) = (Vec::with_capacity(running.len()), Vec::new());
        for job in running {
            let (Some(current), Some(id)) = (&job.current, job.attempt_id()) else { continue };
            let Some(on) = current.placement.first() else { continue };
            let status = self.nodes.attempt(&on.node, &id);
            let heard = matches!(self.nodes.health(&on.node), NodeHealth::Up | NodeHealth::Drained);
            let load = status.filter(|_| heard).and_then(reported_load);
            let stopping = status.is_some_and(|status| status.state == AttemptState::Stopping);
            let warm_ms = status.map_or(current.since_ms, |status| status.started_ms) + declared.spec.cold_start_ms;
            let phase = match status {
                _ if current.leaving || stopping => ReplicaStage::Draining { free_ms: None },
                Some(_) if load.is_some() || at_ms >= warm_ms => ReplicaStage::Ready,
                _ => ReplicaStage::Starting { ready_ms: Some(warm_ms.max(at_ms)) },
            };
            match phase {
                ReplicaStage::Ready => loads.push(load),
                // What it still answers counts where it says so.
                ReplicaStage::Draining { .. } => loads.extend(load.map(Some)),
                ReplicaStage::Starting { .. } => {}
            }
            replicas.push(ReplicaSeen { node: on.node.clone(), phase });
        }
        ServiceSeen::of(declared, replicas, &loads)
    }

    /// Takes the next step towards `replicas` replicas of `service` on `node`.
    pub(super) async fn scale(
        &mut self,
        service: &str,
        node: &str,
        replicas: u32,
        term: u64,
    ) -> Result<StepOutcome, EngineError> {
        let Some(declared) = self.services.iter().find(|declared| declared.name == service).cloned() else {
            return Ok(StepOutcome::Refused { reason: "there is no such service".to_owned() });
        };
        let lasting = self.jobs.values().filter(|job| job.serves(service, node));
        let mut lasting: Vec<(i64, String)> =
            lasting.map(|job| (job.current.as_ref().map_or(0, |current| current.since_ms), job.key.clone())).collect();
        lasting.sort();
        let now = lasting.len() as u32;
        if now > replicas {
            // The youngest go first. What failed and waits is not needed any more.
            let surplus = lasting.into_iter().skip(replicas as usize).map(|(_, key)| key);
            let waiting = self.jobs.values().filter(|job| job.waits_for(service)).map(|job| job.key.clone());
            let gone: Vec<String> = surplus.chain(waiting).collect();
            for key in gone {
                self.retire(&key, term).await?;
            }
            return Ok(StepOutcome::Accepted);
        }
        if self.loans.contains_key(node) {
            return Ok(StepOutcome::Later { reason: format!("node {node} is lent to training") });
        }
        for _ in now..replicas {
            let outcome = self.start_replica(&declared, node, term).await?;
            if outcome != StepOutcome::Accepted {
                return Ok(outcome);
            }
        }
        Ok(StepOutcome::Accepted)
    }

    /// Starts a replica on `node`: one that failed before, else a new one.
    async fn start_replica(
        &mut self,
        declared: &DeclaredService,
        node: &str,
        term: u64,
    ) -> Result<StepOutcome, EngineError> {
        let waiting = self.jobs.values().filter(|job| job.waits_for(&declared.name));
        let job = match waiting.min_by_key(|job| job.not_before_ms) {
            Some(job) => LiveJob { submission: declared.replica.clone(), ..job.clone() },
            None => match LiveJob::new(&declared.replica, unix_ms(), self.jobs.len()) {
                Ok(job) => LiveJob { replica_of: Some(declared.name.clone()), ..job },
                Err(reason) => return Ok(StepOutcome::Refused { reason }),
            },
        };
        let gpus = declared.spec.gpus_per_replica;
        let placement = vec![OnNode { node: node.to_owned(), gpus, accelerators: Vec::new() }];
        self.place(job, &EngineAction::Place { placement, share: None }, None, term).await
    }

    /// Ends a replica for good.
    async fn retire(&mut self, key: &str, term: u64) -> Result<(), EngineError> {
        let Some(job) = self.jobs.get(key) else { return Ok(()) };
        let job = LiveJob { cancelled: true, ..job.clone() };
        match job.current {
            None => self.close(job).await,
            Some(_) => {
                self.keep(job.clone()).await?;
                let grace_s = job.submission.grace_s;
                self.leave(job, grace_s, term).await
            }
        }
        .map(|_| ())
    }

    /// Ends the replicas of services that the deployment does not declare any more.
    pub(super) async fn retire_undeclared(&mut self, term: u64) -> Result<(), EngineError> {
        let declared = |service: &String| self.services.iter().any(|declared| declared.name == *service);
        let left = self.jobs.values().filter(|job| {
            let leaves = job.current.as_ref().is_some_and(|current| current.leaving);
            !job.phase.is_over() && !leaves && job.replica_of.as_ref().is_some_and(|service| !declared(service))
        });
        let left: Vec<String> = left.map(|job| job.key.clone()).collect();
        for key in left {
            tracing::warn!(replica = key, "its service is not declared any more: it ends");
            self.retire(&key, term).await?;
        }
        Ok(())
    }
}

/// Requests per second that a replica reported lately; `None` where it has not.
fn reported_load(status: &AttemptStatus) -> Option<f64> {
    let ended = matches!(status.state, AttemptState::Ended { .. });
    let report = status.report.as_ref().filter(|_| !status.stalled && !ended)?;
    report.serving.map(|serving| serving.qps)
}
