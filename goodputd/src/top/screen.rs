//! The screen of `top`: what is drawn, and what keys change.

use std::io;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use goodput_console::{CommandError, Listing};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::keys::{HELP, Wish, wish};
use super::reading::{Reading, ScreenNews, ScreenQuestion, follow};
use super::table::View;
use super::text;
use crate::client::Client;
use crate::listings;

/// Time that the screen waits for a key before it looks for news of the daemon.
const TICK: Duration = Duration::from_millis(150);

/// Names of the views, in the order of their keys.
const VIEWS: [&str; 4] = ["jobs", "nodes", "services", "alerts"];

/// Shows the daemon until the user quits.
///
/// # Errors
/// [`CommandError`] where the terminal cannot be written.
pub fn run(client: Client, reading: Reading, every: Duration) -> Result<(), CommandError> {
    let (ask, told) = follow(client, every);
    let mut screen = TopScreen::new(reading);
    let mut terminal = ratatui::try_init().map_err(terminal_failed)?;
    let ended = loop {
        if let Err(error) = terminal.draw(|frame| screen.draw(frame)) {
            break Err(error);
        }
        match screen.turn(&ask, &told) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    ended.map_err(terminal_failed)
}

fn terminal_failed(error: io::Error) -> CommandError {
    CommandError::failed(format!("the terminal: {error}"))
        .with_help("`--once` prints the state as text and needs no terminal")
}

/// Everything that the screen shows.
pub(super) struct TopScreen {
    reading: Reading,
    listings: [Listing; 4],
    views: [View; 4],
    at: usize,
    is_typing: bool,
    is_held: bool,
    /// Text that lies on top.
    on_top: Option<String>,
    /// Words of the latest call without an answer.
    silent: Option<String>,
}

impl TopScreen {
    pub(super) fn new(reading: Reading) -> Self {
        let listings = listings_of(&reading);
        let views = Default::default();
        Self { reading, listings, views, at: 0, is_typing: false, is_held: false, on_top: None, silent: None }
    }

    /// Takes what the daemon has told and waits a moment for a key. `false` once the user quits.
    fn turn(&mut self, ask: &Sender<ScreenQuestion>, told: &Receiver<ScreenNews>) -> io::Result<bool> {
        while let Ok(news) = told.try_recv() {
            self.hear(news);
        }
        if !event::poll(TICK)? {
            return Ok(true);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => match self.press(key) {
                KeyAnswer::Quit => false,
                // A thread that has ended has told its last words already.
                KeyAnswer::Ask(asked) => ask.send(asked).is_ok() || self.silent.is_some(),
                KeyAnswer::Nothing => true,
            },
            _ => true,
        })
    }

    pub(super) fn hear(&mut self, news: ScreenNews) {
        match news {
            ScreenNews::State(reading) if !self.is_held => {
                self.silent = None;
                self.reading = *reading;
                self.listings = listings_of(&self.reading);
            }
            ScreenNews::State(_) => self.silent = None,
            ScreenNews::Job(text) => self.on_top = Some(text),
            ScreenNews::Silent(problem) => self.silent = Some(problem),
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> KeyAnswer {
        let (view, listing) = (&mut self.views[self.at], &self.listings[self.at]);
        if self.is_typing {
            match key.code {
                KeyCode::Enter => self.is_typing = false,
                KeyCode::Esc => (self.is_typing, view.filter) = (false, String::new()),
                KeyCode::Backspace => drop(view.filter.pop()),
                KeyCode::Char(letter) => view.filter.extend(letter.to_lowercase()),
                _ => {}
            }
            return KeyAnswer::Nothing;
        }
        let count = view.rows(listing).len();
        match wish(key) {
            Some(Wish::Quit) => return KeyAnswer::Quit,
            Some(Wish::View(at)) => self.at = at,
            Some(Wish::NextView) => self.at = (self.at + 1) % VIEWS.len(),
            Some(Wish::Move(rows)) => view.go(rows, count),
            Some(Wish::First) => view.choose(0, count),
            Some(Wish::Last) => view.choose(usize::MAX, count),
            Some(Wish::Sort) => view.sort(listing.columns().len()),
            Some(Wish::Reverse) => view.reverse(),
            Some(Wish::Filter) => self.is_typing = true,
            Some(Wish::Pause) => self.is_held = !self.is_held,
            Some(Wish::Refresh) => return KeyAnswer::Ask(ScreenQuestion::State),
            Some(Wish::Explain) if self.at == 0 => {
                return view.chosen(listing).map_or(KeyAnswer::Nothing, |key| KeyAnswer::Ask(ScreenQuestion::Job(key)));
            }
            Some(Wish::Close) if self.on_top.take().is_none() => view.filter.clear(),
            Some(Wish::Close | Wish::Explain) | None => {}
        }
        KeyAnswer::Nothing
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let head: Vec<Line<'_>> = text::header(&self.reading).lines().map(|line| Line::from(line.to_owned())).collect();
        let [top, tabs, body, foot] = Layout::vertical([
            Constraint::Length(head.len() as u16),
            Constraint::Length(1),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(head), top);
        frame.render_widget(self.tabs(), tabs);
        self.views[self.at].draw(&self.listings[self.at], frame, body);
        frame.render_widget(self.foot(), foot);
        if let Some(text) = &self.on_top {
            let area = middle(frame.area());
            frame.render_widget(Clear, area);
            let block = Block::bordered().title(" Esc closes ");
            frame.render_widget(Paragraph::new(text.as_str()).wrap(Wrap { trim: false }).block(block), area);
        }
    }

    fn tabs(&self) -> Line<'static> {
        let tab = |(at, name): (usize, &&str)| {
            let text = format!(" {} {name} {} ", at + 1, self.listings[at].len());
            if at == self.at { text.reversed() } else { text.into() }
        };
        VIEWS.iter().enumerate().map(tab).collect()
    }

    fn foot(&self) -> Line<'static> {
        let filter = &self.views[self.at].filter;
        if let Some(problem) = &self.silent {
            return Line::from(format!("! {problem}")).bold();
        }
        if self.is_typing {
            return Line::from(format!("/{filter}_  (Enter keeps, Esc clears)"));
        }
        let held = if self.is_held { "HELD  " } else { "" };
        let only = if filter.is_empty() { String::new() } else { format!("only \"{filter}\"  ") };
        Line::from(format!("{held}{only}{HELP}")).dim()
    }
}

/// Effect of a key outside the screen.
pub(super) enum KeyAnswer {
    Nothing,
    Quit,
    Ask(ScreenQuestion),
}

fn listings_of(reading: &Reading) -> [Listing; 4] {
    let mut alerts = Listing::new(&["alert"]);
    for alert in reading.status.alerts.iter().rev() {
        alerts.push(vec![alert.as_str().into()]);
    }
    [listings::queue(&reading.queue), listings::nodes(&reading.nodes), listings::services(&reading.services), alerts]
}

/// Area for what lies on top.
fn middle(area: Rect) -> Rect {
    let [_, rows, _] =
        Layout::vertical([Constraint::Fill(1), Constraint::Percentage(70), Constraint::Fill(1)]).areas(area);
    let [_, middle, _] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Percentage(80), Constraint::Fill(1)]).areas(rows);
    middle
}
