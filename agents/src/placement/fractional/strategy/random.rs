//! Any node that fits, and any accelerator of it that fits: the bar below which no strategy should
//! fall.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::Strategy;
use crate::placement::fractional::{Node, Request};

/// The strategy. Whole accelerators are still the lowest idle ones: they are alike.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random;

impl Strategy for Random {
    fn score(&self, _node: &Node, _potential: i32, _request: &Request) -> i32 {
        0
    }

    fn share(&self, node: &Node, _potential: i32, request: &Request, rng: &mut ChaCha8Rng) -> Option<u16> {
        let fitting = node.sharable(request).count();
        let drawn = if fitting > 0 { rng.random_range(0..fitting) } else { 0 };
        node.sharable(request).nth(drawn)
    }

    fn draws(&self) -> bool {
        true
    }
}
