//! Capacity loaning: how many servers of the inference pool training may borrow, and which come
//! back (Aryl, arXiv:2202.07896; Lyra, EuroSys'23).
//!
//! - [`lendable`]: the rule, from what services need.
//! - [`cheapest`]: which servers to call back.
//! - [`Orchestrator`]: applies both every few minutes, reactive or ahead of time as its outlook is.
//! - [`Lending`]: what may be learned of it.
//! - [`Composite`]: inference scheduler, orchestrator and any training scheduler as one policy.
//! - [`Variant`]: the same by name, with the settings of [`Sharing`].

mod composite;
mod lending;
mod message;
mod orchestrator;
mod reclaim;
mod variant;

pub use composite::Composite;
pub use lending::{Lending, RecallPricing, SharedJobValues};
pub use message::{Body, Message, Party};
pub use orchestrator::{Orchestrator, Terms, lendable};
pub use reclaim::{Occupant, Prices, Returned, cheapest};
pub use variant::{Sharing, Variant, beside_services, complete};
