//! Groups of parameters beside those that all utilities have.

use serde::{Deserialize, Serialize};

/// Parameters that only some experiments give a meaning. Utilities of others do not have them, so that their searches have no idle dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Which servers are lent and called back: where services share the cluster.
    Loans,
    /// Where tenants do.
    Tenants,
    /// Where jobs fail.
    Faults,
}
