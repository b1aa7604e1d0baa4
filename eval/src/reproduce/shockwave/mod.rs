//! Shockwave's evaluation on 32 accelerators: 120 jobs that change their batch size while they train, under seven
//! policies, beside the artifact's simulation and beside its run on machines.
//!
//! The policies run in Gavel's rounds, in the forms that Shockwave's scheduler has in its simulator
//! ([`simulated`]) and on machines ([`measured`]).

pub mod measured;
pub mod simulated;
mod trace;

use std::sync::Arc;

use goodput_agents::heuristic::gavel::allox_rounds::AlloxQueues;
use goodput_agents::heuristic::gavel::{
    ALLOX_FRACTION, Gavel, GavelConfig, GavelForm, GavelObjective, GavelRounds, TypeSpeeds,
};
use goodput_agents::heuristic::shockwave::{Shockwave, ShockwaveConfig};
use goodput_env::cluster::{AcceleratorType, Cluster, Node, TypeId};
use goodput_env::job::Workload;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};

use super::{ReproduceError, ReproducedFigure};
pub use trace::{ShockwaveRun, ShockwaveTrace};

const SOURCE: &str = "Zheng et al., NSDI 2023; uw-mad-dash/shockwave, commit 8a44f4a";
const FILES: &[&str] = &[
    "data/shockwave/120_0.2_5_100_40_25.trace",
    "data/shockwave/tacc_throughputs.json.gz",
    "reference/shockwave_results.json",
];
/// Accelerators of the cluster, each on a server of its own as in the artifact.
const GPUS: usize = 32;
/// Rounds of 2 minutes, and counts of received time that are kept for 1000 s (`scheduler.py`).
const ROUNDS: GavelRounds = GavelRounds { round_secs: 120.0, reset_secs: 1000.0 };

/// Policy of the artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShockwavePolicy {
    /// Shockwave's own market.
    Shockwave,
    /// OSSP: the least makespan.
    Ossp,
    /// Themis: finish-time fairness.
    Themis,
    /// Gavel: max-min fairness.
    Gavel,
    /// Matching of jobs to accelerators by AlloX.
    Allox,
    /// MST: the largest sum of throughputs.
    Mst,
    /// Equal shares of time as in Gandiva-Fair.
    GandivaFair,
}

impl ShockwavePolicy {
    /// All policies, in the order of the artifact's script.
    pub const ALL: [Self; 7] =
        [Self::Shockwave, Self::Ossp, Self::Themis, Self::Gavel, Self::Allox, Self::Mst, Self::GandivaFair];

    /// Name in the files of the artifact.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shockwave => "shockwave",
            Self::Ossp => "min_total_duration",
            Self::Themis => "finish_time_fairness",
            Self::Gavel => "max_min_fairness",
            Self::Allox => "allox",
            Self::Mst => "max_sum_throughput_perf",
            Self::GandivaFair => "gandiva_fair",
        }
    }

    fn make(self, form: GavelForm) -> Gavel {
        let objective = match self {
            Self::Shockwave => return Shockwave::in_rounds(ShockwaveConfig::default(), form, 0),
            Self::Ossp => GavelObjective::Makespan,
            Self::Themis => GavelObjective::FinishTime,
            Self::Gavel => GavelObjective::MaxMin,
            Self::Allox => GavelObjective::Allox(AlloxQueues::new(ALLOX_FRACTION)),
            Self::Mst => GavelObjective::MaxThroughput,
            Self::GandivaFair => GavelObjective::EqualTime,
        };
        Gavel::new(GavelConfig { form, rounds: ROUNDS, ..GavelConfig::published(objective, TypeSpeeds::Known, 0) })
    }

    /// Run of this policy in `form` on 32 accelerators.
    ///
    /// # Errors
    /// Where the run fails.
    pub fn simulate(
        self,
        form: GavelForm,
        workload: &Arc<Workload>,
        options: SimOptions,
    ) -> Result<Outcome, ReproduceError> {
        let cluster =
            Cluster { types: vec![AcceleratorType::named("v100")], nodes: vec![Node::new(TypeId(0), 1); GPUS] };
        let scenario = Scenario::new(Arc::new(cluster), workload.clone(), options, 0);
        Simulator::new(Arc::new(scenario))
            .run(&mut self.make(form))
            .map_err(|source| ReproduceError::Run { case: self.name().into(), source })
    }
}

/// Rows of one policy: mean completion time, makespan, and the part of the jobs that are done later than with an equal
/// part of the cluster. `profiled` holds the jobs' run times alone, seconds.
fn rows(
    policy: ShockwavePolicy,
    theirs: &ShockwaveRun,
    ours: &ShockwaveRun,
    profiled: &[f64],
) -> [ReproducedFigure; 3] {
    let figure = |metric, of: &dyn Fn(&ShockwaveRun) -> f64| ReproducedFigure {
        case: policy.name().into(),
        metric,
        theirs: Some(of(theirs)),
        ours: of(ours),
    };
    [
        figure("jct_mean_secs", &ShockwaveRun::mean_jct),
        figure("makespan_secs", &ShockwaveRun::makespan),
        figure("unfair_percent", &|run| run.unfair_percent(profiled, GPUS)),
    ]
}
