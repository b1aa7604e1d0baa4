//! Features of accelerator types: the speed of a job on each, and the free accelerators of each.

use crate::cluster::TypeId;
use crate::gym::action::Verb;
use crate::gym::features::{TYPE_FEATURES, TYPE_GLOBALS};
use crate::gym::layout::Layout;
use crate::gym::round::{Round, Slot};
use crate::view::{ClusterView, JobView};

/// Number of accelerators by type, which does not change within a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Types {
    totals: Vec<u32>,
    /// Speed of the current job on one accelerator of each type, where it is known.
    singles: Vec<Option<f64>>,
}

impl Types {
    /// Counts the accelerators of each type.
    pub fn count(&mut self, view: &ClusterView<'_>, types: usize) {
        self.totals.clear();
        self.totals.resize(types, 0);
        for node in &view.cluster().nodes {
            if let Some(total) = self.totals.get_mut(node.accelerator.index()) {
                *total += node.gpus;
            }
        }
    }

    /// Writes the features of one slot into `features`, which begin with those of the first type.
    ///
    /// `log_relative_speed` compares one accelerator of each type, which a job measures before it
    /// is placed (Sia, SOSP'23, section 3.3). Where a job of fixed size has been measured as a
    /// whole, all of its requested accelerators are compared.
    ///
    /// `log_speed` is the speed at the current size or the starting size of the job, relative to
    /// the smallest size on its slowest type. On a type on which the job has not run, it is the
    /// known speed on another type times the ratio of single accelerators. The feature is 0 where
    /// no speed is known.
    pub fn write_slot(&mut self, slot: &Slot, job: &JobView<'_>, features: &mut [f32]) {
        let kinds = TypeId::first(self.totals.len());
        let whole = |kind: TypeId| job.rate_on(kind, slot.ladder.start());
        let speed = |kind: TypeId| job.single_throughput(kind).or_else(|| job.rate_on(kind, 1)).or_else(|| whole(kind));
        let alone = |kind: TypeId| slot.runs_on(kind).then(|| speed(kind));
        self.singles.clear();
        self.singles.extend(kinds.clone().map(|kind| alone(kind).flatten().filter(|&speed| speed > 0.0)));
        let slowest = self.singles.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let size = if slot.working > 0 { slot.working } else { slot.ladder.start() };
        // First known speed at this size and its type, with the home type first.
        let own =
            |kind: TypeId| slot.runs_on(kind).then(|| job.rate_on(kind, size)).flatten().filter(|&rate| rate > 0.0);
        let home = [slot.home].into_iter().chain(kinds.clone()).find_map(|kind| Some((kind, own(kind)?)));
        let single = |kind: TypeId| self.singles.get(kind.index()).copied().flatten();
        let told = |kind: TypeId| {
            let (from, rate) = home?;
            Some(rate * single(kind)? / single(from)?)
        };
        let base = home.and_then(|(kind, _)| Some(job.rate_on(kind, slot.ladder.min())? / single(kind)? * slowest));
        for kind in kinds {
            let f = &mut features[kind.index() * TYPE_FEATURES.len()..][..TYPE_FEATURES.len()];
            f.fill(0.0);
            f[0] = f32::from(u8::from(slot.runs_on(kind)));
            f[1] = f32::from(u8::from(slot.working > 0 && slot.accelerator == kind));
            f[2] = single(kind).map_or(0.0, |speed| (speed / slowest).ln() as f32 * 0.5);
            let speed = own(kind).or_else(|| told(kind).filter(|_| slot.runs_on(kind)));
            let relative = speed.zip(base).map(|(speed, base)| speed / base);
            f[3] = relative
                .filter(|ratio| *ratio > 0.0 && ratio.is_finite())
                .map_or(0.0, |ratio| ratio.ln() as f32 * 0.25);
        }
    }

    /// Writes the types on which each job could be started or moved. One job's change may change
    /// the result for all jobs.
    pub fn write_fits(&self, round: &Round, layout: &Layout, features: &mut [f32]) {
        let start = layout.slot_features - layout.types * TYPE_FEATURES.len();
        for (at, f) in features.chunks_exact_mut(layout.slot_features).take(round.slots().len()).enumerate() {
            for (f, kind) in f[start..].chunks_exact_mut(TYPE_FEATURES.len()).zip(TypeId::first(layout.types)) {
                f[4] = f32::from(u8::from(round.allows(at, Verb::Place(kind))));
            }
        }
    }

    /// Writes the features of the cluster by type.
    pub fn write_globals(&self, round: &Round, globals: &mut [f32]) {
        let all: u32 = self.totals.iter().sum();
        for (kind, g) in globals.chunks_exact_mut(TYPE_GLOBALS.len()).enumerate() {
            let (free, total) = (round.free().get(kind).copied().unwrap_or(0), self.totals[kind]);
            g[0] = free as f32 / total.max(1) as f32;
            g[1] = total as f32 / all.max(1) as f32;
        }
    }
}
