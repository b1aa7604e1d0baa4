//! Nearest known name to a misspelt one, for messages.

/// Known name that is closest to `name`, letters in lower case. `None` where no known name is close.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    // Insertions, deletions, replacements and swaps of neighbours.
    let distance = |known: &str| strsim::osa_distance(&lower, &known.to_lowercase());
    let (letters, nearest) = known.into_iter().map(|known| (distance(known), known)).min()?;
    (letters <= 1 + lower.chars().count() / 4).then_some(nearest)
}

/// Question after an unknown name in a message: ` (did you mean "fifo"?)`. Empty where no other known name is close.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let others = known.into_iter().filter(|known| *known != name);
    nearest(name, others).map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_names_are_suggested() {
        assert_eq!(nearest("jbos", ["hours", "jobs"]), Some("jobs"));
        assert_eq!(nearest("learningrate", ["clip", "learning_rate"]), Some("learning_rate"));
        assert_eq!(nearest("A100", ["a100", "t4"]), Some("a100"));
        assert_eq!(nearest("fifoo", ["fifo", "srtf"]), Some("fifo"));
        assert_eq!(nearest("zebra", ["hours", "jobs"]), None);
        assert_eq!(nearest("any", []), None);
        assert_eq!(did_you_mean("srft", ["fifo", "srtf"]), " (did you mean \"srtf\"?)");
        // A name that is known, and wrong for another reason, is not its own remedy.
        assert_eq!(did_you_mean("srtf", ["fifo", "srtf"]), "");
    }
}
