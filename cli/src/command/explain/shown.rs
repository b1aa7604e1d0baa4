//! A decision as it is shown: tables, JSON, and a page.

use goodput_agents::policies::explain::{Contribution, Explanation};
use goodput_agents::policies::external::ChosenAction;
use goodput_console::{Cell, CommandError, Listing, OutputFormat};
use goodput_env::policy::{Look, SimulatedWay};
use goodput_env::view::ClusterView;
use goodput_eval::report::plots::ContributionBar;
use goodput_eval::studies::explain::{ComparedDecision, ExplainPage, JobStanding};
use serde_json::{Value, json};

use crate::command::results;

/// Decision with its reasons.
pub struct Shown<'a> {
    /// Kind of the policy.
    pub kind: &'static str,
    /// Moment of the decision, in a sentence.
    pub moment: String,
    /// Cluster at that moment.
    pub view: &'a ClusterView<'a>,
    /// The decision beside others.
    pub compared: &'a ComparedDecision,
    /// Reasons of the decision.
    pub why: Why,
}

/// Reasons of a decision.
pub enum Why {
    /// The score of one job, taken apart.
    TakenApart {
        /// Name of the job.
        job: String,
        /// Contributions of the features.
        explanation: Explanation,
    },
    /// The ways that a lookahead simulated.
    Simulated(Look),
    /// Actions of an external program with the reasons that it sent; no actions of a published policy.
    Told {
        /// Actions in the order of the round.
        actions: Vec<ChosenAction>,
        /// Sentence for a policy that gives no reasons.
        silence: String,
    },
}

impl Why {
    fn sentence(&self) -> String {
        match self {
            Self::TakenApart { job, explanation } => question(job, explanation),
            Self::Simulated(look) => look.sentence(),
            Self::Told { actions, .. } if actions.iter().any(|action| !action.reason.is_empty()) => {
                "The program gave these reasons.".to_owned()
            }
            Self::Told { silence, .. } => silence.clone(),
        }
    }

    fn table(&self) -> Option<Listing> {
        match self {
            Self::TakenApart { explanation, .. } => Some(features(explanation)),
            Self::Simulated(look) => Some(simulated(look)),
            Self::Told { actions, .. } if actions.is_empty() => None,
            Self::Told { actions, .. } => Some(told(actions)),
        }
    }
}

impl Shown<'_> {
    /// Page with figures.
    pub fn page(&self, policy: &str) -> String {
        let bars = match &self.why {
            Why::TakenApart { explanation, .. } => sorted(explanation).map(bar).collect(),
            Why::Simulated(_) | Why::Told { .. } => Vec::new(),
        };
        let said = match &self.why {
            Why::TakenApart { .. } => Vec::new(),
            Why::Simulated(look) => look.ways.iter().map(SimulatedWay::words).collect(),
            Why::Told { actions, .. } => actions.iter().map(line).collect(),
        };
        let page = ExplainPage {
            title: &format!("{policy}: why"),
            moment: &self.moment,
            question: &self.why.sentence(),
            said: &said,
            bars: &bars,
            compared: self.compared,
            command: &results::own_command(),
        };
        page.render()
    }

    /// Prints the decision; csv is the queue alone.
    pub fn print(&self, output: OutputFormat) -> Result<(), CommandError> {
        match output {
            OutputFormat::Json => self.print_json(),
            OutputFormat::Csv => queue(self.compared).print(OutputFormat::Csv),
            OutputFormat::Table | OutputFormat::Wide => {
                goodput_console::print(&format!("{}\n\n", self.moment))?;
                queue(self.compared).print(output)?;
                goodput_console::print("\n")?;
                agreement(self.compared).print(output)?;
                goodput_console::print(&format!("\n{}\n", self.why.sentence()))?;
                match self.why.table() {
                    Some(table) => {
                        goodput_console::print("\n")?;
                        table.print(output)
                    }
                    None => Ok(()),
                }
            }
        }
    }

    fn print_json(&self) -> Result<(), CommandError> {
        let (key, why) = self.why.json();
        let mut all = json!({
            "kind": self.kind,
            "at_secs": self.view.now.as_secs_f64(),
            "active": self.view.active(),
            "free": self.view.total_free(),
            "accelerators": self.view.cluster().total_gpus(),
            "queue": self.compared.queue,
            "beside": self.compared.beside,
        });
        all[key] = why;
        let text = serde_json::to_string_pretty(&all).map_err(CommandError::failed)?;
        goodput_console::print(&format!("{text}\n"))
    }
}

impl Why {
    /// Reasons as JSON, with their key.
    fn json(&self) -> (&'static str, Value) {
        match self {
            Self::TakenApart { job, explanation } => {
                let feature = |part: &Contribution| {
                    json!({
                        "feature": part.feature, "value": part.value, "usual": part.usual,
                        "contribution": part.contribution, "occlusion": part.occlusion,
                    })
                };
                let features: Vec<Value> = explanation.contributions.iter().map(feature).collect();
                let explained = json!({
                    "job": job, "of": explanation.of, "score": explanation.score,
                    "usual_score": explanation.usual_score, "residual": explanation.residual(), "features": features,
                });
                ("explained", explained)
            }
            Self::Simulated(look) => ("look", json!(look)),
            Self::Told { actions, .. } => ("actions", json!(actions)),
        }
    }
}

/// Action of a program as a line of text.
fn line(action: &ChosenAction) -> String {
    let ChosenAction { job, action, reason, .. } = action;
    let job = job.as_ref().map(|job| format!("{job}: ")).unwrap_or_default();
    let reason = if reason.is_empty() { String::new() } else { format!(", because: {reason}") };
    format!("{job}{action}{reason}")
}

/// The ways that were simulated, the way that was played until then first.
fn simulated(look: &Look) -> Listing {
    let mut rows = Listing::new(&["way", "futures", "cost_secs", "difference_secs", "low", "high", "chosen"]);
    for way in &look.ways {
        let difference = |at: usize| Cell::option(way.difference_secs, |all| Cell::Number(all[at], 0));
        rows.push(vec![
            way.name.as_str().into(),
            Cell::Whole(i64::from(way.futures)),
            Cell::Number(way.cost_secs, 0),
            difference(0),
            difference(1),
            difference(2),
            if way.chosen { "yes" } else { "" }.into(),
        ]);
    }
    rows
}

fn told(actions: &[ChosenAction]) -> Listing {
    let mut rows = Listing::new(&["action", "job", "reason"]);
    for told in actions {
        rows.push(vec![
            told.action.as_str().into(),
            told.job.as_deref().unwrap_or_default().into(),
            told.reason.as_str().into(),
        ]);
    }
    rows
}

fn question(job: &str, explanation: &Explanation) -> String {
    let Explanation { of, score, usual_score, .. } = explanation;
    let residual = explanation.residual();
    // Sums of rounded numbers differ in the last digits; that is no news.
    let sum = match residual.abs() < 1e-9 * score.abs().max(1.0) {
        true => "The contributions make up the difference.".to_owned(),
        false => format!("The contributions make up the difference but for {residual:.1e}."),
    };
    format!("{job}: {of} is {score:.4}; the usual job of the queue in its place: {usual_score:.4}. {sum}")
}

/// Largest contributions first.
fn sorted(explanation: &Explanation) -> impl Iterator<Item = &Contribution> {
    let mut parts: Vec<&Contribution> = explanation.contributions.iter().collect();
    parts.sort_by(|a, b| b.contribution.abs().total_cmp(&a.contribution.abs()));
    parts.into_iter().filter(|part| part.contribution != 0.0 || part.occlusion != 0.0)
}

fn bar(part: &Contribution) -> ContributionBar {
    ContributionBar { name: part.feature.clone(), value: part.contribution, check: part.occlusion }
}

fn queue(compared: &ComparedDecision) -> Listing {
    let mut rows = Listing::new(&[
        "job",
        "model",
        "age_secs",
        "attained_gpu_secs",
        "held",
        "score",
        "rank",
        "gives",
        "tiresias_rank",
        "tiresias_gives",
        "srtf_rank",
        "srtf_gives",
        "pollux_gives",
    ]);
    let rank = |standing: &JobStanding| Cell::option(standing.rank, |rank| Cell::Whole(rank as i64));
    let gives = |standing: &JobStanding| match standing.accelerator {
        Some(_) => standing.gives().as_str().into(),
        None => Cell::Whole(i64::from(standing.gpus)),
    };
    for row in &compared.queue {
        let mut cells = vec![
            row.job.as_str().into(),
            row.model.as_str().into(),
            Cell::Number(row.age_secs, 0),
            Cell::Number(row.attained_gpu_secs, 0),
            Cell::Whole(i64::from(row.held)),
            Cell::option(row.score, |score| Cell::Number(score, 3)),
            rank(&row.own),
            gives(&row.own),
        ];
        for (other, beside) in row.others.iter().zip(&compared.beside) {
            // Pollux gives no order of jobs.
            if beside.policy != "pollux" {
                cells.push(rank(other));
            }
            cells.push(gives(other));
        }
        rows.push(cells);
    }
    rows
}

fn agreement(compared: &ComparedDecision) -> Listing {
    let mut rows = Listing::new(&["beside", "information", "tau_order", "tau_sizes", "same_size"]);
    for other in &compared.beside {
        rows.push(vec![
            other.policy.into(),
            other.information.as_str().into(),
            Cell::option(other.tau_order, |tau| Cell::Number(tau, 3)),
            Cell::option(other.tau_sizes, |tau| Cell::Number(tau, 3)),
            Cell::Whole(other.same_size as i64),
        ]);
    }
    rows
}

fn features(explanation: &Explanation) -> Listing {
    let mut rows = Listing::new(&["feature", "value", "usual", "contribution", "occlusion"]);
    for part in sorted(explanation) {
        rows.push(vec![
            part.feature.as_str().into(),
            Cell::Number(part.value, 4),
            Cell::Number(part.usual, 4),
            Cell::Number(part.contribution, 4),
            Cell::Number(part.occlusion, 4),
        ]);
    }
    rows
}
