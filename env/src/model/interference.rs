//! What distributed jobs that share a node cost each other.
//!
//! A job on one node talks over its own bus; only jobs that span nodes compete for a network card, so only they count
//! here (Pollux artifact `simulator.py`).

/// Share of its speed a job keeps, in (0, 1].
///
/// `distributed_on_node` holds, for each node the job uses, how many jobs that span several nodes (this one included)
/// use that node. A job that spans nodes and shares any of them with another such job keeps `1 - penalty`; everything
/// else keeps 1. The penalty is charged once, however many nodes or neighbours collide; `penalty` is in [0, 1), 0 in
/// the headline experiments.
#[must_use]
pub fn slowdown(distributed_on_node: &[u32], penalty: f64) -> f64 {
    let spans_nodes = distributed_on_node.len() > 1;
    if spans_nodes && distributed_on_node.iter().any(|&jobs| jobs > 1) { 1.0 - penalty } else { 1.0 }
}
