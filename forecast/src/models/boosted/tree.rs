//! Regression trees grown leaf by leaf on histograms.
//!
//! The leaf with the split of largest gain is split next, until there are enough leaves (Shi,
//! "Best-first decision tree learning", 2007; histograms, and the larger child's as the difference
//! of its parent's and its sibling's: Ke and others, "LightGBM: A highly efficient gradient
//! boosting decision tree", NeurIPS 2017). The gradient of pinball loss at level q takes two
//! values, `1 - q` where the target is below the model and `-q` elsewhere, so a bin holds two whole
//! numbers, rows and rows below, and sums are exact in any order.

use serde::{Deserialize, Serialize};

use super::bins::Binned;

/// Limits of the growth of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub leaves: usize,
    /// Least number of rows in a leaf.
    pub rows: usize,
}

/// Regression tree: at each node, rows with `feature <= threshold` go to the first child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree {
    nodes: Vec<TreeNode>,
    /// Value of each leaf.
    values: Vec<f64>,
}

/// Node of a tree; a child below 0 is leaf `!child`, any other child is a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TreeNode {
    feature: usize,
    threshold: f64,
    children: [i32; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct TreeSplit {
    gain: f64,
    feature: usize,
    /// The last bin of the first child.
    bin: usize,
}

/// Two counters in one number: rows in the low half; in the high half, rows with a target below the
/// model.
type PackedCounts = u64;

const BINS: usize = 256;

struct Growing {
    rows: Vec<u32>,
    histogram: Vec<PackedCounts>,
    best: Option<TreeSplit>,
    /// Parent node, and the index of this child in it.
    above: Option<(usize, usize)>,
}

impl Tree {
    /// Grows a tree on all rows by `features` alone; `value` gives the value of a leaf from its
    /// rows. Returns the rows of each leaf too.
    pub fn grow(
        data: &Binned,
        below: &[bool],
        level: f64,
        features: &[usize],
        limits: Limits,
        mut value: impl FnMut(&[u32]) -> f64,
    ) -> (Self, Vec<Vec<u32>>) {
        let search = SplitSearch { data, below, level, features, least: limits.rows.max(1) };
        let rows: Vec<u32> = (0..below.len() as u32).collect();
        let histogram = search.histogram(&rows);
        let mut leaves = vec![search.leaf(rows, histogram, None)];
        let mut nodes: Vec<TreeNode> = vec![];
        while leaves.len() < limits.leaves {
            let gain = |leaf: &Growing| leaf.best.map_or(0.0, |split| split.gain);
            let Some((chosen, split)) = leaves
                .iter()
                .enumerate()
                .max_by(|a, b| gain(a.1).total_cmp(&gain(b.1)).then(b.0.cmp(&a.0)))
                .and_then(|(index, leaf)| leaf.best.map(|split| (index, split)))
            else {
                break;
            };
            let new = leaves.len();
            let node = nodes.len();
            nodes.push(TreeNode {
                feature: split.feature,
                threshold: data.edges(split.feature)[split.bin],
                // The first child keeps the leaf number of its parent, so that values stay in
                // place.
                children: [!(chosen as i32), !(new as i32)],
            });
            let leaf = &mut leaves[chosen];
            if let Some((above, side)) = leaf.above {
                nodes[above].children[side] = node as i32;
            }
            let (left, right): (Vec<u32>, Vec<u32>) =
                leaf.rows.iter().partition(|&&row| usize::from(data.row(row as usize)[split.feature]) <= split.bin);
            let mut larger = std::mem::take(&mut leaf.histogram);
            // Only the smaller child is counted: the larger histogram is the parent's minus it.
            let smaller = search.histogram(if left.len() <= right.len() { &left } else { &right });
            larger.iter_mut().zip(&smaller).for_each(|(sum, other)| *sum -= other);
            let (of_left, of_right) = if left.len() <= right.len() { (smaller, larger) } else { (larger, smaller) };
            leaves[chosen] = search.leaf(left, of_left, Some((node, 0)));
            leaves.push(search.leaf(right, of_right, Some((node, 1))));
        }
        let values = leaves.iter().map(|leaf| value(&leaf.rows)).collect();
        (Self { nodes, values }, leaves.into_iter().map(|leaf| leaf.rows).collect())
    }

    /// Value of the leaf in which a row of features falls.
    pub fn value(&self, row: &[f64]) -> f64 {
        // A tree without a split is leaf 0, which is written as the complement of 0.
        let mut at = if self.nodes.is_empty() { !0 } else { 0 };
        while at >= 0 {
            let node = &self.nodes[at as usize];
            at = node.children[usize::from(row[node.feature] > node.threshold)];
        }
        self.values[!at as usize]
    }

    /// Values of all leaves.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

/// Data of a growing tree, and the search for its splits.
struct SplitSearch<'a> {
    data: &'a Binned,
    below: &'a [bool],
    level: f64,
    features: &'a [usize],
    least: usize,
}

impl SplitSearch<'_> {
    fn histogram(&self, rows: &[u32]) -> Vec<PackedCounts> {
        let mut sums = vec![0; self.data.width() * BINS];
        for &row in rows {
            let one = 1 | PackedCounts::from(self.below[row as usize]) << 32;
            let bins = self.data.row(row as usize);
            for &feature in self.features {
                sums[feature * BINS + usize::from(bins[feature])] += one;
            }
        }
        sums
    }

    fn leaf(&self, rows: Vec<u32>, histogram: Vec<PackedCounts>, above: Option<(usize, usize)>) -> Growing {
        let best = if rows.len() < 2 * self.least { None } else { self.best(&histogram) };
        Growing { rows, histogram, best, above }
    }

    /// Gain of a leaf: the squared sum of gradients over rows, by which the leaf lowers a quadratic
    /// loss.
    fn score(&self, sum: PackedCounts) -> f64 {
        let rows = (sum & u64::from(u32::MAX)) as f64;
        let gradient = (sum >> 32) as f64 - self.level * rows;
        gradient * gradient / rows
    }

    /// Split of largest gain, the first of equals.
    fn best(&self, histogram: &[PackedCounts]) -> Option<TreeSplit> {
        let mut best: Option<TreeSplit> = None;
        for &feature in self.features {
            let sums = &histogram[feature * BINS..(feature + 1) * BINS];
            let all: PackedCounts = sums.iter().sum();
            let rows = |sum: PackedCounts| (sum & u64::from(u32::MAX)) as usize;
            let mut left = 0;
            for (bin, &sum) in sums.iter().enumerate().take(self.data.edges(feature).len()) {
                left += sum;
                if rows(left) < self.least || rows(all - left) < self.least {
                    continue;
                }
                let gain = self.score(left) + self.score(all - left) - self.score(all);
                if gain > best.map_or(1e-9, |best| best.gain) {
                    best = Some(TreeSplit { gain, feature, bin });
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::boosted::mix;

    /// 60 rows of three features with few values each, and which rows are below.
    fn small(seed: u64) -> (Vec<f64>, Vec<bool>) {
        let rows: Vec<f64> = (0..180).map(|i| (mix(seed, i) % 17) as f64).collect();
        let below =
            (0..60).map(|row| (rows[3 * row] + rows[3 * row + 2] + (mix(seed, 1_000 + row as u64) % 9) as f64) < 18.0);
        let below = below.collect();
        (rows, below)
    }

    /// The best split of `members` by trying every value of every feature.
    fn brute(rows: &[f64], below: &[bool], members: &[usize], level: f64, least: usize) -> Option<(f64, usize, f64)> {
        let score = |part: &[usize]| {
            let gradient: f64 = part.iter().map(|&row| f64::from(u8::from(below[row])) - level).sum();
            gradient * gradient / part.len() as f64
        };
        let mut best: Option<(f64, usize, f64)> = None;
        for feature in 0..3 {
            for value in 0..17 {
                let value = f64::from(value);
                let (left, right): (Vec<usize>, Vec<usize>) =
                    members.iter().partition(|&&row| rows[3 * row + feature] <= value);
                if left.len() >= least && right.len() >= least {
                    let gain = score(&left) + score(&right) - score(members);
                    if best.is_none_or(|(most, ..)| gain > most + 1e-9) {
                        best = Some((gain, feature, value));
                    }
                }
            }
        }
        best
    }

    #[test]
    fn every_split_is_the_best_of_all_there_are() {
        for seed in 0..40 {
            let (rows, below) = small(seed);
            let data = Binned::new(&rows, 3);
            let level = [0.5, 0.9, 0.1][seed as usize % 3];
            let limits = Limits { leaves: 6, rows: 4 };
            let (tree, leaves) = Tree::grow(&data, &below, level, &[0, 1, 2], limits, |_| 0.0);
            // Growth by brute force, leaf by leaf, must put equal rows together.
            let mut parts = vec![(0..60).collect::<Vec<usize>>()];
            while parts.len() < 6 {
                let gains = parts.iter().map(|part| brute(&rows, &below, part, level, 4));
                let mut chosen: Option<(usize, (f64, usize, f64))> = None;
                for (index, split) in gains.enumerate() {
                    if let Some(split) = split.filter(|split| split.0 > 1e-9)
                        && chosen.is_none_or(|(_, most)| split.0 > most.0 + 1e-9)
                    {
                        chosen = Some((index, split));
                    }
                }
                let Some((index, (_, feature, value))) = chosen else { break };
                let (left, right) = parts[index].iter().partition(|&&row| rows[3 * row + feature] <= value);
                parts[index] = left;
                parts.push(right);
            }
            let grown: Vec<Vec<usize>> =
                leaves.iter().map(|rows| rows.iter().map(|&row| row as usize).collect()).collect();
            assert_eq!(grown, parts, "seed {seed}");
            assert_eq!(tree.values().len(), parts.len());
        }
    }

    #[test]
    fn a_row_falls_in_the_leaf_it_was_grown_in() {
        let (rows, below) = small(3);
        let data = Binned::new(&rows, 3);
        let mut leaf = 0.0;
        let (tree, leaves) = Tree::grow(&data, &below, 0.5, &[0, 1, 2], Limits { leaves: 8, rows: 3 }, |_| {
            leaf += 1.0;
            leaf
        });
        assert!(leaves.len() > 3);
        for (rows_of, value) in leaves.iter().zip(tree.values()) {
            for &row in rows_of {
                assert_eq!(tree.value(&rows[3 * row as usize..3 * row as usize + 3]), *value);
            }
        }
    }
}
