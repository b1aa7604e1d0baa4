//! The book in `docs`: its links, its summary, and the words of each kind of page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::provenance::{has_origin, sections_without_command};
use crate::results::blocks;
use crate::source::{files, root};
use crate::tidy::{paragraphs, sentences, words};

/// The pages of the book, by path below `docs/src`.
#[derive(Clone, Debug, Default)]
pub struct Book {
    pages: BTreeMap<PathBuf, String>,
}

/// Words of one kind of page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Number of pages.
    pub pages: usize,
    /// Number of words outside code.
    pub words: usize,
    /// Words of the longest sentence.
    pub longest_sentence: usize,
}

impl Book {
    /// Reads all pages.
    ///
    /// # Errors
    /// [`io::Error`] where a page cannot be read.
    pub fn read() -> io::Result<Self> {
        let folder = root().join("docs/src");
        let mut pages = BTreeMap::new();
        for path in files(&folder, "md")? {
            let text = fs::read_to_string(&path)?;
            let name = path.strip_prefix(&folder).map_err(io::Error::other)?;
            pages.insert(name.to_path_buf(), text);
        }
        Ok(Self { pages })
    }

    /// Links that lead nowhere, pages that the summary does not name, and names in the summary
    /// without a page.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut named = BTreeSet::new();
        for (page, text) in &self.pages {
            let folder = page.parent().unwrap_or(Path::new(""));
            for (line, target) in links(text) {
                let (path, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
                let to = if path.is_empty() { page.clone() } else { normal(&folder.join(path)) };
                if page.as_os_str() == "SUMMARY.md" {
                    named.insert(to.clone());
                }
                let place = format!("docs/src/{}:{line}", page.display());
                match self.pages.get(&to) {
                    Some(text) if anchor.is_empty() || anchors(text).contains(anchor) => {}
                    Some(_) => faults.push(format!("{place}: {target}: the page has no such heading")),
                    None if root().join("docs/src").join(&to).is_file() => {}
                    None => faults.push(format!("{place}: {target}: there is no such file")),
                }
            }
        }
        let pages = self.pages.keys().filter(|page| page.as_os_str() != "SUMMARY.md");
        let unnamed = pages.filter(|page| !named.contains(*page));
        faults.extend(unnamed.map(|page| format!("docs/src/{}: the summary does not name it", page.display())));
        faults
    }

    /// Pages of results with their text, without those that hold no figures of a run.
    pub fn results(&self) -> impl Iterator<Item = (&Path, &str)> {
        let exempt = ["results/about-these-results.md", "results/coverage.md"];
        let pages = self.pages.iter().map(|(page, text)| (page.as_path(), text.as_str()));
        pages
            .filter(move |(page, _)| page.starts_with("results") && !exempt.iter().any(|name| *page == Path::new(name)))
    }

    /// Pages of results that do not begin with a table of their origin, and sections of these pages
    /// that have figures and no command.
    pub fn results_without_origin(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (page, text) in self.results() {
            if !has_origin(text) {
                faults.push(format!("docs/src/{}: no table of the origin begins the page", page.display()));
            }
            let sections = sections_without_command(text).into_iter();
            faults.extend(sections.map(|(line, title)| {
                format!("docs/src/{}:{line}: \"{title}\" has figures and no command", page.display())
            }));
        }
        faults
    }

    /// Blocks of results that are broken, share a name, or hold the text of another command.
    pub fn broken_blocks(&self) -> Vec<String> {
        let (mut faults, mut names) = (Vec::new(), BTreeSet::new());
        for (page, text) in self.results() {
            let mut fault =
                |line: usize, what: String| faults.push(format!("docs/src/{}:{line}: {what}", page.display()));
            match blocks(text) {
                Err((line, what)) => fault(line, what),
                Ok(blocks) => {
                    for block in blocks {
                        if let Some(what) = block.stale(text) {
                            fault(block.line, what);
                        }
                        if !names.insert(block.name.clone()) {
                            fault(block.line, format!("two blocks are called {:?}", block.name));
                        }
                    }
                }
            }
        }
        faults
    }

    /// Pages and words by folder.
    pub fn extents(&self) -> BTreeMap<String, Extent> {
        let mut all = BTreeMap::<String, Extent>::new();
        for (page, text) in self.pages.iter().filter(|(page, _)| page.as_os_str() != "SUMMARY.md") {
            let kind = page.iter().next().filter(|_| page.iter().count() > 1);
            let kind = kind.map_or_else(|| "front".into(), |kind| kind.display().to_string());
            let extent = all.entry(kind).or_default();
            extent.pages += 1;
            for (_, paragraph) in paragraphs(text) {
                extent.words += words(&paragraph);
                if !paragraph.starts_with('|') {
                    let longest = sentences(&paragraph).map(words).max().unwrap_or(0);
                    extent.longest_sentence = extent.longest_sentence.max(longest);
                }
            }
        }
        all
    }
}

/// Targets of the links of a page that stay inside the repository, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        // A code block shows text and links nowhere.
        if fenced || line.starts_with("    ") && !line.trim_start().starts_with("- ") {
            continue;
        }
        for (start, _) in line.match_indices("](") {
            let rest = &line[start + 2..];
            let Some(target) = rest.find(')').map(|end| &rest[..end]) else { continue };
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((at + 1, target.to_string()));
            }
        }
    }
    found
}

/// The anchors of a page: its headings as mdBook names them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut all = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let Some(heading) = line.strip_prefix('#').filter(|_| !fenced) else { continue };
        let name = anchor(heading.trim_start_matches('#').trim());
        let count = seen.entry(name.clone()).or_default();
        all.insert(if *count == 0 { name.clone() } else { format!("{name}-{count}") });
        *count += 1;
    }
    all
}

/// The anchor of a heading: lower case, spaces as hyphens, and no other punctuation.
fn anchor(heading: &str) -> String {
    let letters = heading.chars().filter_map(|letter| match letter {
        letter if letter.is_alphanumeric() || letter == '_' || letter == '-' => Some(letter.to_ascii_lowercase()),
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    letters.collect()
}

/// `path` with every `..` resolved.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_anchors_of_a_page_are_found() {
        let text = "# A `b` (c)\n\nSee [one](x.md#y), [two](https://a.b).\n\n```\n[no](z.md)\n```\n";
        assert_eq!(links(text), [(3, "x.md#y".to_string())]);
        assert!(anchors(text).contains("a-b-c"));
        assert_eq!(normal(Path::new("a/../b/./c.md")), Path::new("b/c.md"));
    }
}
