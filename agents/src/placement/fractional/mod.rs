//! Whole and fractional accelerators on nodes that also have processors and memory: which node, and
//! which accelerators of it.
//!
//! A training job takes whole accelerators and little else, so [`super::Packer`] counts them and no
//! more. Inference and interactive work takes a part of one accelerator and, often, most of a
//! node's processors; then the question is what a placement leaves behind. Here a strategy only
//! scores a node for a request. The placer keeps the scores, asks again for the nodes that changed
//! and no others, and picks the best by an explicit [`TieBreak`]: ties are so frequent with coarse
//! scores that their order can decide a comparison.
//!
//! Layout:
//! - [`Node`], [`Request`], [`Kinds`]: integers only: thousandths of a processor core and of an
//!   accelerator, MiB of memory.
//! - [`strategy`]: one file a strategy, and the list of them by the names users type.
//! - [`Fragmentation`]: how much idle accelerator the typical request cannot use (Weng et al.,
//!   ATC'23).
//! - [`Placer`]: places requests one after the other.

mod fragmentation;
mod node;
mod placer;
mod request;
pub mod strategy;
mod tie_break;

pub use fragmentation::{Fragmentation, Typical};
pub use node::{Class, Node, TakenAccelerators};
pub use placer::{Placed, Placer};
pub use request::{Kinds, MILLI, Request, RequestError};
pub use strategy::{Listed, Strategy};
pub use tie_break::TieBreak;
