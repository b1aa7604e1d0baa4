//! The node with least idle accelerator that fits: whole nodes stay free for requests that need
//! them.

use super::Strategy;
use crate::placement::fractional::{Node, Request};

/// Strategy that packs requests on few nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packed;

impl Strategy for Packed {
    fn score(&self, node: &Node, _potential: i32, _request: &Request) -> i32 {
        -(node.idle_milli() as i32)
    }
}
