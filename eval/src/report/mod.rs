//! One self-contained HTML page about a comparison: nothing is fetched, light and dark.
//!
//! Every figure is a static SVG, for paper and for readers without JavaScript. A script in the page replaces figures by
//! charts with values under the pointer and zoom, and sorts tables. The charts are uPlot's (`assets/uplot`).
//!
//! The page is a pure function of its inputs; there is no date on it, so that the same run gives
//! the same bytes.

mod figures;
mod format;
mod grids;
pub mod leaderboard;
pub mod node_chart;
pub mod origin;
pub mod page_data;
pub mod picture;
pub mod plots;
pub mod results;
pub mod rows;
pub mod tables;
pub mod text_page;
pub mod timeseries;
mod words;

pub use text_page::page_style;
pub use words::{few_seeds, interval_name};

use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use serde::Serialize;
use thiserror::Error;

use self::plots::LearningCurve;
use self::results::ComparisonResults;
use crate::run::summary::WorkloadSummary;

/// Inputs of a report beside the comparison itself.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Heading of the page.
    pub title: String,
    /// A sentence or two below it; may be empty.
    pub lead: String,
    /// The policy that this is about, for example the one just trained; the best where `None`.
    pub focus: Option<String>,
    /// The command that made it.
    pub command: String,
    /// The resolved configuration, as TOML.
    pub config: String,
    /// Names and versions of what took part.
    pub versions: Vec<(String, String)>,
    /// The course of training, if there was any.
    pub learning: Option<LearningCurve>,
}

/// Reason for which a page cannot be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The template fails.
    #[error("the report's template fails: {0}")]
    Template(#[from] minijinja::Error),
    /// The policy in focus was not compared.
    #[error("the report is about policy {0}, which was not compared")]
    UnknownFocus(String),
}

const TEMPLATE: &str = include_str!("../../templates/report.html");
const CHART_CSS: &str =
    concat!(include_str!("../../assets/uplot/uPlot.min.css"), include_str!("../../assets/charts.css"));
/// Script of the chart library and of the charts that pages share; it defines `uPlot` and `goodput`.
pub const CHART_JS: &str = concat!(
    "/* uPlot\n",
    include_str!("../../assets/uplot/LICENSE"),
    "*/\n",
    include_str!("../../assets/uplot/uPlot.iife.min.js"),
    include_str!("../../assets/charts.js")
);
const PAGE_CSS: &str = include_str!("../../assets/page.css");
const NODES_JS: &str = include_str!("../../assets/nodes.js");
const REPORT_JS: &str = include_str!("../../assets/report.js");

/// Values that the template uses.
#[derive(Serialize)]
struct ReportPage<'a> {
    title: &'a str,
    lead: &'a str,
    style: String,
    scripts: [&'static str; 3],
    data: String,
    verdict: String,
    facts: Vec<String>,
    reference: &'a str,
    intervals: String,
    assumptions: Vec<String>,
    workloads: &'a [WorkloadSummary],
    table: grids::Grid,
    unequal: Vec<String>,
    unfinished: Vec<String>,
    refused: Vec<String>,
    figures: Vec<figures::Section>,
    omitted: Option<String>,
    evidence: Option<grids::Grid>,
    by_workload: Option<grids::Grid>,
    details: Vec<grids::MetricDetail>,
    command: &'a str,
    config: &'a str,
    versions: &'a [(String, String)],
}

impl Report {
    /// Renders the page as HTML.
    ///
    /// # Errors
    /// [`ReportError::UnknownFocus`] where `focus` names no policy of the comparison.
    pub fn render(&self, results: &ComparisonResults) -> Result<String, ReportError> {
        let summary = &results.summary;
        if let Some(focus) = self.focus.as_ref().filter(|focus| summary.policy(focus).is_none()) {
            return Err(ReportError::UnknownFocus(focus.clone()));
        }
        let focus = self.focus.as_deref();
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.add_template("report.html", TEMPLATE)?;
        let page = ReportPage {
            title: &self.title,
            lead: &self.lead,
            style: page_style(),
            scripts: [CHART_JS, NODES_JS, REPORT_JS],
            data: page_data::PageData::of(results, focus).to_json(),
            verdict: words::tied(&words::verdict(summary, focus)),
            facts: words::facts(summary),
            reference: &summary.reference,
            intervals: words::tied(&words::interval_note(summary)),
            assumptions: words::assumptions(summary),
            workloads: &summary.workloads,
            table: grids::headline_table(results, focus),
            unequal: words::unequal_information(summary),
            unfinished: words::policies_with(summary, "unfinished_jobs"),
            refused: words::policies_with(summary, "refused_jobs"),
            figures: figures::figures(results, self),
            omitted: figures::omitted(results),
            evidence: grids::evidence(results, focus),
            by_workload: grids::by_workload(results, focus),
            details: grids::details(results),
            command: &self.command,
            config: &self.config,
            versions: &self.versions,
        };
        Ok(environment.get_template("report.html")?.render(Serde(page))?)
    }
}

/// A policy has one colour throughout the page: that of its place in the comparison.
fn color_of(results: &ComparisonResults, name: &str) -> usize {
    results.layout.policies.iter().position(|policy| policy == name).unwrap_or_default()
}
