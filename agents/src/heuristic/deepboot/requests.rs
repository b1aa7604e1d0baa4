//! ATS-I: placement of inference requests (DeepBoot, section on the inference scheduler; artifact
//! `InferScheduler`).
//!
//! A request goes to the first of these that exists: an idle instance of its model, the one with
//! most hits; an empty accelerator, on the node with fewest training accelerators; the accelerator
//! of a free instance of another model; one accelerator of a training job, such that the loss
//! leaves the largest sum of speedups.

use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::{Change, Plan};
use goodput_env::request::{Assign, InstanceId, Target};
use goodput_env::view::ClusterView;

use super::speedup::SpeedupTables;

/// Loss of a training job when a request takes one of its accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReclaimLoss {
    /// The job shrinks by one accelerator; below its smallest size it stops.
    #[default]
    OneAccelerator,
    /// The job stops, since its training policy does not change sizes.
    WholeJob,
}

/// DeepBoot's inference scheduler. It adds to a plan, and reads the cluster as after that plan.
#[derive(Clone, Debug, Default)]
pub struct RequestScheduler {
    loss: ReclaimLoss,
    goodputs: SpeedupTables,
    /// By node, after the plan so far: accelerators without a job and without an instance in use,
    /// and free instances.
    free: Vec<u32>,
    sleeping: Vec<u32>,
    training: Vec<u32>,
    /// Jobs and their placements after the plan so far.
    jobs: Vec<(JobId, Placement)>,
    /// Nodes that may answer requests; `None`: all of them.
    nodes: Option<Vec<bool>>,
}

impl RequestScheduler {
    /// This scheduler with another loss of training jobs.
    #[must_use]
    pub fn with_loss(self, loss: ReclaimLoss) -> Self {
        Self { loss, ..self }
    }

    /// This scheduler with instances on the given nodes only.
    #[must_use]
    pub fn on(self, nodes: Vec<bool>) -> Self {
        Self { nodes: Some(nodes), ..self }
    }

    /// Answers as many waiting requests as possible, first come first served.
    pub fn place(&mut self, view: &ClusterView<'_>, plan: &mut Plan) {
        if view.waiting_requests().is_empty() {
            return;
        }
        self.load(view, plan);
        let mut full = false;
        let mut idle = view.instances().idle();
        for &request in view.waiting_requests() {
            // Without room for new instances, only idle ones can answer more requests.
            if full && idle == 0 {
                break;
            }
            let Some(model) = view.request(request).map(|request| request.model) else { continue };
            let target = match self.warm(view, model, plan) {
                Some(target) => {
                    idle = idle.saturating_sub(1);
                    Some(target)
                }
                None if full => None,
                None => self.somewhere(view, plan),
            };
            match target {
                Some(target) => plan.assign.push(Assign { request, target }),
                None => full = true,
            }
        }
    }

    fn load(&mut self, view: &ClusterView<'_>, plan: &Plan) {
        self.free.clear();
        // At home a server of the inference pool is not training's to take, but requests may.
        let nodes = view.cluster().node_ids();
        let open = |node| if view.may_serve(node) { view.idle_on(node) } else { view.free_on(node) };
        self.free.extend(nodes.map(open));
        self.sleeping.clear();
        self.sleeping.extend(NodeId::first(view.free().len()).map(|node| view.instances().sleeping_on(node)));
        self.training.clear();
        self.training.resize(view.free().len(), 0);
        self.jobs.clear();
        for job in view.jobs() {
            let held = &job.state.placement;
            let change = plan.changes.iter().find(|change| change.job == job.id());
            let after = change.map_or(held, |change| &change.placement);
            // Changes are applied job by job, so a count may pass below 0 and come back: it wraps.
            if change.is_some() {
                for slice in held.slices() {
                    self.free[slice.node.index()] = self.free[slice.node.index()].wrapping_add(slice.gpus);
                }
                for slice in after.slices() {
                    self.free[slice.node.index()] = self.free[slice.node.index()].wrapping_sub(slice.gpus);
                }
            }
            for slice in after.slices() {
                self.training[slice.node.index()] += slice.gpus;
            }
            if !after.is_empty() {
                self.jobs.push((job.id(), after.clone()));
            }
        }
        // A free instance ends where its accelerator is taken.
        for (sleeping, free) in self.sleeping.iter_mut().zip(&self.free) {
            *sleeping = (*sleeping).min(*free);
        }
    }

    /// Idle instance of the model: the one with most hits, protected before free, the lowest id of
    /// those.
    fn warm(&mut self, view: &ClusterView<'_>, model: u16, plan: &Plan) -> Option<Target> {
        let named = |id: InstanceId| plan.assign.iter().any(|assign| assign.target == Target::Instance(id));
        let idle = view.instances().of_model(model).filter(|(id, instance)| {
            instance.is_idle()
                && !named(*id)
                && (!instance.is_free() || self.sleeping[instance.node.index()] > 0)
                && stays_open(view, plan, instance.node)
        });
        let (_, _, id, node) = idle
            .map(|(id, instance)| (std::cmp::Reverse(instance.hits), instance.is_free(), id, instance.node))
            .min_by_key(|&(hits, free, id, _)| (hits, free, id))?;
        if view.instances().get(id)?.is_free() {
            self.free[node.index()] -= 1;
            self.sleeping[node.index()] -= 1;
        }
        Some(Target::Instance(id))
    }

    /// Node for a new instance.
    fn somewhere(&mut self, view: &ClusterView<'_>, plan: &mut Plan) -> Option<Target> {
        let nodes = || (0..self.free.len()).filter(|&node| self.serves(view, plan, NodeId::at(node)));
        let fewest = |node: &usize| (self.training[*node], *node);
        let empty = nodes().filter(|&node| self.free[node] > self.sleeping[node]).min_by_key(fewest);
        let node = match empty.or_else(|| nodes().filter(|&node| self.free[node] > 0).min_by_key(fewest)) {
            Some(node) => node,
            None => self.take(view, plan)?.index(),
        };
        self.free[node] -= 1;
        // Where no empty accelerator was left, an instance that slept on one ends.
        self.sleeping[node] = self.sleeping[node].min(self.free[node]);
        Some(Target::Node(NodeId::at(node)))
    }

    /// Takes an accelerator from training, and returns its node.
    fn take(&mut self, view: &ClusterView<'_>, plan: &mut Plan) -> Option<NodeId> {
        let gpus: u32 = self.training.iter().sum();
        let fair = gpus.div_ceil(view.active().max(1) as u32).max(1);
        let mut best: Option<(f64, usize, NodeId)> = None;
        for (at, (id, held)) in self.jobs.iter().enumerate() {
            let Some(job) = view.job(*id) else { continue };
            let now = self.goodputs.speedup(&job, held.nodes(), held.gpus(), fair);
            for slice in held.slices() {
                let allowed = self.serves(view, plan, slice.node);
                let after = self.left(job.min_gpus(), held, slice.node);
                let loss = now - self.goodputs.speedup(&job, after.nodes(), after.gpus(), fair);
                if allowed && best.is_none_or(|(least, ..)| loss < least) {
                    best = Some((loss, at, slice.node));
                }
            }
        }
        let (_, at, node) = best?;
        let (id, held) = self.jobs[at].clone();
        let after = self.left(view.job(id)?.min_gpus(), &held, node);
        for slice in held.slices() {
            self.free[slice.node.index()] += slice.gpus;
            self.training[slice.node.index()] -= slice.gpus;
        }
        for slice in after.slices() {
            self.free[slice.node.index()] -= slice.gpus;
            self.training[slice.node.index()] += slice.gpus;
        }
        plan.changes.retain(|change| change.job != id);
        plan.changes.push(Change { job: id, placement: after.clone(), partner: None });
        match after.is_empty() {
            true => drop(self.jobs.remove(at)),
            false => self.jobs[at].1 = after,
        }
        Some(node)
    }

    /// Whether new instances may be on `node`.
    fn serves(&self, view: &ClusterView<'_>, plan: &Plan, node: NodeId) -> bool {
        let chosen = self.nodes.as_ref().is_none_or(|nodes| nodes.get(node.index()) == Some(&true));
        chosen && stays_open(view, plan, node)
    }

    /// Placement of a job that loses an accelerator of `node`.
    fn left(&self, min: u32, held: &Placement, node: NodeId) -> Placement {
        if self.loss == ReclaimLoss::WholeJob || held.gpus() <= min {
            return Placement::none();
        }
        held.slices().iter().map(|slice| (slice.node, slice.gpus - u32::from(slice.node == node))).collect()
    }
}

/// Whether requests may be answered on `node` now and after the plan. The guard lets nothing start
/// on a server that the plan lends or calls back.
fn stays_open(view: &ClusterView<'_>, plan: &Plan, node: NodeId) -> bool {
    view.may_answer(node) && !plan.lend.contains(&node) && plan.reclaim.iter().all(|reclaim| reclaim.node != node)
}
