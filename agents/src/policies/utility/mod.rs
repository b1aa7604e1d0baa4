//! Learned utilities in a knapsack: one pass over the jobs says what each size is worth to each of
//! them, and one knapsack divides the accelerators. The cost of a round is linear in jobs up to a
//! sort, and nothing depends on the size of the cluster, so what was trained on 64 accelerators
//! runs on 10,000.
//!
//! **The utility.** A job that runs at `s` times the speed of its smallest size is worth `w ((s +
//! e)^q - e^q) / q`, with a weight `w = exp(sum of weights times features)` ([`features`]) and an
//! exponent `q` that moves with the load. `q = 1` follows speed alone, as the shortest expected
//! remaining time would; `q = -0.5` without features is Sia's objective (SOSP'23), where searches
//! start; `q = -1` with the speed-up at the fair share as weight is Pollux's (OSDI'21). A change of
//! size counts `s` only in part, because it stops the job: less, the more often it was stopped and
//! the shorter the learned horizon over which it pays.
//!
//! **When.** A job may be given twice the accelerators it has been measured on, so it takes a
//! restart for each doubling. The policy asks to be woken when one is over, instead of at the next
//! round: a job is at its size minutes earlier.
//!
//! **What is not known.** Policies are not told how long a job will run. What it has left is
//! estimated from the work that completed jobs of the same model did, in this run and where the
//! policy was trained ([`Experience`]), and from how far the job itself has come ([`history`]),
//! with learned weights of the two.
//!
//! Some two dozen numbers, found by [`crate::learning::cma`]. Where services share the cluster,
//! tenants do, jobs fail or the length of a restart varies, there are more ([`Group`]).

mod claim;
mod experience;
pub mod features;
mod group;
pub mod history;
mod nudge;
mod policy;
mod reach;
mod siblings;
mod speeds;
mod tenants;
mod theta;
mod worth;

pub use experience::Experience;
pub use group::Group;
pub use nudge::{ClaimSituation, Lever, Nudge};
pub use policy::{Utility, UtilityPolicy};
pub use theta::{PARAMETERS, Theta};
pub use worth::{JobValue, Observer};
