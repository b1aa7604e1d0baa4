//! A decision on one self-contained page.

use super::ComparedDecision;
use crate::report::plots::{ContributionBar, contributions};
use crate::report::text_page::{PageCell, PageTable, TextPage};

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
        let mut page = TextPage::new(self.title);
        page.verdict(self.moment);
        page.heading("Why");
        page.paragraph(self.question);
        if !self.said.is_empty() {
            page.list(self.said);
        }
        if !self.bars.is_empty() {
            page.figure(
                &contributions(self.bars),
                "Bars: contribution of a feature to the difference between this job's score and the usual job's. Dots: \
                 what the score would lose if that feature alone were the usual one.",
            );
        }
        page.heading("The queue");
        page.table(&self.queue());
        let more = self.compared.queue.len().saturating_sub(MOST_JOBS);
        if more > 0 {
            page.note(&format!("{more} more jobs are not shown."));
        }
        page.heading("Agreement");
        page.table(&self.agreement());
        page.origin(self.command, None, None);
        page.render()
    }

    fn queue(&self) -> PageTable {
        let place = |rank: Option<usize>| PageCell::from(rank.map_or_else(|| "–".to_owned(), |rank| rank.to_string()));
        let mut heads: Vec<String> = ["job", "model", "age, min", "holds", "rank", "gives"].map(String::from).into();
        for beside in &self.compared.beside {
            heads.extend([format!("{} rank", beside.policy), format!("{} gives", beside.policy)]);
        }
        let mut table = PageTable::new(heads, 2);
        for row in self.compared.queue.iter().take(MOST_JOBS) {
            let mut cells = vec![row.job.as_str().into(), row.model.as_str().into()];
            cells.push(format!("{:.0}", row.age_secs / 60.0).into());
            cells.extend([row.held.to_string().into(), place(row.own.rank), row.own.gives().into()]);
            for other in &row.others {
                cells.extend([place(other.rank), other.gives().into()]);
            }
            table.row(cells);
        }
        table
    }

    fn agreement(&self) -> PageTable {
        let number =
            |value: Option<f64>| PageCell::from(value.map_or_else(|| "–".into(), |value| format!("{value:.2}")));
        let heads = ["policy", "is told", "tau of orders", "tau of sizes", "jobs of equal size"];
        let mut table = PageTable::new(heads, 2);
        for other in &self.compared.beside {
            table.row(vec![
                other.policy.into(),
                other.information.as_str().into(),
                number(other.tau_order),
                number(other.tau_sizes),
                other.same_size.to_string().into(),
            ]);
        }
        table
    }
}
