//! Clustering: keep shares with shares and jobs of one size with their like, so that what leaves
//! fits what comes.

use super::{MOST_ACCELERATOR_MILLI, Strategy};
use crate::placement::fractional::{Node, Request};

/// The strategy: four tiers of 25, and within a tier the fuller node. Requests without accelerators
/// score 0 everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clustering;

impl Strategy for Clustering {
    fn score(&self, node: &Node, _potential: i32, request: &Request) -> i32 {
        let Some(class) = request.class() else { return 0 };
        let tier = match (node.classes().any(|here| here == class), node.classes().len()) {
            (true, 1) => 75,
            (true, _) => 50,
            (false, 0) => 25,
            (false, _) => 0,
        };
        let idle = i64::from(node.idle_milli());
        tier + (25 * (MOST_ACCELERATOR_MILLI - idle)).div_euclid(MOST_ACCELERATOR_MILLI) as i32
    }
}
