//! Scheduling policies, trained policies that ship with the program, and placement strategies.

use goodput_agents::compose;
use goodput_agents::placement::fractional::strategy;
use goodput_agents::zoo::{self, FORECASTERS, ZOO};
use goodput_console::{Cell, CommandError, Listing};

/// Listing of `goodput list policies`.
pub fn policies() -> Listing {
    let mut rows = Listing::new(&[
        "policy",
        "needs",
        "as_published",
        "preemptive",
        "elastic",
        "heterogeneous",
        "replica",
        "about",
        "source",
    ])
    .brief(&["policy", "needs", "elastic", "about"]);
    for policy in compose::policies() {
        let yes = |holds: bool| Cell::from(if holds { "yes" } else { "no" });
        rows.push(vec![
            policy.name.into(),
            policy.needs().to_string().into(),
            policy.information().to_string().into(),
            yes(policy.traits.preemptive),
            yes(policy.traits.elastic),
            yes(policy.traits.heterogeneous),
            yes(policy.replica.is_some()),
            policy.about.into(),
            policy.source.into(),
        ]);
    }
    rows
}

/// Listing of `goodput list policies --parameters`.
pub fn parameters() -> Listing {
    let mut rows = Listing::new(&["policy", "parameter", "default", "unit", "values", "about", "source"]).brief(&[
        "policy",
        "parameter",
        "default",
        "unit",
        "values",
    ]);
    for policy in compose::policies() {
        for parameter in policy.constructor.parameters() {
            rows.push(vec![
                policy.name.into(),
                parameter.name.into(),
                compose::value_text(&parameter.default).into(),
                parameter.unit.into(),
                parameter.expected.to_string().into(),
                parameter.about.into(),
                parameter.source.into(),
            ]);
        }
    }
    rows
}

/// Listing of `goodput list zoo`.
///
/// # Errors
/// A shipped bundle that cannot be read.
pub fn zoo() -> Result<Listing, CommandError> {
    let mut rows = Listing::new(&["policy", "kind", "information", "about"]);
    for entry in ZOO {
        let bundle = zoo::load(entry.name).map_err(CommandError::input)?;
        let name = format!("{}{}", zoo::PREFIX, entry.name);
        rows.push(vec![name.into(), bundle.kind().into(), bundle.card.information.into(), entry.about.into()]);
    }
    for entry in FORECASTERS {
        let name = format!("{}{}", zoo::PREFIX, entry.name);
        rows.push(vec![name.into(), "forecaster".into(), Cell::Missing, entry.about.into()]);
    }
    Ok(rows)
}

/// Listing of `goodput list placements`.
pub fn placements() -> Listing {
    let mut rows = Listing::new(&["placement", "about", "source"]).brief(&["placement", "about"]);
    for placement in strategy::STRATEGIES {
        rows.push(vec![placement.name.into(), placement.about.into(), placement.source.into()]);
    }
    rows
}
