//! Step time as a piecewise linear function of the batch size, and a sorted table of such
//! functions.

use super::StepTime;

/// A knot of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) local_bsz: u32,
    pub(super) time: StepTime,
}

impl From<(u32, StepTime)> for Point {
    fn from((local_bsz, time): (u32, StepTime)) -> Self {
        Self { local_bsz, time }
    }
}

/// Knots in ascending order of batch size, at least one.
#[derive(Clone, Copy)]
pub(super) struct Curve<'a>(pub(super) &'a [Point]);

impl Curve<'_> {
    /// Smallest and largest batch size covered.
    pub(super) fn range(self) -> (u32, u32) {
        let batch = |point: Option<&Point>| point.map_or(0, |point| point.local_bsz);
        (batch(self.0.first()), batch(self.0.last()))
    }

    /// Time at a batch size, exact at a knot; `None` outside the range.
    pub(super) fn at(self, local_bsz: u32) -> Option<StepTime> {
        let above = self.0.partition_point(|point| point.local_bsz < local_bsz);
        let right = self.0.get(above)?;
        if right.local_bsz == local_bsz {
            return Some(right.time);
        }
        let left = self.0.get(above.checked_sub(1)?)?;
        let weight = f64::from(local_bsz - left.local_bsz) / f64::from(right.local_bsz - left.local_bsz);
        Some(between(left.time, right.time, weight))
    }
}

/// Linear interpolation from `a` to `b` at the fraction `weight` of the way.
fn between(a: StepTime, b: StepTime, weight: f64) -> StepTime {
    StepTime {
        step_secs: a.step_secs + weight * (b.step_secs - a.step_secs),
        sync_secs: a.sync_secs + weight * (b.sync_secs - a.sync_secs),
    }
}

/// Table of curves by key. All knots are in one vector, because there are hundreds of short curves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curves<K> {
    keys: Vec<K>,
    /// End of each curve in `points`; a curve begins at the end of the curve before.
    ends: Vec<usize>,
    points: Vec<Point>,
}

impl<K: Ord + Copy> Curves<K> {
    /// A table of curves given in ascending order of key.
    pub(super) fn new(curves: impl IntoIterator<Item = (K, Vec<Point>)>) -> Self {
        let mut table = Self { keys: Vec::new(), ends: Vec::new(), points: Vec::new() };
        for (key, points) in curves {
            table.keys.push(key);
            table.points.extend(points);
            table.ends.push(table.points.len());
        }
        table
    }

    /// Keys of the curves, ascending.
    pub(super) fn keys(&self) -> &[K] {
        &self.keys
    }

    pub(super) fn get(&self, key: K) -> Option<Curve<'_>> {
        let index = self.keys.binary_search(&key).ok()?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(Curve(&self.points[start..self.ends[index]]))
    }
}
