//! Time of the openb placement experiment, one core: 1,213 nodes, 8,152 pods inflated to 130 % of
//! 6,212 accelerators. Needs the public data in ../shared. Run with `cargo xtask bench placement`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::PathBuf;
use std::time::Instant;

use goodput_agents::placement::fractional::TieBreak;
use goodput_agents::placement::fractional::strategy::{STRATEGIES, by_name};
use goodput_eval::reproduce::fgd::Openb;

const RUNS: u64 = 10;

fn main() {
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let trace = Openb::read(&shared, "default").expect("the trace");
    println!("{:>16} {:>12} {:>14} {:>12}", "strategy", "ms a run", "us a request", "allocated %");
    for listed in STRATEGIES {
        let start = Instant::now();
        let percent = |seed| {
            let strategy = by_name(listed.name, &trace.typical).expect("a listed strategy");
            trace.allocated_percent(strategy, TieBreak::FixedRandom, seed)
        };
        let sum: f64 = (0..RUNS).map(percent).sum();
        let secs = start.elapsed().as_secs_f64() / RUNS as f64;
        let requests = trace.arrivals(0).len() as f64;
        println!(
            "{:>16} {:>12.2} {:>14.2} {:>12.2}",
            listed.name,
            secs * 1e3,
            secs * 1e6 / requests,
            sum / RUNS as f64
        );
    }
}
