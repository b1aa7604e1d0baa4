//! Shortest remaining time first, preemptive: optimal for one server (Schrage 1968), and the bar for mean completion time here.
//!
//! The rigid form runs jobs at the size they asked for. A job that does not fit is passed over, so the narrow may go past the wide.
//! The two-dimensional form orders by remaining accelerator time instead, so that a wide job must be short to go first (SRSF in
//! Gu et al., NSDI'19). The elastic form gives the shortest job all that makes it faster before the next one gets anything: the strawman of
//! Hwang et al. (AFS, NSDI'21), which wastes accelerators on jobs that scale badly.
//!
//! Waiting costs a job nothing and running makes it shorter, so between churn the order changes only among running jobs.

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::view::{ClusterView, Information, JobView};

use crate::heuristic::{Listed, Traits};
use crate::placement::{Free, Packer};

/// In the list of policies.
pub const LISTED: &[Listed] = &[
    Listed {
        name: "srtf",
        about: "preemptive, least remaining time first, at the requested size",
        source: "Schrage, Operations Research 1968",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        build: |_| Box::new(Srtf::new(Shortest::Time)),
        replica: None,
    },
    Listed {
        name: "srsf",
        about: "preemptive, least remaining accelerator time first, at the requested size",
        source: "Gu et al. (Tiresias), NSDI 2019",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        build: |_| Box::new(Srtf::new(Shortest::Service)),
        replica: None,
    },
    Listed {
        name: "srtf-elastic",
        about: "preemptive, least remaining time first, each job as large as it can be",
        source: "Hwang et al. (AFS), NSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        build: |_| Box::new(Srtf::new(Shortest::ElasticTime)),
        replica: None,
    },
];

/// What is shortest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shortest {
    /// Seconds left at the requested size.
    #[default]
    Time,
    /// Accelerator seconds left at the requested size.
    Service,
    /// Seconds left on the fewest accelerators; the job then gets all that makes it faster.
    ElasticTime,
}

/// The policy; ties and jobs of unknown length go by (submission, id), the latter last.
#[derive(Clone, Debug, Default)]
pub struct Srtf {
    shortest: Shortest,
    free: Free,
    order: Vec<Entry>,
    placed: Vec<(JobId, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Bits of a non-negative float: they sort like the float and faster.
    key: u64,
    job: JobId,
    min: u32,
    max: u32,
    held: u32,
}

impl Srtf {
    /// With the given order.
    pub fn new(shortest: Shortest) -> Self {
        Self { shortest, ..Self::default() }
    }

    fn entry(&self, job: &JobView<'_>, capacity: u32) -> Entry {
        let request = job.request();
        let (min, max) = match self.shortest {
            Shortest::Time | Shortest::Service => (request.gpus, request.gpus),
            Shortest::ElasticTime => (job.min_gpus(), fastest_size(job, capacity)),
        };
        let weight = if self.shortest == Shortest::Service { f64::from(min) } else { 1.0 };
        let key = job.remaining_secs(min).map_or(f64::INFINITY, |secs| secs * weight);
        Entry { key: key.to_bits(), job: job.id(), min, max, held: job.gpus() }
    }
}

/// The smallest size at which the job is as fast as it gets; past that more replicas slow it down.
fn fastest_size(job: &JobView<'_>, capacity: u32) -> u32 {
    let sizes = job.min_gpus()..=job.max_gpus().min(capacity).max(job.min_gpus());
    let rates = sizes.map(|gpus| (job.rate(gpus).unwrap_or(0.0), gpus));
    rates.reduce(|best, next| if next.0 > best.0 { next } else { best }).map_or(job.min_gpus(), |(_, gpus)| gpus)
}

impl Policy for Srtf {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let capacity = view.cluster().total_gpus();
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(view.jobs().map(|job| self.entry(&job, capacity)));
        order.sort_unstable_by_key(|entry| (entry.key, entry.job));

        let mut left = view.total_free() + order.iter().map(|entry| entry.held).sum::<u32>();
        let mut plan = Plan::keep();
        self.free.reset(view.free());
        self.placed.clear();
        for entry in &order {
            let gpus = if entry.min <= left { entry.max.min(left) } else { 0 };
            left -= gpus;
            if gpus == entry.held {
                continue;
            }
            if let Some(job) = view.job(entry.job).filter(|_| entry.held > 0) {
                self.free.release(&job.state.placement);
            }
            match gpus {
                0 => plan.set(entry.job, Placement::none()),
                _ => self.placed.push((entry.job, gpus)),
            }
        }
        for &(job, gpus) in &self.placed {
            let placement = Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus);
            plan.set(job, placement.unwrap_or_else(Placement::none));
        }
        self.order = order;
        plan
    }

    fn information(&self) -> Information {
        Information::Estimate { sigma: 0.0 }
    }

    fn needs(&self) -> Information {
        Information::Estimate { sigma: 0.0 }
    }
}
