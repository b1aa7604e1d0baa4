//! Jobs on parts of accelerators: which card of which node.
//!
//! Jobs start in order of submission, and those that fit pass those that do not. Nothing moves or is preempted: the
//! published rules place a request once (Weng et al., ATC'23; HAMi). A request for a part of one card, or for whole
//! cards, goes to the node with the best score by the rule, among nodes that can hold it; the lowest node wins ties.
//! A request over several cards, which only HAMi knows, goes by HAMi's rule under all of these policies.
//!
//! `drf-parts` starts the oldest job of the tenant with the smallest dominant share of compute and memory instead.
//!
//! FGD weighs a node's leftovers by what the workload typically asks for. Here that is what was submitted so far.

mod choice;
mod fair;
mod limits;
mod nodes;
mod scores;
mod typical;

use std::collections::BTreeSet;

use goodput_env::model::sharing::{ShareRequest, Spread};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::view::{ClusterView, JobView};

use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::{Free, Packer};
use choice::CardChoice;
use fair::FairQueue;
use limits::TenantLimits;
use nodes::NodesOfCards;
use typical::TypicalSoFar;

const RIGID: Traits = Traits { preemptive: false, elastic: false, heterogeneous: false };
const ARTIFACT: &str = "Weng et al., ATC 2023, baseline of its artifact, without processors";
/// Name of the policy that starts jobs by the dominant shares of their tenants.
pub const FAIR: &str = "drf-parts";

const HAMI: &str = "HAMi, pkg/scheduler/score.go";

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "fgd",
        about: "parts of cards where the least is left that typical requests cannot use",
        source: "Weng et al., ATC 2023, without processors",
        traits: RIGID,
        constructor: &Fixed(|seed| Box::new(PartsPolicy::scored("fgd", seed))),
        replica: None,
    },
    ListedPolicy {
        name: "best-fit",
        about: "parts of cards on the node with the least left over",
        source: ARTIFACT,
        traits: RIGID,
        constructor: &Fixed(|seed| Box::new(PartsPolicy::scored("best-fit", seed))),
        replica: None,
    },
    ListedPolicy {
        name: "dot-product",
        about: "parts of cards where the leftovers point least in the direction of the request",
        source: "Grandl et al. (Tetris), SIGCOMM 2014, as in the FGD artifact, without processors",
        traits: RIGID,
        constructor: &Fixed(|seed| Box::new(PartsPolicy::scored("dot-product", seed))),
        replica: None,
    },
    ListedPolicy {
        name: "gpu-clustering",
        about: "parts of cards on nodes that run work of one sort",
        source: "Xiao et al. (Gandiva), OSDI 2018, as in the FGD artifact",
        traits: RIGID,
        constructor: &Fixed(|seed| Box::new(PartsPolicy::scored("gpu-clustering", seed))),
        replica: None,
    },
    ListedPolicy {
        name: "gpu-packing",
        about: "parts of shared cards first, then of used nodes, then of idle nodes",
        source: "Weng et al. (MLaaS in the wild), NSDI 2022, as in the FGD artifact",
        traits: RIGID,
        constructor: &Fixed(|seed| Box::new(PartsPolicy::scored("gpu-packing", seed))),
        replica: None,
    },
    ListedPolicy {
        name: "hami-binpack",
        about: "parts of the fullest cards of the fullest nodes",
        source: HAMI,
        traits: RIGID,
        constructor: &Fixed(|_| Box::new(PartsPolicy::filled(Spread::Fullest))),
        replica: None,
    },
    ListedPolicy {
        name: "hami-spread",
        about: "parts of the emptiest cards of the emptiest nodes",
        source: HAMI,
        traits: RIGID,
        constructor: &Fixed(|_| Box::new(PartsPolicy::filled(Spread::Emptiest))),
        replica: None,
    },
    ListedPolicy {
        name: FAIR,
        about: "parts of cards by best-fit; the next to the tenant with the smallest dominant share of compute and memory",
        source: "Ghodsi et al., NSDI 2011, over compute and memory of cards",
        traits: RIGID,
        constructor: &Fixed(|seed| Box::new(PartsPolicy { fair: true, ..PartsPolicy::scored("best-fit", seed) })),
        replica: None,
    },
];

/// Cards that jobs may share: first in, first out with backfill, or the tenant with the smallest dominant share first.
pub struct PartsPolicy {
    choice: CardChoice,
    fair: bool,
    typical: TypicalSoFar,
    nodes: NodesOfCards,
}

impl PartsPolicy {
    /// By a strategy of [`crate::placement::fractional::strategy`], by its name there.
    pub fn scored(strategy: &'static str, seed: u64) -> Self {
        Self::of(CardChoice::scored(strategy, seed))
    }

    /// By how full cards and nodes are.
    pub fn filled(spread: Spread) -> Self {
        Self::of(CardChoice::filled(spread))
    }

    fn of(choice: CardChoice) -> Self {
        Self { choice, fair: false, typical: TypicalSoFar::default(), nodes: NodesOfCards::default() }
    }

    fn place(&mut self, view: &ClusterView<'_>, job: &JobView<'_>) -> Option<Placement> {
        let request = job.request();
        let Some(amount) = request.share else {
            if request.gpus <= view.cluster().gpus_per_node() {
                return self.choice.whole(&mut self.nodes, job);
            }
            // Only cards without shares are whole.
            let mut free = Free::listed(view.cluster(), &self.nodes.wholly_free());
            let placement = Packer::FewestNodes.place(view.cluster(), &mut free, request.gpus)?;
            self.nodes.take_whole(&placement);
            return Some(placement);
        };
        self.choice.share(&mut self.nodes, job, amount)
    }
}

impl Policy for PartsPolicy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        if let Some(typical) = self.typical.learn(view) {
            self.choice.set_typical(typical);
        }
        if view.jobs().all(|job| job.state.is_allocated()) {
            return plan;
        }
        self.nodes.read(view);
        let mut limits = TenantLimits::default();
        // Nothing is given back within a decision, so what fits nowhere once will not fit later.
        // Jobs of one shape run on equal types.
        let mut nowhere: BTreeSet<(u32, Option<(u32, u32)>)> = BTreeSet::new();
        let mut fair = self.fair.then(|| FairQueue::new(view));
        let mut by_age = view.jobs().filter(|job| !job.state.is_allocated());
        loop {
            let next = match &mut fair {
                Some(queue) => queue.next().and_then(|job| view.job(job)),
                None => by_age.next(),
            };
            let Some(job) = next else { return plan };
            let amount = |share: ShareRequest| (share.compute_percent, share.memory_mib);
            let shape = (view.shapes().of(job.id()), job.request().share.map(amount));
            if nowhere.contains(&shape) {
                continue;
            }
            if !limits.allow(view, &job) {
                continue;
            }
            match self.place(view, &job) {
                Some(placement) => {
                    limits.take(view, &job, &placement);
                    if let Some(queue) = &mut fair {
                        queue.placed(view, job.request().tenant, &placement);
                    }
                    plan.set(job.id(), placement);
                }
                None => _ = nowhere.insert(shape),
            }
        }
    }
}
