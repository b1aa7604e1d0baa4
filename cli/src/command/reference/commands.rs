//! The page of commands, from the command-line parser.

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::args::Args;
use goodput_console::markdown::{code, head, inline, table};

/// Text of the page.
pub fn page() -> String {
    let mut program = Args::command();
    // `build` fills in the full names of subcommands, which the usage lines show.
    program.build();
    let mut page = head(
        "Commands",
        "`goodput COMMAND --help` prints what stands here. Results go to standard output, and messages to\n\
         standard error. [Exit codes](exit-codes.md) has a page of its own.",
    );
    page.push_str("\n## Options of all commands\n\n");
    page.push_str(&options(program.get_arguments().filter(|argument| argument.is_global_set())));
    for command in program.get_subcommands().filter(|command| shown(command)) {
        describe(command, "goodput", 2, &mut page);
    }
    page
}

fn shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// Adds a command and the commands below it.
fn describe(command: &Command, parent: &str, level: usize, page: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    page.push_str(&format!("\n{} `{name}`\n\n", "#".repeat(level)));
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    for paragraph in about.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        page.push_str(&format!("{}\n\n", sentence(&inline(paragraph))));
    }
    let usage = command.clone().render_usage().to_string();
    page.push_str(&format!("```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim()));
    let own: Vec<&Arg> = command.get_arguments().filter(|argument| !argument.is_global_set()).collect();
    let positional = options(own.iter().copied().filter(|argument| argument.is_positional()));
    let flags = options(own.iter().copied().filter(|argument| !argument.is_positional()));
    for rows in [positional, flags].into_iter().filter(|rows| !rows.is_empty()) {
        page.push_str(&format!("\n{rows}"));
    }
    if let Some(example) = command.get_after_help() {
        page.push_str(&format!("\n```text\n{}\n```\n", example.to_string().trim()));
    }
    for child in command.get_subcommands().filter(|command| shown(command)) {
        describe(child, &name, level + 1, page);
    }
}

/// Table of arguments, empty where there are none.
fn options<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let told = arguments.filter(|argument| {
        let builtin = matches!(argument.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong)
            || matches!(argument.get_action(), ArgAction::Version);
        !builtin && !argument.is_hide_set()
    });
    let rows: Vec<_> = told.map(|argument| vec![spelling(argument), default(argument), meaning(argument)]).collect();
    match rows.first().map(|row| row[0].starts_with("`-")) {
        None => String::new(),
        Some(true) => table(&["option", "default", "meaning"], &rows),
        Some(false) => table(&["argument", "default", "meaning"], &rows),
    }
}

/// Names of an argument as they are typed, with the name of its value.
fn spelling(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let values = argument.get_value_names().filter(|_| takes_value).unwrap_or_default();
    let value = values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let names = [argument.get_short().map(|c| format!("-{c}")), argument.get_long().map(|long| format!("--{long}"))];
    let aliases = argument.get_visible_aliases().unwrap_or_default().into_iter().map(|alias| format!("--{alias}"));
    let mut text = names.into_iter().flatten().chain(aliases).collect::<Vec<_>>().join(", ");
    if !value.is_empty() {
        text = if text.is_empty() { value } else { format!("{text} {value}") };
    }
    code(&text)
}

fn default(argument: &Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    match defaults.join(",").as_str() {
        "" if argument.is_required_set() => "required".into(),
        text => code(text),
    }
}

/// Help of an argument, and the values that are possible where the parser knows them.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = sentence(&inline(&help));
    let values: Vec<_> = match argument.get_action().takes_values() {
        true => argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect(),
        false => Vec::new(),
    };
    let values = values.iter().map(|value| match value.get_help() {
        Some(help) => format!("{}: {}", code(value.get_name()), inline(&help.to_string())),
        None => code(value.get_name()),
    });
    let values = values.collect::<Vec<_>>().join("; ");
    if !values.is_empty() {
        text.push_str(&format!(" Values: {values}."));
    }
    text.trim().to_string()
}

/// Text with a full stop at its end. The parser drops the last one of a doc comment.
fn sentence(text: &str) -> String {
    match text.chars().last() {
        None | Some('.' | ':' | '!' | '?') => text.to_string(),
        Some(_) => format!("{text}."),
    }
}
