//! Lists as Slurm writes them: accelerators (`gpu:a100:8(IDX:0-7)`) and names of nodes (`n[1-3]`).

/// Type and number of accelerators in `gpu:a100:8(S:0-1),mps:a100:800`, `gres:gpu:4`, `gpu:2`.
pub(super) fn gres(text: &str) -> (String, u32) {
    let mut depth = 0;
    // Commas within brackets are part of a list of indices.
    let parts = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    let (mut name, mut total) = (String::new(), 0);
    for part in parts {
        let part = part.split('(').next().unwrap_or_default();
        let part = part.strip_prefix("gres:").or_else(|| part.strip_prefix("gres/")).unwrap_or(part);
        let words: Vec<&str> = part.split([':', '=']).collect();
        if words.first() != Some(&"gpu") {
            continue;
        }
        total += words.last().and_then(|word| word.parse().ok()).unwrap_or(u32::from(words.len() == 1));
        if let [_, kind, _] = words[..]
            && name.is_empty()
        {
            name = kind.into();
        }
    }
    (name, total)
}

/// The indices in `gpu:a100:3(IDX:0-1,5)`.
pub(super) fn indices(text: &str) -> Vec<String> {
    let list = text.split_once("IDX:").and_then(|(_, rest)| rest.split_once(')')).map_or("", |(list, _)| list);
    list.split(',').flat_map(range).collect()
}

/// The indices in `0-3,7`, and in `0-8:4` with a step, of tasks of an array; `%4` behind them is a limit.
pub(super) fn indices_of(text: &str) -> Vec<u32> {
    let list = text.split('%').next().unwrap_or_default().trim_matches(['[', ']']);
    let part = |part: &str| {
        let (span, step) = part.split_once(':').unwrap_or((part, "1"));
        let step = step.parse().unwrap_or(1).max(1);
        range(span).into_iter().filter_map(|index| index.parse().ok()).step_by(step).collect::<Vec<u32>>()
    };
    list.split(',').flat_map(part).collect()
}

/// `3-5` or `4`, with the zeros in front kept.
fn range(text: &str) -> Vec<String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse::<u32>(), last.parse::<u32>()) {
        // The bound keeps a damaged range from filling the memory.
        (Ok(from), Ok(to)) if to >= from && to - from < 100_000 => {
            (from..=to).map(|number| format!("{number:0width$}", width = first.len())).collect()
        }
        _ => Vec::new(),
    }
}

/// The names in `n[1-3,07],login,gpu2`.
pub(in crate::engine::slurm) fn hostlist(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([',', '[']).unwrap_or(rest.len());
        let (prefix, after) = rest.split_at(end);
        match after.strip_prefix('[').and_then(|after| after.split_once(']')) {
            Some((list, after)) => {
                names.extend(list.split(',').flat_map(range).map(|number| format!("{prefix}{number}")));
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            None => {
                names.extend((!prefix.is_empty()).then(|| prefix.to_string()));
                rest = after.strip_prefix(',').unwrap_or_default();
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_slurm_are_understood() {
        assert_eq!(hostlist("n[1-3,07],login,gpu2"), ["n1", "n2", "n3", "n07", "login", "gpu2"]);
        assert_eq!(hostlist(""), Vec::<String>::new());
        assert_eq!(indices_of("0-2,7%4"), [0, 1, 2, 7]);
        assert_eq!((indices_of("0-8:4"), indices_of("")), (vec![0, 4, 8], Vec::new()));
        assert_eq!(indices("gpu:a100:3(IDX:0-1,5)"), ["0", "1", "5"]);
        assert_eq!(indices("gpu:a100:3(IDX:N/A)"), Vec::<String>::new());
        for (text, expected) in [
            ("gpu:a100:8(S:0-1),mps:a100:800", ("a100", 8)),
            ("gpu:a100:2(IDX:0,3),gpu:a100:1(IDX:5),mps:a100:0(IDX:N/A)", ("a100", 3)),
            ("gres:gpu:4", ("", 4)),
            ("gpu", ("", 1)),
            ("mps:100", ("", 0)),
            ("gres/gpu=16", ("", 16)),
        ] {
            assert_eq!(gres(text), (expected.0.to_string(), expected.1), "{text}");
        }
    }
}
