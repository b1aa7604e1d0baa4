//! The state of a cluster at one moment, simulated or live: plain data without events.
//!
//! Between events everything that grows with time is derived from a value and a rate, so the state
//! of a job or a service changes only when something happens to it.

mod cards;
mod change_log;
mod cluster;
mod free_nodes;
mod id_set;
mod instances;
mod job;
mod job_table;
mod loans;
mod observed;
mod profile;
mod reconfiguration;
mod saving;
mod services;
mod trigger;

pub use cards::{SharedCard, SharedCards};
pub use change_log::{Bookmark, ChangeLog};
pub use cluster::ClusterState;
pub use free_nodes::{Copied, FreeNodes};
pub(crate) use instances::InstanceEnd;
pub use instances::{Instance, InstanceState, InstanceTable};
pub use job::{JobState, Phase};
pub(crate) use job_table::EXPECTED_ACTIVE;
pub use job_table::{Ids, JobTable};
pub use loans::Loan;
pub(crate) use loans::Loans;
pub use observed::{Observed, ObservedError, ObservedJob, ObservedService};
pub use profile::{Profile, TypeProfile};
pub(crate) use reconfiguration::Reconfiguration;
pub(crate) use saving::NodeStore;
pub use services::{LatencyCounts, Replica, ReplicaPhase, ServiceOnNode, ServiceRecord, ServiceState};
pub use trigger::Trigger;
