//! Runs in the files of MLflow: its *file store*, one folder an experiment and one a run.
//!
//! Layout after the documentation of MLflow (Tracking, *file store*): `EXPERIMENT_ID/meta.yaml`,
//! `EXPERIMENT_ID/RUN_ID/{meta.yaml, params/KEY, metrics/NAME, tags/KEY, artifacts/}`; a metric is a file with one line
//! `MILLISECONDS VALUE STEP` a value. Both ids follow from what is exported, so that a second export of a run replaces
//! the first.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_console::{CommandError, counted, say};
use goodput_eval::run::summary::Summary;
use goodput_train::run_dir::sha256;

use crate::command::finished_run::FinishedRun;

/// Longest value of a parameter that MLflow reads, bytes.
const LONGEST: usize = 6_000;

/// Files of a run that are copied beside its figures, where it has them.
const ARTIFACTS: [&str; 6] =
    ["report.html", "policy.bundle", "config.toml", "summary.json", "progress.csv", "origin.json"];

/// Writes the run in `run` into the folder `store`.
///
/// # Errors
/// [`CommandError`] where `run` is no complete run, or `store` cannot be written.
pub fn export(run: &Path, store: &Path) -> Result<ExitCode, CommandError> {
    let finished = FinishedRun::read(run)?;
    let FinishedRun { settings, experiment, name, .. } = &finished;
    let ended = finished.ended_nanos / 1_000_000;

    let digits = u64::from_str_radix(&sha256(experiment.as_bytes())[..15], 16).unwrap_or_default();
    let experiment_id = format!("{:018}", digits % 1_000_000_000_000_000_000);
    let place = fs::canonicalize(run).unwrap_or_else(|_| run.to_path_buf());
    let run_id = sha256(place.display().to_string().as_bytes())[..32].to_owned();

    let folder = Folder(store.join(&experiment_id));
    let uri = |path: &Path| format!("file://{}", std::path::absolute(path).unwrap_or_else(|_| path.into()).display());
    folder.write(
        "meta.yaml",
        format!(
            "artifact_location: {}\ncreation_time: {ended}\nexperiment_id: '{experiment_id}'\nlast_update_time: {ended}\n\
             lifecycle_stage: active\nname: {}\n",
            quoted(&uri(&folder.0)),
            quoted(experiment)
        ),
    )?;
    let folder = Folder(folder.0.join(&run_id));
    folder.remove()?;
    folder.write(
        "meta.yaml",
        format!(
            "artifact_uri: {}\nend_time: {ended}\nentry_point_name: ''\nexperiment_id: '{experiment_id}'\n\
             lifecycle_stage: active\nrun_id: {run_id}\nrun_name: {}\nrun_uuid: {run_id}\nsource_name: ''\nsource_type: 4\n\
             source_version: ''\nstart_time: {ended}\nstatus: 3\ntags: []\nuser_id: ''\n",
            quoted(&uri(&folder.0.join("artifacts"))),
            quoted(name)
        ),
    )?;
    for (key, value) in parameters(settings) {
        folder.write(&format!("params/{}", allowed(&key).replace('/', "_")), &value)?;
    }
    for (key, value) in [
        ("mlflow.runName", name.as_str()),
        ("mlflow.source.name", &finished.origin.command),
        ("mlflow.source.git.commit", finished.origin.commit.as_deref().unwrap_or_default()),
        ("goodput.version", &finished.origin.version),
    ] {
        folder.write(&format!("tags/{key}"), value)?;
    }
    let line = |(step, value): &(String, String)| format!("{ended} {value} {step}\n");
    let curves = finished.curve.iter().map(|(name, points)| (name.clone(), points.iter().map(line).collect()));
    let mut metrics: Vec<(String, String)> = curves.collect();
    metrics.extend(of_comparison(&finished.summary, ended));
    for (name, lines) in &metrics {
        folder.write(&format!("metrics/{}", allowed(name)), lines)?;
    }
    for name in ARTIFACTS {
        if let Ok(bytes) = fs::read(run.join(name)) {
            folder.write(&format!("artifacts/{name}"), bytes)?;
        }
    }
    let count = counted(metrics.len() as u64, "metric");
    say(&format!("{}: {count} of {name} in the experiment {experiment}", folder.0.display()));
    Ok(ExitCode::SUCCESS)
}

/// Folder that files are written below.
struct Folder(PathBuf);

impl Folder {
    /// Removes the folder, where it is there.
    fn remove(&self) -> Result<(), CommandError> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(CommandError::input(format!("cannot replace {}: {error}", self.0.display())))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
        let path = self.0.join(name);
        let parent = path.parent().unwrap_or(&self.0);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))
    }
}

/// Text in quotation marks of YAML.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Name with the characters that MLflow allows in names of metrics; `_` stands for every other one.
fn allowed(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "_-. /".contains(letter) { letter } else { '_' })
        .collect()
}

/// Settings as keys with dots and their values.
fn parameters(settings: &toml::Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<(String, &toml::Value)> = settings.iter().map(|(key, value)| (key.clone(), value)).collect();
    while let Some((key, value)) = open.pop() {
        match value {
            toml::Value::Table(table) => {
                open.extend(table.iter().map(|(name, inner)| (format!("{key}.{name}"), inner)))
            }
            toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
                open.extend(items.iter().enumerate().map(|(at, inner)| (format!("{key}.{at}"), inner)));
            }
            toml::Value::String(text) => found.push((key, text.clone())),
            value => found.push((key, value.to_string())),
        }
    }
    found.retain(|(_, value)| !value.is_empty() && value.len() <= LONGEST);
    found
}

/// Means of a comparison, each with its line: `POLICY/METRIC`.
fn of_comparison(summary: &Summary, at_ms: u128) -> Vec<(String, String)> {
    let policies = summary.policies.iter().flat_map(|policy| {
        policy.metrics.iter().map(|(metric, estimate)| {
            (format!("{}/{metric}", policy.name.replace('/', "_")), format!("{at_ms} {} 0\n", estimate.value))
        })
    });
    policies.collect()
}
