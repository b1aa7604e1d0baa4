//! The one interface of a scheduler: a view in, a plan out. Simulator, evaluation and live cluster all meet here.

use crate::plan::Plan;
use crate::time::SimTime;
use crate::view::{Batching, ClusterView, Information};

/// A scheduling policy, heuristic or learned.
pub trait Policy: Send {
    /// Decides what changes now. Called on every decision point of a run; may keep state between calls.
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan;

    /// When the policy wants to be asked again at the latest, as of its last decision. Kept where decisions fall on churn;
    /// where they fall at rounds only, it waits for the next round.
    fn wake_at(&self) -> Option<SimTime> {
        None
    }

    /// How jobs choose their batch size under this policy as published.
    fn batching(&self) -> Batching {
        Batching::Requested
    }

    /// What the policy is told in its publication.
    fn information(&self) -> Information {
        Information::Profiled
    }

    /// The least it has to know to run at all.
    fn needs(&self) -> Information {
        Information::Profiled
    }
}
