//! A decision on one self-contained page.

use super::ComparedDecision;
use crate::report::plots::{ContributionBar, Figure, THEME_CSS, contributions};

/// Jobs in the table at most.
const MOST_JOBS: usize = 60;

/// Contents of the page of an explained decision.
#[derive(Clone, Debug)]
pub struct ExplainPage<'a> {
    /// Heading of the page.
    pub title: &'a str,
    /// Moment of the decision, in a sentence.
    pub moment: &'a str,
    /// Score that is taken apart, in a sentence.
    pub question: &'a str,
    /// Sentences of the policy about its actions; empty where a score is taken apart.
    pub said: &'a [String],
    /// Contributions of the features to the score; no figure where there are none.
    pub bars: &'a [ContributionBar],
    /// The decision beside others.
    pub compared: &'a ComparedDecision,
    /// The command that made it.
    pub command: &'a str,
}

impl ExplainPage<'_> {
    /// The page; the same decision gives the same bytes.
    pub fn render(&self) -> String {
        let caption = "Bars: contribution of a feature to the difference between this job's score and the usual job's. Dots: what the score would lose if \
                       that feature alone were the usual one.";
        let figure = match self.bars {
            [] => String::new(),
            bars => {
                let figure = contributions(bars);
                format!("<figure>{}<figcaption>{caption}</figcaption></figure>", figure.inline())
            }
        };
        let said = match self.said {
            [] => String::new(),
            said => {
                format!("<ol>{}</ol>", said.iter().map(|line| format!("<li>{}</li>", escape(line))).collect::<String>())
            }
        };
        format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><style>{THEME_CSS}{css}\
             body{{background:var(--page);color:var(--ink);font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}\
             table{{display:block;overflow-x:auto;border-collapse:collapse;font-variant-numeric:tabular-nums}}\
             td,th{{padding:.2rem .5rem;text-align:right}}td:first-child{{white-space:nowrap}}\
             td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){{text-align:left}}figcaption{{font-size:.9rem;color:var(--muted)}}\
             </style><h1>{title}</h1><p>{moment}</p><h2>Why</h2><p>{question}</p>{said}{figure}\
             <h2>The queue</h2>{queue}<h2>Agreement</h2>{agreement}<p><code>{command}</code></p></html>\n",
            title = escape(self.title),
            css = Figure::page_css(),
            moment = escape(self.moment),
            question = escape(self.question),
            queue = self.queue(),
            agreement = self.agreement(),
            command = escape(self.command),
        )
    }

    fn queue(&self) -> String {
        let place = |rank: Option<usize>| rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
        let names: String =
            self.compared.beside.iter().map(|b| format!("<th>{}</th><th>gives</th>", b.policy)).collect();
        let row = |row: &super::JobRow| {
            let others = row
                .others
                .iter()
                .map(|other| format!("<td>{}</td><td>{}</td>", place(other.rank), escape(&other.gives())));
            format!(
                "<tr><td>{}</td><td>{}</td><td>{:.0}</td><td>{}</td><td>{}</td><td>{}</td>{}</tr>",
                escape(&row.job),
                escape(&row.model),
                row.age_secs / 60.0,
                row.held,
                place(row.own.rank),
                escape(&row.own.gives()),
                others.collect::<String>()
            )
        };
        let rows: String = self.compared.queue.iter().take(MOST_JOBS).map(row).collect();
        let more = self.compared.queue.len().saturating_sub(MOST_JOBS);
        let more = if more > 0 { format!("<p>{more} more jobs are not shown.</p>") } else { String::new() };
        format!(
            "<table><tr><th>job</th><th>model</th><th>age, min</th><th>holds</th><th>rank</th><th>gives</th>{names}</tr>{rows}</table>{more}"
        )
    }

    fn agreement(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.2}"));
        let row = |other: &super::OtherPolicy| {
            let (order, sizes) = (number(other.tau_order), number(other.tau_sizes));
            let (policy, told) = (other.policy, &other.information);
            format!(
                "<tr><td>{policy}</td><td>{told}</td><td>{order}</td><td>{sizes}</td><td>{}</td></tr>",
                other.same_size
            )
        };
        let rows: String = self.compared.beside.iter().map(row).collect();
        format!(
            "<table><tr><th>policy</th><th>is told</th><th>tau of orders</th><th>tau of sizes</th><th>jobs of the same size</th></tr>{rows}</table>"
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
