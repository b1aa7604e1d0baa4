//! Advice on one self-contained page, for readers without the program.

use super::change::ClusterChange;
use super::figures::JobGroup;
use super::study::{Advice, AdviceRow};
use super::words::WAIT;
use crate::report::plots::{WaitRow, waits};
use crate::report::text_page::{PageCell, PageTable, TextPage};
use crate::stats::Estimate;

/// Tenants in a table at most.
const MOST_TENANTS: usize = 8;

/// Contents of a page about advice.
#[derive(Clone, Copy, Debug)]
pub struct AdvicePage<'a> {
    /// Heading of the page.
    pub title: &'a str,
    /// The answer that the page is about.
    pub advice: &'a Advice,
    /// Command line that made the page.
    pub command: &'a str,
    /// Version of the program, with its commit where that is known.
    pub program: &'a str,
}

/// Figures in the last table: name, heading, and decimals.
const COLUMNS: [(&str, &str, usize); 8] = [
    (WAIT, "mean wait, h", 2),
    ("wait_median_hours", "median wait, h", 2),
    ("wait_p95_hours", "95 of 100 wait at most, h", 2),
    ("turnaround_mean_hours", "mean turnaround, h", 2),
    ("slowdown_mean", "slowdown", 2),
    ("utilisation_percent", "used, %", 1),
    ("idle_gpu_hours", "idle, accelerator-hours", 0),
    ("fragmentation_percent", "in pieces, %", 1),
];

impl AdvicePage<'_> {
    /// The page; equal advice gives equal bytes.
    pub fn render(&self) -> String {
        let advice = self.advice;
        let mut page = TextPage::new(self.title);
        page.verdict(&advice.verdict().join(" "));
        page.facts(&[
            format!("{} jobs", advice.jobs),
            format!("{:.0} hours of submissions", advice.span_hours),
            format!("{} accelerators", advice.gpus),
            format!("{} traces drawn", advice.resamples),
        ]);
        let rows = advice.policies.iter().filter_map(|policy| {
            let row = advice.plain(policy, &JobGroup::All)?;
            let difference = row.difference.as_ref().and_then(|difference| difference.get(WAIT)).copied();
            Some(WaitRow { name: policy.clone(), hours: *row.figures.get(WAIT)?, difference })
        });
        let rows: Vec<WaitRow> = rows.collect();
        if !rows.is_empty() {
            page.figure(&waits(&rows), &caption(advice));
        }
        page.heading("What each policy would have done");
        page.told(&advice.told());
        page.heading("What a change would do");
        page.told(&advice.changes());
        let sides = [("Mean wait by size", true), ("Mean wait by tenant", false)];
        let sides = sides.map(|(heading, sizes)| Some((format!("{heading}, hours"), groups(advice, sizes)?)));
        page.side_by_side(&sides.into_iter().flatten().collect::<Vec<_>>());
        let tenants = advice.rows_of_first().filter(|row| matches!(row.group, JobGroup::Tenant(_))).count();
        if tenants > MOST_TENANTS {
            let more = tenants - MOST_TENANTS;
            page.note(&format!("{more} tenants with fewer jobs are not shown; `--output csv` has them all."));
        }
        page.heading("All figures");
        page.table(&all(advice));
        page.note(
            "Slowdown is the time from submission to completion over the run time, of jobs that run for less than ten \
             seconds over ten seconds. In pieces is the accelerator time that was free, but in pieces too small for a \
             job that waited.",
        );
        page.heading("What this rests on");
        page.paragraph(
            "Each policy was simulated on these jobs: users submit them at the times of the trace under every policy, and \
             a job runs for as long as it did, on as many accelerators as it asked for. The wait of a job is all of its \
             time without accelerators. Each start costs a job 30 seconds. Policies that have to know run times are told \
             time limits, or times that are wrong by a random factor.",
        );
        page.origin(self.command, Some(self.program), None);
        page.render()
    }
}

fn caption(advice: &Advice) -> String {
    let line = format!("Mean wait of a job. The line is {}, which the others are compared with.", advice.policies[0]);
    match advice.resamples {
        0 => line,
        drawn => format!(
            "{line} A bar is the range of nine of ten of {drawn} traces, each drawn from {}-hour blocks of arrivals of this \
             one. A shorter wait is blue and a longer one orange where the difference is there in nine of ten of them.",
            advice.block_hours
        ),
    }
}

/// Mean waits of groups of jobs, by size or by tenant, under the first policy and the two best ones; `None` where there
/// is one group.
fn groups(advice: &Advice, sizes: bool) -> Option<PageTable> {
    let is_chosen = |row: &&AdviceRow| match row.group {
        JobGroup::All => false,
        JobGroup::Size { .. } => sizes,
        JobGroup::Tenant(_) => !sizes,
    };
    let mut found: Vec<&AdviceRow> = advice.rows_of_first().filter(is_chosen).collect();
    if found.len() < 2 {
        return None;
    }
    if !sizes {
        found.sort_by_key(|row| std::cmp::Reverse(row.jobs));
        found.truncate(MOST_TENANTS);
    }
    let mut policies = vec![&advice.policies[0]];
    for policy in advice.best_without_stops.iter().chain([&advice.best]) {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    let heads = [if sizes { "accelerators" } else { "tenant" }, "jobs"];
    let heads = heads.into_iter().chain(policies.iter().map(|policy| policy.as_str()));
    let mut table = PageTable::new(heads, 1);
    for first in found {
        let mut cells = vec![advice.group_name(&first.group).into(), first.jobs.to_string().into()];
        cells.extend(policies.iter().map(|policy| {
            let row = advice.plain(policy, &first.group);
            cell(row.and_then(|row| row.figures.get(WAIT)), 2)
        }));
        table.row(cells);
    }
    Some(table)
}

/// Every figure of every policy and change, for all jobs together.
fn all(advice: &Advice) -> PageTable {
    let heads = ["policy"].into_iter().chain(COLUMNS.iter().map(|(_, heading, _)| *heading));
    let mut table = PageTable::new(heads, 1);
    let plain = |row: &&AdviceRow| row.change == ClusterChange::Nothing && advice.policies.contains(&row.policy);
    let of_all: Vec<&AdviceRow> = advice.rows.iter().filter(|row| row.group == JobGroup::All).collect();
    let add = |table: &mut PageTable, row: &AdviceRow, small: &str| {
        let name = PageCell::from(row.policy.as_str()).with_small(small);
        let figures = COLUMNS.iter().map(|(name, _, decimals)| cell(row.figures.get(name), *decimals));
        table.row([name].into_iter().chain(figures).collect());
    };
    of_all.iter().filter(|row| plain(row)).for_each(|row| add(&mut table, row, ""));
    table.begin_group();
    of_all.iter().filter(|row| !plain(row)).for_each(|row| add(&mut table, row, &row.change.words()));
    table
}

/// A figure with its range below it.
fn cell(figure: Option<&Estimate>, decimals: usize) -> PageCell {
    let Some(Estimate { value, ci }) = figure else { return "–".into() };
    let range = ci.map_or_else(String::new, |ci| format!("{:.decimals$}–{:.decimals$}", ci.low, ci.high));
    PageCell::from(format!("{value:.decimals$}")).with_small(range)
}
