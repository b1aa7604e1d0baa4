//! Configuration: the tables of every file that goodput reads, and the files that ship.
//!
//! Layout:
//!
//! - [`scenario`]: cluster, workload, tenants, services, loans, faults; and the scenarios that follow from them.
//! - [`experiment`]: a scenario with an agent, its training and its evaluation.
//! - [`reader`]: TOML with overrides, and errors with line, column and caret; [`kind`]: kinds of files.
//! - [`seeds`]: ranges of seeds for training, validation and evaluation.
//! - [`forecast`]: studies of forecasters, and forecasters to train.
//! - [`federation`]: clusters that lend each other servers.
//!
//! A program that reads only the tables of a live cluster needs no feature. The feature `scenarios`
//! adds what reads traces, and the feature `learning` adds the settings of learners.

pub mod error;
#[cfg(feature = "learning")]
pub mod experiment;
#[cfg(feature = "scenarios")]
pub mod federation;
#[cfg(feature = "scenarios")]
pub mod forecast;
pub mod kind;
pub mod reader;
#[cfg(feature = "scenarios")]
pub mod scenario;
pub mod seeds;
