//! Aryl (Li et al., arXiv:2202.07896; as Lyra, EuroSys'23): elastic training on servers that
//! inference lends.
//!
//! Training scheduler of Aryl. As many jobs as possible get their base demand, the shortest first;
//! then flexible workers go where they cut most remaining time; workers are placed by groups of
//! servers. [`crate::compose::loaning`] decides how many servers are lent and which return, so that
//! every other scheduler can borrow servers as well. Jobs are preempted by returns only.
//!
//! DeepBoot's `aryl.py` is no baseline for Aryl: it has no first phase, so the longest jobs win,
//! and its saving is off by one.

mod mixed;
mod phases;
mod placing;

pub use phases::{ArylDemand, ArylPhases};
pub use placing::{ArylServer, ArylServers, WorkerRole, fragmentation, workers};

use goodput_env::cluster::TypeId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::scenario::Information;
use goodput_env::view::{ClusterView, JobView};

use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};

/// Entries of Aryl in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "aryl",
    about: "shortest first at base demand, then flexible workers where they save most time",
    source: "Li et al. (Aryl), arXiv:2202.07896; Lyra, EuroSys 2023",
    traits: Traits { preemptive: false, elastic: true, heterogeneous: false },
    constructor: &Fixed(|_| Box::new(Aryl::default())),
    replica: None,
}];

/// Aryl's training scheduler over a cluster with lent servers.
#[derive(Clone, Debug, Default)]
pub struct Aryl {
    phases: ArylPhases,
    servers: ArylServers,
    demands: Vec<ArylDemand>,
}

impl Policy for Aryl {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let jobs: Vec<JobView<'_>> = view.jobs().collect();
        self.demands.clear();
        self.demands.extend(jobs.iter().map(demand));
        let held: u32 = jobs.iter().map(JobView::gpus).sum();
        let granted =
            self.phases.allocate(&self.demands, view.total_free() + held, |at, gpus| jobs[at].remaining_secs(gpus));
        self.place(view, &jobs, &granted)
    }

    fn scope(&self) -> Scope {
        Scope::Borrowing
    }

    fn information(&self) -> Information {
        self.needs()
    }

    fn needs(&self) -> Information {
        Information::Estimate { sigma: 0.0 }
    }
}

fn demand(job: &JobView<'_>) -> ArylDemand {
    let (base, running) = (job.min_gpus(), job.gpus() > 0);
    let most = job.max_gpus().max(base);
    // A running job that cannot grow keeps its size, so its remaining time does not matter.
    let secs = if running && most == base { Some(0.0) } else { job.remaining_secs(base) };
    ArylDemand { job: job.id(), base, most, secs: secs.unwrap_or(f64::INFINITY), running }
}

impl Aryl {
    fn place(&mut self, view: &ClusterView<'_>, jobs: &[JobView<'_>], granted: &[u32]) -> Plan {
        let servers = &mut self.servers;
        servers.reset(view.cluster(), view.free(), |node| view.lent(node));
        // Of its own type, where a job is on several.
        let own: Vec<Option<Placement>> = jobs.iter().map(|job| mixed::own(view, job)).collect();
        let held_by = |at: usize| own[at].as_ref().unwrap_or(&jobs[at].state.placement);
        for (at, job) in jobs.iter().enumerate().filter(|(_, job)| job.gpus() > 0) {
            servers.occupy(held_by(at), job.min_gpus());
            if own[at].is_some() {
                servers.give_up(&job.state.placement, job.kind());
            }
        }
        let mut plan = Plan::keep();
        let (mut starting, mut growing) = (Vec::new(), Vec::new());
        for (at, (job, &gpus)) in jobs.iter().zip(granted).enumerate() {
            let held = held_by(at).gpus();
            if held > gpus {
                // A running job keeps its base demand, so only flexible workers go.
                plan.set(job.id(), servers.scale_in(held_by(at), gpus.max(job.min_gpus())));
            } else if held == 0 && gpus > 0 {
                starting.push((job, gpus));
            } else if gpus > held {
                growing.push((at, job, gpus));
            }
        }
        // Largest workers first; equal ones in order of submission.
        let per_server = view.cluster().gpus_per_node();
        starting.sort_by_key(|(job, _)| std::cmp::Reverse(worker_of(job, per_server)));
        let mut started = Vec::with_capacity(starting.len());
        for (job, gpus) in starting {
            if let Some((placement, kind)) = start(view, servers, job, per_server) {
                started.push((job, gpus, placement, kind));
            }
        }
        // Flexible workers come after all base demands, which must not lose a place to them.
        for (job, gpus, mut placement, kind) in started {
            grow(servers, &mut placement, kind, gpus);
            plan.set(job.id(), placement);
        }
        for (at, job, gpus) in growing {
            let mut placement = held_by(at).clone();
            grow(servers, &mut placement, job.kind(), gpus);
            if placement.gpus() > held_by(at).gpus() {
                plan.set(job.id(), placement);
            }
        }
        mixed::extend(view, jobs, granted, servers, &mut plan);
        plan
    }
}

/// Accelerators of one worker: up to a server's for an inelastic job, one for an elastic job.
fn worker_of(job: &JobView<'_>, per_server: u32) -> u32 {
    if is_elastic(job) { 1 } else { job.min_gpus().min(per_server) }
}

fn is_elastic(job: &JobView<'_>) -> bool {
    job.min_gpus() < job.request().max_gpus()
}

/// Places a job's base demand on the first type of accelerator on which it fits.
fn start(
    view: &ClusterView<'_>,
    servers: &mut ArylServers,
    job: &JobView<'_>,
    per_server: u32,
) -> Option<(Placement, TypeId)> {
    let role = if is_elastic(job) { WorkerRole::Base } else { WorkerRole::Inelastic };
    let sizes = workers(job.min_gpus(), worker_of(job, per_server));
    let kinds = view.cluster().type_ids().filter(|&kind| job.runs_on(kind));
    kinds.into_iter().find_map(|kind| {
        let mut placement = Placement::none();
        servers.place(&mut placement, kind, role, &sizes).then_some((placement, kind))
    })
}

/// Adds flexible workers up to `gpus`, as many as find a place.
fn grow(servers: &mut ArylServers, placement: &mut Placement, kind: TypeId, gpus: u32) {
    while placement.gpus() < gpus && servers.place(placement, kind, WorkerRole::Flexible, &[1]) {}
}
