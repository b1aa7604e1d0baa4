//! Every scheduling policy, heuristic or learned, and the exported bundle.
//!
//! - [`heuristic`]: published policies, one file a paper, and the list of them.
//! - [`framework`]: the extension points of kube-scheduler, and plugins.
//! - [`placement`]: which nodes, once it is decided how many accelerators.
//! - [`quotas`]: what tenants may hold, for policies that go by it.
//! - [`knapsack`]: of each job one of several sizes, for the largest sum of values.
//! - [`learned`]: nets and update rules (behind the feature `learn`), the plain forward pass, the policy that plays rounds.
//! - [`resilience`]: policies around policies: reserved capacity, bad nodes left alone, crash loops slowed down.
//! - [`loaning`]: servers of the inference pool that training borrows.
//! - [`serving`]: how many replicas of inference services, and where.
//! - [`coordinator`]: servers that move between clusters.
//! - [`bundle`]: what training writes and everything else reads; [`forecaster`]: the same of a forecaster; [`zoo`]: the bundles that come with the product.

pub mod bundle;
pub mod coordinator;
pub mod forecaster;
pub mod framework;
pub mod heuristic;
pub mod knapsack;
pub mod learned;
pub mod loaning;
pub mod placement;
pub mod quotas;
pub mod resilience;
pub mod serving;
pub mod waiting;
pub mod zoo;
