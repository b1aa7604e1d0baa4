//! Provenance of figures in pages of results: the table at the top of a page, and the command of
//! each section that has figures.

use std::sync::LazyLock;

use regex::Regex;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is constant")
}

/// A command line that a reader can type: of the program, of cargo, or of one of either's variables.
static COMMAND: LazyLock<Regex> = LazyLock::new(|| {
    let verbs = "train|eval|reproduce|federate|sweep|advise|forecast|data|env|sim|explain|export|live|list";
    let tasks = "run|xtask|bench|nextest|test|check|build";
    pattern(&format!(r"(?m)(^|[`(\s])([A-Z_]+=\S+ )*(goodput ({verbs})|cargo ({tasks})) ?\S"))
});

/// A measured value in prose: a number and its unit.
static VALUE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d[\d,.]* (%|s|ms|us|min|h|points|MB|GB)(\W|$)"));

/// Code, link targets, HTML comments and the level of intervals, which are no figures.
static NO_FIGURES: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->|\b95 %"));

/// Words by which a section, or the first table of a page, says that figures cannot be made again.
const NO_COMMAND: &str = "No command";

/// Titles of sections that restate the figures of other sections.
const RESTATING: [&str; 2] = ["Summary", "Reading"];

/// Whether the first table of a page says when the figures were recorded and by which commands.
pub fn has_origin(text: &str) -> bool {
    let row = |name: &str| first_table(text).find(|line| line.starts_with(name));
    let recorded = row("| Recorded |").is_some_and(|line| {
        // Tables of one page may have commits of their own.
        line.contains("the commit of each table") || line.contains("commit") && line.contains("20")
    });
    recorded && row("| Command").is_some()
}

/// Sections of a page that have figures and no command, each with its line. A section inherits the
/// command of the section around it, and that of the page's first table where this table names one.
pub fn sections_without_command(text: &str) -> Vec<(usize, String)> {
    let names = |text: &str| COMMAND.is_match(text) || text.contains(NO_COMMAND);
    let of_page = first_table(text).any(|line| line.starts_with("| Command") && names(line));
    let origin = first_table(text).collect::<Vec<_>>().join("\n");
    let mut around: Vec<(usize, bool)> = Vec::new();
    let mut without = Vec::new();
    for Section { line, depth, title, body } in sections(text) {
        while around.last().is_some_and(|(outer, _)| *outer >= depth) {
            around.pop();
        }
        let named = names(&body);
        // A command at the top of a page is one of many there, unless the first table has it.
        let inherited = of_page || around.iter().any(|(outer, named)| *outer > 1 && *named);
        around.push((depth, named));
        if !named && !inherited && !RESTATING.contains(&title.as_str()) && has_figures(&body.replace(&origin, "")) {
            without.push((line, title));
        }
    }
    without
}

/// Whether a text has a table with numbers, or a number with a unit.
fn has_figures(text: &str) -> bool {
    let plain = NO_FIGURES.replace_all(text, " ");
    let row = |line: &str| line.starts_with('|') && line.contains(|letter: char| letter.is_ascii_digit());
    plain.lines().any(row) || plain.lines().filter(|line| !line.starts_with("    ")).any(|line| VALUE.is_match(line))
}

fn first_table(text: &str) -> impl Iterator<Item = &str> {
    text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'))
}

/// A heading and the text up to the next heading.
struct Section {
    line: usize,
    depth: usize,
    title: String,
    body: String,
}

fn sections(text: &str) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        let depth = line.bytes().take_while(|byte| *byte == b'#').count();
        if depth > 0 && !fenced {
            let title = line[depth..].trim().to_string();
            found.push(Section { line: at + 1, depth, title, body: String::new() });
        } else if let Some(section) = found.last_mut() {
            section.body.push_str(line);
            section.body.push('\n');
        }
    }
    found
}
