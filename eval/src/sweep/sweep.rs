//! Sweep: a plan that is run cell by cell, and merged into results.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use goodput_agents::compose::lookahead_base;
use goodput_agents::policies::external::ExternalProgram;
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::WorkloadConfig;
use goodput_datasets::assumption_of;
use goodput_env::scenario::Scenario;
use rayon::prelude::*;

use super::cell::FinishedCell;
use super::content::FileHashes;
use super::error::SweepError;
use super::plan::{PlannedCell, PlannedPolicy, PlannedWorkload, SweepPlan};
use super::player::{Players, WorkloadPlayer};
use super::store::CellStore;
use super::study::{StudyWorkload, SweepStudy};
use crate::entries::LearnedPolicy;
use crate::report::results::{ComparisonResults, ResultFiles};
use crate::report::rows::RunRows;
use crate::report::tables::RunName;
use crate::run::{AllocationLog, PolicyEntry, RunHead, RunLayout};

/// A plan with what plays its cells.
#[derive(Debug)]
pub struct Sweep {
    plan: SweepPlan,
    layout: RunLayout,
    experiments: Vec<Experiment>,
    policies: Vec<String>,
    programs: Vec<ExternalProgram>,
    players: Players,
}

impl Sweep {
    /// Plans a study. `build` names the program and everything that it computes with; `once` is a text that no other
    /// plan has, for policies in other programs, about which no hash tells.
    ///
    /// # Errors
    /// [`SweepError`] where a policy or a workload of the study cannot be used.
    pub fn plan(study: SweepStudy, build: &str, once: &str) -> Result<Self, SweepError> {
        let programs: Vec<ExternalProgram> =
            study.policies.iter().filter_map(|name| ExternalProgram::by_name(name)).collect();
        let mut hashes = FileHashes::default();
        let (mut workloads, mut experiments) = (Vec::new(), Vec::new());
        for workload in &study.workloads {
            let played = workload.played();
            let (experiment, files) = (played.resolved()?, hashes.of(&played)?);
            workloads.push(PlannedWorkload { name: workload.name.clone(), experiment, files });
            experiments.push(played);
        }
        let players = Players::default();
        let labels: Vec<String> = match study.workloads.first() {
            None => study.policies.clone(),
            Some(StudyWorkload { name, .. }) => {
                let make = || WorkloadPlayer::new(name, &experiments[0], &study.policies, &programs);
                players.of(0, make)?.entries.iter().map(|entry| entry.name.clone()).collect()
            }
        };
        let policy = |(name, label): (&String, String)| {
            let content = content(name, &programs, once)?;
            Ok(PlannedPolicy { name: name.clone(), label, content })
        };
        let policies = study.policies.iter().zip(labels).map(policy).collect::<Result<_, SweepError>>()?;
        let mut plan = SweepPlan {
            version: SweepPlan::VERSION,
            build: build.to_owned(),
            title: study.title,
            argv: study.argv,
            config: study.config,
            reference: study.reference,
            policies,
            workloads,
            seeds: study.seeds,
            cells: Vec::new(),
        };
        let layout = plan.layout()?;
        plan.cells =
            (0..layout.runs()).map(|index| PlannedCell { key: plan.key(&layout, index), cost_secs: 0.0 }).collect();
        Ok(Self { plan, layout, experiments, policies: study.policies, programs, players })
    }

    /// Opens the sweep that is planned in `dir`.
    ///
    /// # Errors
    /// [`SweepError`] where there is none, or another build planned it, or a file that it depends on has changed.
    pub fn open(dir: &Path, build: &str) -> Result<Self, SweepError> {
        let plan = SweepPlan::read(dir)?;
        if plan.build != build {
            return Err(SweepError::Build { planned: plan.build, own: build.to_owned() });
        }
        let policies: Vec<String> = plan.policies.iter().map(|policy| policy.name.clone()).collect();
        let programs: Vec<ExternalProgram> =
            policies.iter().filter_map(|name| ExternalProgram::by_name(name)).collect();
        for policy in &plan.policies {
            if content(&policy.name, &programs, &policy.content)? != policy.content {
                return Err(SweepError::Changed { what: format!("the policy {}", policy.name) });
            }
        }
        let (mut hashes, mut experiments) = (FileHashes::default(), Vec::new());
        for workload in &plan.workloads {
            let experiment = Experiment::of_resolved(&workload.experiment)?;
            if hashes.of(&experiment)? != workload.files {
                return Err(SweepError::Changed { what: format!("a file of the workload {}", workload.name) });
            }
            experiments.push(experiment);
        }
        let layout = plan.layout()?;
        Ok(Self { plan, layout, experiments, policies, programs, players: Players::default() })
    }

    /// Plan of the study, with the cells in their order.
    pub fn planned(&self) -> &SweepPlan {
        &self.plan
    }

    /// Names of the policies and of the scenarios.
    pub fn layout(&self) -> &RunLayout {
        &self.layout
    }

    /// Programs of the policies that decide in other processes.
    pub fn programs(&self) -> &[ExternalProgram] {
        &self.programs
    }

    fn player(&self, workload: usize) -> Result<Arc<WorkloadPlayer>, SweepError> {
        let name = &self.plan.workloads[workload].name;
        self.players
            .of(workload, || WorkloadPlayer::new(name, &self.experiments[workload], &self.policies, &self.programs))
    }

    /// Estimates what every cell costs: the time of a policy for a job, times the number of jobs. Each policy plays the
    /// first [`Self::TRIAL_JOBS`] jobs of the first workload, and four times as many as long as it takes less than
    /// [`Self::TRIAL_SECS`]: the jobs of an empty cluster cost less than those of a queue. `time` gives the seconds
    /// that its argument takes.
    ///
    /// # Errors
    /// [`SweepError`] where a policy fails.
    pub fn estimate(
        &mut self,
        time: impl Fn(&mut dyn FnMut() -> Result<(), SweepError>) -> Result<f64, SweepError>,
    ) -> Result<(), SweepError> {
        let first = self.plan.seeds[0];
        let of = |workload: usize| Ok(self.player(workload)?.jobs(first));
        let jobs = (0..self.plan.workloads.len()).map(of).collect::<Result<Vec<usize>, SweepError>>()?;
        let player = self.player(0)?;
        let mut rates = vec![0.0; self.plan.policies.len()];
        let mut undecided: Vec<usize> = (0..rates.len()).collect();
        let mut tried = Self::TRIAL_JOBS;
        while !undecided.is_empty() {
            let trial = player.trial(first, tried);
            let mut quick = Vec::new();
            for policy in undecided {
                let secs = time(&mut || player.try_out(policy, &trial))?;
                rates[policy] = secs / tried.min(jobs[0]).max(1) as f64;
                if secs < Self::TRIAL_SECS && tried < jobs[0] {
                    quick.push(policy);
                }
            }
            (undecided, tried) = (quick, 4 * tried);
        }
        for index in 0..self.plan.cells.len() {
            let (policy, scenario) = self.layout.run(index);
            self.plan.cells[index].cost_secs = rates[policy] * jobs[scenario.workload] as f64;
        }
        Ok(())
    }

    /// Jobs that a policy plays at first for an estimate of its cost.
    pub const TRIAL_JOBS: usize = 64;

    /// Time that an estimate of the cost of a policy needs at least, seconds.
    pub const TRIAL_SECS: f64 = 0.1;

    /// Runs one cell, whether or not it is stored.
    ///
    /// # Errors
    /// [`SweepError`] where its policy or its workload cannot be used, or the run fails.
    pub fn cell(&self, index: usize) -> Result<FinishedCell, SweepError> {
        let (policy, scenario) = self.layout.run(index);
        let shown = self.layout.is_shown(index);
        let log = if shown { AllocationLog::Kept } else { AllocationLog::AsConfigured };
        let run = self.player(scenario.workload)?.play(policy, scenario.seed, log)?;
        let workload = &self.plan.workloads[scenario.workload].name;
        let name = RunName { policy: &self.plan.policies[policy].label, workload, seed: scenario.seed };
        Ok(FinishedCell { head: RunHead::of(&run), rows: RunRows::of(&run, name, shown) })
    }

    /// Runs those of the given cells that are not stored, in the order given, on rayon's current threads. `progress` is
    /// told how many of them are done, and how many there are.
    ///
    /// # Errors
    /// The error of the first cell, by index, that fails; the others are run and stored.
    pub fn run(
        &self,
        cells: &[usize],
        store: &CellStore,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(), SweepError> {
        let key = |index: usize| &self.plan.cells[index].key;
        let missing: Vec<usize> = cells.iter().copied().filter(|index| !store.has(key(*index))).collect();
        let (total, done) = (missing.len(), AtomicUsize::new(0));
        let failed = Mutex::new(BTreeMap::new());
        // A bridge hands out the cells in order, so that the longest begin first.
        missing.into_iter().par_bridge().for_each(|index| {
            let stored = self.cell(index).and_then(|cell| store.put(key(index), &cell));
            if let Err(error) = stored {
                failed.lock().unwrap_or_else(PoisonError::into_inner).insert(index, error);
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().next() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Indices of the cells that are not stored.
    pub fn missing(&self, store: &CellStore) -> Vec<usize> {
        let cells = self.plan.cells.iter().enumerate();
        cells.filter(|(_, cell)| !store.has(&cell.key)).map(|(index, _)| index).collect()
    }

    /// Puts the stored cells together: writes the tables and `summary.json` to `dir`, and gives what the page shows.
    /// One cell is in memory at a time.
    ///
    /// # Errors
    /// [`SweepError::Missing`] where a cell is not stored; [`SweepError`] where a file cannot be read or written.
    pub fn merge(&self, store: &CellStore, dir: &Path, jobs_csv: bool) -> Result<ComparisonResults, SweepError> {
        let missing = self.missing(store);
        if let Some(first) = missing.first() {
            let first = self.plan.cell_name(*first);
            return Err(SweepError::Missing { missing: missing.len(), total: self.plan.cells.len(), first });
        }
        let key = |index: usize| &self.plan.cells[index].key;
        let heads = (0..self.layout.runs()).map(|index| store.head(key(index))).collect::<Result<Vec<_>, _>>()?;
        let mut files = ResultFiles::create(dir, &heads, jobs_csv)?;
        let read = |index| Ok::<_, SweepError>(store.read(key(index))?.rows);
        let write = |rows: &RunRows| Ok(files.write(rows)?);
        let mut results = ComparisonResults::collect(self.layout.clone(), heads, Default::default(), read, write)?;
        for (workload, experiment) in results.summary.workloads.iter_mut().zip(&self.experiments) {
            if let WorkloadConfig::File(file) = &experiment.workload {
                workload.assumption = assumption_of(&file.path)?;
            }
        }
        files.finish(&results)?;
        Ok(results)
    }

    /// Answer of `ask` about a scenario by its index, its policies and its seed.
    ///
    /// # Errors
    /// [`SweepError`] where the workload cannot be set up.
    pub fn on_scenario<T>(
        &self,
        scenario: usize,
        ask: impl FnOnce(&Arc<Scenario>, &[PolicyEntry], u64) -> T,
    ) -> Result<T, SweepError> {
        let named = self.layout.scenarios[scenario];
        let player = self.player(named.workload)?;
        Ok(ask(&player.scenario(named.seed).scenario, &player.entries, named.seed))
    }

    /// The scenario of a run by its index, for bounds.
    ///
    /// # Errors
    /// [`SweepError`] where the workload cannot be set up.
    pub fn scenario(&self, index: usize) -> Result<Arc<Scenario>, SweepError> {
        let (policy, scenario) = self.layout.run(index);
        Ok(self.player(scenario.workload)?.inputs(policy, scenario.seed))
    }
}

/// Hash of the bundle of a policy; empty for a published policy, and `once` for an external program.
fn content(name: &str, programs: &[ExternalProgram], once: &str) -> Result<String, SweepError> {
    if programs.iter().any(|program| program.name() == name) {
        return Ok(once.to_owned());
    }
    let name = lookahead_base(name).map_or(name, |(base, _)| base);
    Ok(LearnedPolicy::by_name(name)?.map_or_else(String::new, |learned| learned.bundle.sha256()))
}
