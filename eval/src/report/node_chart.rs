//! Stays of jobs on nodes over time, packed for the chart that the page draws on a canvas.
//!
//! The text is base64 of raw deflate. Inside are columns of variable-length integers (LEB128), one column after the
//! other: accelerators of each node; colour of each job; then for each bar, job by job, the step of its job and the
//! step of its begin from the bar before (zigzag), its length in ticks, its node and its accelerators. Columns of small
//! numbers deflate to about five bytes a bar. `eval/assets/nodes.js` reads them.

use std::collections::BTreeMap;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use goodput_env::placement::Slice;
use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;
use serde::{Deserialize, Serialize};

use super::picture::color_of;

/// Longest packed text of one chart, bytes: a page of less than a megabyte holds one chart of this size.
pub const CHART_MOST_BYTES: usize = 640_000;

/// Steps that the time of a run is divided into.
const TICKS: i64 = 1 << 16;

/// Stays of jobs on nodes, in order of their begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeChart {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Jobs of the workload.
    pub jobs: usize,
    /// Bars that are packed: the earliest of the run.
    pub bars: usize,
    /// Bars of the run.
    pub all_bars: usize,
    /// Length of a tick, milliseconds.
    pub tick_ms: i64,
    /// The bars, packed.
    pub packed: String,
    /// Names of applications or classes, by colour.
    pub applications: Vec<String>,
}

/// Stay of a job on a node, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeBar {
    /// Begin of the stay.
    pub from: i64,
    /// Node of the stay.
    pub node: u32,
    /// Job that stays.
    pub job: u32,
    /// Length of the stay.
    pub ticks: i64,
    /// Accelerators that the job holds on the node.
    pub gpus: u32,
}

impl NodeChart {
    /// Chart of a finished run; `None` where the run logged no placements.
    pub fn of(scenario: &Scenario, outcome: &Outcome) -> Option<Self> {
        if outcome.placements.is_empty() {
            return None;
        }
        let tick_ms = (outcome.end.as_millis() / TICKS).max(1);
        let bars = bars(outcome, tick_ms);
        let capacity: Vec<u32> = scenario.cluster.nodes.iter().map(|node| node.gpus).collect();
        let workload = &scenario.workload;
        let colors: Vec<usize> = workload.jobs.iter().map(|job| color_of(&job.work)).collect();
        let applications = workload.applications.iter().map(|application| application.name.clone()).collect();
        Some(Self::packed(&capacity, &colors, &bars, tick_ms, applications))
    }

    /// Chart of bars in order of their begin, on nodes of the given capacities, of jobs with the given colours. Later
    /// bars are left out where the text would be longer than [`CHART_MOST_BYTES`].
    pub fn packed(
        capacity: &[u32],
        colors: &[usize],
        bars: &[NodeBar],
        tick_ms: i64,
        applications: Vec<String>,
    ) -> Self {
        let mut kept = bars.len();
        let packed = loop {
            let packed = STANDARD.encode(pack(capacity, colors, &bars[..kept]));
            if packed.len() <= CHART_MOST_BYTES || kept == 0 {
                break packed;
            }
            // Sizes grow with the number of bars; the last hundredth makes sure that the loop ends soon.
            kept = (kept * CHART_MOST_BYTES / packed.len()) * 99 / 100;
        };
        let (nodes, jobs, all_bars) = (capacity.len(), colors.len(), bars.len());
        Self { nodes, jobs, bars: kept, all_bars, tick_ms, packed, applications }
    }
}

/// The columns, deflated.
fn pack(capacity: &[u32], colors: &[usize], bars: &[NodeBar]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |mut value: u64| {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    capacity.iter().for_each(|&gpus| put(u64::from(gpus)));
    colors.iter().for_each(|&color| put(color as u64));
    let mut bars = bars.to_vec();
    bars.sort_unstable_by_key(|bar| (bar.job, bar.from, bar.node));
    let steps = |of: fn(&NodeBar) -> i64| {
        let before = std::iter::once(0).chain(bars.iter().map(of));
        bars.iter().zip(before).map(|(bar, before)| of(bar) - before).collect::<Vec<_>>()
    };
    let signed = [steps(|bar| i64::from(bar.job)), steps(|bar| bar.from)];
    signed.into_iter().flatten().for_each(|step| put(((step << 1) ^ (step >> 63)) as u64));
    bars.iter().for_each(|bar| put(bar.ticks as u64));
    bars.iter().for_each(|bar| put(u64::from(bar.node)));
    bars.iter().for_each(|bar| put(u64::from(bar.gpus)));
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    // A vector takes every byte.
    let written = deflate.write_all(&bytes).and_then(|()| deflate.finish());
    written.unwrap_or_default()
}

/// Stays of a run: from each change of a placement to the next one of the job, node by node. A job that keeps its
/// accelerators on a node over a change has one stay there.
fn bars(outcome: &Outcome, tick_ms: i64) -> Vec<NodeBar> {
    let mut held: Vec<BTreeMap<u32, (u32, SimTime)>> = vec![BTreeMap::new(); outcome.jobs.len()];
    let mut bars = Vec::new();
    let mut close = |job: u32, node: u32, gpus: u32, from: SimTime, to: SimTime| {
        let to = outcome.jobs[job as usize].left().map_or(to, |left| to.min(left));
        let tick = |at: SimTime| at.as_millis() / tick_ms;
        if to > from {
            bars.push(NodeBar { from: tick(from), node, job, ticks: tick(to) - tick(from), gpus });
        }
    };
    for change in &outcome.placements {
        let now = |node: u32| change.slices.iter().find(|slice| slice.node.0 == node).map(|slice| slice.gpus);
        let holds = &mut held[change.job.index()];
        holds.retain(|&node, &mut (gpus, from)| {
            let stays = now(node) == Some(gpus);
            if !stays {
                close(change.job.0, node, gpus, from, change.at);
            }
            stays
        });
        for Slice { node, gpus } in &change.slices {
            holds.entry(node.0).or_insert((*gpus, change.at));
        }
    }
    for (job, holds) in (0..).zip(&held) {
        holds.iter().for_each(|(&node, &(gpus, from))| close(job, node, gpus, from, outcome.end));
    }
    bars.sort_unstable();
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_thousand_bars_fit_and_more_are_cut_by_time() {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut bar = |index: u32, bars: u32| NodeBar {
            from: i64::from(index) * TICKS / i64::from(bars),
            node: draw(256) as u32,
            job: index,
            ticks: 1 + draw(200) as i64,
            gpus: 1 << draw(4),
        };
        let capacity = [8; 256];
        let hundred: Vec<NodeBar> = (0..100_000).map(|index| bar(index, 100_000)).collect();
        let chart = NodeChart::packed(&capacity, &vec![0; 100_000], &hundred, 1000, Vec::new());
        assert_eq!((chart.bars, chart.all_bars), (100_000, 100_000), "{} bytes", chart.packed.len());
        let many: Vec<NodeBar> = (0..300_000).map(|index| bar(index, 300_000)).collect();
        let chart = NodeChart::packed(&capacity, &vec![0; 300_000], &many, 1000, Vec::new());
        assert!(chart.bars > 100_000 && chart.bars < 300_000 && chart.packed.len() <= CHART_MOST_BYTES);
    }
}
