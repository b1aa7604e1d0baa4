//! Origin of results: the command, the build and the day that made them, as `origin.json` beside
//! `summary.json`, and the Markdown text that a page of results shows.

use serde::{Deserialize, Serialize};

use super::leaderboard::leaderboard_of;
use super::words::{few_seeds, interval_name, seeds};
use crate::run::summary::Summary;

/// Origin of the results of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultOrigin {
    /// Command line that made the results.
    pub command: String,
    /// Version of the product.
    pub version: String,
    /// Commit of the product; `None` where it was not built from a repository.
    pub commit: Option<String>,
    /// Day on which the results were written, as `2026-01-31` in UTC.
    pub date: String,
}

impl ResultOrigin {
    /// Version of the product, with its commit where that is known.
    pub fn program(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
        format!("goodput {}{commit}", self.version)
    }

    /// Origin as JSON, with a final newline.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("an origin is strings");
        json.push('\n');
        json
    }
}

/// Results of a comparison in Markdown: the leaderboard with a column for each key of a metric, the
/// workloads with their seeds, and the origin where it is known. Prose that quotes results includes
/// this text, so that the figures and their origin change together.
pub fn markdown_results(summary: &Summary, columns: &[&str], origin: Option<&ResultOrigin>) -> String {
    let mut text = leaderboard_of(summary, columns);
    let unequal = summary.policies.iter().filter_map(|policy| policy.versus_reference.as_ref());
    if unequal.clone().any(|versus| !versus.same_information) {
        text += &format!("\n\\* ran at another information level than {}.\n", summary.reference);
    }
    if few_seeds(summary) && seeds(summary) > 1 {
        text +=
            &format!("\nSquare brackets are {}, which show the spread and no confidence.\n", interval_name(summary));
    }
    text.push('\n');
    for workload in &summary.workloads {
        let (seeds, jobs) = (workload.seeds.len(), workload.jobs.iter().sum::<usize>());
        text += &format!(
            "- Workload `{}`: {seeds} {}, {jobs} jobs, {} accelerators on {} nodes.\n",
            workload.name,
            if seeds == 1 { "seed" } else { "seeds" },
            workload.cluster_gpus,
            workload.cluster_nodes
        );
        if let Some(assumption) = &workload.assumption {
            text += &format!("- Assumption of `{}`: {assumption}.\n", workload.name);
        }
    }
    if let Some(ResultOrigin { command, version, commit, date }) = origin {
        let commit = commit.as_ref().map(|commit| format!(", commit `{commit}`")).unwrap_or_default();
        text += &format!("- Command: `{command}`, on {date}, goodput {version}{commit}.\n");
    }
    text
}
