//! The state of a cluster at one moment, simulated or live: plain data without events.
//!
//! Between events everything that grows with time is derived from a value and a rate, so the state
//! of a job or a service changes only when something happens to it.

mod cards;
mod cluster;
mod instances;
mod job;
mod loans;
mod observed;
mod profile;
mod reconfiguration;
mod saving;
mod services;
mod trigger;

pub use cards::{SharedCard, SharedCards};
pub use cluster::ClusterState;
pub(crate) use instances::InstanceEnd;
pub use instances::{Instance, InstanceState, InstanceTable};
pub(crate) use job::EXPECTED_ACTIVE;
pub use job::{JobState, JobTable, Phase};
pub use loans::Loan;
pub(crate) use loans::Loans;
pub use observed::{Observed, ObservedError, ObservedJob, ObservedService};
pub use profile::{Profile, TypeProfile};
pub(crate) use reconfiguration::Reconfiguration;
pub(crate) use saving::NodeStore;
pub use services::{LatencyCounts, Replica, ReplicaPhase, ServiceOnNode, ServiceRecord, ServiceState};
pub use trigger::Trigger;
