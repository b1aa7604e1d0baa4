//! A run that is over: its settings, its curve and its figures, as exports read them.

use std::fs;
use std::path::Path;

use goodput_configs::reader::Document;
use goodput_console::CommandError;
use goodput_eval::report::origin::ResultOrigin;
use goodput_eval::run::summary::Summary;
use goodputd::config_file::command_error;

/// Files of a complete run.
pub struct FinishedRun {
    /// Figures of the comparison.
    pub summary: Summary,
    /// Command, commit and version.
    pub origin: ResultOrigin,
    /// Settings; empty for a comparison of more than one file.
    pub settings: toml::Table,
    /// Columns of the curve of a training, each with pairs of a step and a value; empty for a comparison.
    pub curve: Vec<(String, Vec<(String, String)>)>,
    /// Time at which the figures were written, nanoseconds since 1970.
    pub ended_nanos: u128,
    /// Name of the experiment: that of its file, or of the folder of the run.
    pub experiment: String,
    /// Name of the run: the last two parts of its folder.
    pub name: String,
}

impl FinishedRun {
    /// Reads the run in the folder `run`.
    ///
    /// # Errors
    /// [`CommandError`] where `run` is no complete run.
    pub fn read(run: &Path) -> Result<Self, CommandError> {
        let summary = json(&run.join("summary.json"))?;
        let origin = json(&run.join("origin.json"))?;
        let config = run.join("config.toml");
        // A comparison of more than one file has none of its own.
        let settings: toml::Table = match config.is_file() {
            true => {
                let document = Document::read(&config, &[]).map_err(command_error)?;
                document.parse(document.kind()).map_err(command_error)?
            }
            false => toml::Table::new(),
        };
        let named = settings.get("name").and_then(toml::Value::as_str).map(str::to_owned);
        let parts = run.iter().rev().take(2).map(|part| part.to_string_lossy()).collect::<Vec<_>>();
        Ok(Self {
            summary,
            origin,
            curve: curve(&fs::read_to_string(run.join("progress.csv")).unwrap_or_default()),
            ended_nanos: ended_nanos(&run.join("summary.json")),
            experiment: named.unwrap_or_else(|| run.file_name().unwrap_or_default().to_string_lossy().into_owned()),
            name: parts.into_iter().rev().collect::<Vec<_>>().join("/"),
            settings,
        })
    }
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, CommandError> {
    let help = "`goodput train` and `goodput eval` write it at the end of a run";
    let text = fs::read_to_string(path)
        .map_err(|error| CommandError::input(format!("{}: {error}", path.display())).with_help(help))?;
    serde_json::from_str(&text).map_err(|error| CommandError::input(format!("{}: {error}", path.display())))
}

fn ended_nanos(path: &Path) -> u128 {
    let written = fs::metadata(path).and_then(|about| about.modified()).ok();
    written.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()).map_or(0, |since| since.as_nanos())
}

/// Columns of `progress.csv` behind the first one, which is the step.
fn curve(progress: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut lines = progress.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let rows: Vec<_> = lines.collect();
    let of = |(column, name): (usize, &&str)| {
        let point = |row: &Vec<&str>| {
            let value = row.get(column).filter(|value| !value.is_empty())?;
            Some((row[0].to_owned(), (*value).to_owned()))
        };
        ((*name).to_owned(), rows.iter().filter_map(point).collect::<Vec<_>>())
    };
    names.iter().enumerate().skip(1).map(of).filter(|(_, points)| !points.is_empty()).collect()
}
