//! Nearest known name to an unknown one, for messages.

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
        assert_eq!(nearest("fifoo", &["fifo", "srtf"]), Some("fifo"));
        assert_eq!(nearest("nobody", &["fifo", "srtf"]), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
