//! Errors of configuration files: a file that cannot be read, and values that cannot be run.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use thiserror::Error;

/// Error of a configuration that parses but cannot be run.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct CheckError {
    /// Sentence that names the key, its value and the values that are allowed.
    pub message: String,
    /// Dotted key that the error is about, with the numbers of elements of lists; `None` where the error is about no
    /// single key.
    pub key: Option<Cow<'static, str>>,
    /// Tables on the way to the key: pairs of an array of tables and the `name` of one of its
    /// tables.
    pub names: Vec<(&'static str, String)>,
    /// Remedy: what the user can do about the error.
    pub remedy: Option<&'static str>,
}

impl CheckError {
    /// Error about the value of one key.
    pub fn at(key: impl Into<Cow<'static, str>>, message: impl Display) -> Self {
        Self { message: message.to_string(), key: Some(key.into()), names: Vec::new(), remedy: None }
    }

    /// Error about a value outside its range.
    pub fn value(key: &'static str, value: impl Display, expected: impl Display) -> Self {
        Self::at(key, format!("{key} is {value}, expected {expected}"))
    }

    /// Error in the table called `name` in the array of tables called `array`.
    #[must_use]
    pub(crate) fn within(mut self, array: &'static str, name: &str) -> Self {
        self.message = format!("{} (in {name:?} of `{array}`)", self.message);
        self.names.push((array, name.to_owned()));
        self
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
