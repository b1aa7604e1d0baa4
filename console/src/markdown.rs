//! Markdown as mdBook reads it: tables, text inside cells, and the anchors of headings.

/// Remark at the top of each generated page.
const GENERATED: &str = "<!-- `cargo xtask docs` writes this page from the program. Change the source instead. -->";

/// Beginning of a generated page: its title and an introduction.
pub fn head(title: &str, introduction: &str) -> String {
    format!("# {title}\n\n{GENERATED}\n\n{introduction}\n")
}

/// Table with these columns. Each row has as many cells, already in Markdown.
pub fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<&str> = cells.collect();
        format!("| {} |\n", cells.join(" | ").trim_end())
    };
    let mut text = line(&mut columns.iter().copied());
    text.push_str(&format!("|{}\n", "---|".repeat(columns.len())));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// Text for a cell or a paragraph: one line, with the characters that Markdown or HTML would read
/// as marks escaped outside code.
pub fn inline(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = text.split('`').enumerate().map(|(at, part)| {
        let part = part.replace('|', "\\|");
        // Every second part stands between backticks.
        if at % 2 == 1 { part } else { part.replace('<', "&lt;").replace('*', "\\*") }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Text as code inside a cell; nothing for empty text.
pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

/// Anchor that mdBook gives to a heading: lower case, hyphens for spaces, other punctuation left out.
pub fn anchor(heading: &str) -> String {
    let letters = heading.chars().filter_map(|letter| match letter {
        letter if letter.is_alphanumeric() || letter == '_' || letter == '-' => Some(letter.to_ascii_lowercase()),
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_escaped_outside_code() {
        assert_eq!(inline("a <b>\n  | `c|<d>` 2 * 3"), "a &lt;b> \\| `c\\|<d>` 2 \\* 3");
        assert_eq!(anchor("`[environment.faults]` of a run"), "environmentfaults-of-a-run");
        let rows = [vec!["1".to_string(), String::new()]];
        assert_eq!(table(&["a", "b"], &rows), "| a | b |\n|---|---|\n| 1 | |\n");
    }
}
