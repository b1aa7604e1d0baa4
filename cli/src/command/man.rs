//! `goodput man`: manual pages, one for each command.

use std::fs;
use std::process::ExitCode;

use clap::CommandFactory;
use goodput_console::{CommandError, say};

use crate::args::{Args, Man};

/// Writes the pages.
pub fn run(args: &Man) -> Result<ExitCode, CommandError> {
    fs::create_dir_all(&args.write)
        .and_then(|()| clap_mangen::generate_to(Args::command(), &args.write))
        .map_err(|error| CommandError::input(format!("{}: {error}", args.write.display())))?;
    say(&format!("wrote the manual pages to {0}; `man -l {0}/goodput.1` shows the first", args.write.display()));
    Ok(ExitCode::SUCCESS)
}
