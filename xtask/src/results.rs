//! Tables of results that runs write: marked blocks in the pages of results, and their text.
//!
//! A block names a command and, where the table is not the usual one, the metrics of its columns:
//!
//! ```text
//! <!-- results: NAME
//! goodput eval configs/scenario/burst.toml
//! columns: jct_mean_secs,restarts_mean
//! -->
//! (the table, its workloads, and the command, day and commit of the run)
//! <!-- end of results -->
//! ```
//!
//! `cargo xtask results` runs the command and replaces what stands between the marks.

use std::ops::Range;

const OPENING: &str = "<!-- results: ";
const COLUMNS: &str = "columns: ";
const OPENED: &str = "-->";
const CLOSING: &str = "<!-- end of results -->";

/// A marked block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultBlock {
    /// Name of the block, which is the name of the run's folder too.
    pub name: String,
    /// Line of the opening mark, from 1.
    pub line: usize,
    /// Command line of the run, without a folder for the run.
    pub command: String,
    /// Keys of the metrics of the table; empty for the usual ones.
    pub columns: Vec<String>,
    /// Bytes between the marks.
    text: Range<usize>,
}

/// The blocks of a page, or the line of a broken one and the reason.
///
/// # Errors
/// A line and a sentence, where a mark is missing or a block has no command of the program.
pub fn blocks(page: &str) -> Result<Vec<ResultBlock>, (usize, String)> {
    let mut found = Vec::new();
    let mut lines = page.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((line.trim_end(), *end))
    });
    let mut at = 0;
    while let Some((line, _)) = lines.next() {
        at += 1;
        if line == CLOSING {
            return Err((at, "the mark closes no block of results".into()));
        }
        let Some(name) = line.strip_prefix(OPENING) else {
            match line.contains(OPENING) {
                true => return Err((at, "the mark of a block begins its line".into())),
                false => continue,
            }
        };
        let opened_at = at;
        let fault = |text: &str| (opened_at, format!("the block {name:?} {text}"));
        let mut next = || {
            at += 1;
            lines.next().ok_or_else(|| fault("ends with the page"))
        };
        let (command, _) = next()?;
        if !["goodput eval ", "goodput train "].iter().any(|start| command.starts_with(start)) {
            return Err(fault("names no command `goodput eval` or `goodput train` in its second line"));
        }
        if command.contains("--run-dir") {
            return Err(fault("names a folder for the run, which the writer chooses"));
        }
        let (mut mark, mut from) = next()?;
        let mut columns = Vec::new();
        if let Some(keys) = mark.strip_prefix(COLUMNS) {
            columns = keys.split(',').map(|key| key.trim().to_string()).collect();
            (mark, from) = next()?;
        }
        if mark != OPENED {
            return Err(fault("has a line beside its command and its columns"));
        }
        let mut upto = from;
        loop {
            match next()? {
                (CLOSING, _) => break,
                (line, _) if line.starts_with(OPENING) => return Err(fault("is not closed before the next one")),
                (_, end) => upto = end,
            }
        }
        let (name, command) = (name.to_string(), command.to_string());
        found.push(ResultBlock { name, line: opened_at, command, columns, text: from..upto });
    }
    Ok(found)
}

/// The page with other text between the marks of one of its blocks.
pub fn rewritten(page: &str, block: &ResultBlock, text: &str) -> String {
    format!("{}\n{}\n\n{}", &page[..block.text.start], text.trim_end(), &page[block.text.end..])
}

impl ResultBlock {
    /// Reason for which the text between the marks is not that of a run of the command; `None` where
    /// the text is.
    pub fn stale(&self, page: &str) -> Option<String> {
        let text = &page[self.text.clone()];
        let origin = format!("\n- Command: `{}`, on ", self.command);
        if !text.contains(&origin) {
            return Some(format!("the text of {:?} is not of its command: run cargo xtask results", self.name));
        }
        let commit = text.trim_end().rsplit_once(", commit `").is_some_and(|(_, commit)| commit.ends_with("`."));
        (!commit || !text.starts_with("\n| policy "))
            .then(|| format!("the text of {:?} has no table or no commit: run cargo xtask results", self.name))
    }
}
