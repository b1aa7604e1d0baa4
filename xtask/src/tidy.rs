//! The rules of plain language, as patterns over comments and guides, and the count of type names that mean two things.
//!
//! A reader of one comment sees that comment alone. So a comment names its subject, says what an item is before it says
//! why, and does not speak of jobs and machines as of people.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fmt, fs, io};

use regex::Regex;

use crate::source::{CommentKind, ROOMS, comments, files, product, root, without_code};

/// A place that breaks a rule.
#[derive(Clone, Debug)]
pub struct Offence {
    /// Path from the root of the repository, and line.
    pub place: String,
    /// Name of the rule.
    pub rule: &'static str,
    /// The text in question, cut to one line.
    pub text: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.rule, self.text)
    }
}

/// Comments that a rule looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All comments of a file.
    Everywhere,
    /// The first paragraph of a doc comment.
    Opening,
}

/// A pattern that is compiled on first use.
type Pattern = LazyLock<Regex>;

macro_rules! pattern {
    ($text:expr) => {
        LazyLock::new(|| Regex::new($text).unwrap())
    };
}

/// A comment that says "the same" leaves a reader of one item without an answer.
static THE_SAME: Pattern = pattern!(r"(^|[.:;] )The same\b");
/// Words for people.
static PEOPLE: Pattern =
    pattern!(r"(?i)\b(who|whom|whose|whoever|somebody|someone|nobody|anybody|anyone|everybody|everyone)\b");
/// The first words name the item in the terms of the field, not by a pronoun or a question.
static PRONOUN: Pattern = pattern!(r"^(It|Its|They|Their|Them|That|Those|These|This one|One that|Ones that|He|She)\b");
static QUESTION: Pattern = pattern!(r"^(What|Where|When|Why|Which|How)\b");
/// A pronoun as the second word has no noun before it to stand for.
static PRONOUN_SECOND: Pattern = pattern!(r"^\w+ (it|they|them)\b");
/// Two words restate the name of the item. Say more, or allow `missing_docs` with the reason.
static RESTATES: Pattern = pattern!(r"^\S+( \S+)?$");
static INTERVAL: Pattern = pattern!(r"\[-?\+?[0-9.,]+, -?\+?[0-9.,]+\]");
static SENTENCE_END: Pattern = pattern!(r#"[.!?][)"*]*\s+"#);
static DEFINITION: Pattern = pattern!(r"^(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|union|type) ([A-Z]\w*)");

/// Rules over comments: name, the comments looked at, and the pattern that no comment may match.
static RULES: [(&str, Scope, &Pattern); 6] = [
    ("the-same", Scope::Everywhere, &THE_SAME),
    ("people", Scope::Everywhere, &PEOPLE),
    ("pronoun-first", Scope::Opening, &PRONOUN),
    ("pronoun-second", Scope::Opening, &PRONOUN_SECOND),
    ("question-first", Scope::Opening, &QUESTION),
    ("restates", Scope::Opening, &RESTATES),
];

/// Longest line of a comment, in characters.
const WIDEST: usize = 120;

/// Most words of a sentence in a guide.
const LONGEST_SENTENCE: usize = 40;

/// Every place in the source and in the guides that breaks a rule.
///
/// # Errors
/// [`io::Error`] where a file cannot be read.
pub fn offences() -> io::Result<Vec<Offence>> {
    let mut found = Vec::new();
    for room in ROOMS {
        for path in files(&root().join(room), "rs")? {
            found.extend(of_source(&path, &fs::read_to_string(&path)?));
        }
    }
    for path in guides()? {
        found.extend(of_guide(&path, &fs::read_to_string(&path)?));
    }
    Ok(found)
}

/// The guides: the book and the pages at the root, without the changelog.
fn guides() -> io::Result<Vec<PathBuf>> {
    let mut pages = files(&root().join("docs"), "md")?;
    let at_root = files_at(&root(), "md")?;
    pages.extend(at_root.into_iter().filter(|path| !path.ends_with("CHANGELOG.md")));
    Ok(pages)
}

fn files_at(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn place(path: &Path, line: usize) -> String {
    format!("{}:{line}", path.strip_prefix(root()).unwrap_or(path).display())
}

/// Offences in one Rust file.
pub fn of_source(path: &Path, source: &str) -> Vec<Offence> {
    let mut found = Vec::new();
    let mut add = |line: usize, rule: &'static str, text: &str| {
        let text = text.chars().take(160).collect();
        found.push(Offence { place: place(path, line), rule, text });
    };
    for comment in comments(source) {
        for (name, scope, rule) in &RULES {
            let looks = *scope == Scope::Everywhere || comment.opens && comment.kind == CommentKind::Doc;
            if looks && rule.is_match(&comment.text) {
                add(comment.line, name, &comment.text);
            }
        }
    }
    for (at, line) in source.lines().enumerate() {
        if line.trim_start().starts_with("//") && line.chars().count() > WIDEST {
            add(at + 1, "wide", line.trim_start());
        }
    }
    found
}

/// Offences in one page of Markdown.
pub fn of_guide(path: &Path, text: &str) -> Vec<Offence> {
    let mut found = Vec::new();
    let mut add = |line: usize, rule: &'static str, text: &str| {
        let text = text.chars().take(160).collect();
        found.push(Offence { place: place(path, line), rule, text });
    };
    for (line, paragraph) in paragraphs(text) {
        let plain = without_code(&paragraph);
        if PEOPLE.is_match(&plain) {
            add(line, "people", &plain);
        }
        if THE_SAME.is_match(&plain) {
            add(line, "the-same", &plain);
        }
        if plain.trim_start().starts_with('|') {
            for cell in plain.split('|').filter(|cell| INTERVAL.find_iter(cell).count() > 1) {
                add(line, "intervals", cell.trim());
            }
            continue;
        }
        for sentence in sentences(&plain).filter(|sentence| words(sentence) > LONGEST_SENTENCE) {
            add(line, "long-sentence", &format!("{} words: {sentence}", words(sentence)));
        }
    }
    found
}

/// Paragraphs, list items and table rows of a page, each with its first line, code blocks left out.
pub fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            (fenced, open) = (!fenced, false);
            continue;
        }
        let code = fenced || line.starts_with("    ") && !open;
        if code || trimmed.is_empty() {
            open = false;
            continue;
        }
        let item = ["- ", "* ", "|", "#", "> "].iter().any(|mark| trimmed.starts_with(mark))
            || trimmed.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        match found.last_mut().filter(|_| open && !item) {
            Some((_, paragraph)) => {
                paragraph.push(' ');
                paragraph.push_str(trimmed);
            }
            None => found.push((at + 1, trimmed.to_string())),
        }
        open = !trimmed.starts_with('|') && !trimmed.starts_with('#');
    }
    found
}

/// The sentences of a paragraph. A full stop inside a number, a name of a file or an abbreviation ends none.
pub fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    let mut cuts: Vec<(usize, usize)> =
        SENTENCE_END.find_iter(paragraph).map(|cut| (cut.start() + 1, cut.end())).collect();
    cuts.push((paragraph.len(), paragraph.len()));
    let parts: Vec<&str> = cuts
        .into_iter()
        .map(|(upto, next)| {
            let part = &paragraph[from..upto.max(from)];
            from = next;
            part
        })
        .collect();
    parts.into_iter()
}

/// Number of words: runs of characters between spaces that have a letter.
pub fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count()
}

/// Uses of the names of types in the product.
#[derive(Clone, Debug, Default)]
pub struct TypeNames {
    /// Places of each name.
    pub places: BTreeMap<String, Vec<String>>,
}

impl TypeNames {
    /// The names of all structs, enums, traits and aliases in the product, tests left out.
    ///
    /// # Errors
    /// [`io::Error`] where a file cannot be read.
    pub fn read() -> io::Result<Self> {
        let mut names = Self::default();
        for room in ROOMS.iter().filter(|room| **room != "xtask") {
            for path in files(&root().join(room), "rs")? {
                if !path.components().any(|part| part.as_os_str() == "src") {
                    continue;
                }
                let text = fs::read_to_string(&path)?;
                for (at, line) in product(&text).lines().enumerate() {
                    if let Some(name) = DEFINITION.captures(line) {
                        names.places.entry(name[1].to_string()).or_default().push(place(&path, at + 1));
                    }
                }
            }
        }
        Ok(names)
    }

    /// Names with more than one definition.
    pub fn reused(&self) -> impl Iterator<Item = (&str, &[String])> {
        let all = self.places.iter().map(|(name, places)| (name.as_str(), places.as_slice()));
        all.filter(|(_, places)| places.len() > 1)
    }

    /// Share of names with more than one definition, in percent.
    pub fn reused_percent(&self) -> f64 {
        100.0 * self.reused().count() as f64 / self.places.len().max(1) as f64
    }
}

/// Figures of the source that have no bound of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Lines of Rust outside tests and benchmarks.
    pub lines: usize,
    /// Of these, lines that are doc comments.
    pub doc_lines: usize,
    /// Of these, lines that are remarks inside the code.
    pub inline_lines: usize,
    /// Examples in doc comments that the test run compiles.
    pub doctests: usize,
}

impl Figures {
    /// Counts the product.
    ///
    /// # Errors
    /// [`io::Error`] where a file cannot be read.
    pub fn read() -> io::Result<Self> {
        let mut figures = Self::default();
        for room in ROOMS.iter().filter(|room| **room != "xtask") {
            for path in files(&root().join(room), "rs")? {
                if path.components().any(|part| part.as_os_str() == "src") {
                    figures.add(&fs::read_to_string(&path)?);
                }
            }
        }
        Ok(figures)
    }

    fn add(&mut self, source: &str) {
        let mut fenced = false;
        for line in source.lines().map(str::trim_start) {
            self.lines += 1;
            let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            self.doc_lines += usize::from(doc.is_some());
            self.inline_lines += usize::from(doc.is_none() && line.starts_with("//"));
            if let Some(mark) = doc.and_then(|text| text.trim().strip_prefix("```")) {
                fenced = !fenced;
                self.doctests += usize::from(fenced && !mark.contains("text") && !mark.contains("ignore"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_finds_its_example() {
        let examples = [
            ("/// The same on another type.\n", "the-same"),
            ("/// Jobs whose size is fixed.\n", "people"),
            ("/// Its name in the trace.\n", "pronoun-first"),
            ("/// Where it runs from now on.\n", "question-first"),
            ("/// Whether it may be given to jobs.\n", "pronoun-second"),
            ("/// Most they can use.\n", "pronoun-second"),
            ("/// The job.\n", "restates"),
        ];
        for (text, rule) in examples {
            let found = of_source(Path::new("a.rs"), text);
            assert!(found.iter().any(|offence| offence.rule == rule), "{text} {found:?}");
        }
        let good =
            "/// Node that the replica occupies.\npub node: NodeId,\n// A later event would find the job gone.\n";
        assert!(of_source(Path::new("a.rs"), good).is_empty());
    }

    #[test]
    fn sentences_and_cells_of_guides_are_held_to_their_bounds() {
        let long = format!("{}.", vec!["word"; 41].join(" "));
        assert_eq!(of_guide(Path::new("a.md"), &long)[0].rule, "long-sentence");
        let cell = "| a | -1 [-2, -1], -3 [-4, -2] |";
        assert_eq!(of_guide(Path::new("a.md"), cell)[0].rule, "intervals");
        assert!(of_guide(Path::new("a.md"), "| a | -1 [-2, -1] |\n\n    code whose lines do not count\n").is_empty());
    }
}
