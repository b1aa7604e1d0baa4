//! Replica of a language model as a table: the requests that miss their objectives by load and number of replicas.

use serde::{Deserialize, Serialize};

/// Requests of a load that miss their objectives, as shares of all requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenCell {
    /// Share with a time to the first token (TTFT) above each of [`TokenProfile::edges`].
    pub ttft: Vec<f64>,
    /// Share with a TTFT above the edge, or a time of a further token (TPOT) above its objective, by edge.
    pub either: Vec<f64>,
    /// Share with a TPOT above its objective.
    pub tpot: f64,
}

/// Replicas of a language model behind a router, measured by a replay of requests. `model::serving::llm` makes it.
///
/// A load is a share of the requests per second that the replicas can answer. Loads ascend to 1, which is a fleet that
/// never runs out of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenProfile {
    /// Requests per second of a replica that never runs out of requests.
    pub per_sec: f64,
    /// TTFT of a request that finds an idle replica, seconds: the median.
    pub idle_ttft_secs: f64,
    /// Multiples of the TTFT objective at which cells count, ascending.
    pub edges: Vec<f64>,
    /// Numbers of replicas that were measured, ascending.
    pub counts: Vec<u32>,
    /// Loads that were measured, ascending, of the last one 1.
    pub loads: Vec<f64>,
    /// Cells by load, of each number of replicas in turn.
    pub cells: Vec<TokenCell>,
}

/// Requests of one load on one number of replicas: a mixture of up to four cells.
#[derive(Clone, Copy, Debug)]
pub struct TokenLatency<'a> {
    profile: &'a TokenProfile,
    corners: [(f64, &'a TokenCell); 4],
}

impl TokenProfile {
    /// Requests at a load in [0, 1] on `count` replicas, between the measured loads and numbers on straight lines: of
    /// the load, and of the logarithm of the number.
    pub fn at(&self, load: f64, count: u32) -> TokenLatency<'_> {
        let (load_at, of_load) = between(self.loads.len(), load, |at| self.loads[at]);
        let log = |count: u32| f64::from(count.max(1)).log2();
        let (count_at, of_count) = between(self.counts.len(), log(count), |at| log(self.counts[at]));
        let last = |at: usize, len: usize| (at + 1).min(len - 1);
        let cell = |count: usize, load: usize| &self.cells[count * self.loads.len() + load];
        let (next_load, next_count) = (last(load_at, self.loads.len()), last(count_at, self.counts.len()));
        let corners = [
            ((1.0 - of_count) * (1.0 - of_load), cell(count_at, load_at)),
            ((1.0 - of_count) * of_load, cell(count_at, next_load)),
            (of_count * (1.0 - of_load), cell(next_count, load_at)),
            (of_count * of_load, cell(next_count, next_load)),
        ];
        TokenLatency { profile: self, corners }
    }
}

impl TokenLatency<'_> {
    /// Share of requests with a TTFT above `multiple` of its objective.
    pub fn ttft_exceeds(&self, multiple: f64) -> f64 {
        self.tail(multiple, |cell| &cell.ttft)
    }

    /// Share of requests with a TTFT above `multiple` of its objective, or a TPOT above its objective.
    pub fn either_exceeds(&self, multiple: f64) -> f64 {
        self.tail(multiple, |cell| &cell.either)
    }

    /// Share of requests with a TPOT above its objective.
    pub fn tpot_exceeds(&self) -> f64 {
        self.corners.iter().map(|(weight, cell)| weight * cell.tpot).sum()
    }

    fn tail(&self, multiple: f64, of: fn(&TokenCell) -> &Vec<f64>) -> f64 {
        let edges = &self.profile.edges;
        if multiple <= edges[0] {
            return if multiple < 0.0 { 1.0 } else { self.at_edge(0, of) };
        }
        let (at, part) = between(edges.len(), multiple, |at| edges[at]);
        let above = self.at_edge(at, of);
        if part > 0.0 { above + part * (self.at_edge(at + 1, of) - above) } else { above }
    }

    fn at_edge(&self, at: usize, of: fn(&TokenCell) -> &Vec<f64>) -> f64 {
        self.corners.iter().map(|(weight, cell)| weight * of(cell)[at]).sum()
    }
}

/// Of `len` ascending values the last one that is at most `value`, and how far `value` is from it to the next one; the
/// ends of the values outside of them.
fn between(len: usize, value: f64, at: impl Fn(usize) -> f64) -> (usize, f64) {
    let above = (0..len).take_while(|&index| at(index) <= value).count();
    match above {
        0 => (0, 0.0),
        above if above == len => (len - 1, 0.0),
        above => (above - 1, (value - at(above - 1)) / (at(above) - at(above - 1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_lie_between_the_cells() {
        let cell = |share: f64| TokenCell { ttft: vec![share, share / 2.0], either: vec![share, share], tpot: share };
        let profile = TokenProfile {
            per_sec: 2.0,
            idle_ttft_secs: 0.1,
            edges: vec![1.0, 2.0],
            counts: vec![1, 4],
            loads: vec![0.5, 1.0],
            cells: [0.2, 0.8, 0.1, 0.4].map(cell).into(),
        };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        near(profile.at(0.5, 1).tpot_exceeds(), 0.2);
        near(profile.at(0.75, 1).tpot_exceeds(), 0.5);
        near(profile.at(0.75, 2).tpot_exceeds(), 0.5 * 0.5 + 0.5 * 0.25);
        near(profile.at(3.0, 64).tpot_exceeds(), 0.4);
        near(profile.at(0.0, 1).ttft_exceeds(1.5), 0.15);
        near(profile.at(0.0, 1).ttft_exceeds(9.0), 0.1);
        near(profile.at(0.0, 1).ttft_exceeds(0.5), 0.2);
        near(profile.at(0.0, 1).either_exceeds(-0.1), 1.0);
    }
}
