//! Plugins by what they are for.

mod affinity;
mod gang;
mod preemption;
mod priority;
mod quota;
mod resources;
mod shares;

pub use affinity::NodeAffinity;
pub use gang::Gang;
pub use preemption::Preemption;
pub use priority::PrioritySort;
pub use quota::QuotaFit;
pub use resources::{Allocated, ResourcesFit};
pub use shares::Shares;
