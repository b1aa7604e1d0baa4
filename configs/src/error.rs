//! Errors of configuration files: a file that cannot be read, and values that cannot be run.

use std::fmt::Display;
use std::ops::Range;

use thiserror::Error;

/// Error of a configuration that parses but cannot be run.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct CheckError {
    /// Sentence that names the key, its value and the values that are allowed.
    pub message: String,
    /// Dotted key that the error is about; `None` where the error is about no single key.
    pub key: Option<&'static str>,
    /// Tables on the way to the key: pairs of an array of tables and the `name` of one of its
    /// tables.
    pub names: Vec<(&'static str, String)>,
}

impl CheckError {
    /// Error about the value of one key.
    pub fn at(key: &'static str, message: impl Display) -> Self {
        Self { message: message.to_string(), key: Some(key), names: Vec::new() }
    }
}

#[cfg(feature = "scenarios")]
impl From<crate::scenario::SetupError> for CheckError {
    fn from(error: crate::scenario::SetupError) -> Self {
        use crate::scenario::SetupError;
        let (mut inner, mut names) = (&error, Vec::new());
        loop {
            inner = match inner {
                SetupError::Member { cluster, source } => {
                    names.push(("clusters", cluster.clone()));
                    source
                }
                SetupError::Service { service, source } => {
                    names.push(("services", service.clone()));
                    source
                }
                _ => break,
            };
        }
        let key = match inner {
            SetupError::Value { key, .. } => Some(*key),
            SetupError::Tenants(_) => Some("tenants"),
            _ => None,
        };
        Self { message: error.to_string(), key, names }
    }
}

/// Error of reading a configuration file, with the place in its text.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct ReadError {
    /// Message: `FILE:LINE:COLUMN: PROBLEM` where the place is known.
    pub message: String,
    /// Advice on how to mend the file.
    pub help: Option<String>,
    /// Text of the file around the error; `None` where the place is not known.
    pub source_text: Option<SourceText>,
}

/// Place in the text of a file, for a caret below the line.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// Name of the file.
    pub name: String,
    /// Text of the file, overrides applied.
    pub text: String,
    /// Bytes that are wrong.
    pub span: Range<usize>,
}

impl ReadError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, source_text: None }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn pointing(mut self, name: &str, text: &str, span: Option<Range<usize>>) -> Self {
        self.source_text = span.map(|span| SourceText { name: name.into(), text: text.into(), span });
        self
    }
}
