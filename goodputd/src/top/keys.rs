//! Keys of the screen and what they mean.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Wish of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// End the program.
    Quit,
    /// The view with this number.
    View(usize),
    /// The next view.
    NextView,
    /// So many rows down; up where it is negative.
    Move(i64),
    /// The first row.
    First,
    /// The last row.
    Last,
    /// Sort by the next column.
    Sort,
    /// Turn the order of the rows round.
    Reverse,
    /// Type a text that rows must contain.
    Filter,
    /// Hold the picture, or let it go on.
    Pause,
    /// Ask the daemon now.
    Refresh,
    /// Explain the chosen job.
    Explain,
    /// Close what lies on top; clear the filter.
    Close,
}

/// Rows that a page key moves.
const PAGE: i64 = 20;

/// Line about the keys.
pub const HELP: &str =
    "q quit  1-4 or Tab view  ↑↓ PgUp PgDn move  / filter  s sort  r reverse  Enter explain  space hold";

/// Meaning of `key` where no text is being typed.
pub fn wish(key: KeyEvent) -> Option<Wish> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Wish::Quit);
    }
    Some(match key.code {
        KeyCode::Char('q') => Wish::Quit,
        KeyCode::Char(digit @ '1'..='4') => Wish::View(digit as usize - '1' as usize),
        KeyCode::Tab => Wish::NextView,
        KeyCode::Down | KeyCode::Char('j') => Wish::Move(1),
        KeyCode::Up | KeyCode::Char('k') => Wish::Move(-1),
        KeyCode::PageDown => Wish::Move(PAGE),
        KeyCode::PageUp => Wish::Move(-PAGE),
        KeyCode::Home | KeyCode::Char('g') => Wish::First,
        KeyCode::End | KeyCode::Char('G') => Wish::Last,
        KeyCode::Char('s') => Wish::Sort,
        KeyCode::Char('r') => Wish::Reverse,
        KeyCode::Char('/') => Wish::Filter,
        KeyCode::Char(' ') => Wish::Pause,
        KeyCode::Char('u') | KeyCode::F(5) => Wish::Refresh,
        KeyCode::Enter => Wish::Explain,
        KeyCode::Esc => Wish::Close,
        _ => return None,
    })
}
