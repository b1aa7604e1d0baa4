//! Whether a policy can divide the accelerators of a cluster.

use goodput_env::cluster::Cluster;

use super::model::PolicyBundle;

/// Mismatch between the accelerator types of a policy and of a cluster.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WrongTypes {
    /// The policy tells other types apart.
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
        if !trained.is_empty() && !trained.iter().eq(cluster.types.iter().map(|of| &of.name)) {
            return Err(WrongTypes::Others { trained: trained.clone(), cluster: types() });
        }
        Ok(())
    }
}
