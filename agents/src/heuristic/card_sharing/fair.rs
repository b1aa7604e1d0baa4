//! Order of tenants by their dominant share of compute and device memory, in which parts count as parts (Ghodsi et al.,
//! DRF, NSDI'11, in its online form: a task is a job, and nothing is preempted).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::view::ClusterView;

use crate::heuristic::drf::{ResourceFraction, dominant_share};

/// Waiting jobs: the next is the oldest of the tenant with the smallest dominant share, the lower tenant on ties.
#[derive(Debug)]
pub struct FairQueue {
    /// Compute of all cards, percent of one, and memory of all cards, MiB.
    capacity: [u64; 2],
    tenants: BTreeMap<u32, PartsTenant>,
    /// Tenants with waiting jobs, by dominant share.
    order: BTreeSet<(ResourceFraction, u32)>,
}

#[derive(Debug, Default)]
struct PartsTenant {
    held: [u64; 2],
    waiting: VecDeque<JobId>,
}

impl FairQueue {
    /// The jobs that wait in `view`, and what tenants hold there.
    pub fn new(view: &ClusterView<'_>) -> Self {
        let mut capacity = [0; 2];
        for node in &view.cluster().nodes {
            let memory = view.cluster().types[node.accelerator.index()].memory_mib.unwrap_or(0);
            capacity[0] += 100 * u64::from(node.gpus);
            capacity[1] += u64::from(node.gpus) * u64::from(memory);
        }
        let mut tenants: BTreeMap<u32, PartsTenant> = BTreeMap::new();
        for job in view.jobs() {
            let tenant = tenants.entry(job.request().tenant).or_default();
            match job.state.is_allocated() {
                true if job.state.counts() => add(&mut tenant.held, view.amounts(&job.state.placement)),
                true => {}
                false => tenant.waiting.push_back(job.id()),
            }
        }
        let mut queue = Self { capacity, tenants, order: BTreeSet::new() };
        let all: Vec<u32> = queue.tenants.keys().copied().collect();
        all.into_iter().for_each(|tenant| queue.offer(tenant));
        queue
    }

    /// The next job. Where it fits nowhere, younger jobs of its tenant pass it.
    pub fn next(&mut self) -> Option<JobId> {
        let (_, tenant) = self.order.pop_first()?;
        let job = self.tenants.get_mut(&tenant)?.waiting.pop_front();
        self.offer(tenant);
        job
    }

    /// Counts what a job of `tenant` takes.
    pub fn placed(&mut self, view: &ClusterView<'_>, tenant: u32, placement: &Placement) {
        let Some(known) = self.tenants.get_mut(&tenant) else { return };
        self.order.remove(&(dominant_share(&known.held, &self.capacity), tenant));
        add(&mut known.held, view.amounts(placement));
        self.offer(tenant);
    }

    fn offer(&mut self, tenant: u32) {
        if let Some(known) = self.tenants.get(&tenant).filter(|known| !known.waiting.is_empty()) {
            self.order.insert((dominant_share(&known.held, &self.capacity), tenant));
        }
    }
}

fn add(held: &mut [u64; 2], more: [u64; 2]) {
    held.iter_mut().zip(more).for_each(|(held, more)| *held += more);
}
