//! Long random runs with everything on, every rule checked at every decision. `cargo xtask bench
//! soak` goes on to ten million events.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[test]
fn a_hundred_thousand_events_keep_every_rule() {
    let tally = crate::support::soak::storms(100_000);
    assert!(tally.events >= 100_000 && tally.faults > 200 && tally.failed > 10, "{tally:?}");
    assert!(tally.lent > 100 && tally.replicas > 100 && tally.answered > 100, "{tally:?}");
}
