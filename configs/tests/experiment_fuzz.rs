//! No experiment file makes the program panic: it parses and runs, or it is an error.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_configs::experiment::Experiment;
use proptest::prelude::*;

const SET_ENCODER: &str = include_str!("../experiment/set-encoder.toml");

/// Values that tend to break things.
const HOSTILE: [&str; 14] = [
    "0",
    "-1",
    "1e308",
    "nan",
    "inf",
    "-inf",
    "\"\"",
    "[]",
    "{}",
    "true",
    "18446744073709551615",
    "-9223372036854775808",
    "0.0",
    "'x'",
];

/// Kinds of mutation of a configuration text.
#[derive(Clone, Debug)]
enum Mutation {
    /// Another value for some key.
    Value(usize, usize),
    /// A byte replaced.
    Byte(usize, u8),
    /// Truncation after so many bytes.
    Truncate(usize),
    /// A line gone.
    Drop(usize),
    /// A line twice.
    Repeat(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = 0usize..4000;
    prop_oneof![
        4 => (at.clone(), 0usize..HOSTILE.len()).prop_map(|(at, value)| Mutation::Value(at, value)),
        2 => (at.clone(), 32u8..127).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        1 => at.clone().prop_map(Mutation::Truncate),
        1 => at.clone().prop_map(Mutation::Drop),
        1 => at.prop_map(Mutation::Repeat),
    ]
}

fn apply(text: String, mutation: &Mutation) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let keys: Vec<usize> =
        (0..lines.len()).filter(|&line| lines[line].contains('=') && !lines[line].starts_with('#')).collect();
    let with = |line: usize, new: &[String]| {
        let mut all: Vec<String> = lines.iter().map(|line| (*line).to_string()).collect();
        all.splice(line..=line, new.iter().cloned());
        all.join("\n")
    };
    match *mutation {
        _ if keys.is_empty() || text.is_empty() => text,
        Mutation::Value(at, value) => {
            let line = keys[at % keys.len()];
            let key = lines[line].split('=').next().unwrap_or_default();
            with(line, &[format!("{key}= {}", HOSTILE[value])])
        }
        Mutation::Byte(at, byte) => {
            let mut bytes = text.into_bytes();
            let index = at % bytes.len();
            bytes[index] = byte;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Mutation::Truncate(at) => String::from_utf8_lossy(&text.as_bytes()[..at % text.len()]).into_owned(),
        Mutation::Drop(at) => with(at % lines.len(), &[]),
        Mutation::Repeat(at) => {
            let line = lines[at % lines.len()].to_string();
            with(at % lines.len(), &[line.clone(), line])
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_experiment_file_panics(mutations in prop::collection::vec(mutation(), 1..4)) {
        let text = mutations.iter().fold(SET_ENCODER.to_string(), apply);
        if let Ok(experiment) = toml::from_str::<Experiment>(&text) {
            // Whether it can be run or not, finding out must not panic.
            let _ = experiment.setup().map_err(|error| error.to_string());
        }
    }
}
