//! The node with most idle accelerator: neighbours disturb each other least, and large requests
//! find nothing.

use rand_chacha::ChaCha8Rng;

use super::Strategy;
use crate::placement::fractional::{Node, Request};

/// The strategy; a share gets the emptiest accelerator, the lowest on ties.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread;

impl Strategy for Spread {
    fn score(&self, node: &Node, _potential: i32, _request: &Request) -> i32 {
        node.idle_milli() as i32
    }

    fn share(&self, node: &Node, _potential: i32, request: &Request, _rng: &mut ChaCha8Rng) -> Option<u16> {
        node.sharable(request).min_by_key(|&at| std::cmp::Reverse(node.idle[usize::from(at)]))
    }
}
