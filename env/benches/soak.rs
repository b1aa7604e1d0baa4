//! Soak test: ten million events of random runs with all features enabled, with all conservation
//! rules checked at each decision. Run with `cargo xtask bench soak`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

fn main() {
    let start = Instant::now();
    let tally = support::soak::storms(10_000_000);
    println!("{tally:?} in {:.0} s", start.elapsed().as_secs_f64());
}
