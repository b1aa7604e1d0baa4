//! Packing in three tiers: a shared accelerator, an idle accelerator of a used node, an idle node.

use super::Strategy;
use crate::placement::fractional::{MILLI, Node, Request};

/// The strategy. Requests without accelerators score 0 everywhere, so ties decide about them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packing;

impl Strategy for Packing {
    fn score(&self, node: &Node, _potential: i32, request: &Request) -> i32 {
        if request.accelerators == 0 {
            return 0;
        }
        let idle = node.wholly_idle();
        if idle as usize == node.idle.len() {
            return (33 - idle as i32).max(idle as i32);
        }
        // Only a share can avoid the idle accelerators, and it takes the tightest.
        let tightest = node.tightest(request).filter(|_| request.shares());
        let left = tightest.map_or(MILLI, |at| u32::from(node.idle[usize::from(at)]));
        if left < MILLI {
            let percent = left * 100 / MILLI;
            return (100 - percent as i32 / 10).max(50);
        }
        (50 - request.accelerators as i32).max(33)
    }
}
