//! Errors that end a command: the reason, the place in a file, and the remedy.

use std::fmt::Display;
use std::ops::Range;
use std::process::ExitCode;

use miette::{Diagnostic, GraphicalTheme, MietteHandlerOpts, NamedSource, Report, SourceSpan};

use crate::{Color, say};

/// Error that ends a command, with its exit code.
#[derive(Debug)]
pub struct CommandError {
    code: u8,
    report: Box<ErrorReport>,
}

/// Text of an error as miette renders it.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
struct ErrorReport {
    message: String,
    #[help]
    help: Option<String>,
    #[source_code]
    text: Option<NamedSource<String>>,
    #[label("here")]
    span: Option<SourceSpan>,
}

impl CommandError {
    fn new(code: u8, message: impl Display) -> Self {
        let report = ErrorReport { message: message.to_string(), help: None, text: None, span: None };
        Self { code, report: Box::new(report) }
    }

    /// Error of a run that failed: exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self::new(1, message)
    }

    /// Error in usage, configuration or input: exit code 2.
    pub fn input(message: impl Display) -> Self {
        Self::new(2, message)
    }

    /// Error with a remedy.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.report.help = Some(help.into());
        self
    }

    /// Error that points at bytes `span` of the file `name` with this text.
    #[must_use]
    pub fn at(mut self, name: &str, text: String, span: Option<Range<usize>>) -> Self {
        self.report.text = Some(NamedSource::new(name, text));
        self.report.span = span.map(Into::into);
        self
    }

    /// The message without its remedy.
    pub fn message(&self) -> &str {
        &self.report.message
    }

    /// Prints the error to standard error and gives its exit code.
    pub fn report(self) -> ExitCode {
        say(&format!("{:?}", Report::new(*self.report)));
        ExitCode::from(self.code)
    }
}

/// Sets the look of errors: plain in a pipe, with colour and line art on a terminal.
pub fn install(color: Color) {
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let colored = match color {
        Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
        Color::Always => true,
        Color::Never => false,
    };
    let theme = if colored { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    // Only a second call could fail, and a program makes one.
    let _ = miette::set_hook(Box::new(move |_| {
        let theme = theme.clone();
        Box::new(
            MietteHandlerOpts::new().terminal_links(false).color(colored).width(100).graphical_theme(theme).build(),
        )
    }));
}
