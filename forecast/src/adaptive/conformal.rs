//! Conformal quantiles: quantiles of the load from past forecast errors.
//!
//! At each distance, errors of past forecasts are kept in order, newer ones counting more, and a
//! quantile of the next error is a weighted quantile of those (Vovk, Gammerman, Shafer,
//! "Algorithmic Learning in a Random World", 2005; weights: Barber, Candes, Ramdas, Tibshirani,
//! "Conformal prediction beyond exchangeability", Annals of Statistics 51(2), 2023). Two things
//! make them follow a change of regime:
//! - **Local scale.** Errors are kept divided by the scale at their origin and given back times the
//!   scale now (Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, "Distribution-free predictive
//!   inference for regression", JASA 113, 2018, section 5.2). The scale is how large errors of the
//!   last hours were relative to what is usual at their distance, to a power of 0.3 at the next
//!   step that falls to 0.15 a day ahead, where the last hours say less; upward and downward errors
//!   have one each: a level that rises widens the upper quantiles alone. It grows with the square
//!   root of the forecast too. Only errors of forecasts that looked a short way ahead count: what
//!   was forecast before a change goes on failing for a day after it, and says nothing of the
//!   forecasts made now.
//! - **Control of coverage.** The level asked of the pool is the nominal one, a quarter of the way
//!   to certainty on top, and three times what coverage fell short in the last days, within bounds
//!   (proportional control of coverage: Angelopoulos, Candes, Tibshirani, "Conformal PID control
//!   for time series prediction", NeurIPS 2023; in levels as in Gibbs and Candes, "Adaptive
//!   conformal inference under distribution shift", NeurIPS 2021, so that it never leaves the
//!   errors that were seen). The median is left alone.

use serde::{Deserialize, Serialize};

use super::coverage::{Correction, Coverage, GRID};

/// Cap on an error, in multiples of the usual error at its distance.
const CAP: f64 = 10.0;
/// Smallest value of a scale.
const LEAST: f64 = 0.05;
/// Powers of the scale: at the next step, and at or beyond [`DOUBLINGS`] doublings of the distance.
const POWERS: (f64, f64) = (0.3, 0.15);
const DOUBLINGS: usize = 7;
/// Half-life of an error's weight, in days; [`DROP_DAYS`] is the age at which it is dropped.
const HALF_LIFE_DAYS: f64 = 14.0;
const DROP_DAYS: usize = 14;
/// Number of errors below which a distance borrows the errors of a shorter one.
const ENOUGH: usize = 20;

/// Scales of downward and upward errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorScale {
    down: f64,
    up: f64,
}

/// Whether the error of a forecast enters the pool from which quantiles are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pooling {
    /// The error is kept.
    Keep,
    /// The error is compared with what is usual, and not kept.
    Pass,
}

/// Past forecast that can be compared with the load that came.
pub(crate) struct PastForecast<'a> {
    pub point: f64,
    /// Factor by which errors grow with the size of the forecast alone.
    pub size: f64,
    /// Scale of errors at this distance, at the time of the forecast.
    pub scale: ErrorScale,
    /// Scaled quantiles of the forecast, where their coverage is controlled. The coverage of a
    /// window's maximum is not, because the lender controls the violations of it.
    pub given: Option<&'a [f64; GRID.len()]>,
}

impl ErrorScale {
    /// Scale 1 in both directions, which leaves errors as they are.
    pub const ONE: ErrorScale = ErrorScale { down: 1.0, up: 1.0 };

    fn of(self, error: f64) -> f64 {
        if error > 0.0 { self.up } else { self.down }
    }

    /// Scale of errors at distance `track`.
    pub fn at(self, track: usize) -> Self {
        let (near, far) = POWERS;
        let power = near + (far - near) * track.min(DOUBLINGS) as f64 / DOUBLINGS as f64;
        Self { down: self.down.powf(power), up: self.up.powf(power) }
    }
}

/// Past errors by distance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Conformal {
    tracks: Vec<Track>,
    /// Number of tracks that are distances under coverage control; the tracks after them are maxima
    /// of windows.
    distances: usize,
    /// Running sums of relative errors downward and upward, and their weight.
    recent: [f64; 3],
    recent_keep: f64,
    usual_keep: f64,
    /// Half-life of an error's weight, in steps.
    half_life: f64,
    day: usize,
    /// Load at which the size factor is 1.
    unit: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Track {
    /// Scaled errors in ascending order.
    errors: Vec<PastError>,
    /// Errors that came since the last merge into `errors`.
    fresh: Vec<PastError>,
    /// Discounted sum of absolute errors, and its weight.
    usual: [f64; 2],
    coverage: Coverage,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct PastError {
    error: f64,
    /// Weight relative to an error at the beginning of the present day.
    weight: f64,
    /// Total weight of the smaller errors.
    below: f64,
    at: usize,
}

/// Computes, for each error of each track, the total weight of the smaller errors.
fn weigh<const N: usize>(tracks: [&mut Track; N]) {
    let mut below = [0.0; N];
    // Up to the end of the shortest track all sums advance side by side, so that no addition waits
    // for the one before it.
    let common = tracks.iter().map(|track| track.errors.len()).min().unwrap_or(0);
    let mut parts = tracks.map(|track| track.errors.split_at_mut(common));
    let add = |past: &mut PastError, below: &mut f64| {
        past.below = *below;
        *below += past.weight;
    };
    for at in 0..common {
        for (errors, below) in parts.iter_mut().map(|(common, _)| common).zip(&mut below) {
            add(&mut errors[at], below);
        }
    }
    for ((_, longer), below) in parts.iter_mut().zip(&mut below) {
        longer.iter_mut().for_each(|past| add(past, below));
    }
}

impl Conformal {
    /// Empty pools for `distances` distances and `maxima` maxima of windows, for a load of mean
    /// size `mean` with `day` steps in a day.
    pub fn new(distances: usize, maxima: usize, day: usize, mean: f64) -> Self {
        let half = |steps: f64| 0.5_f64.powf(1.0 / steps);
        let day_steps = day as f64;
        Self {
            tracks: vec![Track::default(); distances + maxima],
            distances,
            // Before any error is known, the errors count as usual: a scale of 1 in both
            // directions.
            recent: [1.0, 1.0, 1.0],
            recent_keep: half(6.0 / 24.0 * day_steps),
            usual_keep: half(7.0 * day_steps),
            half_life: HALF_LIFE_DAYS * day_steps,
            day,
            unit: if mean > 0.0 { mean } else { 1.0 },
        }
    }

    /// Adds an empty pool for one more maximum of a window.
    pub fn add_track(&mut self) {
        self.tracks.push(Track::default());
    }

    /// Present scale of errors, relative to the usual one.
    pub fn scale(&self) -> ErrorScale {
        let scale = |sum: f64| (sum / self.recent[2]).max(LEAST);
        ErrorScale { down: scale(self.recent[0]), up: scale(self.recent[1]) }
    }

    /// Size factor of a forecast of `point`.
    pub fn size(&self, point: f64) -> f64 {
        // The tenth of a unit keeps the size above 0, because errors are divided by it.
        ((point.max(0.0) + 0.1 * self.unit) / (1.1 * self.unit)).sqrt()
    }

    /// Scaled quantiles of the grid for `track`, to be remembered until the error comes.
    pub fn give(&self, track: usize) -> [f64; GRID.len()] {
        let mut given = [0.0; GRID.len()];
        self.quantiles(track, &GRID, &mut given);
        given
    }

    /// Compares the forecast `made` with the load `y`.
    ///
    /// Returns the error relative to the usual error at this distance, capped at [`CAP`].
    pub fn learn(&mut self, track: usize, now: usize, pooling: Pooling, made: &PastForecast, y: f64) -> Option<f64> {
        let error = (y - made.point) / made.size;
        let scaled = error / made.scale.of(error);
        let track = &mut self.tracks[track];
        // What is usual is read before this error enters it, so that an error does not soften its
        // own judgement.
        let [sum, weight] = track.usual;
        let usual = if weight > 0.0 { sum / weight } else { 0.0 };
        track.usual = [sum + error.abs(), weight + 1.0];
        // Coverage counts every outcome; only the pool of errors is thinned.
        if let Some(given) = made.given {
            track.coverage.learn(scaled, given);
        }
        if pooling == Pooling::Keep && scaled.is_finite() {
            // Newer errors weigh more instead of older ones less: old weights change only once a
            // day.
            let weight = 2.0_f64.powf((now % self.day) as f64 / self.half_life);
            track.fresh.push(PastError { error: scaled, weight, below: 0.0, at: now });
        }
        (usual > 0.0).then(|| (error / usual).clamp(-CAP, CAP))
    }

    /// Ends step `now`, in which relative errors summed up to `down` and `up`, over `count` errors.
    pub fn pass(&mut self, now: usize, [down, up, count]: [f64; 3]) {
        for track in &mut self.tracks {
            track.usual = track.usual.map(|sum| sum * self.usual_keep);
            track.coverage.pass(self.day as f64);
        }
        if count > 0.0 {
            // About half of the errors go either way, so the factor 2 makes both means 1 in quiet
            // times.
            for (recent, new) in self.recent.iter_mut().zip([2.0 * down / count, 2.0 * up / count, 1.0]) {
                *recent = self.recent_keep * *recent + (1.0 - self.recent_keep) * new;
            }
        }
        if now.is_multiple_of(self.day) {
            // Weights are relative to the beginning of a day, so a new day ages all of them by one
            // factor.
            let day_older = 2.0_f64.powf(-(self.day as f64) / self.half_life);
            for track in &mut self.tracks {
                track.errors.append(&mut track.fresh);
                track.errors.sort_by(|a, b| a.error.total_cmp(&b.error));
                track.errors.retain(|past| past.at + DROP_DAYS * self.day > now);
                for past in &mut track.errors {
                    past.weight *= day_older;
                }
            }
            // There is nothing left to merge; the call renews the sums of weights, which are stale
            // by now.
            self.absorb();
        }
    }

    /// Merges new errors into the sorted ones, in one pass from the back for all of them, because
    /// moving errors is most of the cost of an update.
    pub fn absorb(&mut self) {
        for Track { errors, fresh, .. } in &mut self.tracks {
            fresh.sort_by(|a, b| b.error.total_cmp(&a.error));
            // Insertion from the back: each old error moves at most once, directly to its final
            // place.
            let mut unmoved = errors.len();
            let mut free = unmoved + fresh.len();
            // This only makes room: every place beyond the old errors is written below.
            errors.extend_from_slice(fresh);
            for past in fresh.drain(..) {
                let place = errors[..unmoved].partition_point(|other| other.error < past.error);
                free -= unmoved - place;
                errors.copy_within(place..unmoved, free);
                free -= 1;
                errors[free] = past;
                unmoved = place;
            }
        }
        // Four tracks at a time: one running sum waits for its own additions, four of them overlap.
        let (fours, rest) = self.tracks.as_chunks_mut::<4>();
        fours.iter_mut().for_each(|four| weigh(four.each_mut()));
        rest.iter_mut().for_each(|track| weigh([track]));
    }

    /// Scaled quantiles at ascending `levels`.
    pub fn quantiles(&self, track: usize, levels: &[f64], out: &mut [f64]) {
        let correction = self.correction(track);
        let errors = &self.source(&self.tracks[track]).errors;
        let Some(last) = errors.last() else { return out.fill(0.0) };
        let total = last.below + last.weight;
        for (out, &level) in out.iter_mut().zip(levels) {
            // Linear between the midpoints of the weights of neighbouring errors.
            let target = correction.asked(level) * total;
            let index = errors.partition_point(|past| past.below + 0.5 * past.weight < target).min(errors.len() - 1);
            let here = errors[index].error;
            let quantile = match index.checked_sub(1).map(|before| &errors[before]) {
                None => here,
                Some(before) => {
                    let from = before.below + 0.5 * before.weight;
                    let to = errors[index].below + 0.5 * errors[index].weight;
                    before.error + (here - before.error) * ((target - from) / (to - from)).clamp(0.0, 1.0)
                }
            };
            *out = quantile;
        }
    }

    fn correction(&self, track: usize) -> Correction {
        if track >= self.distances {
            return Correction::NONE;
        }
        Correction::new(&self.tracks[track].coverage, self.day as f64)
    }

    /// Quantile of the load in the unit of the series, from the point forecast and a scaled
    /// quantile of errors; `scale` is the scale at the distance.
    pub fn restore(&self, point: f64, quantile: f64, scale: ErrorScale) -> f64 {
        point + quantile * scale.of(quantile) * self.size(point)
    }

    /// Track to take errors from: `track` itself, or the nearest shorter distance with enough
    /// errors.
    fn source<'a>(&'a self, track: &'a Track) -> &'a Track {
        if track.errors.len() >= ENOUGH {
            return track;
        }
        let index = self.tracks.iter().position(|other| std::ptr::eq(other, track)).unwrap_or(0);
        self.tracks[..index].iter().rev().find(|track| track.errors.len() >= ENOUGH).unwrap_or(track)
    }
}
