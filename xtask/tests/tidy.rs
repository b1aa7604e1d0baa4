//! The source keeps the rules of plain language, and a type name means one thing.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use xtask::tidy::{TypeNames, offences};

/// Most type names, in percent, that two places of the workspace define.
const REUSED_PERCENT: f64 = 3.0;

#[test]
fn comments_and_guides_keep_the_rules_of_language() {
    let found = offences().unwrap();
    let listed: Vec<String> = found.iter().take(40).map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} places break a rule, for example:\n{}", found.len(), listed.join("\n"));
}

#[test]
fn type_names_mean_one_thing() {
    let names = TypeNames::read().unwrap();
    let percent = names.reused_percent();
    let listed: Vec<String> =
        names.reused().map(|(name, places)| format!("{name} is defined at {}", places.join(", "))).collect();
    assert!(percent <= REUSED_PERCENT, "{percent:.1} % of type names are reused:\n{}", listed.join("\n"));
}
