//! Whether a policy can divide the accelerators of a cluster.

use goodput_env::cluster::Cluster;

use super::model::{Model, PolicyBundle};

/// A policy and a cluster whose accelerators it cannot divide.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WrongTypes {
    /// It was made for accelerators of one type.
    #[error("it divides accelerators of one type; this cluster has {}", .cluster.join(", "))]
    Several {
        /// Types of the cluster.
        cluster: Vec<String>,
    },
    /// It tells others apart.
    #[error("it was trained on {}, in this order; this cluster has {}", .trained.join(", "), .cluster.join(", "))]
    Others {
        /// Types of the cluster it was trained on.
        trained: Vec<String>,
        /// Types of this one.
        cluster: Vec<String>,
    },
}

impl PolicyBundle {
    /// Whether the policy can divide the accelerators of `cluster`.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check_types(&self, cluster: &Cluster) -> Result<(), WrongTypes> {
        let types = || cluster.types.iter().map(|of| of.name.clone()).collect();
        let trained = &self.card.types;
        match &self.model {
            Model::Ranking(_) if cluster.types.len() > 1 => Err(WrongTypes::Several { cluster: types() }),
            _ if !trained.is_empty() && !trained.iter().eq(cluster.types.iter().map(|of| &of.name)) => {
                Err(WrongTypes::Others { trained: trained.clone(), cluster: types() })
            }
            _ => Ok(()),
        }
    }
}
