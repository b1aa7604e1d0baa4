//! `top`: cluster and queue of a running daemon, on a screen that answers to keys, or once as text.

mod keys;
mod reading;
mod screen;
mod table;
#[cfg(test)]
mod tests;
mod text;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use goodput_console::CommandError;

pub use self::reading::Reading;
use crate::Invocation;
use crate::args::Top;
use crate::client::Client;

/// Shows the state of a daemon every few seconds until the user quits. Shows it once, as text, where that is asked for
/// or where standard output or input is no terminal.
///
/// # Errors
/// [`CommandError`] where the daemon cannot be reached at the beginning.
pub fn run(options: &Top, invocation: Invocation) -> Result<ExitCode, CommandError> {
    if !(options.every > 0.0 && options.every < 1e6) {
        return Err(CommandError::input(format!("--every {}: expected a positive number of seconds", options.every)));
    }
    let client = Client::new(&options.daemon, invocation)?;
    let reading = Reading::of(&client)?;
    if options.once || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        text::show(reading)?;
    } else {
        screen::run(client, reading, Duration::from_secs_f64(options.every))?;
    }
    Ok(ExitCode::SUCCESS)
}
