//! The cluster as a Gymnasium-like environment over published throughput and efficiency models.
//!
//! Layout, from the ground up:
//!
//! - [`time`], [`seed`], [`tie_break`]: integer milliseconds, named random streams, who goes first among equals.
//! - [`model`]: the physics; pure functions over plain structs.
//! - [`cluster`], [`application`], [`job`], [`service`], [`request`], [`tenant`], [`placement`], [`plan`], [`guard`], [`view`], [`policy`]: the
//!   domain.
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
pub mod placement;
pub mod plan;
pub mod policy;
pub mod request;
pub mod seed;
pub mod service;
pub mod sim;
pub mod tenant;
pub mod tie_break;
pub mod time;
pub mod view;
