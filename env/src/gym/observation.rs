//! Observations of a learned policy: features of each job slot and of the cluster, all of order
//! one.
//!
//! A change of one job affects the features of that job and the global features only. So the
//! encoder keeps the features of a round and updates them in place, and writing an observation is
//! one copy.

use sha2::{Digest, Sha256};

use crate::gym::action::{Ladder, Verb};
use crate::gym::expected_peak::ExpectedPeak;
use crate::gym::features::{
    GLOBAL_FEATURES, POOL_FEATURES, SERVICE_FEATURES, SLOT_FEATURES, TENANT_FEATURES, TYPE_FEATURES, TYPE_GLOBALS,
};
use crate::gym::layout::Layout;
use crate::gym::round::{Round, Slot};
use crate::gym::shared_features::{self, Holdings};
use crate::gym::type_features::Types;
use crate::job::JobId;
use crate::state::Phase;
use crate::view::{ClusterView, JobView, Rates};

/// Version of the schema, incremented whenever the meaning of a feature or an action changes.
const SCHEMA_VERSION: u32 = 3;

/// Usual number of job slots.
pub const USUAL_SLOTS: usize = 64;

/// Layout of observations and actions with `slots` job slots.
pub const fn layout(slots: usize) -> Layout {
    let (slot_features, globals) = (SLOT_FEATURES.len(), GLOBAL_FEATURES.len());
    Layout { slots, slot_features, globals, verbs: 3, services: 0, pools: false, types: 0 }
}

/// SHA-256, in hexadecimal, of all that defines the meaning of the numbers in an observation and an
/// action. It does not depend on the number of slots: a set policy trained with 64 slots works with
/// 256.
pub fn schema_hash() -> String {
    let verbs = Verb::ALWAYS.map(|verb| format!("{verb:?}"));
    let features = [&SLOT_FEATURES[..], &TENANT_FEATURES, &GLOBAL_FEATURES, &SERVICE_FEATURES, &POOL_FEATURES];
    let features = features.map(|features| features.join(",")).join(";");
    hash(&format!("{SCHEMA_VERSION};{features};{}", verbs.join(",")))
}

/// SHA-256 of the schema with distinguished accelerator types, in hexadecimal. It does not depend
/// on the types themselves.
pub fn schema_hash_by_type() -> String {
    hash(&format!("{};2;{};{}", schema_hash(), TYPE_FEATURES.join(","), TYPE_GLOBALS.join(",")))
}

impl Layout {
    /// Hash of the schema of this layout: [`schema_hash`] or [`schema_hash_by_type`].
    pub fn schema_hash(&self) -> String {
        if self.types > 0 { schema_hash_by_type() } else { schema_hash() }
    }

    /// Whether this version of the program has observations and actions of this layout.
    pub fn is_ours(&self) -> bool {
        let plain = layout(self.slots).with_services(self.services).by_type(self.types);
        let ours = if self.pools { plain.with_pools() } else { plain };
        self.types <= Self::MOST_TYPES && [ours, ours.with_tenants()].contains(self)
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Properties of a slot's job that stay valid until an event other than the passage of time.
#[derive(Clone, Copy, Debug)]
struct Facts {
    job: JobId,
    version: (u32, u32),
    held: u32,
    ladder: Ladder,
    /// Scaled logarithms of the sizes: held, fewest, most, requested.
    sizes: [f32; 4],
    rate_at_min: f64,
    at_held: Speed,
}

/// Speed of a job at a size, and the marginal values of neighbouring sizes.
#[derive(Clone, Copy, Debug)]
struct Speed {
    rate: f64,
    /// Rate at the next larger size, and the number of additional accelerators.
    up: Option<(f64, f64)>,
    /// Rate per accelerator, relative to the smallest size.
    efficiency: f32,
    /// Rate gained by the next larger size per accelerator, relative to the rate at the smallest
    /// size.
    gain: f32,
    /// Rate lost by the next smaller size per accelerator, relative to the rate at the smallest
    /// size.
    loss: f32,
}

/// Encoder of rounds into observations.
#[derive(Clone, Debug)]
pub struct Encoder {
    layout: Layout,
    total_gpus: f32,
    features: Vec<f32>,
    facts: Vec<Facts>,
    before: Vec<Facts>,
    /// Features by type of each slot at the beginning of this round and of the previous round;
    /// valid as long as the facts of the slot.
    of_types: Vec<f32>,
    of_types_before: Vec<f32>,
    /// Remaining work by slot at the beginning of the round; negative where unknown.
    work: Vec<f64>,
    /// Scaled logarithms of `1 + gpus` for small numbers of accelerators.
    log_sizes: Vec<f32>,
    /// Sort key in the upper half and slot in the lower half: one integer sorts faster than a pair
    /// of floats.
    order: Vec<u64>,
    expected: ExpectedPeak,
    holdings: Holdings,
    types: Types,
}

impl Encoder {
    /// Creates an encoder for observations of `layout`.
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            total_gpus: 1.0,
            features: vec![0.0; layout.obs_dim()],
            facts: Vec::with_capacity(layout.slots),
            before: Vec::with_capacity(layout.slots),
            of_types: Vec::with_capacity(layout.slots * layout.types * TYPE_FEATURES.len()),
            of_types_before: Vec::with_capacity(layout.slots * layout.types * TYPE_FEATURES.len()),
            work: vec![-1.0; layout.slots],
            log_sizes: (0..=128).map(|gpus| log1p([f64::from(gpus)])[0] * 0.25).collect(),
            order: Vec::with_capacity(layout.slots),
            expected: ExpectedPeak::default(),
            holdings: Holdings::default(),
            types: Types::default(),
        }
    }

    /// Replaces the load forecast of services, which is the load of the day before by default.
    #[must_use]
    pub fn with_expected_peak(self, expected: ExpectedPeak) -> Self {
        Self { expected, ..self }
    }

    /// Layout of the observations.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Clears cached facts of jobs, before the first round of another run.
    pub fn reset(&mut self) {
        self.facts.clear();
        self.features.fill(0.0);
        self.expected.forget();
    }

    /// Encodes a round that has just begun.
    pub fn begin(&mut self, view: &ClusterView<'_>, round: &Round) {
        self.total_gpus = view.cluster().total_gpus().max(1) as f32;
        let used = self.facts.len();
        self.order.clear();
        std::mem::swap(&mut self.facts, &mut self.before);
        std::mem::swap(&mut self.of_types, &mut self.of_types_before);
        self.facts.clear();
        self.of_types.clear();
        let of_types = self.layout.types * TYPE_FEATURES.len();
        let of_tenants = self.layout.slot_features - of_types > SLOT_FEATURES.len();
        if of_tenants {
            self.holdings.count(view);
        }
        if self.layout.types > 0 {
            self.types.count(view, self.layout.types);
        }
        let mut before = 0;
        for (at, slot) in round.slots().iter().enumerate() {
            let Some(job) = view.job(slot.job) else {
                continue;
            };
            // Slots are in ascending order of id in all rounds, so one linear merge finds the
            // previous facts of each job.
            while self.before.get(before).is_some_and(|facts| facts.job < slot.job) {
                before += 1;
            }
            let now = (slot.job, slot.version, slot.held, slot.ladder);
            let same = self.before.get(before).filter(|f| (f.job, f.version, f.held, f.ladder) == now);
            let known = same.is_some();
            let facts = same.copied().unwrap_or_else(|| self.facts_of(slot, &job));
            self.facts.push(facts);
            let key = self.slot_features(at, slot, &job, view, &facts);
            if of_tenants {
                let start = at * self.layout.slot_features + SLOT_FEATURES.len();
                self.holdings.write(view, &job, &mut self.features[start..start + TENANT_FEATURES.len()]);
            }
            // Features by type are expensive, so those of an unchanged job are copied from the
            // previous round.
            match known {
                true => {
                    let end = (at + 1) * self.layout.slot_features;
                    let same = &self.of_types_before[before * of_types..(before + 1) * of_types];
                    self.features[end - of_types..end].copy_from_slice(same);
                }
                false => self.write_types(at, slot, &job),
            }
            let end = (at + 1) * self.layout.slot_features;
            self.of_types.extend_from_slice(&self.features[end - of_types..end]);
            // For a non-negative float, the order of the bits equals the order of the values.
            self.order.push(u64::from((key.max(0.0) as f32).to_bits()) << 32 | at as u64);
        }
        // Slots in use are written completely; slots no longer in use are cleared.
        let (from, to) = (self.facts.len(), used.max(self.facts.len()));
        self.features[from * self.layout.slot_features..to * self.layout.slot_features].fill(0.0);
        self.rank(round);
        self.update_shared(view, round);
    }

    /// Encodes a change of replicas or loans, after which jobs may have more or less room.
    pub fn update_shared(&mut self, view: &ClusterView<'_>, round: &Round) {
        self.fits(round);
        self.globals(view, round);
        let Layout { slots, slot_features, services, pools, types, .. } = self.layout;
        if services > 0 || pools {
            let end = self.features.len() - types * TYPE_GLOBALS.len();
            let features = &mut self.features[slots * slot_features + GLOBAL_FEATURES.len()..end];
            shared_features::write(view, round.shared(), &mut self.expected, (services, pools), features);
        }
    }

    fn write_types(&mut self, at: usize, slot: &Slot, job: &JobView<'_>) {
        let Layout { slot_features, types, .. } = self.layout;
        if types > 0 {
            let features = &mut self.features[at * slot_features..(at + 1) * slot_features];
            self.types.write_slot(slot, job, &mut features[slot_features - types * TYPE_FEATURES.len()..]);
        }
    }

    /// Encodes the change of one slot.
    pub fn update(&mut self, view: &ClusterView<'_>, round: &Round, slot: usize) {
        let changed = &round.slots()[slot];
        if let Some(job) = view.job(changed.job) {
            // Without distinguished types, features must not depend on the type on which a job
            // starts.
            let kind = if self.layout.types > 0 { changed.accelerator } else { changed.home };
            let rates = job.rates_on(kind);
            let same = kind == changed.home;
            // The known rate is that of the home type, so another type needs its own.
            let rate_at_min = if same { self.facts[slot].rate_at_min } else { rates.at(changed.ladder.min()) };
            let speed = speed_of(changed, &rates, rate_at_min);
            let work = self.work[slot];
            let logs = log1p([secs_at(work, speed.rate), speed.saved_secs(work, rate_at_min)]);
            let size = self.log_size(changed.working);
            self.working_features(slot, changed, &speed, size, logs);
            self.write_types(slot, changed, &job);
        }
        self.fits(round);
        self.globals(view, round);
    }

    /// Current observation as a flat vector.
    pub fn observation(&self) -> &[f32] {
        &self.features
    }

    fn facts_of(&self, slot: &Slot, job: &JobView<'_>) -> Facts {
        let (min, max) = (slot.ladder.min(), slot.ladder.max());
        let rates = job.rates_on(slot.home);
        let rate_at_min = rates.at(min);
        Facts {
            job: slot.job,
            version: slot.version,
            held: slot.held,
            ladder: slot.ladder,
            sizes: [slot.held, min, max, job.request().gpus].map(|gpus| self.log_size(gpus)),
            rate_at_min,
            at_held: speed_of(slot, &rates, rate_at_min),
        }
    }

    /// Writes the features of a slot at the beginning of a round; returns the key by which the job
    /// is ranked.
    fn slot_features(
        &mut self,
        at: usize,
        slot: &Slot,
        job: &JobView<'_>,
        view: &ClusterView<'_>,
        facts: &Facts,
    ) -> f64 {
        let known = job.remaining_work();
        let work = known.unwrap_or(-1.0);
        self.work[at] = work;
        let attained = job.attained_gpu_millis() as f64 / 1000.0;
        let until = match job.state.phase {
            Phase::Starting { until } => (until - view.now).as_secs_f64(),
            Phase::Pending | Phase::Running => 0.0,
        };
        let at_min = secs_at(work, facts.rate_at_min);
        let speed = &facts.at_held;
        // One call for all logarithms of a slot, because the compiler vectorises them.
        let [age, attained_log, since, restarts, until, at_min_log, secs, saved] = log1p([
            job.age().as_secs_f64(),
            attained,
            (view.now - job.state.changed).as_secs_f64(),
            f64::from(job.state.restarts),
            until,
            at_min,
            secs_at(work, speed.rate),
            speed.saved_secs(work, facts.rate_at_min),
        ]);
        let f = &mut self.features[at * self.layout.slot_features..][..self.layout.slot_features];
        f[0] = 1.0;
        f[1] = age * 0.1;
        f[2] = attained_log * 0.1;
        f[3] = since * 0.1;
        f[4] = restarts * 0.5;
        f[5] = until * 0.2;
        f[6..10].copy_from_slice(&facts.sizes);
        f[10] = f32::from(u8::from(known.is_some()));
        f[13] = at_min_log * 0.1;
        self.working_features(at, slot, speed, facts.sizes[0], [secs, saved]);
        if known.is_some() { at_min } else { attained }
    }

    /// Writes the features that depend on the working allocation; `logs` are the logarithms of the
    /// seconds left and of the seconds saved by the next larger size.
    fn working_features(&mut self, at: usize, slot: &Slot, speed: &Speed, size: f32, logs: [f32; 2]) {
        let f = &mut self.features[at * self.layout.slot_features..][..self.layout.slot_features];
        f[14] = size;
        f[15] = slot.working as f32 / self.total_gpus;
        f[16] = f32::from(u8::from(slot.working == 0));
        f[17] = f32::from(u8::from(slot.changed()));
        f[18] = logs[0] * 0.1;
        f[19] = speed.efficiency;
        f[20] = speed.gain;
        f[21] = speed.loss;
        f[22] = logs[1] * 0.1;
    }

    /// Writes which jobs could grow. One job's change may change the result for all jobs.
    fn fits(&mut self, round: &Round) {
        let stride = self.layout.slot_features;
        for (at, f) in self.features.chunks_exact_mut(stride).take(round.slots().len()).enumerate() {
            f[23] = f32::from(u8::from(round.allows(at, Verb::Grow)));
        }
        if self.layout.types > 0 {
            self.types.write_fits(round, &self.layout, &mut self.features[..self.layout.slots * stride]);
        }
    }

    fn log_size(&self, gpus: u32) -> f32 {
        self.log_sizes.get(gpus as usize).copied().unwrap_or_else(|| log1p([f64::from(gpus)])[0] * 0.25)
    }

    /// Ranks slots by remaining time (or attained service), the order that a sorting heuristic
    /// would use.
    fn rank(&mut self, round: &Round) {
        // Keys contain the slot, so no two are equal and the unstable sort has one result.
        self.order.sort_unstable();
        let count = self.order.len().max(1) as f32;
        let mut demand = 0.0;
        for (rank, &key) in self.order.iter().enumerate() {
            let at = (key & u64::from(u32::MAX)) as usize;
            let f = &mut self.features[at * self.layout.slot_features..][..self.layout.slot_features];
            f[11] = rank as f32 / count;
            f[12] = (demand / self.total_gpus).min(4.0);
            demand += round.slots()[at].ladder.start() as f32;
        }
    }

    fn globals(&mut self, view: &ClusterView<'_>, round: &Round) {
        let slots = round.slots();
        let pending = slots.iter().filter(|slot| slot.working == 0).count();
        let demand: u32 = slots.iter().map(|slot| slot.ladder.start()).sum();
        let free: u32 = round.free().iter().sum();
        let flag = |on: bool| f32::from(u8::from(on));
        let total = self.total_gpus;
        let capacity = self.layout.slots.max(1) as f32;
        let g = &mut self.features[self.layout.slots * self.layout.slot_features..];
        g[0] = free as f32 / total;
        let logs =
            log1p([f64::from(total), f64::from(view.cluster().gpus_per_node()), pending as f64, round.hidden() as f64]);
        g[1] = logs[0] * 0.1;
        g[2] = logs[1] * 0.25;
        g[3] = slots.len() as f32 / capacity;
        g[4] = pending as f32 / slots.len().max(1) as f32;
        g[5] = logs[2] * 0.2;
        g[6] = logs[3] * 0.2;
        g[7] = (demand as f32 / total).min(4.0);
        g[8] = round.actions() as f32 / (2.0 * capacity);
        g[9] = flag(view.trigger.arrival);
        g[10] = flag(view.trigger.completion);
        g[11] = flag(view.trigger.round);
        // The schema has four such features; a cluster of more types needs a layout by type.
        for (at, &free) in round.free().iter().take(4).enumerate() {
            g[12 + at] = free as f32 / total;
        }
        let from = g.len() - self.layout.types * TYPE_GLOBALS.len();
        self.types.write_globals(round, &mut g[from..]);
    }
}

impl Speed {
    /// Seconds that each additional accelerator of the next larger size would save.
    fn saved_secs(&self, work: f64, rate_at_min: f64) -> f64 {
        self.up.map_or(0.0, |(rate_up, more)| {
            // A waiting job has no rate; with a tenth of its rate at the smallest size it still
            // saves time.
            (secs_at(work, self.rate.max(rate_at_min * 0.1)) - secs_at(work, rate_up)).max(0.0) / more
        })
    }
}

/// Speed and marginal values of the working size for the job of `slot`.
fn speed_of(slot: &Slot, rates: &Rates<'_>, rate_at_min: f64) -> Speed {
    let working = slot.working;
    let rate = rates.at(working);
    let per_min = if rate_at_min > 0.0 { 1.0 / rate_at_min } else { 0.0 };
    let up = slot.up.map(|up| (rates.at(up), f64::from(up - working)));
    let gain = up.map_or(0.0, |(rate_up, more)| (rate_up - rate) * per_min / more);
    let (mut efficiency, mut loss) = (1.0, 0.0);
    if working > 0 {
        let down = slot.down.unwrap_or(0);
        loss = (rate - rates.at(down)) * per_min / f64::from(working - down);
        efficiency = rate * per_min * f64::from(slot.ladder.min()) / f64::from(working);
    }
    Speed { rate, up, efficiency: efficiency as f32, gain: gain as f32, loss: loss as f32 }
}

/// Seconds left at `rate`; zero where work or rate is unknown.
fn secs_at(work: f64, rate: f64) -> f64 {
    if work <= 0.0 || rate <= 0.0 { 0.0 } else { work / rate }
}

/// Natural logarithms of `1 + x` with an error of about 1e-4, from the exponent bits and a
/// polynomial. Features need no more accuracy, and `ln` would take half of the encoder's time. The
/// function takes several values and is not inlined, so that the compiler vectorises it.
#[inline(never)]
fn log1p<const N: usize>(x: [f64; N]) -> [f32; N] {
    let mut log = [0.0; N];
    for (log, x) in log.iter_mut().zip(x) {
        // The comparison turns NaN into zero as well.
        *log = (1.0 + if x > 0.0 { x } else { 0.0 }) as f32;
    }
    for log in &mut log {
        let bits = log.to_bits();
        let exponent = ((bits >> 23) as i32 - 127) as f32;
        let m = f32::from_bits((bits & 0x007F_FFFF) | 0x3F80_0000) - 1.0;
        let series = -0.347_305_24 + m * (0.241_873_25 + m * (-0.136_753_18 + m * 0.041_976_9));
        let log2 = exponent + m * (1.442_689 + m * (-0.721_165_6 + m * (0.478_684_36 + m * series)));
        *log = log2 * std::f32::consts::LN_2;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_is_close_to_the_exact_one() {
        for step in 0..4000 {
            let x = f64::from(step) * f64::from(step) * 3.7;
            let [log] = log1p([x]);
            assert!((f64::from(log) - x.ln_1p()).abs() < 3e-4, "{x}: {log} {}", x.ln_1p());
        }
    }
}
