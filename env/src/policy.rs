//! The one interface of a scheduler: a view in, a plan out. Simulator, evaluation and live cluster all meet here.

use crate::plan::Plan;
use crate::view::{Batching, ClusterView, Information};

/// A scheduling policy, heuristic or learned.
pub trait Policy: Send {
    /// Decides what changes now. Called on every decision point of a run; may keep state between calls.
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan;

    /// How jobs choose their batch size under this policy as published.
    fn batching(&self) -> Batching {
        Batching::Requested
    }

    /// What the policy is told in its publication; the least it needs to run.
    fn information(&self) -> Information {
        Information::Profiled
    }
}
