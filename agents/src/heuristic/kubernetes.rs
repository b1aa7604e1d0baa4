//! Kubernetes without a batch scheduler: the default queue (priority, then creation time) over the
//! scheduling framework, with gangs.
//!
//! A job that fits one node is one pod; a wider one is a gang of pods of one accelerator each. Pods
//! that fit nowhere do not block the pods behind them, and higher priority evicts lower
//! (DefaultPreemption). There is no fairness among tenants: a tenant that raises its priority, or
//! sends more pods earlier, gets all of a full cluster. Where a run has quotas they are kept, as by
//! ElasticQuota.

use std::collections::BTreeMap;

use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::JobShape;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use crate::allocation::queue::{Line, Lines};
use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::framework::plugins::{
    Allocated, Gang, NodeAffinity, Preemption, PrioritySort, QuotaFit, ResourcesFit,
};
use crate::placement::framework::{Affinity, Framework, Pod, PodId, Resident, Scheduled, Snapshot};

/// Time that a gang waits for missing pods (scheduler-plugins, `permitWaitingTimeSeconds`). All
/// pods of a job come at once here.
const PERMIT_TIMEOUT: SimTime = SimTime::from_secs(60);

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "kubernetes",
        about: "priority, then creation time; spread over nodes; lower priorities are evicted",
        source: "kube-scheduler (PrioritySort, NodeResourcesFit, DefaultPreemption) with coscheduling",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Kubernetes::new(Allocated::Least))),
        replica: None,
    },
    ListedPolicy {
        name: "kubernetes-binpack",
        about: "as kubernetes, filling nodes one after the other",
        source: "kube-scheduler (NodeResourcesFit, MostAllocated) with coscheduling",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Kubernetes::new(Allocated::Most))),
        replica: None,
    },
];

/// Default Kubernetes scheduler over a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Kubernetes {
    nodes: Allocated,
}

impl Kubernetes {
    /// A policy that prefers nodes of which the least, or the most, is allocated.
    pub fn new(nodes: Allocated) -> Self {
        Self { nodes }
    }
}

impl Policy for Kubernetes {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let most_urgent = view.waiting().map(|job| job.request().priority).max();
        let Some(most_urgent) = most_urgent else { return Plan::keep() };
        let preempts = || {
            view.preempts() && view.jobs().any(|job| job.state.is_allocated() && job.request().priority < most_urgent)
        };
        // No accelerator is free, and no waiting job is important enough to evict another.
        if view.total_free() == 0 && !preempts() {
            return Plan::keep();
        }

        let mut snapshot = snapshot(view);
        let mut framework = Framework::new(PrioritySort).with(ResourcesFit(self.nodes), 1).with(NodeAffinity, 2);
        if view.preempts() {
            framework = framework.with(Preemption, 0);
        }
        framework = framework.with(Gang::new(PERMIT_TIMEOUT), 0);
        if let Some(tree) = view.quotas() {
            framework = framework.with(QuotaFit::new(tree.clone(), &snapshot), 0);
        }
        let mut lines = Lines::new(view.shapes());
        view.waiting().for_each(|job| lines.push(job.id(), view.priority(&job)));
        run(view, &mut framework, &mut snapshot, &mut lines.together())
    }

    fn keeps_allocation(&self) -> bool {
        true
    }
}

/// Schedules the queue. A job of a shape that fitted nowhere is not tried again until a pod was
/// evicted.
fn run(view: &ClusterView<'_>, framework: &mut Framework, snapshot: &mut Snapshot, line: &mut Line) -> Plan {
    let (mut plan, mut placed) = (Plan::keep(), BTreeMap::<JobId, BTreeMap<NodeId, u32>>::new());
    while let Some((id, shape)) = line.first() {
        let mut unschedulable = false;
        for pod in view.job(id).into_iter().flat_map(|job| pods(view, &job, view.shapes().get(shape))) {
            unschedulable = framework.schedule(snapshot, &pod) == Scheduled::Unschedulable;
            let given_up = unschedulable;
            for job in framework.take_evicted() {
                plan.set(job, Placement::none());
                line.reopen();
                unschedulable = false;
            }
            for (pod_id, node) in framework.take_bound() {
                // All pods of a job are alike.
                *placed.entry(pod_id.job).or_default().entry(node).or_default() += pod.gpus;
            }
            if given_up {
                break;
            }
        }
        if unschedulable { line.bar() } else { line.pop() }
    }
    for (job, nodes) in placed {
        plan.set(job, nodes.into_iter().collect());
    }
    plan
}

/// Nodes with the pods that run on them.
fn snapshot(view: &ClusterView<'_>) -> Snapshot {
    let mut snapshot = Snapshot::new(view.cluster(), view.free(), view.now);
    for job in view.jobs() {
        for slice in job.state.placement.slices() {
            let resident = Resident {
                job: job.id(),
                tenant: job.request().tenant,
                gpus: slice.gpus,
                priority: job.request().priority,
                since: job.state.changed,
            };
            snapshot.nodes[slice.node.index()].residents.push(resident);
        }
    }
    snapshot
}

/// Pods of a job.
fn pods<'a>(view: &ClusterView<'a>, job: &JobView<'a>, shape: &JobShape) -> impl Iterator<Item = Pod> + use<'a> {
    let (cluster, request, id, kinds) = (view.cluster(), job.request(), job.id(), &shape.kinds);
    let widest = kinds.iter().map(|&kind| cluster.gpus_per_node_of(kind)).max().unwrap_or(1);
    let (members, gpus) = if request.gpus <= widest { (1, request.gpus) } else { (request.gpus, 1) };
    let mut affinity = Affinity::default();
    if kinds.len() < cluster.types.len() {
        let names = kinds.iter().map(|&kind| cluster.types[kind.index()].name.clone()).collect();
        affinity.required.insert("accelerator".into(), names);
    }
    (0..members).map(move |index| Pod {
        id: PodId { job: id, index },
        members,
        tenant: request.tenant,
        priority: request.priority,
        created: request.submit,
        gpus,
        share: None,
        affinity: affinity.clone(),
    })
}
