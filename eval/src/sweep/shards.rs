//! Shards: the cells of a plan dealt out to tasks.

use std::str::FromStr;

use super::plan::SweepPlan;

/// One of several tasks that share the cells of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepShard {
    index: usize,
    of: usize,
}

impl SweepShard {
    /// The only task, which has all cells.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The task `index`, counted from 0, of `of`; `None` where there is no such task.
    pub fn new(index: usize, of: usize) -> Option<Self> {
        (index < of).then_some(Self { index, of })
    }

    /// Cells of the task, the longest first.
    ///
    /// Each cell goes to the task with the least work so far, in order of falling cost (longest processing time first;
    /// Graham, "Bounds on multiprocessing timing anomalies", 1969: at most 4/3 of the shortest schedule).
    pub fn cells(self, plan: &SweepPlan) -> Vec<usize> {
        let mut order: Vec<usize> = (0..plan.cells.len()).collect();
        order.sort_by(|a, b| plan.cells[*b].cost_secs.total_cmp(&plan.cells[*a].cost_secs).then(a.cmp(b)));
        let mut loads = vec![(0.0_f64, 0_usize); self.of];
        let mut mine = Vec::new();
        for cell in order {
            let lighter = |a: &usize, b: &usize| {
                let (a, b) = (loads[*a], loads[*b]);
                a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
            };
            let task = (0..self.of).min_by(lighter).unwrap_or_default();
            loads[task].0 += plan.cells[cell].cost_secs;
            loads[task].1 += 1;
            if task == self.index {
                mine.push(cell);
            }
        }
        mine
    }
}

/// `I/N`: the task I, counted from 0, of N.
impl FromStr for SweepShard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        parts
            .and_then(|(index, of)| Self::new(index, of))
            .ok_or_else(|| "expected I/N, with I from 0 to N-1".to_owned())
    }
}
