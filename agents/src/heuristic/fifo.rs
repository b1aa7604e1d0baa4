//! First in, first out: scheduling by order of submission only.
//!
//! The strict order has head-of-line blocking, as YARN's capacity queue and the `fifo` baseline of
//! Tiresias (Gu et al., NSDI'19): the oldest waiting job runs as soon as it fits, and until then no
//! job behind it does. With backfill, jobs that fit pass those that do not (Tiresias simulator,
//! `fjf`). There are no reservations, so a wide job can wait for long. Nothing is preempted.

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::view::ClusterView;

use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::{Free, Packer, Yarn};

/// Entries of first in, first out in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "fifo",
        about: "oldest first, at the requested size; no job passes one that does not fit",
        source: "common practice",
        traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Fifo::strict())),
        replica: None,
    },
    ListedPolicy {
        name: "fifo-backfill",
        about: "oldest first, at the requested size; jobs that fit may pass",
        source: "common practice",
        traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Fifo::backfill())),
        replica: None,
    },
];

/// First in, first out over a cluster. Jobs run at the size they asked for, in ascending order of
/// (submission, id).
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    backfill: bool,
    scheme: Option<Yarn>,
    free: Free,
}

impl Fifo {
    /// Strict order with head-of-line blocking.
    pub fn strict() -> Self {
        Self::default()
    }

    /// Order with backfill: every job that fits starts.
    pub fn backfill() -> Self {
        Self { backfill: true, ..Self::default() }
    }

    /// This policy with the placement scheme of the Tiresias simulator, so that a job may not fit
    /// although enough accelerators are free.
    pub fn placed_by(self, scheme: Yarn) -> Self {
        Self { scheme: Some(scheme), ..self }
    }
}

impl Policy for Fifo {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        if view.total_free() == 0 {
            return plan;
        }
        self.free.reset(view);
        // With fewer free accelerators in every type, a wider job fits no better than one that did not fit.
        let mut too_wide = u32::MAX;
        for job in view.waiting() {
            if self.free.total() == 0 {
                break;
            }
            let gpus = job.request().gpus;
            if gpus >= too_wide {
                continue;
            }
            let placement = match self.scheme {
                Some(scheme) => scheme.place(view.cluster(), &mut self.free, gpus),
                None => Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus),
            };
            match placement {
                Some(placement) => plan.set(job.id(), placement),
                None if self.backfill && self.scheme.is_none() => too_wide = gpus,
                None if self.backfill => {}
                None => break,
            }
        }
        plan
    }
}
