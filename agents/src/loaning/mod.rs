//! Capacity loaning: how many servers of the inference pool training may borrow, and which come back.

mod reclaim;

pub use reclaim::{Occupant, Returned, cheapest};
