//! The environment room: observations, action masks, rewards and vectors of environments over the simulator.
//!
//! A decision round is a sequence of small actions, each changing one job, ended by "wait"; see [`Round`]. That keeps the
//! action space independent of cluster and queue, and lets one network serve both.

mod action;
mod check;
mod environment;
mod fleet;
mod layout;
mod observation;
mod outlook;
mod pack;
mod quota_room;
mod reward;
mod round;
mod shared;
mod vec_env;

pub use action::{Action, Ladder, Verb};
pub use check::{Finding, check};
pub use environment::{
    ClusterEnv, EnvError, EnvOptions, Environment, Observation, ObservationMut, ResetOptions, ScenarioSource, Step,
};
pub use fleet::{Fleet, LoanVerb, ScaleVerb, ServiceSlot};
pub use layout::Layout;
pub use observation::{Encoder, GLOBAL_FEATURES, SLOT_FEATURES, layout, schema_hash};
pub use outlook::Outlook;
pub use pack::pack;
pub use reward::{Reward, RewardTerm};
pub use round::{Round, Slot};
pub use shared::{POOL_FEATURES, SERVICE_FEATURES, TENANT_FEATURES};
pub use vec_env::{Cursor, VecBuffers, VecEnv};
