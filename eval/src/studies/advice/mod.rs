//! Advice: what policies would have done with the jobs of a trace, and what a change of the cluster would do.
//!
//! Files, each of which uses only those above it:
//!
//! - `figures`: waits, slowdowns and use of one run, for groups of jobs.
//! - `change`: the cluster and the jobs as they are, or with one thing changed.
//! - `study`: every policy on the trace and on traces that are drawn from it.
//! - `words`: sentences about the answer.
//! - `page`: the answer on a page.

mod change;
mod figures;
mod page;
mod study;
mod words;

pub use change::ClusterChange;
pub use figures::JobGroup;
pub use page::AdvicePage;
pub use study::{Advice, AdviceError, AdviceQuestion, AdviceRow};
