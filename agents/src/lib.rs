//! Every scheduling policy, heuristic or learned, and the exported bundle.
//!
//! Each room uses only rooms above it in this list:
//!
//! - [`placement`]: the nodes of a job, once its number of accelerators is decided; plugins of the
//!   scheduling framework.
//! - [`allocation`]: the number of accelerators of each job (knapsack), the quotas of tenants, the
//!   queue of waiting jobs.
//! - [`nets`]: the neural networks: weights, forward pass, gradients.
//! - [`futures`]: what may come of a cluster: draws of run times and arrivals from what has been seen.
//! - [`heuristic`]: published policies, one folder a paper.
//! - [`compose`]: policies made of policies: loans, services, resilience, adaptation, federations, and the
//!   registry by name.
//! - [`learning`]: update rules that take batches and own no loop.
//! - [`start_time`]: when a waiting job will start, by simulated futures.
//! - [`policies`]: learned policies that decide: nets that play rounds, utilities in a knapsack,
//!   explanations.
//! - [`bundle`]: trained policies and forecasters as files, with their model cards.
//! - [`zoo`]: the bundles that come with the product.

pub mod allocation;
pub mod bundle;
pub mod compose;
pub mod futures;
pub mod heuristic;
pub mod learning;
pub mod nets;
pub mod placement;
pub mod policies;
pub mod start_time;
pub mod zoo;
