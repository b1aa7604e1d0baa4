//! The cluster as a Gymnasium-like environment over published throughput and efficiency models.
//!
//! Rooms, from the ground up; a room uses earlier rooms only:
//!
//! - [`time`], [`seed`]: integer milliseconds, named random streams.
//! - [`model`]: the physics; pure functions over plain structs.
//! - [`cluster`], [`application`], [`job`], [`service`], [`request`], [`tenant`], [`tie_break`],
//!   [`placement`], [`plan`]: the domain.
//! - [`scenario`]: the inputs of a run.
//! - [`state`]: the state of a cluster at one moment, simulated or live.
//! - [`view`], [`guard`], [`policy`]: what a policy sees, the rules its plans keep, and its interface.
//! - [`sim`]: a discrete-event simulator that hands out views and takes plans.
//! - [`gym`]: observations, actions, masks and rewards on top of the simulator.
//!
//! **Invariant.** Nothing here can see the world: no files, no clocks, no threads, no global random numbers.
//! Same inputs, same bits out.

pub mod application;
pub mod cluster;
pub mod guard;
pub mod gym;
pub mod job;
pub mod model;
pub mod model_names;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod request;
pub mod scenario;
pub mod seed;
pub mod service;
pub mod sim;
pub mod state;
pub mod tenant;
pub mod tie_break;
pub mod time;
pub mod view;
