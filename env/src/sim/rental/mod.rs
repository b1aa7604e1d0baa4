//! Rented nodes: orders, start-up, release, and spot nodes that the provider takes back.
//!
//! A node that is not rented is out of service, like a node that has failed. So policies, the guard and the books need
//! to know nothing else about renting. A node that comes into service is free. From a node that leaves, every job is
//! stopped by plan first, so its work is saved; the policy is asked at once and places the jobs anew. A spot node with
//! too short a notice takes the jobs down with it, as a fault does.
//!
//! The number of nodes follows [`crate::model::SizeRule`], which looks at the jobs and not at the scheduling policy:
//! see [`demand`].

mod demand;
mod stages;

use smallvec::SmallVec;

use super::{SimError, Simulator};
use crate::cluster::NodeId;
use crate::job::JobId;
use crate::time::SimTime;

use stages::NodeStage;
pub(super) use stages::RunRental;
pub use stages::{RentalRecord, SizeChange};

impl Simulator {
    /// Whether `node` is in service as far as its rental goes.
    pub(super) fn is_there(&self, node: NodeId) -> bool {
        self.rental.as_ref().is_none_or(|rental| rental.in_service(node))
    }

    /// Whether a node that was ordered is still to come.
    pub(super) fn awaits_nodes(&self) -> bool {
        self.rental.as_ref().is_some_and(|rental| rental.awaits())
    }

    /// Moment at which something is due about rented nodes, as long as a job can still meet it.
    pub(super) fn next_rental(&self, arrival: SimTime) -> SimTime {
        let Some(rental) = &self.rental else { return SimTime::NEVER };
        let no_job_is_left = !self.has_active() && arrival == SimTime::NEVER;
        if no_job_is_left || self.has_stalled(arrival) { SimTime::NEVER } else { rental.next().max(self.state.now) }
    }

    /// Nodes come and go that are due now, and the number of nodes is reconsidered where a sample is due.
    pub(super) fn rental_due(&mut self) -> Result<(), SimError> {
        self.records.events += 1;
        for node in self.state.scenario.cluster.node_ids() {
            self.stage_due(node)?;
        }
        self.sample_utility();
        self.meet_size()
    }

    fn stage_due(&mut self, node: NodeId) -> Result<(), SimError> {
        let (now, seed) = (self.state.now, self.state.scenario.seed);
        let Some(rental) = &mut self.rental else { return Ok(()) };
        match rental.stage(node) {
            NodeStage::Starting { since, ready } if ready <= now => {
                rental.enter_service(node, since, now, seed);
                self.state.down[node.index()] -= 1;
                self.restore(node);
            }
            NodeStage::InService { since, notice } if notice <= now => {
                let notice = rental.notify(node, since, now);
                self.withdraw(node, Some(notice))?;
            }
            NodeStage::Noticed { gone, .. } if gone <= now => rental.leave(node, now),
            _ => {}
        }
        Ok(())
    }

    /// Orders and gives back nodes until as many are rented as are wanted.
    fn meet_size(&mut self) -> Result<(), SimError> {
        let now = self.state.now;
        let held = |rental: &RunRental, node: NodeId| {
            // What is idle is not held; a node that starts holds nothing.
            let whole = self.state.cluster.nodes[node.index()].gpus;
            if rental.in_service(node) { whole - self.state.idle.on(node).min(whole) } else { 0 }
        };
        let Some(rental) = &self.rental else { return Ok(()) };
        let released = rental.to_release(|node| held(rental, node));
        for node in released {
            let was_there = self.is_there(node);
            let Some(rental) = &mut self.rental else { return Ok(()) };
            rental.leave(node, now);
            if was_there {
                self.withdraw(node, None)?;
            }
        }
        if let Some(rental) = &mut self.rental {
            rental.order(now);
        }
        Ok(())
    }

    /// Takes the accelerators of `node` out of service, `notice` before the node ends; `None` where it is given back,
    /// which happens after every job has saved its work.
    fn withdraw(&mut self, node: NodeId, notice: Option<SimTime>) -> Result<(), SimError> {
        let there: SmallVec<[JobId; 8]> = self.state.on_node(node).collect();
        let mut hit: SmallVec<[JobId; 8]> = SmallVec::new();
        for job in there {
            if notice.is_none_or(|notice| notice > SimTime::ZERO && notice >= self.write_time(job)) {
                self.vacate(job)?;
            } else {
                hit.push(job);
            }
        }
        if let Some(health) = &mut self.health {
            health.forget(node);
        }
        self.state.down[node.index()] = 1;
        self.lose(node, &hit, u32::MAX)
    }

    /// Time that a checkpoint of what `job` runs takes; zero where the run does not model checkpoints.
    fn write_time(&self, job: JobId) -> SimTime {
        let state = &self.state;
        let write = state.scenario.options.checkpoint.map(|checkpoint| {
            let application = state.scenario.workload.application_name(job);
            checkpoint.write_secs(application, state.jobs.state(job).placement.gpus())
        });
        write.map_or(SimTime::ZERO, SimTime::from_secs_f64)
    }
}
