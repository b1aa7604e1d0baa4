//! Every command line of the README and of the book is one that the program understands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use super::Args;

/// Command lines of a page: lines of code that begin with the name of a program, continued lines joined.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let (mut fenced, mut found) = (false, Vec::new());
    for line in joined.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let code = fenced || line.starts_with("    ");
        let line = line.trim().trim_start_matches("$ ");
        let command = line.starts_with("goodput ") || line.starts_with("goodputd ");
        // `goodput = { path = ... }` is a dependency.
        if code && command && !line.starts_with("goodput =") {
            found.push(line.to_owned());
        }
    }
    found
}

/// Words of a command line, up to a comment or a sign that ends the command for the shell. The output of
/// an inner command is one word, and dots that stand for more words are left out.
fn words(line: &str) -> Vec<String> {
    let line = match (line.find("$("), line.rfind(')')) {
        (Some(begin), Some(end)) => format!("{}x{}", &line[..begin], &line[end + 1..]),
        _ => line.to_owned(),
    };
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            (None, '>' | '|' | '&' | ';') => break,
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words.retain(|word| word != "...");
    // `goodputd run` is `goodput live run`; two commands of `goodputd` are those of `goodput`.
    if words[0] == "goodputd" && !matches!(words.get(1).map(String::as_str), Some("top" | "config" | "--help")) {
        words.insert(1, "live".into());
    }
    words
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the book").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] }).collect()
}

#[test]
fn every_command_of_the_book_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = pages(&root.join("docs/src"));
    pages.push(root.join("README.md"));
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages.iter().filter(|page| page.extension().is_some_and(|of| of == "md")) {
        // Lines of usage in the generated reference have placeholders.
        if page.ends_with("reference/commands.md") {
            continue;
        }
        for line in commands(&fs::read_to_string(page).expect("a page")) {
            seen += 1;
            match Args::try_parse_from(words(&line)) {
                Err(error) if error.exit_code() != 0 => {
                    let problem = error.to_string();
                    let problem = problem.lines().next().unwrap_or_default();
                    wrong.push(format!("{}: {line}\n    {problem}", page.display()));
                }
                _ => {}
            }
        }
    }
    assert!(seen > 100, "only {seen} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
