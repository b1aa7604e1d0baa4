//! The files of the repository: which rooms there are, and the comments and type names inside a Rust file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Folders that hold Rust code of the product, of its tests and of its tools.
pub const ROOMS: [&str; 14] = [
    "env", "forecast", "datasets", "agents", "configs", "eval", "train", "executor", "console", "goodputd", "cli",
    "goodput", "python", "xtask",
];

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files below `folder` with the extension `extension`, in order of their paths.
///
/// # Errors
/// [`io::Error`] where a folder cannot be read; a `folder` that does not exist holds no files.
pub fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The kind of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentKind {
    /// Documentation of an item (`///`) or of a module (`//!`).
    Doc,
    /// A remark inside the code (`//`).
    Inline,
}

/// A run of comment lines of one kind, joined by spaces. A blank comment line ends the run.
#[derive(Clone, Debug)]
pub struct Comment {
    /// Line of the first comment line, from 1.
    pub line: usize,
    /// Documentation or remark.
    pub kind: CommentKind,
    /// Whether the run opens the documentation of its item.
    pub opens: bool,
    /// The text without code in backticks and without code blocks.
    pub text: String,
}

/// The comments of a Rust file.
pub fn comments(source: &str) -> Vec<Comment> {
    let mut found: Vec<Comment> = Vec::new();
    let mut fenced = false;
    // Whether the line before was a comment of the kind, and whether a paragraph of it is still open.
    let mut before: Option<CommentKind> = None;
    let mut open = false;
    for (at, line) in source.lines().enumerate() {
        let trimmed = line.trim_start();
        let (kind, text) = match trimmed {
            doc if doc.starts_with("///") || doc.starts_with("//!") => (CommentKind::Doc, &doc[3..]),
            inline if inline.starts_with("//") => (CommentKind::Inline, &inline[2..]),
            _ => {
                (before, open, fenced) = (None, false, false);
                continue;
            }
        };
        let text = text.trim();
        if text.starts_with("```") {
            fenced = !fenced;
            (before, open) = (Some(kind), false);
            continue;
        }
        if fenced || text.is_empty() {
            (before, open) = (Some(kind), false);
            continue;
        }
        match found.last_mut().filter(|_| open && before == Some(kind)) {
            Some(last) => {
                last.text.push(' ');
                last.text.push_str(&without_code(text));
            }
            None => {
                let opens = before != Some(kind);
                found.push(Comment { line: at + 1, kind, opens, text: without_code(text) });
            }
        }
        (before, open) = (Some(kind), true);
    }
    found
}

/// `text` with every span in backticks replaced by one word.
pub fn without_code(text: &str) -> String {
    let mut parts = text.split('`');
    let mut plain = parts.next().unwrap_or_default().to_string();
    let mut code = true;
    for part in parts {
        plain.push_str(if code { "code" } else { part });
        code = !code;
    }
    plain
}

/// The part of a Rust file that comes before its unit tests.
pub fn product(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod ").next().unwrap_or(source)
}

/// Rooms of a crate that each of its rooms uses, with the files that do so. A room is a module at the top level of the
/// crate with the sources `src`; a use is a path `crate::ROOM` outside comments and unit tests.
///
/// # Errors
/// [`io::Error`] where a file cannot be read.
pub fn room_uses(src: &Path) -> io::Result<BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>>> {
    let mut uses: BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>> = BTreeMap::new();
    for file in files(src, "rs")? {
        let path = file.strip_prefix(src).unwrap_or(&file).to_path_buf();
        let first = path.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let Some(room) = first.map(|first| first.trim_end_matches(".rs").to_string()) else { continue };
        if room == "lib" || room == "main" {
            continue;
        }
        let used = uses.entry(room.clone()).or_default();
        for other in used_rooms(&fs::read_to_string(&file)?).into_iter().filter(|other| *other != room) {
            used.entry(other).or_default().insert(path.clone());
        }
    }
    Ok(uses)
}

/// Names that follow `crate::` in the product part of a Rust file, also those in a group `crate::{...}`.
pub fn used_rooms(source: &str) -> BTreeSet<String> {
    let code: String =
        product(source).lines().map(|line| line.split("//").next().unwrap_or(line).to_owned() + "\n").collect();
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        // Only names at the first level of the group are rooms.
        let (mut depth, mut expected) = (0, true);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => expected = true,
                c if expected && !c.is_whitespace() => {
                    found.insert(name(&group[at..]));
                    expected = false;
                }
                _ => {}
            }
        }
    }
    found
}
