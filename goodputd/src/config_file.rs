//! Configuration files of live clusters, and errors of their reader as errors of a command.

use std::path::Path;
use std::process::ExitCode;

use goodput_configs::error::ReadError;
use goodput_configs::kind::Kind;
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::node_agent::NodeAgentConfig;
use goodput_configs::reader::{self, ConfigFile, Document};
use goodput_console::{CommandError, print, say};

use crate::args::LiveConfig;

/// Runs `goodputd config` and gives its exit code.
///
/// # Errors
/// A file that cannot be shown.
pub fn run(verb: &LiveConfig) -> Result<ExitCode, CommandError> {
    match verb {
        LiveConfig::Check { files, sets } => Ok(check(files, |file| read(file, sets))),
        LiveConfig::Show { file, sets } => {
            print(&read(file, sets)?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reports what is wrong with each file as `read` finds it, and gives the exit code.
pub fn check<T>(files: &[impl AsRef<Path>], read: impl Fn(&Path) -> Result<T, CommandError>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for file in files {
        match read(file.as_ref()) {
            Ok(_) => say(&format!("{}: ok", file.as_ref().display())),
            Err(error) => code = error.report(),
        }
    }
    code
}

/// Reads and checks a file of a live cluster. A file of another kind is an error that says what the
/// file is.
fn read(path: &Path, sets: &[String]) -> Result<String, CommandError> {
    let document = Document::read(path, sets).map_err(command_error)?;
    let text = match document.kind() {
        Kind::NodeAgent => resolved::<NodeAgentConfig>(&document),
        _ => resolved::<Deployment>(&document),
    };
    text.map_err(command_error)
}

/// Text of a file with every default filled in, once its values are checked.
///
/// # Errors
/// The first key or value that does not fit.
pub fn resolved<T: ConfigFile>(document: &Document) -> Result<String, ReadError> {
    reader::resolved(&reader::of_document::<T>(document)?)
}

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
