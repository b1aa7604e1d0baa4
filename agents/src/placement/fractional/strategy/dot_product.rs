//! Dot product of what is left and what is asked for, the smallest first (Tetris aligns the
//! largest; the artifact keeps the roomy nodes).

use super::{MOST_ACCELERATOR_MILLI, MOST_CPU_MILLI, Strategy};
use crate::placement::fractional::{Node, Request};

/// The strategy: 100 less the mean over processors and accelerators of (left x asked), each as a
/// part of the largest machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct DotProduct;

impl Strategy for DotProduct {
    fn score(&self, node: &Node, _potential: i32, request: &Request) -> i32 {
        let scale = MOST_CPU_MILLI / MOST_ACCELERATOR_MILLI;
        let cpu = i64::from(node.cpu_milli) * i64::from(request.cpu_milli);
        let accelerators = i64::from(node.idle_milli()) * i64::from(request.total_milli()) * scale * scale;
        let whole = MOST_CPU_MILLI * MOST_CPU_MILLI;
        (50 * (2 * whole - cpu - accelerators)).div_euclid(whole) as i32
    }
}
