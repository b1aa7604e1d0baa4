//! Placement of workers on servers: best-fit decreasing within groups of servers (Aryl,
//! arXiv:2202.07896, section 5).
//!
//! A worker is a set of accelerators that must be on one server: up to a whole server for an
//! inelastic job, one accelerator of an elastic job. The largest workers are placed first, each on
//! the fullest server with room, so that large holes stay whole. Inelastic jobs prefer training's
//! own servers, because a return would preempt them. Elastic jobs prefer lent servers, with
//! flexible workers on other servers than base workers, so that the former can return without a
//! preemption.

use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::placement::Placement;

/// Role of a worker in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerRole {
    /// Worker of a job that runs on all accelerators that it asked for or not at all.
    Inelastic,
    /// Worker of an elastic job's base demand.
    Base,
    /// Worker of an elastic job that goes on without it.
    Flexible,
}

/// Server during placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArylServer {
    /// Accelerators that no worker holds.
    pub free: u32,
    /// Accelerators in all.
    pub gpus: u32,
    /// Type of accelerator.
    pub kind: TypeId,
    /// Whether the inference cluster lends the server.
    pub lent: bool,
    /// Accelerators of workers that only a preemption removes.
    pub base: u32,
    /// Accelerators of flexible workers.
    pub flexible: u32,
}

/// Servers by node, filled while a plan is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArylServers(pub Vec<ArylServer>);

impl ArylServers {
    /// Starts from `free` accelerators by node; `lent` says which servers are lent.
    pub fn reset(&mut self, cluster: &Cluster, free: &[u32], lent: impl Fn(NodeId) -> bool) {
        self.0.clear();
        self.0.extend(cluster.nodes.iter().zip(free).zip(cluster.node_ids()).map(|((node, &free), id)| {
            let (gpus, kind) = (node.gpus, node.accelerator);
            ArylServer { free, gpus, kind, lent: lent(id), base: 0, flexible: 0 }
        }));
    }

    /// Counts what a job holds: the first `base` accelerators of its placement are its base demand,
    /// the others are flexible.
    pub fn occupy(&mut self, placement: &Placement, base: u32) {
        let mut left = base;
        for slice in placement.slices() {
            let firm = left.min(slice.gpus);
            left -= firm;
            let server = &mut self.0[slice.node.index()];
            server.base += firm;
            server.flexible += slice.gpus - firm;
        }
    }

    /// Counts the accelerators of other types than `kind` that a job holds as free, on servers that training may use.
    pub fn give_up(&mut self, placement: &Placement, kind: TypeId) {
        for slice in placement.slices() {
            let server = &mut self.0[slice.node.index()];
            let given = server.kind != kind && server.gpus > 0;
            server.free += if given { slice.gpus } else { 0 };
        }
    }

    /// Takes up to `gpus` free accelerators of a server for flexible workers, and returns how many there were.
    pub fn take_flexible(&mut self, node: NodeId, gpus: u32) -> u32 {
        let server = &mut self.0[node.index()];
        let taken = gpus.min(server.free);
        server.free -= taken;
        server.flexible += taken;
        taken
    }

    /// Frees the flexible accelerators of a job from the `keep`-th on, and returns what is left of
    /// its placement.
    pub fn scale_in(&mut self, placement: &Placement, keep: u32) -> Placement {
        let mut left = keep;
        let kept = placement.slices().iter().map(|slice| {
            let here = left.min(slice.gpus);
            left -= here;
            let server = &mut self.0[slice.node.index()];
            server.free += slice.gpus - here;
            server.flexible -= (slice.gpus - here).min(server.flexible);
            (slice.node, here)
        });
        kept.collect()
    }

    /// Places workers of the given sizes on servers of type `kind`, and adds them to `placement`.
    /// Returns `false` and changes nothing where one of them finds no place.
    pub fn place(&mut self, placement: &mut Placement, kind: TypeId, role: WorkerRole, workers: &[u32]) -> bool {
        let mut added: Vec<(NodeId, u32)> = Vec::with_capacity(workers.len());
        for &gpus in workers {
            match self.best_fit(kind, role, gpus) {
                Some(node) => {
                    self.put(node, role, gpus);
                    added.push((node, gpus));
                }
                None => {
                    // A job starts with all of its workers or not at all.
                    added.into_iter().for_each(|(node, gpus)| self.remove_workers(node, role, gpus));
                    return false;
                }
            }
        }
        *placement = merged(placement, &added);
        true
    }

    /// Server for one worker: by group, then used before empty, then the fullest, then the lowest
    /// id.
    fn best_fit(&self, kind: TypeId, role: WorkerRole, gpus: u32) -> Option<NodeId> {
        let fits = self.0.iter().enumerate().filter(|(_, server)| server.kind == kind && server.free >= gpus);
        // Used servers before empty ones: an empty server can take a large worker, or go home at once.
        let rank = |server: &ArylServer| (server.group_for(role), server.free == server.gpus, server.free);
        fits.min_by_key(|(_, server)| rank(server)).map(|(node, _)| NodeId::at(node))
    }

    fn put(&mut self, node: NodeId, role: WorkerRole, gpus: u32) {
        let server = &mut self.0[node.index()];
        server.free -= gpus;
        *if role == WorkerRole::Flexible { &mut server.flexible } else { &mut server.base } += gpus;
    }

    fn remove_workers(&mut self, node: NodeId, role: WorkerRole, gpus: u32) {
        let server = &mut self.0[node.index()];
        server.free += gpus;
        *if role == WorkerRole::Flexible { &mut server.flexible } else { &mut server.base } -= gpus;
    }
}

impl ArylServer {
    /// Rank of the server for workers of `role`; lower is better.
    fn group_for(&self, role: WorkerRole) -> u8 {
        match (role, self.lent) {
            (WorkerRole::Inelastic, false) => 0,
            (WorkerRole::Inelastic, true) | (WorkerRole::Base, true) => u8::from(self.flexible > 0) + 1,
            (WorkerRole::Flexible, true) => u8::from(self.base > 0) + 1,
            (WorkerRole::Base | WorkerRole::Flexible, false) => 3,
        }
    }
}

/// Sizes of the workers that make up `gpus` accelerators, largest first.
pub fn workers(gpus: u32, per_server: u32) -> Vec<u32> {
    let per_server = per_server.max(1);
    let mut sizes = vec![per_server; (gpus / per_server) as usize];
    sizes.extend(Some(gpus % per_server).filter(|rest| *rest > 0));
    sizes
}

/// Fraction of the free accelerators on servers with fewer free than `largest_worker` needs, in [0,
/// 1]: free, but of no use to the largest waiting worker. 0 where nothing is free.
pub fn fragmentation(free: &[u32], largest_worker: u32) -> f64 {
    let total: u32 = free.iter().sum();
    let stranded: u32 = free.iter().filter(|&&free| free < largest_worker).sum();
    if total == 0 { 0.0 } else { f64::from(stranded) / f64::from(total) }
}

/// `placement` followed by `added`, each server once.
fn merged(placement: &Placement, added: &[(NodeId, u32)]) -> Placement {
    let mut slices: Vec<(NodeId, u32)> = placement.slices().iter().map(|slice| (slice.node, slice.gpus)).collect();
    for &(node, gpus) in added {
        match slices.iter_mut().find(|(known, _)| *known == node) {
            Some((_, held)) => *held += gpus,
            None => slices.push((node, gpus)),
        }
    }
    slices.into_iter().collect()
}
