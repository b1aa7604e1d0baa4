//! The node with least idle accelerator that fits: whole nodes stay free for those who need them.

use super::Strategy;
use crate::placement::fractional::{Node, Request};

/// The strategy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packed;

impl Strategy for Packed {
    fn score(&self, node: &Node, _potential: i32, _request: &Request) -> i32 {
        -(node.idle_milli() as i32)
    }
}
