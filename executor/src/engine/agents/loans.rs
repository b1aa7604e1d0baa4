//! Loans of nodes of the inference pool to training: what is lent is written down by the engine,
//! for no agent needs to know of it.

use goodput_env::cluster::Pool;

use super::live::LiveJob;
use super::{AgentsEngine, full};
use crate::engine::{EngineError, LoanSeen, NodeSeen, RecallSeen, StepOutcome};

impl AgentsEngine {
    /// Adds pools and loans to nodes.
    pub(super) fn show_loans(&self, nodes: &mut [NodeSeen]) {
        for node in nodes {
            let known = self.settings.nodes.iter().find(|known| known.name.as_str() == node.name);
            node.pool = known.map_or(Pool::Shared, |known| known.pool);
            node.loan = self.loans.get(&node.name).copied();
            node.lent = node.loan.is_some();
        }
    }

    /// Tells training jobs to leave nodes that are called back once the deadline has passed, and
    /// takes nodes home that are called back and have no training job left on them.
    pub(super) fn tend_loans(&mut self, now_ms: i64) -> Result<(), EngineError> {
        let mut home = Vec::new();
        for (node, loan) in &self.loans {
            let Some(recall) = loan.recall else { continue };
            let mut empty = true;
            for job in self.jobs.values_mut().filter(|job| job.replica_of.is_none()) {
                let Some(current) = &mut job.current else { continue };
                if !current.placement.iter().any(|on| on.node == *node) {
                    continue;
                }
                empty = false;
                if recall.deadline_ms <= now_ms && !current.leaving {
                    current.leaving = true;
                    self.store.save(job).map_err(full)?;
                }
            }
            home.extend(empty.then(|| node.clone()));
        }
        if !home.is_empty() {
            home.iter().for_each(|node| {
                self.loans.remove(node);
            });
            self.store.save_loans(&self.loans).map_err(full)?;
        }
        Ok(())
    }

    /// Lends a node of the inference pool to training.
    pub(super) fn lend(&mut self, node: &str, now_ms: i64) -> Result<StepOutcome, EngineError> {
        let pool = self.settings.nodes.iter().find(|known| known.name.as_str() == node).map(|known| known.pool);
        if pool != Some(Pool::Inference) {
            return Ok(StepOutcome::Refused { reason: "it is no node of the inference pool".to_owned() });
        }
        let replica = |job: &LiveJob| {
            let there = job.current.iter().flat_map(|current| &current.placement).any(|on| on.node == node);
            job.replica_of.is_some() && there
        };
        if self.jobs.values().any(replica) {
            return Ok(StepOutcome::Later { reason: "replicas are left on it".to_owned() });
        }
        match self.loans.get(node) {
            Some(loan) if loan.recall.is_some() => {
                return Ok(StepOutcome::Later { reason: "it is called back".to_owned() });
            }
            Some(_) => {}
            None => {
                self.loans.insert(node.to_owned(), LoanSeen { since_ms: now_ms, ..LoanSeen::default() });
                self.store.save_loans(&self.loans).map_err(full)?;
            }
        }
        Ok(StepOutcome::Accepted)
    }

    /// Calls a lent node back.
    pub(super) fn call_back(&mut self, node: &str, deadline_ms: i64, now_ms: i64) -> Result<StepOutcome, EngineError> {
        if let Some(loan) = self.loans.get_mut(node).filter(|loan| loan.recall.is_none()) {
            loan.recall = Some(RecallSeen { called_ms: now_ms, deadline_ms });
            self.store.save_loans(&self.loans).map_err(full)?;
        }
        Ok(StepOutcome::Accepted)
    }
}
