//! Aryl (Li et al., arXiv:2202.07896; as Lyra, EuroSys'23): elastic training on servers that inference lends.
//!
//! This is its training scheduler: as many jobs as possible at their base demand, the shortest first; then flexible workers where they cut most
//! remaining time; workers placed by groups of servers. How many servers are lent, and which return, is decided in [`crate::compose::loaning`], so that
//! every other scheduler here can have the same. Nobody is preempted but by a return.
//!
//! DeepBoot's `aryl.py` is no baseline for it: it has no first phase, so the longest jobs win, and its saving is off by one.

mod phases;
mod placing;

pub use phases::{Demand, Phases};
pub use placing::{Role, Server, Servers, fragmentation, workers};

use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::view::{ClusterView, Information, JobView};

use crate::heuristic::{Listed, Traits};

/// In the list of policies.
pub const LISTED: &[Listed] = &[Listed {
    name: "aryl",
    about: "shortest first at base demand, then flexible workers where they save most time",
    source: "Li et al. (Aryl), arXiv:2202.07896; Lyra, EuroSys 2023",
    traits: Traits { preemptive: false, elastic: true, heterogeneous: false },
    build: |_| Box::new(Aryl::default()),
    replica: None,
}];

/// The policy.
#[derive(Clone, Debug, Default)]
pub struct Aryl {
    phases: Phases,
    servers: Servers,
    demands: Vec<Demand>,
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

fn demand(job: &JobView<'_>) -> Demand {
    let (base, running) = (job.min_gpus(), job.gpus() > 0);
    let most = job.max_gpus().max(base);
    // Nobody asks how long a job still takes that runs on all it can use.
    let secs = if running && most == base { Some(0.0) } else { job.remaining_secs(base) };
    Demand { job: job.id(), base, most, secs: secs.unwrap_or(f64::INFINITY), running }
}

impl Aryl {
    fn place(&mut self, view: &ClusterView<'_>, jobs: &[JobView<'_>], granted: &[u32]) -> Plan {
        let servers = &mut self.servers;
        servers.reset(view.cluster(), view.free(), |node| view.lent(node));
        for job in jobs.iter().filter(|job| job.gpus() > 0) {
            servers.occupy(&job.state.placement, job.min_gpus());
        }
        let mut plan = Plan::keep();
        let (mut starting, mut growing) = (Vec::new(), Vec::new());
        for (job, &gpus) in jobs.iter().zip(granted) {
            let held = job.gpus();
            if held > gpus {
                // Who runs keeps its base, so this is flexible workers only.
                plan.set(job.id(), servers.scale_in(&job.state.placement, gpus.max(job.min_gpus())));
            } else if held == 0 && gpus > 0 {
                starting.push((job, gpus));
            } else if gpus > held {
                growing.push((job, gpus));
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
        for (job, gpus, mut placement, kind) in started {
            grow(servers, &mut placement, kind, gpus);
            plan.set(job.id(), placement);
        }
        for (job, gpus) in growing {
            let mut placement = job.state.placement.clone();
            grow(servers, &mut placement, job.kind(), gpus);
            if placement.gpus() > job.gpus() {
                plan.set(job.id(), placement);
            }
        }
        plan
    }
}

/// Accelerators that have to be on one server: all of an inelastic job's up to a server, one of an elastic job's.
fn worker_of(job: &JobView<'_>, per_server: u32) -> u32 {
    if is_elastic(job) { 1 } else { job.min_gpus().min(per_server) }
}

fn is_elastic(job: &JobView<'_>) -> bool {
    job.min_gpus() < job.request().max_gpus()
}

/// Places a job's base demand on the first type of accelerator on which it fits.
fn start(
    view: &ClusterView<'_>,
    servers: &mut Servers,
    job: &JobView<'_>,
    per_server: u32,
) -> Option<(Placement, u16)> {
    let role = if is_elastic(job) { Role::Base } else { Role::Inelastic };
    let sizes = workers(job.min_gpus(), worker_of(job, per_server));
    let kinds = (0..view.cluster().types.len() as u16).filter(|&kind| job.runs_on(kind));
    kinds.into_iter().find_map(|kind| {
        let mut placement = Placement::none();
        servers.place(&mut placement, kind, role, &sizes).then_some((placement, kind))
    })
}

/// Adds flexible workers up to `gpus`, as many as find a place.
fn grow(servers: &mut Servers, placement: &mut Placement, kind: u16, gpus: u32) {
    while placement.gpus() < gpus && servers.place(placement, kind, Role::Flexible, &[1]) {}
}
