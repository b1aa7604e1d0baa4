//! Slowdown of distributed jobs that share a node.
//!
//! A job on one node communicates over the bus of that node. Only jobs that span nodes compete for
//! a network card, so only they count here (Pollux artifact `simulator.py`).

/// Fraction of its speed that a job keeps, in (0, 1].
///
/// `distributed_on_node` holds, for each node of the job, the number of jobs on that node that span
/// several nodes (this job included). A job that spans nodes and shares any of them with another
/// such job keeps `1 - penalty`; all other jobs keep 1. The penalty is charged once, however many
/// nodes or jobs collide. `penalty` is in [0, 1) and 0 in the headline experiments.
#[must_use]
pub fn slowdown(distributed_on_node: &[u32], penalty: f64) -> f64 {
    let spans_nodes = distributed_on_node.len() > 1;
    if spans_nodes && distributed_on_node.iter().any(|&jobs| jobs > 1) { 1.0 - penalty } else { 1.0 }
}
