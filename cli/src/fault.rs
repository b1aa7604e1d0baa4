//! What went wrong, where, and what to do about it.

use std::fmt::Display;
use std::ops::Range;
use std::process::ExitCode;

use miette::{Diagnostic, GraphicalTheme, MietteHandlerOpts, NamedSource, Report, SourceSpan};

use crate::args::Color;

/// An error that ends the command, with its exit code.
#[derive(Debug)]
pub struct Fault {
    code: u8,
    said: Box<Said>,
}

/// What is said about it.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
struct Said {
    message: String,
    #[help]
    help: Option<String>,
    #[source_code]
    text: Option<NamedSource<String>>,
    #[label("here")]
    span: Option<SourceSpan>,
}

impl Fault {
    fn new(code: u8, message: impl Display) -> Self {
        let said = Said { message: message.to_string(), help: None, text: None, span: None };
        Self { code, said: Box::new(said) }
    }

    /// The run failed: exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self::new(1, message)
    }

    /// Usage, configuration or input is wrong: exit code 2.
    pub fn input(message: impl Display) -> Self {
        Self::new(2, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.said.help = Some(help.into());
        self
    }

    /// Points into a file.
    #[must_use]
    pub fn at(mut self, name: &str, text: String, span: Option<Range<usize>>) -> Self {
        self.said.text = Some(NamedSource::new(name, text));
        self.said.span = span.map(Into::into);
        self
    }

    /// Prints it to stderr and gives the exit code.
    pub fn report(self) -> ExitCode {
        #[expect(clippy::print_stderr, reason = "errors go to stderr")]
        {
            eprintln!("{:?}", Report::new(*self.said));
        }
        ExitCode::from(self.code)
    }
}

/// How errors look: plain in a pipe, with colour and line art on a terminal.
pub fn install(color: Color) {
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let colored = match color {
        Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
        Color::Always => true,
        Color::Never => false,
    };
    let theme = if colored { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    // A second call would fail; there is none.
    let _ = miette::set_hook(Box::new(move |_| {
        let theme = theme.clone();
        Box::new(
            MietteHandlerOpts::new().terminal_links(false).color(colored).width(100).graphical_theme(theme).build(),
        )
    }));
}
