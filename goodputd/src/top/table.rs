//! One listing on the screen: which rows are shown, in which order, and which one is chosen.

use goodput_console::{Cell, Listing};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::widgets::{Row, Table, TableState};

/// Widest column but the last, in characters. What is longer ends with an ellipsis.
const WIDEST: usize = 40;

/// State of a view that outlasts a reading.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Text that a row must contain, in lower case; empty for all rows.
    pub filter: String,
    /// Column that rows are sorted by; `None` for the order of the daemon.
    sorted: Option<usize>,
    reversed: bool,
    state: TableState,
}

impl View {
    /// Sorts by the next column; after the last one, in the order of the daemon.
    pub fn sort(&mut self, columns: usize) {
        let next = self.sorted.map_or(0, |at| at + 1);
        self.sorted = (next < columns).then_some(next);
    }

    /// Turns the order round.
    pub fn reverse(&mut self) {
        self.reversed = !self.reversed;
    }

    /// Moves the choice by `rows`, within `count` rows.
    pub fn go(&mut self, rows: i64, count: usize) {
        let at = self.state.selected().map_or(0, |at| at as i64 + rows);
        self.choose(at.max(0) as usize, count);
    }

    /// Chooses row `at`, or the last of `count` rows.
    pub fn choose(&mut self, at: usize, count: usize) {
        self.state.select((count > 0).then(|| at.min(count - 1)));
    }

    /// Rows of `listing` that are shown, in their order.
    pub fn rows<'a>(&self, listing: &'a Listing) -> Vec<&'a [Cell]> {
        let found = |row: &&[Cell]| {
            self.filter.is_empty() || row.iter().any(|cell| cell.text().to_lowercase().contains(&self.filter))
        };
        let mut rows: Vec<&[Cell]> = listing.rows().filter(found).collect();
        if let Some(at) = self.sorted {
            rows.sort_by(|a, b| a[at].order(&b[at]));
        }
        if self.reversed {
            rows.reverse();
        }
        rows
    }

    /// First cell of the chosen row: the name of what it is about.
    pub fn chosen(&self, listing: &Listing) -> Option<String> {
        Some(self.rows(listing).get(self.state.selected()?)?.first()?.text())
    }

    /// Draws `listing`. Cells are made for the rows that the area has room for alone, so that the cost of a picture
    /// does not grow with the cluster.
    pub fn draw(&mut self, listing: &Listing, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.rows(listing);
        let room = usize::from(area.height.saturating_sub(1));
        let chosen = self.state.selected().map(|at| at.min(rows.len().saturating_sub(1)));
        let mut first = self.state.offset().min(rows.len().saturating_sub(room));
        if let Some(at) = chosen {
            first = first.min(at).max((at + 1).saturating_sub(room));
        }
        *self.state.offset_mut() = first;
        self.state.select(chosen.filter(|_| !rows.is_empty()));
        let shown = &rows[first..rows.len().min(first + room)];
        let columns = filled(listing, shown);
        let width = |at: usize| {
            let longest = shown.iter().map(|row| row[at].text().chars().count()).max().unwrap_or(0);
            longest.max(listing.columns()[at].len() + 2).min(WIDEST) as u16
        };
        let head = columns.iter().map(|&at| match self.sorted == Some(at) {
            true => format!("{} {}", listing.columns()[at].to_uppercase(), if self.reversed { '▾' } else { '▴' }),
            false => listing.columns()[at].to_uppercase(),
        });
        let last = columns.last().copied();
        let cell =
            |row: &&[Cell], at: usize| if Some(at) == last { row[at].text() } else { shortened(&row[at].text()) };
        let line = |row: &&[Cell]| Row::new(columns.iter().map(|&at| cell(row, at)).collect::<Vec<_>>());
        let room = |&at: &usize| if Some(at) == last { Constraint::Fill(1) } else { Constraint::Length(width(at)) };
        let table = Table::new(shown.iter().map(line), columns.iter().map(room))
            .header(Row::new(head).bold())
            .row_highlight_style(Style::new().reversed());
        let mut within = TableState::new().with_selected(chosen.map(|at| at.saturating_sub(first)));
        frame.render_stateful_widget(table, area, &mut within);
    }
}

/// Columns in which a shown row has a value.
fn filled(listing: &Listing, shown: &[&[Cell]]) -> Vec<usize> {
    let says = |at: &usize| shown.is_empty() || shown.iter().any(|row| !row[*at].text().is_empty());
    (0..listing.columns().len()).filter(says).collect()
}

fn shortened(text: &str) -> String {
    match text.chars().count() > WIDEST {
        true => text.chars().take(WIDEST - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
