//! Plan: the cells of a study with their keys.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::content::sha256;
use super::error::SweepError;
use crate::run::{RunError, RunLayout};

/// Name of the file with the plan in the directory of a sweep.
const FILE: &str = "plan.json";

/// Everything that a task needs to run cells of a study, and a merge to put them together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepPlan {
    /// Version of this format.
    pub version: u32,
    /// Build of the program; cells of another build have other keys.
    pub build: String,
    /// Heading of the page.
    pub title: String,
    /// Command line that runs the study in one process.
    pub argv: Vec<String>,
    /// Configuration as the page shows it, TOML.
    pub config: String,
    /// Label of the policy that others are measured against; `None`: the first.
    pub reference: Option<String>,
    /// Policies of the study.
    pub policies: Vec<PlannedPolicy>,
    /// Workloads of the study.
    pub workloads: Vec<PlannedWorkload>,
    /// Seeds of every workload.
    pub seeds: Vec<u64>,
    /// Cells in the order policy, workload, seed.
    pub cells: Vec<PlannedCell>,
}

/// A policy of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedPolicy {
    /// Name that the user gave.
    pub name: String,
    /// Name in tables.
    pub label: String,
    /// Hash of the bundle; empty for a published policy.
    pub content: String,
}

/// A workload of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedWorkload {
    /// Name in tables.
    pub name: String,
    /// The played part of the experiment, TOML.
    pub experiment: String,
    /// Hash of the files that the experiment names.
    pub files: String,
}

/// A cell of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedCell {
    /// SHA-256 of all that the cell depends on, hexadecimal.
    pub key: String,
    /// Estimated time of one core, seconds; 0 where it is not known.
    pub cost_secs: f64,
}

impl SweepPlan {
    /// Version of the format that this program writes.
    pub const VERSION: u32 = 1;

    /// Reads the plan of the sweep in `dir`.
    ///
    /// # Errors
    /// [`SweepError`] where there is none or it is damaged.
    pub fn read(dir: &Path) -> Result<Self, SweepError> {
        let path = dir.join(FILE);
        let bytes = fs::read(&path).map_err(SweepError::file(&path))?;
        let plan: Self = serde_json::from_slice(&bytes)
            .map_err(|error| SweepError::Damaged { path: path.clone(), problem: error.to_string() })?;
        let shape = plan.policies.len() * plan.workloads.len() * plan.seeds.len();
        if plan.version != Self::VERSION || plan.cells.len() != shape {
            let problem = format!("it has version {} and {} cells, not {shape}", plan.version, plan.cells.len());
            return Err(SweepError::Damaged { path, problem });
        }
        Ok(plan)
    }

    /// Whether `dir` holds the plan of a sweep.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Writes the plan to `dir`, whole or not at all.
    ///
    /// # Errors
    /// [`SweepError`] where it cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), SweepError> {
        let (path, draft) = (dir.join(FILE), dir.join(format!("{FILE}.draft")));
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| SweepError::Damaged { path: path.clone(), problem: error.to_string() })?;
        fs::create_dir_all(dir).map_err(SweepError::file(dir))?;
        fs::write(&draft, text + "\n").map_err(SweepError::file(&draft))?;
        fs::rename(&draft, &path).map_err(SweepError::file(&path))
    }

    /// Whether another plan is about the very cells of this one.
    pub fn has_cells_of(&self, other: &Self) -> bool {
        let keys = |plan: &Self| plan.cells.iter().map(|cell| cell.key.clone()).collect::<Vec<_>>();
        keys(self) == keys(other)
    }

    /// Names of the policies and of the scenarios.
    pub(super) fn layout(&self) -> Result<RunLayout, RunError> {
        let policies = self.policies.iter().map(|policy| policy.label.clone()).collect();
        let named = |workload| self.seeds.iter().map(move |seed| (workload, *seed));
        let scenarios = self.workloads.iter().flat_map(|workload| named(workload.name.as_str()));
        RunLayout::new(policies, scenarios, self.reference.as_deref())
    }

    /// Key of the cell at `index` of the layout.
    pub(super) fn key(&self, layout: &RunLayout, index: usize) -> String {
        let (policy, scenario) = layout.run(index);
        let (policy, workload) = (&self.policies[policy], &self.workloads[scenario.workload]);
        let shown = layout.is_shown(index);
        // A list has a fixed order, and texts in JSON have an end.
        let parts = serde_json::json!([
            self.build,
            policy.name,
            policy.label,
            policy.content,
            workload.name,
            workload.experiment,
            workload.files,
            scenario.seed,
            shown
        ]);
        sha256(parts.to_string().as_bytes())
    }

    /// Name of a cell for people.
    pub fn cell_name(&self, index: usize) -> String {
        let (seeds, scenarios) = (self.seeds.len(), self.seeds.len() * self.workloads.len());
        let (policy, rest) = (index / scenarios, index % scenarios);
        let (workload, seed) = (&self.workloads[rest / seeds].name, self.seeds[rest % seeds]);
        format!("{} on {workload}, seed {seed}", self.policies[policy].label)
    }
}
