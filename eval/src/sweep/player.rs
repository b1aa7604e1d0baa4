//! Player: what plays the cells of one workload.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use goodput_agents::compose::Wrappers;
use goodput_agents::policies::external::ExternalProgram;
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::Setup;
use goodput_env::scenario::Scenario;

use super::error::SweepError;
use crate::entries;
use crate::run::{AllocationLog, NamedScenario, PolicyEntry, PolicyRun, RunSurroundings, play};

/// The policies of a study, ready for one of its workloads.
#[derive(Debug)]
pub(super) struct WorkloadPlayer {
    name: String,
    setup: Setup,
    wrappers: Wrappers,
    pub(super) entries: Vec<PolicyEntry>,
}

impl WorkloadPlayer {
    pub(super) fn new(
        name: &str,
        experiment: &Experiment,
        policies: &[String],
        programs: &[ExternalProgram],
    ) -> Result<Self, SweepError> {
        let setup = experiment.setup()?;
        let entry = |policy: &String| {
            let program = programs.iter().find(|program| program.name() == policy.as_str());
            entries::policy(policy, program, experiment, &setup)
        };
        let entries = policies.iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), wrappers: experiment.wrappers(), setup, entries })
    }

    pub(super) fn scenario(&self, seed: u64) -> NamedScenario {
        NamedScenario { name: self.name.clone(), seed, scenario: self.setup.scenario(seed) }
    }

    /// Plays a policy under a seed.
    pub(super) fn play(&self, policy: usize, seed: u64, log: AllocationLog) -> Result<PolicyRun, SweepError> {
        let around = RunSurroundings { sharing: self.setup.sharing(), wrappers: &self.wrappers };
        Ok(play(&self.entries[policy], &self.scenario(seed), log, &around)?)
    }

    /// Number of jobs under a seed.
    pub(super) fn jobs(&self, seed: u64) -> usize {
        self.setup.scenario(seed).workload.jobs.len()
    }

    /// The first `jobs` jobs of a seed.
    pub(super) fn trial(&self, seed: u64, jobs: usize) -> NamedScenario {
        let named = self.scenario(seed);
        let mut scenario = Scenario::clone(&named.scenario);
        Arc::make_mut(&mut scenario.workload).jobs.truncate(jobs);
        NamedScenario { scenario: Arc::new(scenario), ..named }
    }

    /// Plays a policy on a trial.
    pub(super) fn try_out(&self, policy: usize, trial: &NamedScenario) -> Result<(), SweepError> {
        let around = RunSurroundings { sharing: self.setup.sharing(), wrappers: &self.wrappers };
        play(&self.entries[policy], trial, AllocationLog::AsConfigured, &around)?;
        Ok(())
    }

    /// The scenario of a seed with the options of a policy.
    pub(super) fn inputs(&self, policy: usize, seed: u64) -> Arc<Scenario> {
        self.entries[policy].scenario(&self.scenario(seed).scenario, AllocationLog::AsConfigured)
    }
}

/// Players that were used last. A player holds a trace, so a study of many workloads cannot hold all of them.
#[derive(Debug, Default)]
pub(super) struct Players(Mutex<VecDeque<(usize, Arc<WorkloadPlayer>)>>);

/// Number of players that are kept.
const KEPT: usize = 8;

impl Players {
    /// The player of a workload, which `make` makes where it is not kept.
    pub(super) fn of(
        &self,
        workload: usize,
        make: impl FnOnce() -> Result<WorkloadPlayer, SweepError>,
    ) -> Result<Arc<WorkloadPlayer>, SweepError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, player)) = kept.iter().find(|(known, _)| *known == workload) {
            return Ok(player.clone());
        }
        let player = Arc::new(make()?);
        kept.push_front((workload, player.clone()));
        kept.truncate(KEPT);
        Ok(player)
    }
}
