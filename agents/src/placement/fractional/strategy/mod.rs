//! Strategies by the names users type, one file each.
//!
//! The published ones score with whole numbers, 100 the best, as plug-ins of Kubernetes' scheduler
//! do; the constants are those of the FGD artifact (hkust-adsl/kubernetes-scheduler-simulator),
//! which scales by the largest machine: 128 cores and 8 accelerators.

mod best_fit;
mod clustering;
mod dot_product;
mod fgd;
mod packed;
mod packing;
mod random;
mod spread;

pub use best_fit::BestFit;
pub use clustering::Clustering;
pub use dot_product::DotProduct;
pub use fgd::{Fgd, Gradient};
pub use packed::Packed;
pub use packing::Packing;
pub use random::Random;
pub use spread::Spread;

use rand_chacha::ChaCha8Rng;

use super::{Fragmentation, Node, Request, TakenAccelerators};

/// Processor cores of the largest machine, thousandths.
const MOST_CPU_MILLI: i64 = 128_000;
/// Accelerators of the largest machine, thousandths.
const MOST_ACCELERATOR_MILLI: i64 = 8_000;

/// Score of a node for a request. Nodes with equal leftovers must score equal.
pub trait Strategy: Send {
    /// Something about a node alone that every score of it needs; computed once while the node does
    /// not change.
    fn potential(&self, _node: &Node) -> i32 {
        0
    }

    /// The higher the better; `node` fits the request, and `potential` is the node's.
    fn score(&self, node: &Node, potential: i32, request: &Request) -> i32;

    /// Accelerator of the chosen node for a request that shares one. The tightest that fits, the
    /// lowest on ties.
    fn share(&self, node: &Node, _potential: i32, request: &Request, _rng: &mut ChaCha8Rng) -> Option<u16> {
        node.tightest(request)
    }

    /// Accelerators of the chosen node for a request; the lowest idle ones where it takes whole
    /// ones.
    fn take(&self, node: &Node, potential: i32, request: &Request, rng: &mut ChaCha8Rng) -> TakenAccelerators {
        if request.shares() {
            self.share(node, potential, request, rng).into_iter().collect()
        } else {
            node.whole(request)
        }
    }

    /// Whether all nodes that fit are equally good, so that a tie is a draw whatever the order.
    fn draws(&self) -> bool {
        false
    }
}

/// A strategy in the list.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// Name that users type.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Publication of the strategy.
    pub source: &'static str,
    /// Constructor of the strategy, for a workload of these typical requests.
    pub build: fn(&Fragmentation) -> Box<dyn Strategy>,
}

/// The source of the baselines as they are scored here.
const ARTIFACT: &str = "Weng et al., ATC 2023, baselines of its artifact";

/// All strategies, in order of publication.
pub const STRATEGIES: &[Listed] = &[
    Listed {
        name: "random",
        about: "any node that fits, any accelerator of it",
        source: ARTIFACT,
        build: |_| Box::new(Random),
    },
    Listed {
        name: "dot-product",
        about: "the node with the leftovers that point least in the direction of the request",
        source: "Grandl et al. (Tetris), SIGCOMM 2014, as in the FGD artifact",
        build: |_| Box::new(DotProduct),
    },
    Listed {
        name: "gpu-clustering",
        about: "nodes that run the same sort of work",
        source: "Xiao et al. (Gandiva), OSDI 2018, as in the FGD artifact",
        build: |_| Box::new(Clustering),
    },
    Listed {
        name: "gpu-packing",
        about: "shared accelerators first, then used nodes, then idle nodes",
        source: "Weng et al. (MLaaS in the wild), NSDI 2022, as in the FGD artifact",
        build: |_| Box::new(Packing),
    },
    Listed {
        name: "best-fit",
        about: "least processors and accelerators left over",
        source: ARTIFACT,
        build: |_| Box::new(BestFit),
    },
    Listed {
        name: "fgd",
        about: "the least growth of what typical requests cannot use",
        source: "Weng et al., ATC 2023",
        build: |typical| Box::new(Fgd::new(typical.clone(), Gradient::Percent)),
    },
    Listed {
        name: "packed",
        about: "the node with least idle accelerators",
        source: "standard",
        build: |_| Box::new(Packed),
    },
    Listed {
        name: "spread",
        about: "the node with most idle accelerators",
        source: "standard",
        build: |_| Box::new(Spread),
    },
];

/// The strategy that users call `name`, for a workload of these typical requests.
pub fn by_name(name: &str, typical: &Fragmentation) -> Option<Box<dyn Strategy>> {
    STRATEGIES.iter().find(|entry| entry.name == name).map(|entry| (entry.build)(typical))
}
