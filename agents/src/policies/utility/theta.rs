//! The numbers of a utility, by name.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::features::{COMMON, FEATURES, group_of};
use super::group::Group;
use super::nudge::Lever;
use crate::compose::loaning::Lending;

/// Parameter that is no weight of a feature.
#[derive(Clone, Copy)]
enum ShapeParameter {
    /// Exponent of the speed.
    Exponent,
    /// Change of the exponent with the load.
    ExponentByPressure,
    /// Logarithm of what is added to the speed, so that a job without accelerators is worth something.
    LogFloor,
    /// Logarithm of the horizon over which a restart pays, seconds.
    LogHorizon,
    /// Change of the horizon with the age of the job.
    HorizonByAge,
    /// Change of the horizon with the time that the job may have left.
    HorizonByRemaining,
    /// Weight of past restarts against another restart.
    RestartMemory,
    /// Logarithm of the remaining work of a job relative to its work so far, by its own progress alone.
    LogMore,
    /// Logarithm of the accelerator seconds that a job without progress may have left.
    LogFirstSecs,
    /// Logarithm of the number of completed jobs that count as much as the job's own progress.
    LogDoubt,
    /// Power of the ratio of two types' speeds for a job that never ran: 1 believes what one accelerator
    /// measured, as in Sia; 0 takes all types for equal.
    TrustBeforeRun,
    /// Power of the ratio of two types' speeds for a type that the job has not run on.
    TrustOfOtherType,
}

/// Every parameter that is no weight of a feature: name, Sia's value, and the first step of a search.
const SHAPE: [(ShapeParameter, &str, f64, f64); 12] = [
    (ShapeParameter::Exponent, "exponent", -0.5, 0.3),
    (ShapeParameter::ExponentByPressure, "exponent_by_pressure", 0.0, 0.3),
    (ShapeParameter::LogFloor, "log_floor", -3.0, 1.0),
    (ShapeParameter::LogHorizon, "log_horizon", 0.0, 0.7),
    (ShapeParameter::HorizonByAge, "horizon_by_age", 1.0, 0.3),
    (ShapeParameter::HorizonByRemaining, "horizon_by_remaining", 0.0, 0.3),
    (ShapeParameter::RestartMemory, "restart_memory", 1.0, 0.3),
    (ShapeParameter::LogMore, "log_more", 0.0, 0.5),
    (ShapeParameter::LogFirstSecs, "log_first_secs", 6.0, 1.0),
    (ShapeParameter::LogDoubt, "log_doubt", 0.0, 1.0),
    (ShapeParameter::TrustBeforeRun, "trust_before_run", 1.0, 0.3),
    (ShapeParameter::TrustOfOtherType, "trust_of_other_type", 1.0, 0.3),
];

// A bundle stores the values in the order of the table, so each parameter must stand at its own place there.
const _: () = {
    let mut at = 0;
    while at < SHAPE.len() {
        assert!(SHAPE[at].0 as usize == at);
        at += 1;
    }
};

/// Parameter that changes another one with the length of a restart ([`log_restart`]).
#[derive(Clone, Copy)]
enum RestartParameter {
    /// Change of the exponent.
    Exponent,
    /// Change of the logarithm of the horizon.
    LogHorizon,
    /// Change of what the horizon gains with the age of the job.
    HorizonByAge,
    /// Change of what the horizon gains with the time that the job may have left.
    HorizonByRemaining,
}

/// Every parameter of [`Group::Restarts`]: name, and the first step of a search, which begins without effect.
const BY_RESTART: [(RestartParameter, &str, f64); 4] = [
    (RestartParameter::Exponent, "exponent_by_restart", 0.15),
    (RestartParameter::LogHorizon, "log_horizon_by_restart", 0.35),
    (RestartParameter::HorizonByAge, "horizon_by_age_by_restart", 0.15),
    (RestartParameter::HorizonByRemaining, "horizon_by_remaining_by_restart", 0.15),
];

const _: () = {
    let mut at = 0;
    while at < BY_RESTART.len() {
        assert!(BY_RESTART[at].0 as usize == at);
        at += 1;
    }
};

/// Places of the values behind those of the features and the shape.
const FIRST_OF_LOANS: usize = FEATURES.len() + SHAPE.len();
const FIRST_BY_RESTART: usize = FIRST_OF_LOANS + Lending::NAMES.len();

/// Parameters that every utility has.
pub const PARAMETERS: usize = COMMON + SHAPE.len();

const ALL: usize = FIRST_BY_RESTART + BY_RESTART.len();

/// The parameters: weights of the features, the shape, and those of the groups it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Theta {
    groups: BTreeSet<Group>,
    /// Weights of [`FEATURES`], [`SHAPE`], [`Lending::NAMES`], [`BY_RESTART`]; those of absent groups have no effect.
    values: Vec<f64>,
}

impl Theta {
    /// From numbers in the order of [`Self::names`]; `None` where there are not [`PARAMETERS`]
    /// finite ones.
    pub fn new(values: &[f64]) -> Option<Self> {
        Self::sia().of_values(values)
    }

    /// Parameters of these groups with other values, in the order of [`Self::names`]; `None` where
    /// there are not as many, or one is not finite.
    pub fn of_values(mut self, values: &[f64]) -> Option<Self> {
        let places: Vec<usize> = self.places().collect();
        if places.len() != values.len() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        places.into_iter().zip(values).for_each(|(at, value)| self.values[at] = *value);
        Some(self)
    }

    /// The objective of Sia (SOSP'23, section 3.4): where searches start.
    pub fn sia() -> Self {
        Self { groups: BTreeSet::new(), values: (0..ALL).map(|at| parameter(at).1).collect() }
    }

    /// The objective of Pollux (OSDI'21, equation 14).
    pub fn pollux() -> Self {
        let mut pollux = Self::sia();
        for (at, value) in pollux.values.iter_mut().enumerate() {
            match parameter(at).0 {
                "exponent" => *value = -1.0,
                "log_speedup_at_fair_share" => *value = 1.0,
                _ => {}
            }
        }
        pollux
    }

    /// Parameters with these groups added, at values that change no decision.
    #[must_use]
    pub fn with(mut self, groups: impl IntoIterator<Item = Group>) -> Self {
        self.groups.extend(groups);
        self
    }

    /// The groups it has.
    pub fn groups(&self) -> &BTreeSet<Group> {
        &self.groups
    }

    /// Names, in order: those that all utilities have, then group by group.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.places().map(|at| parameter(at).0)
    }

    /// First steps of a search, one for each parameter.
    pub fn scales(&self) -> Vec<f64> {
        self.places().map(|at| parameter(at).2).collect()
    }

    /// Values of all parameters.
    pub fn values(&self) -> Vec<f64> {
        self.places().map(|at| self.values[at]).collect()
    }

    /// Parameters with `by` added to those of a lever, in its units and in the order of its features
    /// ([`Lever::features`]); each is rounded as a bundle stores it.
    #[must_use]
    pub fn moved(mut self, lever: Lever, by: &[f64]) -> Self {
        let first = match lever {
            Lever::Weight => 0,
            Lever::Horizon => FEATURES.len() + ShapeParameter::LogHorizon as usize,
            Lever::Exponent => FEATURES.len() + ShapeParameter::Exponent as usize,
        };
        for (value, by) in self.values[first..].iter_mut().zip(by.iter().take(lever.features().len())) {
            *value = f64::from((*value + by * lever.unit()) as f32);
        }
        self
    }

    /// Places of the group's values.
    fn places(&self) -> impl Iterator<Item = usize> {
        let of = |group: Option<Group>| (0..ALL).filter(move |&at| group_at(at) == group);
        of(None).chain(self.groups.iter().flat_map(move |group| of(Some(*group))))
    }

    /// SHA-256, in hexadecimal, of all that gives meaning to the numbers.
    pub fn schema_hash(&self) -> String {
        let text = format!("utility 2;{}", self.names().collect::<Vec<_>>().join(","));
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Learned parameters of loans: none without [`Group::Loans`].
    pub fn lending(&self) -> Lending {
        Lending::new(std::array::from_fn(|at| self.values[FIRST_OF_LOANS + at]))
    }

    /// Weights of the features.
    pub(super) fn weights(&self) -> &[f64] {
        &self.values[..FEATURES.len()]
    }

    fn shape(&self, parameter: ShapeParameter) -> f64 {
        self.values[FEATURES.len() + parameter as usize]
    }

    fn by_restart(&self, parameter: RestartParameter) -> f64 {
        self.values[FIRST_BY_RESTART + parameter as usize]
    }

    /// Exponent of the speed under `pressure`, where the restarts of the jobs have this mean [`log_restart`].
    pub(super) fn exponent(&self, pressure: f64, log_restart: f64) -> f64 {
        bounded_exponent(
            self.shape(ShapeParameter::Exponent)
                + self.shape(ShapeParameter::ExponentByPressure) * pressure
                + self.by_restart(RestartParameter::Exponent) * log_restart,
        )
    }

    pub(super) fn floor(&self) -> f64 {
        self.shape(ShapeParameter::LogFloor).clamp(-9.0, 3.0).exp()
    }

    /// Fraction of its speed that a job keeps if it restarts, at `secs` each: less the more it did
    /// so already, as in Pollux and Sia, and the shorter the horizon over which the new size pays.
    /// `remaining` are the seconds it may have left at its present speed, and `nudge` is added to the logarithm of the
    /// horizon.
    pub(super) fn after_restart(&self, secs: f64, age: f64, restarts: u32, remaining: f64, nudge: f64) -> f64 {
        let restart = log_restart(secs);
        let changed = |shape, by| self.shape(shape) + self.by_restart(by) * restart;
        let log = nudge
            + changed(ShapeParameter::LogHorizon, RestartParameter::LogHorizon)
            + changed(ShapeParameter::HorizonByAge, RestartParameter::HorizonByAge) * (age + 1.0).ln()
            + changed(ShapeParameter::HorizonByRemaining, RestartParameter::HorizonByRemaining)
                * (remaining + 1.0).ln();
        let horizon = log.clamp(-20.0, 20.0).exp();
        let spent = self.shape(ShapeParameter::RestartMemory).max(0.0) * f64::from(restarts) * secs;
        (1.0 - spent / age.max(1.0)).max(0.0) * horizon / (horizon + secs)
    }

    pub(super) fn more(&self) -> f64 {
        self.shape(ShapeParameter::LogMore).clamp(-5.0, 5.0).exp()
    }

    pub(super) fn first_secs(&self) -> f64 {
        self.shape(ShapeParameter::LogFirstSecs).clamp(0.0, 15.0).exp()
    }

    pub(super) fn peer_uncertainty(&self) -> f64 {
        self.shape(ShapeParameter::LogDoubt).clamp(-5.0, 5.0).exp()
    }

    /// Trusted ratio of two types' speeds on one accelerator, for a job that has not run.
    pub(super) fn trusted_before_run(&self, ratio: f64) -> f64 {
        ratio.powf(self.shape(ShapeParameter::TrustBeforeRun).clamp(0.0, 2.0))
    }

    /// Trusted ratio of two types' speeds on one accelerator, for a job that has run.
    pub(super) fn trusted_after_run(&self, ratio: f64) -> f64 {
        ratio.powf(self.shape(ShapeParameter::TrustOfOtherType).clamp(0.0, 2.0))
    }
}

/// Logarithm of a restart of `secs` seconds relative to one of half a minute, at which parameters by restart have no
/// effect.
pub(super) fn log_restart(secs: f64) -> f64 {
    ((secs.max(0.0) + 30.0) / 60.0).ln()
}

/// An exponent that powers can have; never quite 0, where the power has no inverse.
pub(super) fn bounded_exponent(exponent: f64) -> f64 {
    let exponent = exponent.clamp(-3.0, 1.0);
    if exponent.abs() < 1e-3 { 1e-3 } else { exponent }
}

/// Name, start and first step of the parameter at a place.
fn parameter(at: usize) -> (&'static str, f64, f64) {
    if at < FEATURES.len() {
        (FEATURES[at], 0.0, 0.3)
    } else if at < FIRST_OF_LOANS {
        let (_, name, start, step) = SHAPE[at - FEATURES.len()];
        (name, start, step)
    } else if at < FIRST_BY_RESTART {
        let (name, scale) = Lending::NAMES[at - FIRST_OF_LOANS];
        (name, 0.0, scale)
    } else {
        let (_, name, scale) = BY_RESTART[at - FIRST_BY_RESTART];
        (name, 0.0, scale)
    }
}

fn group_at(at: usize) -> Option<Group> {
    match at {
        at if at < FEATURES.len() => group_of(at),
        at if at < FIRST_OF_LOANS => None,
        at if at < FIRST_BY_RESTART => Some(Group::Loans),
        _ => Some(Group::Restarts),
    }
}
