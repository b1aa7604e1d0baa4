//! Worth of a forecast: accelerator-hours of autoscaling rules at one attainment of the objective.
//!
//! A fleet that takes a cold start to grow serves a load ([`Fleet`]), and lends what it gives back ([`LoanTerms`]). A
//! rule says at each step the load that capacity should be there for ([`ScalingRule`]); it has one dial, a factor on
//! what it expects or a level. The dial is set on a validation part so that the share of attained steps is a target,
//! and is played on the test part ([`Match`]). The oracle needs the least that any rule can need ([`least`]).

mod fleet;
mod matching;
mod oracle;
mod ours;
mod rivals;
mod rules;
mod service;

pub use fleet::{ColdStart, Damping, Fleet, LoanTerms, Played};
pub use matching::{JudgedRule, Match, judge, saving};
pub use oracle::least;
pub use rules::ScalingRule;
pub use service::{Parts, ServiceLoad};
