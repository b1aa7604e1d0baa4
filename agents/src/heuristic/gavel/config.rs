//! Settings of Gavel: the objective, and the mechanism of rounds.

use super::fifo::Fifo;
use super::gandiva::Gandiva;
use super::water_filling::Inside;

/// What is optimised.
#[derive(Clone, Debug)]
pub enum Objective {
    /// Equal shares of everything.
    Isolated,
    /// Max-min fairness.
    MaxMin,
    /// Max-min fairness by water-filling, each job on its own.
    WaterFilling,
    /// Water-filling over tenants by their weights.
    Hierarchical(Inside),
    /// Finish-time fairness.
    FinishTime,
    /// Makespan.
    Makespan,
    /// Sum of completion times.
    MinJct,
    /// Sum of throughputs.
    MaxThroughput,
    /// Sum of throughputs over the price of their types; prices an hour by name. Where a type of the cluster has none, prices do not
    /// count.
    Cost(Vec<(&'static str, f64)>),
    /// The same with jobs' deadlines kept, where all of them can be.
    CostWithDeadlines(Vec<(&'static str, f64)>),
    /// First in, first out.
    Fifo(Fifo),
    /// Random pairs.
    Gandiva(Gandiva),
}

/// Settings of [`Gavel`].
#[derive(Clone, Debug)]
pub struct GavelConfig {
    /// What is optimised.
    pub objective: Objective,
    /// Whether speeds of types are known to the objective.
    pub aware: bool,
    /// Whether two jobs may share accelerators.
    pub sharing: bool,
    /// Length of a round, seconds.
    pub round_secs: f64,
    /// What each job has received is counted anew after this time at the earliest, seconds.
    pub reset_secs: f64,
    /// Behaves as the artifact's simulator, defects included.
    pub artifact: bool,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl GavelConfig {
    /// Rounds of 6 minutes, counts kept for 32 minutes.
    pub fn published(objective: Objective, aware: bool, seed: u64) -> Self {
        let sharing = matches!(objective, Objective::Gandiva(_));
        Self { objective, aware, sharing, round_secs: 360.0, reset_secs: 1920.0, artifact: false, seed }
    }
}
