//! Run directories below a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use goodput_eval::Summary;
use goodput_eval::metrics::HEADLINE;
use goodput_eval::report::leaderboard::ranking;
use serde::Serialize;

/// Levels of folders that are searched for runs.
const DEPTH: usize = 4;
/// Time without a new figure after which a training counts as stopped.
const SILENT: Duration = Duration::from_secs(300);

/// A run directory, as the page lists it.
#[derive(Debug, PartialEq, Serialize)]
pub struct ListedRun {
    /// Path below the folder.
    pub name: String,
    /// `finished`, `running` or `stopped`.
    pub state: &'static str,
    /// Time since the last change, seconds.
    pub age_secs: f64,
    /// Whether there is a `summary.json`.
    pub summary: bool,
    /// Whether there is a `report.html`.
    pub report: bool,
    /// Whether there is a `progress.csv`.
    pub progress: bool,
    /// Policy with the smallest mean completion time.
    pub best: Option<String>,
    /// Mean completion time of that policy, seconds.
    pub jct_secs: Option<f64>,
}

/// Runs below `folder`, the last changed first. A folder that cannot be read holds none.
pub fn list(folder: &Path) -> Vec<ListedRun> {
    let mut found = Vec::new();
    search(folder, folder, DEPTH, &mut found);
    found.sort_by(|a, b| a.age_secs.total_cmp(&b.age_secs).then_with(|| a.name.cmp(&b.name)));
    found
}

/// Directory of the run called `name`, where the list has one. A name never leads out of the folder.
pub fn directory(folder: &Path, name: &str) -> Option<PathBuf> {
    list(folder).iter().any(|run| run.name == name).then(|| folder.join(name))
}

fn search(folder: &Path, at: &Path, depth: usize, found: &mut Vec<ListedRun>) {
    found.extend(run(folder, at));
    let Some(depth) = depth.checked_sub(1) else { return };
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        // A link may lead anywhere, so none is followed.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            search(folder, &entry.path(), depth, found);
        }
    }
}

fn run(folder: &Path, at: &Path) -> Option<ListedRun> {
    let changed = |name: &str| fs::metadata(at.join(name)).and_then(|file| file.modified()).ok();
    let [summary, report, progress] = ["summary.json", "report.html", "progress.csv"].map(changed);
    let last = [summary, report, progress].into_iter().flatten().max()?;
    let age = SystemTime::now().duration_since(last).unwrap_or_default();
    let state = match summary {
        Some(_) => "finished",
        None if age < SILENT => "running",
        None => "stopped",
    };
    let read: Option<Summary> =
        summary.and_then(|_| serde_json::from_slice(&fs::read(at.join("summary.json")).ok()?).ok());
    let best = read.as_ref().and_then(|summary| ranking(summary).first().copied());
    Some(ListedRun {
        name: at
            .strip_prefix(folder)
            .ok()
            .filter(|name| !name.as_os_str().is_empty())
            .map_or(".".into(), |name| name.to_string_lossy().into_owned()),
        state,
        age_secs: age.as_secs_f64(),
        summary: read.is_some(),
        report: report.is_some(),
        progress: progress.is_some(),
        best: best.map(|policy| policy.name.clone()),
        jct_secs: best.and_then(|policy| policy.metrics.get(HEADLINE)).map(|estimate| estimate.value),
    })
}
