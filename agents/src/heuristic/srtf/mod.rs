//! Shortest remaining time first, preemptive: optimal for one server (Schrage 1968), and the
//! reference for mean completion time here.
//!
//! The rigid form runs jobs at the size they asked for. A job that does not fit is passed over, so
//! narrow jobs may go past wide ones. The two-dimensional form orders by remaining accelerator time
//! instead, so that a wide job must be short to go first; the last form goes by width alone (SRSF
//! and SF in Gu et al., NSDI'19). The elastic form gives the shortest job all accelerators that
//! make it faster before the next job gets any: the strawman of Hwang et al. (AFS, NSDI'21), which
//! wastes accelerators on jobs that scale badly.
//!
//! Waiting costs a job nothing and running makes it shorter, so between churn the order changes
//! only among running jobs. By time and by accelerator time, a decision therefore looks at the jobs that changed, and
//! at those with most left, as `order.rs` says.
//!
//! `srtf@replica` and `srsf@replica` follow the Tiresias simulator; `departures.rs` has what differs.

mod departures;
mod order;

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::view::{ClusterView, JobView};

use crate::allocation::passing::Verdict;
use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::{Free, Packer, Yarn};
use departures::TiresiasSrtf;
pub(crate) use departures::keep_line;
use order::KeptOrder;

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "smallest-first",
        about: "preemptive, fewest accelerators asked for first",
        source: "SF in Gu et al. (Tiresias), NSDI 2019; `sjf` of its simulator",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Srtf::new(Shortest::Size))),
        replica: None,
    },
    ListedPolicy {
        name: "srtf",
        about: "preemptive, least remaining time first, at the requested size",
        source: "Schrage, Operations Research 1968; `shortest` of the Tiresias simulator",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Srtf::new(Shortest::Time))),
        replica: Some(|_| Box::new(Srtf::artifact(Shortest::Time))),
    },
    ListedPolicy {
        name: "srsf",
        about: "preemptive, least remaining accelerator time first, at the requested size",
        source: "Gu et al. (Tiresias), NSDI 2019; `shortest-gpu` of its simulator",
        traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Srtf::new(Shortest::Service))),
        replica: Some(|_| Box::new(Srtf::artifact(Shortest::Service))),
    },
    ListedPolicy {
        name: "srtf-elastic",
        about: "preemptive, least remaining time first, each job as large as it can be",
        source: "Hwang et al. (AFS), NSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Srtf::new(Shortest::ElasticTime))),
        replica: None,
    },
];

/// Measure by which the shortest job goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shortest {
    /// Accelerators asked for, whatever the length.
    Size,
    /// Seconds left at the requested size.
    #[default]
    Time,
    /// Accelerator seconds left at the requested size.
    Service,
    /// Seconds left on the fewest accelerators; the job then gets all that make it faster.
    ElasticTime,
}

/// Shortest remaining time first over a cluster. Ties and jobs of unknown length go by (submission,
/// id), the latter last.
#[derive(Clone, Debug, Default)]
pub struct Srtf {
    shortest: Shortest,
    /// Behaviour of the Tiresias simulator; `None`: the rule as published.
    artifact: Option<TiresiasSrtf>,
    order: KeptOrder,
    admission: Admission,
    keyed: Vec<(u64, AcceleratorDemand)>,
    asks: Vec<AcceleratorDemand>,
}

impl Srtf {
    /// A policy with the given measure.
    pub fn new(shortest: Shortest) -> Self {
        Self { shortest, ..Self::default() }
    }

    /// A policy that behaves as the Tiresias simulator: equal jobs keep the order that they got when they last
    /// differed, instead of going by submission.
    pub fn artifact(shortest: Shortest) -> Self {
        Self { artifact: Some(TiresiasSrtf::default()), ..Self::new(shortest) }
    }

    /// Artifact with the simulator's placement: the cluster is emptied and filled again under `scheme` at every
    /// event.
    #[must_use]
    pub fn placed_anew_by(self, scheme: Yarn) -> Self {
        Self { artifact: Some(TiresiasSrtf::placed_anew_by(scheme)), ..self }
    }
}

impl Shortest {
    /// Demand of a job and its key: the least goes first.
    fn demand(self, job: &JobView<'_>, capacity: u32) -> (u64, AcceleratorDemand) {
        let request = job.request();
        let (min, max) = match self {
            Self::ElasticTime => (job.min_gpus(), fastest_size(job, capacity)),
            _ => (request.gpus, request.gpus),
        };
        // The bits of a non-negative float sort like the float, and faster.
        (self.key(job, min).to_bits(), AcceleratorDemand { job: job.id(), min, max, held: job.gpus() })
    }

    /// Key of a job that runs on `gpus` accelerators.
    fn key(self, job: &JobView<'_>, gpus: u32) -> f64 {
        match self {
            Self::Size => f64::from(gpus),
            _ => job.remaining_secs(gpus).map_or(f64::INFINITY, |secs| self.weighted(secs, gpus)),
        }
    }

    /// Key of a job with `secs` seconds left on `gpus` accelerators.
    fn weighted(self, secs: f64, gpus: u32) -> f64 {
        if self == Self::Service { secs * f64::from(gpus) } else { secs }
    }

    /// Whether keys only change with what is left of jobs of a given size.
    fn is_kept(self) -> bool {
        matches!(self, Self::Time | Self::Service)
    }
}

/// Smallest size at which the job is as fast as it gets; more replicas slow it down.
fn fastest_size(job: &JobView<'_>, capacity: u32) -> u32 {
    let sizes = job.min_gpus()..=job.max_gpus().min(capacity).max(job.min_gpus());
    let rates = sizes.map(|gpus| (job.rate(gpus).unwrap_or(0.0), gpus));
    rates.reduce(|best, next| if next.0 > best.0 { next } else { best }).map_or(job.min_gpus(), |(_, gpus)| gpus)
}

impl Policy for Srtf {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        if self.artifact.is_none()
            && self.shortest.is_kept()
            && let Some(verdicts) = self.order.admit(view, self.shortest)
        {
            return self.admission.carry_out(view, &verdicts);
        }
        let capacity = view.cluster().total_gpus();
        let mut keyed = std::mem::take(&mut self.keyed);
        keyed.clear();
        let demand = |job: &JobView<'_>| self.shortest.demand(job, capacity);
        match &mut self.artifact {
            Some(artifact) => artifact.line_up(view, demand, &mut keyed),
            None => {
                keyed.extend(view.jobs().map(|job| demand(&job)));
                keyed.sort_unstable_by_key(|(key, ask)| (*key, ask.job));
            }
        }
        self.asks.clear();
        self.asks.extend(keyed.iter().map(|(_, ask)| *ask));
        self.keyed = keyed;
        let anew = self.artifact.as_mut().and_then(|artifact| artifact.place_anew(view, &self.asks));
        anew.unwrap_or_else(|| self.admission.admit(view, &self.asks, |_, _| {}))
    }

    fn information(&self) -> Information {
        self.needs()
    }

    fn needs(&self) -> Information {
        match self.shortest {
            Shortest::Size => Information::Profiled,
            _ => Information::Estimate { sigma: 0.0 },
        }
    }
}

/// Accelerators that a job asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceleratorDemand {
    pub job: JobId,
    /// Fewest accelerators that the job runs on.
    pub min: u32,
    /// Most accelerators that the job is to get.
    pub max: u32,
    /// Accelerators that the job holds.
    pub held: u32,
}

/// Admission of jobs in order of priority, which passes over jobs that do not fit. Jobs that keep
/// their size keep their nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admission {
    free: Free,
    /// Job, accelerators that the job is to get, and fewest that it runs on.
    placed: Vec<(JobId, u32, u32)>,
}

impl Admission {
    /// Plan that admits `asks`; calls `granted` with each job and its number of accelerators.
    pub fn admit(
        &mut self,
        view: &ClusterView<'_>,
        asks: &[AcceleratorDemand],
        mut granted: impl FnMut(JobId, u32),
    ) -> Plan {
        let mut left = view.total_free() + asks.iter().map(|ask| ask.held).sum::<u32>();
        let mut plan = Plan::keep();
        self.free.reset(view);
        self.placed.clear();
        for ask in asks {
            let gpus = if ask.min <= left { ask.max.min(left) } else { 0 };
            left -= gpus;
            granted(ask.job, gpus);
            if gpus == ask.held {
                continue;
            }
            if let Some(job) = view.job(ask.job).filter(|_| ask.held > 0) {
                self.free.release(&job.state.placement);
            }
            match gpus {
                0 => plan.set(ask.job, Placement::none()),
                _ => self.placed.push((ask.job, gpus, ask.min)),
            }
        }
        self.place(view, &mut plan);
        plan
    }

    /// Plan of the changes of a walk over jobs that ask for one size.
    fn carry_out(&mut self, view: &ClusterView<'_>, verdicts: &[Verdict]) -> Plan {
        let mut plan = Plan::keep();
        if verdicts.is_empty() {
            return plan;
        }
        self.free.reset(view);
        self.placed.clear();
        for verdict in verdicts {
            match *verdict {
                Verdict::Start(id) => {
                    self.placed.extend(view.job(id).map(|job| job.request().gpus).map(|gpus| (id, gpus, gpus)))
                }
                Verdict::Stop(id) => {
                    view.job(id).iter().for_each(|job| self.free.release(&job.state.placement));
                    plan.set(id, Placement::none());
                }
            }
        }
        self.place(view, &mut plan);
        plan
    }

    /// Jobs are placed after all releases, so that one may take what a later one gave up.
    fn place(&mut self, view: &ClusterView<'_>, plan: &mut Plan) {
        for &(job, gpus, least) in &self.placed {
            let held = view.job(job).map_or_else(Placement::none, |job| job.state.placement.clone());
            let placement = Packer::FewestNodes.place_most(view.cluster(), &mut self.free, &held, gpus, least);
            plan.set(job, placement.unwrap_or_else(Placement::none));
        }
    }
}
