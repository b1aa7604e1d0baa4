//! Servers of the inference pool that training borrows.
//!
//! A lent server runs training jobs only; at home it runs replicas only. A server called back takes
//! no new training job, comes home when the last one has left it, and is emptied by force at its
//! deadline.

use super::Simulator;
use super::events::{Event, EventKind};
use crate::cluster::{NodeId, Pool};
use crate::job::JobId;
use crate::plan::Plan;
use crate::state::{ClusterState, Loan};

/// Totals of lending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoanRecord {
    /// Accelerators of the inference pool.
    pub pool_gpus: u32,
    /// Accelerator time that training held on them, GPU-milliseconds.
    pub trained_gpu_millis: i64,
    /// Accelerator time that replicas held on them, GPU-milliseconds.
    pub served_gpu_millis: i64,
    /// Number of loans.
    pub lent: u64,
    /// Servers that came back.
    pub returned: u64,
    /// Accelerator time lent, GPU-milliseconds.
    pub lent_gpu_millis: i64,
    /// From call to return, all returns together, milliseconds.
    pub reclaim_millis: i64,
    /// The longest of them, milliseconds.
    pub longest_reclaim_millis: i64,
    /// Training jobs that were still there at a deadline.
    pub evictions: u64,
}

/// Loans of a run, as far as the state does not tell.
#[derive(Clone, Debug, Default)]
pub(super) struct RunLoans {
    /// Servers that are called back.
    pub returning: Vec<NodeId>,
    pub record: LoanRecord,
}

impl ClusterState {
    /// Brings what training may take up to date; policies look at it at decision points only.
    pub(super) fn refresh_open(&mut self) {
        for node in NodeId::first(self.loans.open.by_node().len()) {
            let open = self.loans.may_train(&self.scenario.cluster, node);
            self.loans.open.set(node, if open { self.idle.on(node) } else { 0 });
        }
    }
}

impl Simulator {
    /// Gives `node` to another cluster; `false`, and nothing changed, unless it is a server of the
    /// inference pool, at home and empty.
    pub fn hand_over(&mut self, node: NodeId) -> bool {
        let known = self.state.scenario.cluster.nodes.get(node.index());
        let Some(server) = known.filter(|server| server.pool == Pool::Inference) else { return false };
        let movable = self.state.loans.of(node) == Loan::Home && self.state.idle.on(node) == server.gpus;
        if movable {
            self.state.loans.by_node[node.index()] = Loan::Elsewhere;
            // What sleeps there stays behind.
            while let Some(id) = self.state.instances.longest_free(node) {
                self.state.instances.remove(id);
            }
            self.records.fragments.recount(&self.state, node);
        }
        movable
    }

    /// Gets `node` from another cluster; `false` where it is here already.
    pub fn take_over(&mut self, node: NodeId) -> bool {
        let elsewhere = self.state.loans.of(node) == Loan::Elsewhere;
        if elsewhere {
            self.state.loans.by_node[node.index()] = Loan::Home;
            self.records.fragments.recount(&self.state, node);
            self.state.refresh_open();
        }
        elsewhere
    }

    pub(super) fn lend_and_call_back(&mut self, plan: &Plan) {
        for &node in &plan.lend {
            self.state.loans.by_node[node.index()] = Loan::Lent { since: self.state.now };
            self.lending.record.lent += 1;
            self.records.fragments.recount(&self.state, node);
        }
        for reclaim in &plan.reclaim {
            let at = &mut self.state.loans.by_node[reclaim.node.index()];
            if let Loan::Lent { since } = *at {
                *at = Loan::Returning { since, called: self.state.now, deadline: reclaim.deadline };
                self.lending.returning.push(reclaim.node);
                self.queue.push(Event::of(reclaim.deadline, EventKind::Deadline, reclaim.node.0));
                self.records.fragments.recount(&self.state, reclaim.node);
            }
        }
    }

    /// Returns the servers that were called back and that no training job is left on.
    pub(super) fn return_servers(&mut self) {
        let returning = std::mem::take(&mut self.lending.returning);
        let (empty, left) = returning.into_iter().partition(|&node| self.state.loans.trained_on[node.index()] == 0);
        self.lending.returning = left;
        let empty: Vec<NodeId> = empty;
        empty.into_iter().for_each(|node| self.server_returned(node));
    }

    fn server_returned(&mut self, node: NodeId) {
        let Loan::Returning { since, called, .. } = self.state.loans.of(node) else { return };
        self.state.loans.by_node[node.index()] = Loan::Home;
        self.records.fragments.recount(&self.state, node);
        let reclaim = (self.state.now - called).as_millis();
        let gpus = i64::from(self.state.scenario.cluster.nodes[node.index()].gpus);
        let record = &mut self.lending.record;
        record.returned += 1;
        record.reclaim_millis += reclaim;
        record.longest_reclaim_millis = record.longest_reclaim_millis.max(reclaim);
        record.lent_gpu_millis += gpus * (self.state.now - since).as_millis();
        self.state.trigger.load = true;
    }

    /// The deadline of a server: whatever training is left on it goes.
    pub(super) fn evict(&mut self, node: NodeId) -> Result<(), super::SimError> {
        let on = |placement: &crate::placement::Placement| placement.slices().iter().any(|slice| slice.node == node);
        // Jobs that have completed but hold accelerators until the next round have to go as well.
        while let Some(at) = self.jobs.holding.iter().position(|(_, held)| on(held)) {
            let (job, placement) = self.jobs.holding.swap_remove(at);
            self.give_back(job, &placement);
        }
        let table = &self.state.jobs;
        let there: Vec<JobId> = table.active().filter(|&job| on(&table.state(job).placement)).collect();
        for job in there {
            self.lending.record.evictions += 1;
            self.vacate(job)?;
        }
        self.return_servers();
        self.update_interference()
    }

    /// Totals of lending so far, loans that are out included.
    pub fn loan_record(&mut self) -> LoanRecord {
        let mut record = self.lending.record;
        let scenario = self.state.scenario.clone();
        let nodes = &scenario.cluster.nodes;
        let pool = |node: &&crate::cluster::Node| node.pool == Pool::Inference;
        record.pool_gpus = nodes.iter().filter(pool).map(|node| node.gpus).sum();
        if record.pool_gpus > 0 {
            let there = self.training_by_node().into_iter().filter(|on| pool(&&nodes[on.node.index()]));
            record.trained_gpu_millis = there.map(|on| on.gpu_millis).sum();
            let records = self.service_records();
            let there = records.iter().flat_map(|record| &record.nodes).filter(|on| pool(&&nodes[on.node.index()]));
            record.served_gpu_millis = there.map(|on| on.gpu_millis).sum();
        }
        for (node, loan) in nodes.iter().zip(&self.state.loans.by_node) {
            if let Loan::Lent { since } | Loan::Returning { since, .. } = *loan {
                record.lent_gpu_millis += i64::from(node.gpus) * (self.state.now - since).as_millis();
            }
        }
        record
    }
}
