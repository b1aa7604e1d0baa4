//! Accelerator time of training by node and application, in whole GPU-milliseconds, so that
//! cluster, node and application agree to the last one.

use smallvec::SmallVec;

use super::Simulator;
use crate::cluster::NodeId;
use crate::placement::Placement;
use crate::time::SimTime;

/// Accelerator time of the jobs of one application on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingOnNode {
    /// Index of the node.
    pub node: NodeId,
    /// The application: an index into the workload's applications, then its classes; one more for
    /// jobs of known duration.
    pub application: u16,
    /// Accelerator time held, GPU-milliseconds; what two jobs share counts once, for the first of
    /// them, then for the one that stays.
    pub gpu_millis: i64,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    application: u16,
    /// Accelerators held. Between two moves of a plan it may be short of what others still hold, so
    /// it has a sign.
    held: i32,
    since: SimTime,
    gpu_millis: i64,
}

/// Accelerator time of training by node; a change costs work for the applications seen on its nodes
/// only.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Vec<SmallVec<[Cell; 2]>>);

impl Ledger {
    pub fn new(nodes: usize) -> Self {
        Self(vec![SmallVec::new(); nodes])
    }

    /// `sign` is 1 for accelerators taken and -1 for those left.
    pub fn enter(&mut self, application: u16, placement: &Placement, sign: i32, now: SimTime) {
        for slice in placement.slices() {
            let cells = &mut self.0[slice.node.index()];
            let at = cells.iter().position(|cell| cell.application == application).unwrap_or_else(|| {
                cells.push(Cell { application, held: 0, since: now, gpu_millis: 0 });
                cells.len() - 1
            });
            let cell = &mut cells[at];
            cell.gpu_millis += i64::from(cell.held) * (now - cell.since).as_millis();
            cell.since = now;
            cell.held += sign * slice.gpus as i32;
        }
    }

    fn rows(&self, now: SimTime) -> Vec<TrainingOnNode> {
        let row = |(node, cells): (usize, &SmallVec<[Cell; 2]>)| {
            let mut rows: Vec<_> = cells
                .iter()
                .map(|cell| TrainingOnNode {
                    node: NodeId::at(node),
                    application: cell.application,
                    gpu_millis: cell.gpu_millis + i64::from(cell.held) * (now - cell.since).as_millis(),
                })
                .collect();
            rows.sort_by_key(|row| row.application);
            rows
        };
        self.0.iter().enumerate().flat_map(row).collect()
    }
}

impl Simulator {
    /// Accelerator time of training so far, by node, then application.
    pub fn training_by_node(&self) -> Vec<TrainingOnNode> {
        self.records.training.rows(self.state.now)
    }
}
