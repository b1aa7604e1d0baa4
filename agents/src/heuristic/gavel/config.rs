//! Settings of Gavel: the objective, and the mechanism of rounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::allox_rounds::AlloxQueues;
use super::fifo::TypeFifo;
use super::form::GavelForm;
use super::gandiva::GandivaPairs;
use super::water_filling::Inside;
use crate::allocation::expense::Expense;
use crate::heuristic::shockwave::Shockwave;

/// Objective that the shares of time optimise.
#[derive(Clone, Debug)]
pub enum GavelObjective {
    /// Equal shares of all types for all jobs.
    Isolated,
    /// Max-min fairness over normalised throughput.
    MaxMin,
    /// Max-min fairness by water-filling, each job on its own.
    WaterFilling,
    /// Water-filling over tenants by their weights.
    Hierarchical(Inside),
    /// Finish-time fairness (Themis).
    FinishTime,
    /// Makespan of the active jobs.
    Makespan,
    /// Sum of completion times, as if all jobs ran at their shares to the end.
    MinJct,
    /// Time of the shortest job, then of the next.
    ShortestFirst,
    /// Sum of throughputs.
    MaxThroughput,
    /// Sum of throughputs over the price of their types. Prices are dollars an hour by name; where
    /// a type of the cluster has none, all prices count as 1.
    Cost(Vec<(&'static str, f64)>),
    /// Sum of throughputs over what their types take, as the cluster's types state it.
    Per(Expense),
    /// As [`Per`](Self::Per), with the throughput per expense of a job relative to that on the job's best type.
    RelativePer(Expense),
    /// As [`Cost`](Self::Cost), with jobs' deadlines kept where all of them can be.
    CostWithDeadlines(Vec<(&'static str, f64)>),
    /// Baseline: first in, first out over types.
    Fifo(TypeFifo),
    /// Baseline: random pairs of jobs share accelerators.
    Gandiva(GandivaPairs),
    /// Baseline: equal time for all jobs, whatever their sizes (Gandiva-Fair, EuroSys'20).
    EqualTime,
    /// Baseline: AlloX (EuroSys'20).
    Allox(AlloxQueues),
    /// Shockwave (NSDI'23), which chooses rounds by itself.
    Shockwave(Box<Shockwave>),
}

/// Name of the policy of most steps per watt.
pub const PER_WATT: &str = "gavel-per-watt";

/// Name of the policy of most steps per dollar.
pub const PER_DOLLAR: &str = "gavel-per-dollar";

/// Expense that the policy called `name` weighs throughput against; `None` where it weighs none.
pub fn expense_of(name: &str) -> Option<Expense> {
    match name {
        PER_WATT => Some(Expense::Power),
        PER_DOLLAR => Some(Expense::Price),
        _ => None,
    }
}

/// Knowledge that an objective has of the speeds of jobs on accelerator types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeSpeeds {
    /// The speed on each type.
    Known,
    /// Nothing: all types count alike.
    Hidden,
}

/// Mechanism of rounds, whatever the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GavelRounds {
    /// Length of a round.
    #[schemars(range(min = 1.0, max = 1e7), extend("x-unit" = "s", "x-source" = "OSDI 2020, section 5: 6 minutes"))]
    pub round_secs: f64,
    /// Least time between resets of the counts of received time.
    #[schemars(range(min = 1.0, max = 1e9), extend("x-unit" = "s", "x-source" = "scheduler.py of its artifact"))]
    pub reset_secs: f64,
}

impl Default for GavelRounds {
    fn default() -> Self {
        Self { round_secs: 360.0, reset_secs: 1920.0 }
    }
}

/// Settings of an objective per expense.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GavelPerExpense {
    /// Length of a round.
    #[schemars(range(min = 1.0, max = 1e7), extend("x-unit" = "s", "x-source" = "OSDI 2020, section 5: 6 minutes"))]
    pub round_secs: f64,
    /// Least time between resets of the counts of received time.
    #[schemars(range(min = 1.0, max = 1e9), extend("x-unit" = "s", "x-source" = "scheduler.py of its artifact"))]
    pub reset_secs: f64,
    /// Whether the steps per expense of a job count relative to those on the job's best type, times its accelerators.
    /// Without it, jobs with short steps count most.
    #[schemars(extend("x-source" = "this project"))]
    pub relative: bool,
}

impl Default for GavelPerExpense {
    fn default() -> Self {
        let GavelRounds { round_secs, reset_secs } = GavelRounds::default();
        Self { round_secs, reset_secs, relative: false }
    }
}

impl GavelPerExpense {
    /// Mechanism of rounds.
    pub fn rounds(self) -> GavelRounds {
        GavelRounds { round_secs: self.round_secs, reset_secs: self.reset_secs }
    }

    /// Objective per `expense`.
    pub fn objective(self, expense: Expense) -> GavelObjective {
        if self.relative { GavelObjective::RelativePer(expense) } else { GavelObjective::Per(expense) }
    }
}

/// Length of rounds, for objectives with which counts of received time change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GavelRoundLength {
    /// Length of a round.
    #[schemars(range(min = 1.0, max = 1e7), extend("x-unit" = "s", "x-source" = "OSDI 2020, section 5: 6 minutes"))]
    pub round_secs: f64,
}

impl Default for GavelRoundLength {
    fn default() -> Self {
        Self { round_secs: GavelRounds::default().round_secs }
    }
}

impl GavelRoundLength {
    /// Rounds of this length.
    pub fn rounds(self) -> GavelRounds {
        GavelRounds { round_secs: self.round_secs, ..GavelRounds::default() }
    }
}

/// Settings of [`Gavel`].
#[derive(Clone, Debug)]
pub struct GavelConfig {
    /// Objective that the shares of time optimise.
    pub objective: GavelObjective,
    /// Knowledge of types that the objective has.
    pub types: TypeSpeeds,
    /// Whether two jobs may share accelerators.
    pub sharing: bool,
    /// Mechanism of rounds.
    pub rounds: GavelRounds,
    /// Form of the policy.
    pub form: GavelForm,
    /// Seed of all draws.
    pub seed: u64,
}

impl GavelConfig {
    /// The paper's settings: rounds of 6 minutes, counts kept for 32 minutes.
    pub fn published(objective: GavelObjective, types: TypeSpeeds, seed: u64) -> Self {
        let sharing = matches!(objective, GavelObjective::Gandiva(_));
        Self { objective, types, sharing, rounds: GavelRounds::default(), form: GavelForm::Published, seed }
    }
}
