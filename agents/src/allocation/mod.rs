//! Number of accelerators that each job gets, and the order in which jobs are served.
//!
//! - [`expense`]: power and price of accelerator types.
//! - `free_profile`: free accelerators over the time to come.
//! - [`knapsack`]: of each job one of several sizes, for the largest sum of values.
//! - [`passing`]: preemptive admission in an order, where jobs that do not fit are passed over.
//! - [`queue`]: queues by priority and age, in which jobs of one shape are passed over together.
//! - [`quotas`]: what tenants may hold, for policies that go by it.

pub mod expense;
pub(crate) mod free_profile;
pub mod knapsack;
pub mod passing;
pub mod queue;
pub mod quotas;
