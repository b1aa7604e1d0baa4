//! Groups of parameters beside those that all utilities have.

use serde::{Deserialize, Serialize};

/// Parameters that only some experiments give a meaning. Utilities of others do not have them, so
/// that their searches have no idle dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Loans and recalls of servers, for clusters that services share.
    Loans,
    /// Shares of tenants, for clusters with several tenants.
    Tenants,
    /// Failures of jobs, for clusters with faults.
    Faults,
    /// Length of a restart, for trainings in which it varies.
    Restarts,
}
