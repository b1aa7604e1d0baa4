//! First in, first out: what a cluster does without a scheduler.
//!
//! Strict order with head-of-line blocking, as in YARN's capacity queue and the `fifo` baseline of Tiresias (Gu et al., NSDI'19):
//! the oldest waiting job runs as soon as it fits, and until then nobody behind it does. With backfill, jobs that fit go past
//! those that do not (Tiresias simulator, `fjf`); there are no reservations, so a wide job can wait for long. Nothing is preempted.

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::view::ClusterView;

use crate::heuristic::{Listed, Traits};
use crate::placement::{Free, Packer, Yarn};

/// In the list of policies.
pub const LISTED: &[Listed] = &[
    Listed {
        name: "fifo",
        about: "oldest first, at the requested size; nobody passes a job that does not fit",
        source: "common practice",
        traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
        build: |_| Box::new(Fifo::strict()),
        replica: None,
    },
    Listed {
        name: "fifo-backfill",
        about: "oldest first, at the requested size; whoever fits may pass",
        source: "common practice",
        traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
        build: |_| Box::new(Fifo::backfill()),
        replica: None,
    },
];

/// The policy; jobs run at the size they asked for, in ascending order of (submission, id).
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    backfill: bool,
    scheme: Option<Yarn>,
    free: Free,
}

impl Fifo {
    /// Strict order.
    pub fn strict() -> Self {
        Self::default()
    }

    /// Whoever fits.
    pub fn backfill() -> Self {
        Self { backfill: true, ..Self::default() }
    }

    /// Placed by `scheme` of the Tiresias simulator, so that a job may not fit although enough accelerators are free.
    pub fn placed_by(self, scheme: Yarn) -> Self {
        Self { scheme: Some(scheme), ..self }
    }
}

impl Policy for Fifo {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        self.free.reset(view.free());
        for job in view.jobs().filter(|job| !job.state.is_allocated()) {
            if self.free.total() == 0 {
                break;
            }
            let gpus = job.request().gpus;
            let placement = match self.scheme {
                Some(scheme) => scheme.place(view.cluster(), &mut self.free, gpus),
                None => Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus),
            };
            match placement {
                Some(placement) => plan.set(job.id(), placement),
                None if self.backfill => {}
                None => break,
            }
        }
        plan
    }
}
