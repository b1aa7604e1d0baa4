//! Reader of configuration files: TOML with overrides, a kind, and errors with line, column and
//! caret.

mod document;
mod overrides;
mod suggestion;
mod wording;

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{CheckError, ReadError};
use crate::kind::Kind;

pub use document::Document;

/// Table of a whole file.
pub trait ConfigFile: DeserializeOwned + Serialize {
    /// Kind of the file.
    const KIND: Kind;

    /// Fills in what depends on other keys of the file, given whether a dotted key is written in it.
    fn complete(&mut self, _written: &dyn Fn(&str) -> bool) {}

    /// Checks values that parse.
    ///
    /// # Errors
    /// [`CheckError`] naming the first key with a value that cannot be run.
    fn check(&self) -> Result<(), CheckError>;
}

/// Reads a file of kind `T`, applies `sets`, each `KEY=VALUE`, and checks the values. The document
/// goes with the table for errors that are found later.
///
/// # Errors
/// [`ReadError`] with file, line and column.
pub fn read<T: ConfigFile>(path: &Path, sets: &[String]) -> Result<(T, Document), ReadError> {
    let document = Document::read(path, sets)?;
    let config = of_document(&document)?;
    Ok((config, document))
}

/// Reads and checks a text as a file of kind `T`; `name` is for messages.
///
/// # Errors
/// As [`read`].
pub fn parse<T: ConfigFile>(name: &str, text: &str) -> Result<T, ReadError> {
    of_document(&Document::new(name, text, &[])?)
}

/// Reads and checks a document as a file of kind `T`.
///
/// # Errors
/// As [`read`].
pub fn of_document<T: ConfigFile>(document: &Document) -> Result<T, ReadError> {
    let mut config: T = document.parse(T::KIND)?;
    config.complete(&|key| document.writes(key));
    config.check().map_err(|error| document.at_error(&error))?;
    Ok(config)
}

/// Configuration as TOML with every default filled in.
///
/// # Errors
/// A value that TOML cannot express.
pub fn resolved(config: &impl Serialize) -> Result<String, ReadError> {
    toml::to_string_pretty(config).map_err(|error| ReadError::new(error.to_string()))
}
