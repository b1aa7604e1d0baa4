//! Every scheduling policy, heuristic or learned, and the exported bundle.
//!
//! - [`heuristic`]: published policies, one file a paper, and the list of them.
//! - [`framework`]: the extension points of kube-scheduler, and plugins.
//! - [`placement`]: which nodes, once it is decided how many accelerators.
//! - [`quotas`]: what tenants may hold, for policies that go by it.
//! - [`learned`]: nets and update rules (behind the feature `learn`), the plain forward pass, the policy that plays rounds.
//! - [`bundle`]: what training writes and everything else reads.

pub mod bundle;
pub mod framework;
pub mod heuristic;
pub mod learned;
pub mod placement;
pub mod quotas;
