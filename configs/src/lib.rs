//! Configuration: the tables of every file that goodput reads, and the files that ship.
//!
//! Layout:
//!
//! - [`scenario`]: cluster, workload, services, loans, faults; and the scenarios that follow from them.
//! - [`experiment`]: a scenario with an agent, its training and its evaluation.
//! - [`federation`]: clusters that lend each other servers.
//! - [`forecast`]: studies of forecasters, forecasters to train, and forecasts as a service.
//! - [`live`]: deployments, and agents of nodes.
//! - [`tenants`]: tenants of experiments and of deployments.
//! - [`reader`]: TOML with overrides, and errors with line, column and caret; [`kind`]: kinds of files;
//!   [`schema`]: the JSON schema of each kind.
//! - [`serving`]: terms of services, of experiments and of deployments.
//! - [`names`]: the nearest known name to a misspelt one.
//! - [`shipped`]: the text of every file that ships.
//! - [`seeds`]: ranges of seeds for training, validation and evaluation.
//!
//! A program that reads only the tables of a live cluster needs no feature. The feature `scenarios`
//! adds experiments, and all else that reads traces. The feature `learning` adds forecasters to train.

mod adaptation;
pub mod error;
#[cfg(feature = "scenarios")]
pub mod experiment;
#[cfg(feature = "scenarios")]
pub mod federation;
pub mod forecast;
pub mod kind;
pub mod live;
pub mod names;
pub mod policies;
pub mod reader;
mod resilience;
#[cfg(feature = "scenarios")]
pub mod scenario;
#[cfg(feature = "learning")]
pub mod schema;
pub mod seeds;
pub mod serving;
pub mod shipped;
pub mod tenants;
