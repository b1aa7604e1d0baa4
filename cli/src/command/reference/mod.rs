//! `goodput reference`: the reference pages of the book, written from what the program itself knows.

mod commands;
mod configuration;
mod listings;

use std::fs;
use std::process::ExitCode;

use crate::args::Reference;
use goodput_console::{CommandError, say};

/// Runs `goodput reference` and gives its exit code.
pub fn run(options: &Reference) -> Result<ExitCode, CommandError> {
    let folder = &options.write;
    let cannot = |error: std::io::Error| CommandError::input(format!("cannot write to {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(cannot)?;
    let pages = pages()?;
    for (name, text) in &pages {
        fs::write(folder.join(name), text).map_err(cannot)?;
    }
    say(&format!("wrote {} pages to {}", pages.len(), folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Reference pages: file name and text.
fn pages() -> Result<[(&'static str, String); 6], CommandError> {
    Ok([
        ("commands.md", commands::page()),
        ("configuration.md", configuration::page()),
        ("policies.md", listings::policies()?),
        ("metrics.md", listings::metrics()),
        ("formats.md", listings::formats()),
        ("models.md", listings::models()?),
    ])
}
