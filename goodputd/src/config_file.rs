//! Configuration files of live clusters, and errors of their reader as errors of a command.

use goodput_configs::error::ReadError;
use goodput_configs::reader::{self, Document};
use goodput_console::CommandError;
use goodput_executor::agent::AgentConfig;
use goodput_executor::daemon::settings::Settings;

/// Error of a command about a configuration file, with a caret below the place.
pub fn command_error(error: ReadError) -> CommandError {
    let ReadError { message, help, source_text } = error;
    let fault = match help {
        Some(help) => CommandError::input(message).with_help(help),
        None => CommandError::input(message),
    };
    match source_text {
        Some(place) => fault.at(&place.name, place.text, Some(place.span)),
        None => fault,
    }
}

/// Text of a deployment with every default filled in, once its values are checked.
///
/// # Errors
/// The first key or value that does not fit.
pub fn deployment(document: &Document) -> Result<String, ReadError> {
    reader::resolved(&reader::of_document::<Settings>(document)?)
}

/// Text of the configuration of a node agent with every default filled in, once its values are checked.
///
/// # Errors
/// The first key or value that does not fit.
pub fn node_agent(document: &Document) -> Result<String, ReadError> {
    reader::resolved(&reader::of_document::<AgentConfig>(document)?)
}
