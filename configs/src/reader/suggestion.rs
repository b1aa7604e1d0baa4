//! Suggestions for misspelt keys and names.

/// Known name that is closest to the unknown one in a message of serde, such as "unknown field
/// `jbos`, expected one of `jobs`, `seed`". `None` where no known name is close.
pub(super) fn suggestion(message: &str) -> Option<&str> {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    let nearest = quoted.map(|known| (distance(unknown, known), known)).min()?;
    let close = nearest.0 <= 1 + unknown.chars().count() / 4;
    close.then_some(nearest.1)
}

/// Fewest insertions, deletions, replacements and swaps of neighbours between two words: the
/// optimal string alignment distance, a restricted Damerau-Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                let swapped: usize = before[j - 2];
                best = best.min(swapped + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_names_are_suggested() {
        assert_eq!(suggestion("unknown field `jbos`, expected one of `hours`, `jobs`"), Some("jobs"));
        assert_eq!(
            suggestion("unknown field `learningrate`, expected one of `clip`, `learning_rate`"),
            Some("learning_rate")
        );
        assert_eq!(suggestion("unknown variant `profilled`, expected `oracle` or `profiled`"), Some("profiled"));
        assert_eq!(suggestion("unknown field `zebra`, expected one of `hours`, `jobs`"), None);
        assert_eq!(suggestion("missing field `name`"), None);
        assert_eq!([distance("", "ab"), distance("ab", "ba"), distance("kitten", "sitting")], [2, 1, 3]);
    }
}
