//! Output of the programs `goodput` and `goodputd`: listings on standard output, messages and errors
//! on standard error.
//!
//! **Invariant.** A reader that goes away, as `head` does, ends no program: every line is written by
//! [`print`] or [`say`], which ignore a closed pipe.

mod aligned;
mod error;
mod listing;
pub mod markdown;

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

pub use error::{CommandError, install};
pub use listing::{Cell, Listing};

/// Choice of colours on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Colours on a terminal, unless the variable `NO_COLOR` is set.
    Auto,
    /// Colours even in a pipe.
    Always,
    /// No colours anywhere.
    Never,
}

/// Form of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Aligned columns, the most important ones.
    #[default]
    Table,
    /// Aligned columns, all of them.
    Wide,
    /// Array of objects.
    Json,
    /// Comma-separated values with a header.
    Csv,
}

/// Form of an answer that is not a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AnswerFormat {
    /// Sentences for people.
    #[default]
    Text,
    /// One object with all figures.
    Json,
}

impl AnswerFormat {
    /// Writes an answer to standard output: its sentences, or all its figures.
    ///
    /// # Errors
    /// A write that fails, other than by a closed pipe.
    pub fn print(self, sentences: impl FnOnce() -> String, figures: &impl Serialize) -> Result<(), CommandError> {
        let text = match self {
            Self::Text => sentences(),
            Self::Json => serde_json::to_string_pretty(figures).map_err(CommandError::failed)?,
        };
        print(&format!("{}\n", text.trim_end_matches('\n')))
    }
}

/// Writes text to standard output.
///
/// # Errors
/// A write that fails, other than by a closed pipe.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// A count and its noun, as in `1 job` and `2 jobs`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Writes a line for the person at the terminal to standard error. A closed pipe is ignored.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Result of writing to standard output. A reader that went away is no error.
fn written(result: io::Result<()>) -> Result<(), CommandError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
