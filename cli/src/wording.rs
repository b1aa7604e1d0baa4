//! Messages of the TOML reader in the words of a configuration file, with the nearest known name.

/// Longest list of known names that a message repeats.
const SHORT_LIST: usize = 8;

/// Message of a reader, reworded: Rust types become kinds of values, and an unknown name gets the
/// nearest known one.
pub fn reword(message: &str) -> String {
    let message = message.trim_end();
    let message = unknown_name(message).unwrap_or_else(|| message.to_owned());
    if message.starts_with("wanted exactly 1 element") {
        return "expected exactly one of the tables that are possible here".into();
    }
    let kinds = [
        ("expected a nonzero usize", "expected a whole number above 0"),
        ("expected a nonzero u32", "expected a whole number above 0"),
        ("expected a nonzero u64", "expected a whole number above 0"),
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected u8", "expected a whole number, 0 or more"),
        ("expected u16", "expected a whole number, 0 or more"),
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected i64", "expected a whole number"),
        ("expected i32", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("expected f32", "expected a number"),
        ("expected a boolean", "expected true or false"),
        ("expected a string", "expected text in quotes"),
    ];
    kinds.iter().fold(message, |text, (rust, plain)| text.replace(rust, plain))
}

/// Reworded message about an unknown key or value; nothing for another message.
fn unknown_name(message: &str) -> Option<String> {
    let (kind, rest) = [("unknown field `", "key"), ("unknown variant `", "value")]
        .iter()
        .find_map(|(start, kind)| Some((*kind, message.strip_prefix(start)?)))?;
    let (name, rest) = rest.split_once('`')?;
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let mut text = format!("unknown {kind} `{name}`");
    if let Some(near) = nearest(name, &known) {
        text.push_str(&format!("; did you mean `{near}`?"));
    }
    let listed = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if !known.is_empty() && (known.len() <= SHORT_LIST || !text.contains("did you mean")) {
        text.push_str(&format!(" Known here: {listed}"));
    }
    Some(text)
}

/// Known name that differs from `name` by the fewest letters, if it differs by at most a third of them.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|known| (distance(name, known), *known)).min()?;
    let most = name.chars().count().max(3) / 3;
    (near.0 <= most).then_some(near.1)
}

/// Number of letters to insert, remove or replace between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        // `diagonal` is the distance of both words without their last letters.
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_gets_the_nearest_known_one() {
        let message = "unknown field `learningrate`, expected one of `net`, `learning_rate`";
        let text = "unknown key `learningrate`; did you mean `learning_rate`? Known here: `net`, `learning_rate`";
        assert_eq!(reword(message), text);
        assert_eq!(nearest("fifoo", &["fifo", "srtf"]), Some("fifo"));
        assert_eq!(nearest("nobody", &["fifo", "srtf"]), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn types_of_rust_become_kinds_of_values() {
        let message = "invalid type: string \"x\", expected usize";
        assert_eq!(reword(message), "invalid type: string \"x\", expected a whole number, 0 or more");
        assert_eq!(reword("missing field `name`\n"), "missing field `name`");
    }
}
