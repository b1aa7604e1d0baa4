//! Reinforcement learning environment: observations, action masks, rewards and vectors of
//! environments over the simulator.
//!
//! A decision round is a sequence of small actions that each change one job, and the "wait" action
//! ends it; see [`Round`]. So the action space is independent of cluster and queue, and one network
//! serves clusters of any size.

mod action;
mod check;
mod environment;
mod expected_peak;
mod features;
mod layout;
mod names;
mod observation;
mod player;
mod quota_room;
mod reward;
mod round;
mod shared_features;
mod shared_round;
mod step_rows;
mod timeline;
mod type_features;
mod vec_env;
mod warm_up;

pub use action::{Action, Ladder, LoanVerb, ScaleVerb, Verb};
pub use check::{Finding, check};
pub use environment::{
    ClusterEnv, EnvError, EnvOptions, Environment, Observation, ObservationMut, ResetOptions, ScenarioSource, Step,
};
pub use expected_peak::ExpectedPeak;
pub use features::{
    GLOBAL_FEATURES, POOL_FEATURES, SERVICE_FEATURES, SLOT_FEATURES, TENANT_FEATURES, TYPE_FEATURES, TYPE_GLOBALS,
};
pub use layout::Layout;
pub use names::Feature;
pub use observation::{Encoder, USUAL_SLOTS, layout, schema_hash, schema_hash_by_type};
pub use player::{Autoreset, Cursor, Player};
pub use reward::{Discount, Reward, RewardTerm};
pub use round::{Round, Slot};
pub use shared_round::{ServiceSlot, SharedRound};
pub use step_rows::{StepRow, StepSlices};
pub use timeline::{Stay, Timeline};
pub use vec_env::{VecBuffers, VecEnv};
pub use warm_up::{MakePolicy, WarmUp};
