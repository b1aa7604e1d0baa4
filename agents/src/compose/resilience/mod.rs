//! Policies around policies that keep faults in bounds. Each shows the policy inside it a part of
//! the cluster ([`goodput_env::view::Restriction`]), so any scheduler gains them without knowing,
//! and they nest.
//!
//! - [`Reserve`]: key jobs have machines of their own, replaced at once when they fail.
//! - [`Quarantine`]: nodes that fail again and again are left alone for a while.
//! - [`BackOff`]: jobs that fail again and again wait longer each time.
//! - [`Resilience`]: all of these as a file states them.

mod backoff;
mod quarantine;
mod reserve;
mod terms;

pub use backoff::BackOff;
pub use quarantine::Quarantine;
pub use reserve::Reserve;
pub use terms::{BackOffTerms, QuarantineTerms, ReserveTerms, Resilience};

use goodput_env::time::SimTime;

/// Earlier of two wake-up times.
pub(super) fn earlier(one: Option<SimTime>, other: Option<SimTime>) -> Option<SimTime> {
    one.into_iter().chain(other).min()
}
