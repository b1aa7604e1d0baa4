//! Cost of faults and savings by checkpoints: the tables of `docs/src/results/faults.md`. Run with
//! `cargo xtask bench faults`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[path = "../tests/common/faults.rs"]
mod faults;

use faults::{HOURLY, MTBF_SECS, WRITE_SECS, busy, sweep};
use goodput_env::model::Interval;
use goodput_env::model::checkpoint::{waste, young};

fn main() {
    let best = young(WRITE_SECS, MTBF_SECS);
    println!("{:>10} {:>8} {:>8} {:>8}", "interval_s", "/ Young", "ETTR", "formula");
    for (interval, ettr) in sweep() {
        let formula = 1.0 - waste(interval, WRITE_SECS, MTBF_SECS, 30.0);
        println!("{interval:>10.0} {:>8.2} {ettr:>8.4} {formula:>8.4}", interval / best);
    }
    println!(
        "\n{:>8} {:>10} {:>8} {:>14} {:>12} {:>12}",
        "mtbf_h", "interval", "ETTR", "lost_gpu_hours", "checkpoints", "mean_jct_h"
    );
    for hours in [f64::INFINITY, 6000.0, 2000.0, 600.0, 200.0, 60.0] {
        let intervals = [
            ("hourly", HOURLY),
            ("young", Interval::Young),
            ("daly", Interval::Daly),
            ("adaptive", Interval::Adaptive),
        ];
        for (name, interval) in intervals {
            let of = |metric| busy(metric, hours, interval);
            println!(
                "{hours:>8} {name:>10} {:>8.4} {:>14.0} {:>12.4} {:>12.2}",
                of("ettr"),
                of("lost_gpu_hours"),
                of("checkpoint_share"),
                of("jct_mean_secs") / 3600.0
            );
        }
    }
}
