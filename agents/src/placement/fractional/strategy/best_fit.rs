//! Best fit over processors and accelerators, in equal parts: the node with least of both left
//! afterwards.

use super::{MOST_ACCELERATOR_MILLI, MOST_CPU_MILLI, Strategy};
use crate::placement::fractional::{Node, Request};

/// The strategy: 100 less the mean percentage left over of the largest machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct BestFit;

impl Strategy for BestFit {
    fn score(&self, node: &Node, _potential: i32, request: &Request) -> i32 {
        let cpu = i64::from(node.cpu_milli) - i64::from(request.cpu_milli);
        let accelerators = i64::from(node.idle_milli()) - i64::from(request.total_milli());
        let left = cpu + accelerators * (MOST_CPU_MILLI / MOST_ACCELERATOR_MILLI);
        (50 * (2 * MOST_CPU_MILLI - left)).div_euclid(MOST_CPU_MILLI) as i32
    }
}
