//! Views of services, and of the pools that nodes belong to.

use super::{ClusterView, Known};
use crate::cluster::{NodeId, Pool, TypeId};
use crate::model::serving::{Demand, Fleet};
use crate::service::{Service, ServiceId, ServingProfile};
use crate::state::{Loan, ServiceState};
use crate::time::SimTime;

impl<'a> ClusterView<'a> {
    /// The pool of `node`.
    pub fn pool(&self, node: NodeId) -> Pool {
        self.cluster().nodes[node.index()].pool
    }

    /// Whether `node` is away from the inference pool: lent, or called back and not home yet.
    pub fn lent(&self, node: NodeId) -> bool {
        matches!(self.loan(node), Loan::Lent { .. } | Loan::Returning { .. })
    }

    /// Whether `node` belongs to this cluster now, rather than to another one it is shared with.
    pub fn owned(&self, node: NodeId) -> bool {
        self.loan(node) != Loan::Elsewhere
    }

    /// Loan of `node`, a server of the inference pool.
    pub fn loan(&self, node: NodeId) -> Loan {
        self.loans.of(node)
    }

    /// Whether any machine is set aside, for training or for inference.
    pub(crate) fn has_pools(&self) -> bool {
        !self.loans.by_node.is_empty()
    }

    /// Whether training jobs may be placed on `node` now: not on a server of the inference pool
    /// that is not lent, nor on one that is called back.
    pub fn may_train(&self, node: NodeId) -> bool {
        self.loans.may_train(self.cluster(), node)
    }

    /// Whether replicas may be placed on `node` now.
    pub fn may_serve(&self, node: NodeId) -> bool {
        self.loans.may_serve(self.cluster(), node)
    }

    /// Whether inference requests may be answered on `node` now, one by one: on shared nodes and on
    /// servers of the inference pool, at home or lent, but not on one that is called back or
    /// belongs to another cluster.
    pub fn may_answer(&self, node: NodeId) -> bool {
        match self.pool(node) {
            Pool::Shared => true,
            Pool::Training => false,
            Pool::Inference => matches!(self.loan(node), Loan::Home | Loan::Lent { .. }),
        }
    }

    /// Free accelerators of `node` that replicas may take.
    pub fn free_for_service(&self, node: NodeId) -> u32 {
        if self.may_serve(node) { self.idle[node.index()] } else { 0 }
    }

    /// Idle accelerators of `node`, whichever pool may use them.
    pub fn idle_on(&self, node: NodeId) -> u32 {
        self.idle[node.index()]
    }

    /// Accelerators of `node` that replicas hold.
    pub fn served_on(&self, node: NodeId) -> u32 {
        self.served.get(node.index()).copied().unwrap_or(0)
    }

    /// Accelerators of `node` that training jobs hold.
    pub fn trained_on(&self, node: NodeId) -> u32 {
        self.loans.trained_on[node.index()]
    }

    /// All services, by id.
    pub fn services(&self) -> impl ExactSizeIterator<Item = ServiceView<'a>> + use<'a> {
        let known = self.known();
        self.services.iter().map(move |state| ServiceView { state, known })
    }

    /// View of the service `id`.
    pub fn service(&self, id: ServiceId) -> Option<ServiceView<'a>> {
        Some(ServiceView { state: self.services.get(id.index())?, known: self.known() })
    }
}

/// Requests of a service from the beginning up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Requests that came, micro-requests.
    pub requests: u64,
    /// Of these, requests that took longer than the objective allows, micro-requests.
    pub late: u64,
}

/// A service as a policy may see it.
#[derive(Clone, Copy)]
pub struct ServiceView<'a> {
    /// Replicas, rate and backlog now.
    pub state: &'a ServiceState,
    known: Known<'a>,
}

impl<'a> ServiceView<'a> {
    /// The service's id.
    pub fn id(&self) -> ServiceId {
        self.state.id
    }

    /// The moment of the view.
    pub fn now(&self) -> SimTime {
        self.known.now
    }

    fn service(&self) -> &'a Service {
        &self.known.scenario.workload.services[self.state.id.index()]
    }

    /// Name of the service.
    pub fn name(&self) -> &'a str {
        &self.service().name
    }

    /// Tenant that owns the service.
    pub fn tenant(&self) -> u32 {
        self.service().tenant
    }

    /// Latency objective of the service.
    pub fn slo(&self) -> &'a crate::service::Slo {
        &self.service().slo
    }

    /// Accelerators of one node that a replica holds.
    pub fn gpus_per_replica(&self) -> u32 {
        self.service().gpus_per_replica
    }

    /// From the decision to start a replica until it answers.
    pub fn cold_start(&self) -> SimTime {
        self.service().cold_start
    }

    /// Time for which a replica that goes still holds its accelerators.
    pub fn drain(&self) -> SimTime {
        self.service().drain
    }

    /// Fewest and most replicas.
    pub fn replica_limits(&self) -> (u32, u32) {
        (self.service().min_replicas, self.service().max_replicas)
    }

    /// Requests per second now, as measured since the last change.
    pub fn rate(&self) -> f64 {
        f64::from(self.state.rate_milli) / 1e3
    }

    /// Requests that wait because replicas cannot keep up.
    pub fn backlog(&self) -> f64 {
        self.state.backlog as f64 / 1e6
    }

    /// Requests so far and the late ones among them, as a load balancer counts them. A live cluster counts none.
    pub fn answered(&self) -> Answered {
        let record = &self.state.record;
        let (requests, late) = (record.requests, record.violated);
        let since = self.state.since_settled(self.known.scenario, self.known.now);
        since.map_or(Answered { requests, late }, |(more, counted)| Answered {
            requests: requests + more,
            late: late + counted.violated,
        })
    }

    /// Requests per second, in thousandths, by step up to now; the current step is the last.
    pub fn history(&self) -> &'a [u32] {
        let rates = &self.service().rates;
        let upto = (rates.index_at(self.known.now) + 1).min(rates.values().len());
        &rates.values()[..upto]
    }

    /// Rate in this step of [`Self::history`], requests per second; `None` where nothing measured the rate.
    pub fn measured(&self, step: usize) -> Option<f64> {
        let rates = &self.service().rates;
        let milli = self.history().get(step).filter(|_| !rates.is_gap(step))?;
        Some(f64::from(*milli) / 1e3)
    }

    /// Whether its series of rates has come to its end: no request comes any more.
    pub fn is_over(&self) -> bool {
        self.service().rates.is_over(self.known.now)
    }

    /// [`Self::history`] of the steps to come, for policies that are told everything.
    pub fn future(&self) -> Option<&'a [u32]> {
        let told = self.known.information == super::Information::Oracle;
        told.then(|| &self.service().rates.values()[self.history().len()..])
    }

    /// Length of a step of [`Self::history`].
    pub fn history_step(&self) -> SimTime {
        self.service().rates.step()
    }

    /// Speed of a replica on accelerator type `kind`; `None` where it cannot run there.
    pub fn profile(&self, kind: TypeId) -> Option<&'a ServingProfile> {
        self.known.scenario.profile(self.state.id, kind)
    }

    /// Requests per second that the ready replicas can answer.
    pub fn capacity(&self) -> f64 {
        self.state.fleet(self.known.scenario).capacity()
    }

    /// Demand at `rate` requests per second, for [`Fleet`].
    pub fn demand(&self, rate: f64) -> Demand {
        Demand { rate, ..Demand::of(self.service(), 0) }
    }

    /// Fewest replicas on accelerator type `kind` that keep the objective at `rate` requests per
    /// second, within the service's limits; the most it may have where no number does, `None` where
    /// it cannot run there.
    pub fn replicas_for(&self, kind: TypeId, rate: f64) -> Option<u32> {
        let profile = self.profile(kind)?;
        let (demand, (min, max)) = (self.demand(rate), self.replica_limits());
        let keeps = |count: u32| Fleet::of(profile, count).late_share(&demand) <= 1.0 - self.slo().target;
        let mut low = (rate / profile.throughput()).floor().min(f64::from(max)) as u32;
        if rate <= 0.0 || keeps(low) {
            return Some(if rate <= 0.0 { min } else { low.clamp(min, max) });
        }
        let mut step = 1;
        while low + step < max && !keeps(low + step) {
            (low, step) = (low + step, 2 * step);
        }
        let mut high = (low + step).min(max);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if keeps(middle) { high = middle } else { low = middle }
        }
        Some(high.clamp(min, max))
    }

    /// The ready replicas as a queueing system.
    pub fn fleet(&self) -> Fleet<'a> {
        self.state.fleet(self.known.scenario)
    }
}
