//! Step times straight from a profile, which the published simulators use as ground truth.
//!
//! A measured placement is looked up exactly, because it matters which GPUs share a node. A larger
//! placement is a point between measurements of evenly spread replicas. The published code
//! triangulates those measurements in three unscaled dimensions. The grid is regular, so its
//! triangulation depends on how Qhull breaks ties, and the step times depend on it too. This module
//! therefore uses the published values themselves where the caller has them, and otherwise the
//! scheme of `measured/surface.rs`.
//!
//! All interpolation between configurations happens at construction, so that a lookup is two binary
//! searches and no allocation.

mod curve;
mod plans;
mod surface;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::curve::{Curve, Curves, Point};
pub use self::plans::PlanSample;
use self::surface::Surface;

/// Number of nodes beyond which the published profiles assume constant step times (Pollux artifact
/// `applications.py`).
const MOST_NODES: u32 = 16;
/// Nodes of the widest placement that is distinguished from an even spread.
const MOST_PLACED_NODES: usize = 8;

/// Duration of one synchronised step without accumulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTime {
    /// Forward, backward, all-reduce and optimiser, seconds.
    pub step_secs: f64,
    /// Part of the step in the all-reduce and not hidden by compute, seconds; a pass without
    /// synchronisation takes the difference.
    pub sync_secs: f64,
}

/// One measurement at an exact placement (a row of the Pollux artifact's `placements.csv`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementSample {
    /// Replicas on each node used, e.g. `[1, 2, 4]`; at most 8 nodes with at most 255 replicas.
    pub shape: Vec<u32>,
    /// Samples per replica in one pass.
    pub local_bsz: u32,
    /// Seconds of a synchronised step.
    pub step_secs: f64,
    /// Seconds of it in the all-reduce and not hidden by compute.
    pub sync_secs: f64,
}

/// One measurement with replicas spread over nodes as evenly as possible (a row of
/// `scalability.csv`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalabilitySample {
    /// Nodes used, at least 1.
    pub nodes: u32,
    /// Replicas in total, at least `nodes`.
    pub replicas: u32,
    /// Samples per replica in one pass.
    pub local_bsz: u32,
    /// Seconds of a synchronised step.
    pub step_secs: f64,
    /// Seconds of it in the all-reduce and not hidden by compute.
    pub sync_secs: f64,
}

/// Step time that was interpolated elsewhere, in the columns of a scalability sample; it takes
/// precedence over the interpolation here.
pub type InterpolatedSample = ScalabilitySample;

/// Error of a lookup outside the measured range. The caller knows the application and adds its
/// name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutsideProfile {
    /// No measurements surround this placement.
    #[error("replicas per node {shape:?} are outside the profile")]
    Shape {
        /// Replicas per node in the lookup.
        shape: Vec<u32>,
    },
    /// The placement is covered, but not at this batch size.
    #[error("local batch size {local_bsz} on replicas per node {shape:?} is outside the profiled {min}..={max}")]
    LocalBatch {
        /// Replicas per node in the lookup.
        shape: Vec<u32>,
        /// Samples per replica in one pass, in the lookup.
        local_bsz: u32,
        /// Smallest batch size covered, samples.
        min: u32,
        /// Largest batch size covered, samples.
        max: u32,
    },
}

/// Error of a profile row that is impossible or duplicate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// A configuration without nodes, replicas or samples, with fewer replicas than nodes, or too
    /// large to be encoded.
    #[error("profile row for replicas per node {shape:?}, local batch size {local_bsz} is not a configuration")]
    Configuration {
        /// Replicas per node, or nodes and replicas of an even spread.
        shape: Vec<u32>,
        /// Samples per replica in one pass.
        local_bsz: u32,
    },
    /// A step time that is not positive and finite, or a sync time outside `0..=step`.
    #[error(
        "profile row for replicas per node {shape:?}, local batch size {local_bsz} has step {step_secs} s and sync {sync_secs} s"
    )]
    Times {
        /// Replicas per node, or nodes and replicas of an even spread.
        shape: Vec<u32>,
        /// Samples per replica in one pass.
        local_bsz: u32,
        /// Seconds of a step, as given.
        step_secs: f64,
        /// Seconds of all-reduce, as given.
        sync_secs: f64,
    },
    /// Second row for one placement (up to rotation), or for one even spread of a table, and batch
    /// size.
    #[error("profile has two rows for replicas per node {shape:?}, local batch size {local_bsz}")]
    Duplicate {
        /// Replicas per node, or nodes and replicas of an even spread.
        shape: Vec<u32>,
        /// Samples per replica in one pass.
        local_bsz: u32,
    },
}

/// Step times of one application on one accelerator type.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredStepTimes {
    /// Curves by [`placement_key`] of a measured placement.
    placements: Curves<u64>,
    /// Curves by (nodes, replicas) of an even spread.
    spreads: Curves<(u32, u32)>,
    /// Most samples per replica of any placement.
    max_local: u32,
}

impl MeasuredStepTimes {
    /// Builds the tables from rows in any order; each may be empty.
    ///
    /// # Errors
    /// At the first row that is no configuration, has impossible times or repeats another of its
    /// table.
    pub fn new(
        placements: &[PlacementSample],
        scalability: &[ScalabilitySample],
        interpolated: &[InterpolatedSample],
    ) -> Result<Self, ProfileError> {
        let mut placed = BTreeMap::new();
        // All measurements of a spread and batch size, from both tables; the interpolation starts
        // from their mean.
        let mut spread: BTreeMap<(u32, u32), BTreeMap<u32, Vec<StepTime>>> = BTreeMap::new();
        for row in placements {
            let point = checked(&row.shape, row.local_bsz, row.step_secs, row.sync_secs)?;
            let key = placement_key(&row.shape)
                .ok_or_else(|| ProfileError::Configuration { shape: row.shape.clone(), local_bsz: row.local_bsz })?;
            insert(&mut placed, key, &row.shape, point)?;
            spread.entry(count(&row.shape)).or_default().entry(point.local_bsz).or_default().push(point.time);
        }
        for (key, points) in spreads(scalability)? {
            let times = spread.entry(key).or_default();
            for (local_bsz, time) in points {
                times.entry(local_bsz).or_default().push(time);
            }
        }
        let measured = spread.into_iter().map(|(key, rows)| (key, rows.into_iter().map(mean).collect())).collect();
        let mut covered = Surface::new(measured).cover(MOST_NODES);
        // Given values take the place of the interpolation for the same nodes and replicas.
        covered.extend(
            spreads(interpolated)?.into_iter().map(|(key, rows)| (key, rows.into_iter().map(Point::from).collect())),
        );
        let placed = placed.into_iter().map(|(key, rows)| (key, rows.into_iter().map(Point::from).collect()));
        let local = placements.iter().map(|row| row.local_bsz).max();
        let max_local = local.or(scalability.iter().map(|row| row.local_bsz).max()).unwrap_or(u32::MAX);
        Ok(Self { placements: Curves::new(placed), spreads: Curves::new(covered), max_local })
    }

    /// Step times of a job that is limited to `max_local` samples per replica by its owner.
    #[must_use]
    pub fn limited_to(self, max_local: u32) -> Self {
        Self { max_local: max_local.min(self.max_local), ..self }
    }

    /// Most samples per replica in one pass on any placement, which is the capacity of the
    /// accelerator's memory.
    pub fn max_local(&self) -> u32 {
        self.max_local
    }

    /// Fewest replicas on any placement.
    pub fn least_replicas(&self) -> u32 {
        self.spreads.keys().iter().map(|&(_, replicas)| replicas).min().unwrap_or(1)
    }

    /// Most samples per replica that were measured on `shape`; `None` where no measurements
    /// surround it.
    pub fn max_local_on(&self, shape: &[u32]) -> Option<u32> {
        self.curve(shape).map(|curve| curve.range().1)
    }

    /// Measured batch sizes and step times on exactly `shape`, ascending in batch size; empty where
    /// it was not measured.
    pub fn points(&self, shape: &[u32]) -> impl Iterator<Item = (u32, StepTime)> + '_ {
        let curve = placement_key(shape).and_then(|key| self.placements.get(key));
        curve.into_iter().flat_map(|curve| curve.0.iter().map(|point| (point.local_bsz, point.time)))
    }

    /// Time of a step with `shape` replicas on consecutive nodes of the allocation and `local_bsz`
    /// samples per replica in a pass.
    ///
    /// Nodes without replicas are ignored and the first node does not matter (all-reduce is a
    /// ring): a measured placement is looked up by its smallest rotation, anything else by its
    /// number of nodes (at most 16) and replicas. Between measured batch sizes time is linear
    /// (Pollux artifact `applications.py`).
    ///
    /// # Errors
    /// If no measurements surround the placement, or not at this batch size.
    pub fn step_time(&self, shape: &[u32], local_bsz: u32) -> Result<StepTime, OutsideProfile> {
        let Some(curve) = self.curve(shape) else {
            return Err(OutsideProfile::Shape { shape: shape.to_vec() });
        };
        curve.at(local_bsz).ok_or_else(|| {
            let (min, max) = curve.range();
            OutsideProfile::LocalBatch { shape: shape.to_vec(), local_bsz, min, max }
        })
    }

    fn curve(&self, shape: &[u32]) -> Option<Curve<'_>> {
        let placed = placement_key(shape).and_then(|key| self.placements.get(key));
        placed.or_else(|| {
            let (nodes, replicas) = count(shape);
            self.spreads.get((nodes.min(MOST_NODES), replicas))
        })
    }
}

/// Nodes used and replicas in total.
fn count(shape: &[u32]) -> (u32, u32) {
    shape
        .iter()
        .filter(|&&replicas| replicas > 0)
        .fold((0, 0), |(nodes, total), replicas| (nodes + 1, total + replicas))
}

/// Key of a placement: the smallest rotation of the shape without empty nodes, one byte a node;
/// `None` if it has no or too many nodes or replicas.
fn placement_key(shape: &[u32]) -> Option<u64> {
    let mut key = 0;
    let mut nodes = 0;
    for &replicas in shape.iter().filter(|&&replicas| replicas > 0) {
        if nodes == MOST_PLACED_NODES || replicas > 0xff {
            return None;
        }
        key = key << 8 | u64::from(replicas);
        nodes += 1;
    }
    let mut smallest = key;
    for _ in 1..nodes {
        // Rotate by one node: the last node becomes the first. Keys of equal length compare as
        // their digits do.
        key = key >> 8 | (key & 0xff) << (8 * (nodes - 1));
        smallest = smallest.min(key);
    }
    (nodes > 0).then_some(smallest)
}

/// Points of an even spread by batch size.
type Spreads = BTreeMap<(u32, u32), BTreeMap<u32, StepTime>>;

fn spreads(rows: &[ScalabilitySample]) -> Result<Spreads, ProfileError> {
    let mut spreads = BTreeMap::new();
    for row in rows {
        let shape = [row.nodes, row.replicas];
        if row.replicas < row.nodes {
            return Err(ProfileError::Configuration { shape: shape.to_vec(), local_bsz: row.local_bsz });
        }
        let point = checked(&shape, row.local_bsz, row.step_secs, row.sync_secs)?;
        insert(&mut spreads, (row.nodes, row.replicas), &shape, point)?;
    }
    Ok(spreads)
}

fn insert<K: Ord>(
    rows: &mut BTreeMap<K, BTreeMap<u32, StepTime>>,
    key: K,
    shape: &[u32],
    point: Point,
) -> Result<(), ProfileError> {
    match rows.entry(key).or_default().insert(point.local_bsz, point.time) {
        None => Ok(()),
        Some(_) => Err(ProfileError::Duplicate { shape: shape.to_vec(), local_bsz: point.local_bsz }),
    }
}

fn checked(shape: &[u32], local_bsz: u32, step_secs: f64, sync_secs: f64) -> Result<Point, ProfileError> {
    if shape.contains(&0) || shape.is_empty() || local_bsz == 0 {
        return Err(ProfileError::Configuration { shape: shape.to_vec(), local_bsz });
    }
    let possible = step_secs.is_finite() && step_secs > 0.0 && (0.0..=step_secs).contains(&sync_secs);
    if !possible {
        return Err(ProfileError::Times { shape: shape.to_vec(), local_bsz, step_secs, sync_secs });
    }
    Ok(Point { local_bsz, time: StepTime { step_secs, sync_secs } })
}

fn mean((local_bsz, times): (u32, Vec<StepTime>)) -> Point {
    let count = times.len() as f64;
    let step_secs = times.iter().map(|time| time.step_secs).sum::<f64>() / count;
    let sync_secs = times.iter().map(|time| time.sync_secs).sum::<f64>() / count;
    Point { local_bsz, time: StepTime { step_secs, sync_secs } }
}
