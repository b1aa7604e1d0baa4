//! Servers of the inference pool that training borrows: where each server is.

use super::FreeNodes;
use crate::cluster::{Cluster, NodeId, Pool};
use crate::time::SimTime;

/// Whereabouts of a server of the inference pool. All other servers are always at home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loan {
    /// Not lent: replicas may run there.
    #[default]
    Home,
    /// Training may use it.
    Lent {
        /// Moment at which the server was lent.
        since: SimTime,
    },
    /// Belongs to another cluster for now, so that nothing runs there.
    Elsewhere,
    /// Called back: training leaves it.
    Returning {
        /// Moment at which the server was lent.
        since: SimTime,
        /// Moment of the call.
        called: SimTime,
        /// Moment at which training jobs that are left there are evicted.
        deadline: SimTime,
    },
}

/// Loans by node. On a cluster without pools, where everything may run everywhere, `by_node` and
/// `open` are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loans {
    pub by_node: Vec<Loan>,
    /// By node: accelerators that training jobs hold.
    pub trained_on: Vec<u32>,
    /// By node: free accelerators that training may take.
    pub open: FreeNodes,
}

impl Loans {
    pub fn new(cluster: &Cluster) -> Self {
        let nodes = cluster.nodes.len();
        let (pooled, open) = match cluster.has_pools() {
            true => (nodes, FreeNodes::new(cluster, &vec![0; nodes])),
            false => (0, FreeNodes::default()),
        };
        Self { by_node: vec![Loan::Home; pooled], trained_on: vec![0; nodes], open }
    }

    pub fn of(&self, node: NodeId) -> Loan {
        self.by_node.get(node.index()).copied().unwrap_or_default()
    }

    pub fn may_train(&self, cluster: &Cluster, node: NodeId) -> bool {
        match cluster.nodes[node.index()].pool {
            Pool::Shared | Pool::Training => true,
            Pool::Inference => matches!(self.of(node), Loan::Lent { .. }),
        }
    }

    pub fn may_serve(&self, cluster: &Cluster, node: NodeId) -> bool {
        match cluster.nodes[node.index()].pool {
            Pool::Shared => true,
            Pool::Training => false,
            Pool::Inference => self.of(node) == Loan::Home,
        }
    }

    /// Whether `at` is the deadline of a server that is called back.
    pub fn is_due(&self, node: NodeId, at: SimTime) -> bool {
        matches!(self.of(node), Loan::Returning { deadline, .. } if deadline == at)
    }
}
