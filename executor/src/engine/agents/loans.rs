//! Loans of nodes of the inference pool to training: what is lent is written down by the engine,
//! for no agent needs to know of it.

use std::collections::BTreeMap;

use goodput_env::cluster::Pool;

use super::AgentsEngine;
use super::live::{Current, LiveJob};
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
    pub(super) async fn tend_loans(&mut self, now_ms: i64) -> Result<(), EngineError> {
        let (mut home, mut told) = (Vec::new(), Vec::new());
        for (node, loan) in &self.loans {
            let Some(recall) = loan.recall else { continue };
            let mut empty = true;
            for job in self.jobs.values().filter(|job| job.replica_of.is_none()) {
                let Some(current) = &job.current else { continue };
                if !current.placement.iter().any(|on| on.node == *node) {
                    continue;
                }
                empty = false;
                if recall.deadline_ms <= now_ms && !current.leaving {
                    let current = Some(Current { leaving: true, ..current.clone() });
                    told.push(LiveJob { current, ..job.clone() });
                }
            }
            home.extend(empty.then(|| node.clone()));
        }
        self.save(told).await?;
        if home.is_empty() {
            return Ok(());
        }
        let mut loans = self.loans.clone();
        loans.retain(|node, _| !home.contains(node));
        self.save_loans(loans).await
    }

    /// Lends a node of the inference pool to training.
    pub(super) async fn lend(&mut self, node: &str, now_ms: i64) -> Result<StepOutcome, EngineError> {
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
                let mut loans = self.loans.clone();
                loans.insert(node.to_owned(), LoanSeen { since_ms: now_ms, ..LoanSeen::default() });
                self.save_loans(loans).await?;
            }
        }
        Ok(StepOutcome::Accepted)
    }

    /// Calls a lent node back.
    pub(super) async fn call_back(
        &mut self,
        node: &str,
        deadline_ms: i64,
        now_ms: i64,
    ) -> Result<StepOutcome, EngineError> {
        let mut loans = self.loans.clone();
        if let Some(loan) = loans.get_mut(node).filter(|loan| loan.recall.is_none()) {
            loan.recall = Some(RecallSeen { called_ms: now_ms, deadline_ms });
            self.save_loans(loans).await?;
        }
        Ok(StepOutcome::Accepted)
    }

    /// Writes down which nodes are lent, and takes it up when it is.
    async fn save_loans(&mut self, loans: BTreeMap<String, LoanSeen>) -> Result<(), EngineError> {
        self.store.save_loans(self.term, &loans).await?;
        self.loans = loans;
        Ok(())
    }
}
