//! Interpolation between measured numbers of nodes and replicas.
//!
//! For one batch size, step time is a surface over the plane of nodes and replicas, measured at a
//! few numbers of nodes ("columns"). Within a column it is linear in the replicas. Between two
//! columns it is linear along a line through the wanted point. The line has a constant number of
//! replicas where both columns have measurements at that number; otherwise it passes through the
//! end of the column that has none. A constant number of replicas is preferred because all-reduce
//! is a ring: its length is the number of replicas, not of nodes. In the batch size all curves stay
//! piecewise linear, over the range that all contributing curves cover. There is no extrapolation.
//!
//! Against the published triangulation of the six Pollux applications (5 to 16 nodes, totals up to
//! the applications' maxima, measured rows left out) the median difference in step time is 0.0 to
//! 0.7 % and the 95th percentile 2.4 to 6.2 %. In the median, lines of equal replicas per node and
//! weights linear in the logarithm of nodes are worse on all six.

use std::collections::BTreeMap;

use super::StepTime;
use super::curve::{Curve, Point};

/// Measured curves by nodes and replicas.
type Measured = BTreeMap<(u32, u32), Vec<Point>>;

/// Slack of range checks on replicas, which are whole in the data but fractional on a slanted line.
const SLACK: f64 = 1e-9;

pub(super) struct Surface {
    measured: Measured,
    /// `(nodes, fewest replicas, most replicas)` of each column, ascending.
    columns: Vec<(u32, u32, u32)>,
}

/// Key and weight of a measured curve in a weighted sum.
type Term = ((u32, u32), f64);

impl Surface {
    pub(super) fn new(measured: Measured) -> Self {
        let mut columns: Vec<(u32, u32, u32)> = Vec::new();
        for &(nodes, replicas) in measured.keys() {
            match columns.last_mut() {
                Some(column) if column.0 == nodes => column.2 = replicas,
                _ => columns.push((nodes, replicas, replicas)),
            }
        }
        Self { measured, columns }
    }

    /// Curves of every pair of nodes (up to `most_nodes`) and replicas between the measurements,
    /// the measured ones included.
    pub(super) fn cover(self, most_nodes: u32) -> Measured {
        let most_replicas = self.columns.iter().map(|column| column.2).max().unwrap_or(0);
        let mut covered = Measured::new();
        for nodes in 1..=most_nodes {
            for replicas in nodes..=most_replicas {
                let terms = self.terms(nodes, f64::from(replicas));
                let curve = self.mix(&terms);
                if !curve.is_empty() {
                    covered.insert((nodes, replicas), curve);
                }
            }
        }
        covered
    }

    /// Terms of the weighted sum that is the curve at a point; empty outside the measurements.
    fn terms(&self, nodes: u32, replicas: f64) -> Vec<Term> {
        let right = self.columns.partition_point(|column| column.0 < nodes);
        let Some(&high) = self.columns.get(right) else {
            return Vec::new();
        };
        if high.0 == nodes {
            return self.column_terms(high, replicas);
        }
        let Some(&low) = right.checked_sub(1).and_then(|left| self.columns.get(left)) else {
            return Vec::new();
        };

        // The line between the columns passes through (nodes, replicas). Clamp its end on the low
        // column, then its end on the high column, and recompute the low end.
        let run = f64::from(nodes - low.0) / f64::from(high.0 - low.0);
        let clamp = |(_, fewest, most): (u32, u32, u32), x: f64| x.clamp(f64::from(fewest), f64::from(most));
        let at_high = |at_low: f64| at_low + (replicas - at_low) / run;
        let at_low = |at_high: f64| at_high + (replicas - at_high) / (1.0 - run);
        let end = clamp(high, at_high(clamp(low, replicas)));
        let start = at_low(end);

        let (start, end) = (self.column_terms(low, start), self.column_terms(high, end));
        if start.is_empty() || end.is_empty() {
            return Vec::new();
        }
        let weigh = |terms: Vec<Term>, by: f64| terms.into_iter().map(move |(key, weight)| (key, weight * by));
        weigh(start, 1.0 - run).chain(weigh(end, run)).collect()
    }

    /// Terms of a column around a number of replicas: one or two curves.
    fn column_terms(&self, (nodes, fewest, most): (u32, u32, u32), replicas: f64) -> Vec<Term> {
        if !(f64::from(fewest) - SLACK..=f64::from(most) + SLACK).contains(&replicas) {
            return Vec::new();
        }
        let nearest = replicas.round() as u32;
        if (replicas - f64::from(nearest)).abs() < SLACK && self.measured.contains_key(&(nodes, nearest)) {
            return vec![((nodes, nearest), 1.0)];
        }
        let below = self.measured.range((nodes, 0)..=(nodes, replicas as u32)).next_back();
        let above = self.measured.range((nodes, replicas as u32 + 1)..=(nodes, most)).next();
        let (Some((&below, _)), Some((&above, _))) = (below, above) else {
            return Vec::new();
        };
        let weight = (replicas - f64::from(below.1)) / f64::from(above.1 - below.1);
        vec![(below, 1.0 - weight), (above, weight)]
    }

    /// Weighted sum of curves, at the batch sizes where all of them are defined.
    fn mix(&self, terms: &[Term]) -> Vec<Point> {
        if let [(key, _)] = terms {
            return self.measured[key].clone();
        }
        let curves: Vec<(Curve<'_>, f64)> =
            terms.iter().map(|(key, weight)| (Curve(&self.measured[key]), *weight)).collect();
        let mut knots: Vec<u32> =
            curves.iter().flat_map(|(curve, _)| curve.0.iter().map(|point| point.local_bsz)).collect();
        knots.sort_unstable();
        knots.dedup();
        let total = |local_bsz: u32| {
            let mut sum = StepTime { step_secs: 0.0, sync_secs: 0.0 };
            for (curve, weight) in &curves {
                let time = curve.at(local_bsz)?;
                sum.step_secs += weight * time.step_secs;
                sum.sync_secs += weight * time.sync_secs;
            }
            Some(Point { local_bsz, time: sum })
        };
        knots.into_iter().filter_map(total).collect()
    }
}
