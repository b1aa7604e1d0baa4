//! Points at which Gavel's public simulator departs from the paper.
//!
//! The policy asks [`Departures`] wherever paper and simulator differ. The defaults of the trait
//! are the paper's behaviour; [`Artifact`](super::artifact::Artifact) overrides them with the
//! simulator's.

use goodput_env::cluster::TypeId;
use goodput_env::plan::Plan;
use goodput_env::scenario::Information;
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::instance::{GavelInstance, TimeShares};
use super::objectives;
use super::rounds::{CombinationAccount, OpeningCredit, RoundTask};

/// Behaviour that differs between the paper and its simulator. Tasks are those of the present
/// round, and always in the order in which [`start_round`](Self::start_round) got them.
pub(super) trait Departures: Send {
    /// Shuffles accelerator types for objectives that are unaware of their speeds.
    fn shuffle(&mut self, types: &mut [TypeId]);

    /// Whether two jobs of equal size may be paired, given the accelerator types on which the pair
    /// runs.
    fn opens_pair(&self, runs: &[bool]) -> bool {
        runs.contains(&true)
    }

    /// Time that a new pair counts as having received.
    fn credit_of_pairs(&self) -> OpeningCredit {
        OpeningCredit::HalfRound
    }

    /// Takes note of a job that arrives.
    fn enter(&mut self, _job: &JobView<'_>) {}

    /// Steps that `job` has left; `None` where they are unknown.
    fn steps_left(&self, job: &JobView<'_>) -> Option<f64> {
        job.remaining_work()
    }

    /// Steps per second by which an unaware objective that reckons with time judges `job` on every
    /// type.
    fn unaware_rate(&self, instance: &GavelInstance, job: usize) -> f64 {
        instance.proportional_rate(job)
    }

    /// Shares of time for the least makespan.
    fn makespan(&self, instance: &GavelInstance) -> Option<TimeShares> {
        objectives::makespan(instance)
    }

    /// Whether shares are computed only when the counts of received time are due to be reset as well.
    fn allocates_at_resets_only(&self) -> bool {
        false
    }

    /// Whether a combination that is chosen for a round runs in it. One that does not still takes up its
    /// accelerators.
    fn starts(&self, _account: &CombinationAccount) -> bool {
        true
    }

    /// Start of the next round, seconds. `previous_end` is the end of the round before, if anything
    /// ran in it.
    fn round_start(&self, _previous_end: Option<f64>, now: f64) -> f64 {
        now
    }

    /// Takes note of the tasks of a round and returns the end of the round, seconds.
    fn start_round(&mut self, _view: &ClusterView<'_>, _tasks: &[RoundTask], start_secs: f64, round_secs: f64) -> f64 {
        start_secs + round_secs
    }

    /// Time at which the next round is chosen, where that is before the present one ends, seconds.
    fn chooses_at(&self, _end_secs: f64, _round_secs: f64) -> Option<f64> {
        None
    }

    /// Time by which a round is longer when `leaving` jobs gave up their accelerators at its start, seconds.
    fn extension_secs(&self, _leaving: usize) -> f64 {
        0.0
    }

    /// Whether the round goes on although its time is up.
    fn extends_round(&self, _view: &ClusterView<'_>, _tasks: &[RoundTask]) -> bool {
        false
    }

    /// Changes between two rounds.
    fn within_round(&mut self, _view: &ClusterView<'_>, _tasks: &[RoundTask]) -> Plan {
        Plan::keep()
    }

    /// Time when task `at` ended, for the count of time that it has received, seconds.
    fn task_end(&self, _at: usize, now: f64) -> f64 {
        now
    }

    /// Accounts for the steps of a round that is over.
    fn settle(&mut self, _view: &ClusterView<'_>, _tasks: &[RoundTask]) {}

    /// Next time within the round at which [`within_round`](Self::within_round) has something to
    /// change.
    fn wake_at(&self) -> Option<SimTime> {
        None
    }

    /// Knowledge of jobs that the objective is evaluated with, given what the objective itself
    /// uses.
    fn information(&self, of_objective: Information) -> Information {
        of_objective
    }

    /// Knowledge without which the policy cannot run: any estimate of lengths will do where lengths
    /// count.
    fn needs(&self, information: Information) -> Information {
        match information {
            Information::Oracle => Information::Estimate { sigma: 0.0 },
            known => known,
        }
    }
}

/// Gavel as the paper has it.
pub(super) struct PublishedGavel {
    random: ChaCha8Rng,
}

impl PublishedGavel {
    /// Draws from the policy's stream of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self { random: rng(seed, Stream::Policy) }
    }
}

impl Departures for PublishedGavel {
    fn shuffle(&mut self, types: &mut [TypeId]) {
        for i in (1..types.len()).rev() {
            types.swap(i, self.random.random_range(0..=i));
        }
    }
}
