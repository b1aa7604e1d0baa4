//! All that a policy knows: the cluster, the active jobs, and what the run's information level lets
//! it see of them.

mod adapted;
mod after;
mod imagined;
mod job;
mod jobs;
mod mixing;
mod services;
mod stages;

use crate::cluster::{Cluster, NodeId, TypeId};
use crate::job::JobId;
use crate::model::sharing::Card;
use crate::placement::{Placement, Slice};
use crate::request::{InferenceRequest, RequestId};
use crate::scenario::{Allocation, Batching, Information, JobShapes, Resize, Scenario};
use crate::state::{
    ClusterState, FreeNodes, InstanceTable, JobTable, Loans, ServiceState, SharedCard, SharedCards, Trigger,
};
use crate::tenant::{QuotaTree, Tenants};
use crate::time::SimTime;

pub use adapted::Adapted;
pub use after::TrainingViewBuffers;
pub use job::{JobView, Rates};
pub use services::{Answered, ServiceView};

/// A part of a cluster and of its jobs: what one of several policies that share a cluster is shown,
/// by [`ClusterView::within`].
#[derive(Clone, Debug, PartialEq)]
pub struct Restriction {
    /// The machines; as many nodes as the cluster has, with accelerators taken out of them.
    pub cluster: Cluster,
    /// Free accelerators by node.
    pub free: FreeNodes,
    /// Active jobs, ascending.
    pub jobs: Vec<JobId>,
}

impl Restriction {
    /// All of what `view` shows, to be cut down.
    pub fn of(view: &ClusterView<'_>) -> Self {
        Self { cluster: view.cluster().clone(), free: view.free_nodes().clone(), jobs: view.ids().collect() }
    }
}

/// The state of the cluster at a decision point.
#[derive(Clone, Copy)]
pub struct ClusterView<'a> {
    /// Time of the decision.
    pub now: SimTime,
    /// Event that led to the decision.
    pub trigger: Trigger,
    /// Information level of the run.
    pub information: Information,
    /// Choice of the batch sizes of jobs in this run.
    pub batching: Batching,
    pub(crate) scenario: &'a Scenario,
    pub(crate) table: &'a JobTable,
    /// By node: free accelerators that training may take.
    pub(crate) free: &'a FreeNodes,
    /// Idle accelerators by node: those that no job or replica holds.
    pub(crate) idle: &'a [u32],
    /// Cards that jobs have shares of.
    pub(crate) cards: &'a SharedCards,
    /// By node: accelerators that replicas hold; empty where there are no services.
    pub(crate) served: &'a [u32],
    pub(crate) services: &'a [ServiceState],
    pub(crate) loans: &'a Loans,
    pub(crate) instances: &'a InstanceTable,
    pub(crate) waiting: &'a [RequestId],
    pub(crate) cluster: &'a Cluster,
    /// By node: reasons why it is out of service. Empty: nodes are there all the time.
    pub(crate) down: &'a [u32],
    /// Jobs on show, ascending; `None`: all of the table.
    pub(crate) shown: Option<&'a [JobId]>,
    /// Priorities and quotas in place of the declared ones.
    pub(crate) adapted: Option<&'a Adapted>,
}

impl ClusterState {
    /// View of this state, as a policy is shown it.
    pub fn view(&self) -> ClusterView<'_> {
        ClusterView {
            now: self.now,
            trigger: self.trigger,
            information: self.scenario.options.information,
            batching: self.scenario.options.batching,
            scenario: &self.scenario,
            table: &self.jobs,
            free: if self.loans.open.is_empty() { &self.idle } else { &self.loans.open },
            idle: self.idle.by_node(),
            cards: &self.cards,
            served: &self.served,
            services: &self.services,
            loans: &self.loans,
            instances: &self.instances,
            waiting: &self.waiting,
            cluster: &self.cluster,
            down: &self.down,
            shown: None,
            adapted: None,
        }
    }
}

impl<'a> ClusterView<'a> {
    /// The machines as they are now: what has failed is missing from its node until it is repaired,
    /// and a node that has failed or is not rented has no accelerators.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// Way in which running jobs change their size.
    pub fn resizing(&self) -> Resize {
        self.scenario.options.resize
    }

    /// Whether `node` exists, is rented where nodes are, and has not failed; one that lacks some accelerators has not.
    pub fn healthy(&self, node: NodeId) -> bool {
        node.index() < self.cluster.nodes.len() && self.down.get(node.index()).is_none_or(|&down| down == 0)
    }

    /// View of this moment with other machines and fewer jobs.
    pub fn within<'b>(&self, part: &'b Restriction) -> ClusterView<'b>
    where
        'a: 'b,
    {
        let (free, idle) = (&part.free, part.free.by_node());
        ClusterView { cluster: &part.cluster, free, idle, shown: Some(&part.jobs), ..*self }
    }

    /// Free accelerators by node that training may take: none on servers of the inference pool that
    /// are not lent; those of free inference instances are among them, those of instances that run
    /// or are protected are not.
    pub fn free(&self) -> &'a [u32] {
        self.free.by_node()
    }

    /// [`Self::free`] with the nodes in order of their free accelerators.
    pub fn free_nodes(&self) -> &'a FreeNodes {
        self.free
    }

    /// Free accelerators on `node`.
    pub fn free_on(&self, node: NodeId) -> u32 {
        self.free.on(node)
    }

    /// Free accelerators in the cluster.
    pub fn total_free(&self) -> u32 {
        self.free.total()
    }

    /// Cards of `node` that jobs have shares of, ascending by number. The other cards of the node are held whole or
    /// free, and have no number until a share of one is taken.
    pub fn cards_on(&self, node: NodeId) -> &'a [SharedCard] {
        self.cards.on(node)
    }

    /// Card of `node` as it is before the first share of it is taken.
    pub fn blank_card(&self, node: NodeId) -> Card {
        self.scenario.options.sharing.blank(self.cluster, node)
    }

    /// Compute (percent of an accelerator) and device memory (MiB) of a placement. Whole cards count with all of
    /// their memory, where it is known.
    pub fn amounts(&self, placement: &Placement) -> [u64; 2] {
        if let Some((_, share)) = placement.share() {
            return [share.amount.compute_percent.into(), share.amount.memory_mib.into()];
        }
        let memory = |slice: &Slice| {
            let kind = self.cluster.types.get(self.cluster.type_of(slice.node).index());
            u64::from(slice.gpus) * u64::from(kind.and_then(|kind| kind.memory_mib).unwrap_or(0))
        };
        [100 * u64::from(placement.gpus()), placement.slices().iter().map(memory).sum()]
    }

    /// Amounts that the jobs of a tenant hold, as [`Self::amounts`]. Two jobs of one placement count once.
    pub fn held_by(&self, tenant: u32) -> [u64; 2] {
        let own = self.jobs().filter(|job| job.request().tenant == tenant && job.state.counts());
        own.fold([0, 0], |sum, job| {
            let [compute, memory] = self.amounts(&job.state.placement);
            [sum[0] + compute, sum[1] + memory]
        })
    }

    /// Table of inference instances.
    pub fn instances(&self) -> &'a InstanceTable {
        self.instances
    }

    /// Inference requests that no instance answers yet, in order of (submission, id).
    pub fn waiting_requests(&self) -> &'a [RequestId] {
        self.waiting
    }

    /// An inference request; its duration is known when it is over.
    pub fn request(&self, id: RequestId) -> Option<&'a InferenceRequest> {
        self.scenario.workload.requests.get(id.index())
    }

    /// Shapes of jobs: groups of jobs that are alike to a queue.
    pub fn shapes(&self) -> &'a JobShapes {
        self.scenario.shapes()
    }

    /// Work per second of two jobs on the same accelerators of type `kind`, as many as each of them
    /// asked for; `None` where they were not measured together or do not fit.
    pub fn shared_rates(&self, one: JobId, other: JobId, kind: TypeId) -> Option<[f64; 2]> {
        let scenario = self.scenario;
        Some([scenario.rate_beside(one, other, kind)?, scenario.rate_beside(other, one, kind)?])
    }

    /// Tenants that share the cluster.
    pub fn tenants(&self) -> &'a Tenants {
        &self.scenario.workload.tenants
    }

    /// Whether a policy may stop a running job for another one in this run.
    pub fn preempts(&self) -> bool {
        self.scenario.options.allocation.is_none_or(Allocation::preempts)
    }

    /// Quotas that hold now; `None` where no tenant has any.
    pub fn quotas(&self) -> Option<&'a QuotaTree> {
        let adapted = self.adapted.and_then(|adapted| adapted.quotas.as_ref());
        adapted.or_else(|| self.scenario.workload.tenants.quotas(self.now))
    }

    /// Priority of an active job in a queue: the higher the earlier. Whether a job may evict another is decided by the
    /// priorities of their requests.
    pub fn priority(&self, job: &JobView<'_>) -> i32 {
        let adapted = self.adapted.and_then(|adapted| adapted.priority(job.id()));
        adapted.unwrap_or_else(|| job.request().priority)
    }

    /// Number of jobs in the workload so far and to come; ids are below it.
    pub fn workload_len(&self) -> usize {
        self.scenario.workload.jobs.len()
    }
}

/// The part of a [`ClusterView`] that views of jobs and services copy. It is small because a
/// decision makes thousands of such views.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    now: SimTime,
    information: Information,
    batching: Batching,
    scenario: &'a Scenario,
}

impl<'a> ClusterView<'a> {
    pub(crate) fn known(&self) -> Known<'a> {
        Known { now: self.now, information: self.information, batching: self.batching, scenario: self.scenario }
    }
}
