//! Study: policies on workloads under seeds.

use goodput_configs::experiment::{EvaluateConfig, Experiment, TrainConfig};
use goodput_configs::scenario::{FileWorkload, WorkloadConfig};

use std::path::PathBuf;

/// Comparison of a study: every policy on every workload under every seed.
#[derive(Clone, Debug)]
pub struct SweepStudy {
    /// Heading of the page.
    pub title: String,
    /// Command line that runs the study in one process.
    pub argv: Vec<String>,
    /// Configuration as the page shows it, TOML.
    pub config: String,
    /// Policies by the names that the user gave.
    pub policies: Vec<String>,
    /// Workloads with names that differ.
    pub workloads: Vec<StudyWorkload>,
    /// Seeds of every workload.
    pub seeds: Vec<u64>,
    /// Name of the policy that others are measured against; `None`: the first.
    pub reference: Option<String>,
}

/// A workload of a study.
#[derive(Clone, Debug)]
pub struct StudyWorkload {
    /// Name in tables.
    pub name: String,
    /// Experiment with this workload.
    pub experiment: Experiment,
}

impl StudyWorkload {
    /// Workloads of an experiment: one for each of `files` under the name of the file, with the speeds that the
    /// experiment names for a file, otherwise one for each load of
    /// the comparison, otherwise its own.
    pub fn of(experiment: &Experiment, files: &[PathBuf]) -> Vec<Self> {
        let own = |name: String, experiment: Experiment| Self { name, experiment };
        if !files.is_empty() {
            let speeds = match &experiment.workload {
                WorkloadConfig::File(file) => file.speeds,
                WorkloadConfig::Synthetic(_) | WorkloadConfig::Bursts(_) => None,
            };
            let of_file = |path: &PathBuf| {
                let name =
                    path.file_stem().map_or_else(|| "workload".into(), |stem| stem.to_string_lossy().into_owned());
                let workload = WorkloadConfig::File(FileWorkload { path: path.clone(), speeds, windows: None });
                own(name, Experiment { workload, ..experiment.clone() })
            };
            return files.iter().map(of_file).collect();
        }
        match experiment.evaluate.loads.as_slice() {
            [] => vec![own("workload".into(), experiment.clone())],
            loads => loads.iter().map(|load| own(format!("load {load}"), experiment.at_load(*load))).collect(),
        }
    }

    /// The part of the experiment that a run depends on: without its name, its agent, its training and the list of
    /// policies.
    pub(super) fn played(&self) -> Experiment {
        let estimates_sigma = self.experiment.evaluate.estimates_sigma;
        Experiment {
            name: "cell".into(),
            seed: 1,
            agent: None,
            train: TrainConfig::default(),
            evaluate: EvaluateConfig { policies: Vec::new(), seeds: 1, loads: Vec::new(), estimates_sigma },
            sweep: None,
            ..self.experiment.clone()
        }
    }
}
