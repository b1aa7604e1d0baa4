//! Time of Sia's program with the columns that prices leave, beside branch and bound over all columns.
//! Run with `cargo xtask bench sia_program`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use goodput_agents::heuristic::sia::program::{SiaColumn, WITHOUT, choose, total_cost};
use goodput_env::cluster::TypeId;
use goodput_env::seed::{Stream, rng};
use rand::RngExt;

/// Programs of each size.
const PROGRAMS: u32 = 5;

/// Jobs of six applications on `kinds` types. Jobs of one application differ little in cost, as in Sia.
fn program(seed: u64, jobs: usize, kinds: u16) -> Vec<Vec<SiaColumn>> {
    let mut random = rng(seed, Stream::Workload);
    let mut kind = || (random.random_range(1.0..4.0), random.random_range(0.4..0.9));
    let applications: Vec<Vec<(f64, f64)>> = (0..6).map(|_| (0..kinds).map(|_| kind()).collect()).collect();
    let job = |at: usize| {
        let of = &applications[random.random_range(0..applications.len())];
        let most = 1 << random.random_range(1..6);
        let order = 1.0 + 1e-6 * at as f64 / jobs as f64;
        let sizes = [1_u32, 2, 4, 8, 16, 32].into_iter().filter(|&gpus| gpus <= most);
        let column = |(gpus, (at, (fast, scaling))): (u32, (usize, &(f64, f64)))| {
            let utility = fast * f64::from(gpus).powf(*scaling);
            SiaColumn { kind: TypeId::at(at), gpus, cost: utility.powf(-0.5) * order }
        };
        sizes.flat_map(|gpus| of.iter().enumerate().map(move |of| (gpus, of))).map(column).collect()
    };
    (0..jobs).map(job).collect()
}

fn main() {
    println!(
        "{:>6} {:>12} {:>12} {:>14} {:>10} {:>16}",
        "jobs", "accelerators", "by prices", "all columns", "ratio", "less cost"
    );
    for (jobs, capacity) in
        [(20, &[64][..]), (160, &[256]), (160, &[1000]), (640, &[1000]), (60, &[24, 16, 24]), (320, &[400, 300, 300])]
    {
        let (mut less, mut all, mut difference) = (0.0, 0.0, 0.0_f64);
        for seed in 0..PROGRAMS {
            let program = program(u64::from(seed), jobs, capacity.len() as u16);
            let solve = |gap: f64| {
                let start = Instant::now();
                let choice = choose(&program, capacity, WITHOUT, gap);
                (start.elapsed().as_secs_f64() * 1e3, total_cost(&program, &choice, WITHOUT))
            };
            // With a gap, however small, the solver sees every column.
            let ((less_ms, least), (all_ms, other)) = (solve(0.0), solve(1e-12));
            (less, all) = (less + less_ms, all + all_ms);
            if (other - least).abs() > difference.abs() {
                difference = other - least;
            }
        }
        let each = f64::from(PROGRAMS);
        println!(
            "{jobs:>6} {:>12} {:>9.2} ms {:>11.1} ms {:>10.0} {difference:>16.1e}",
            capacity.iter().sum::<u32>(),
            less / each,
            all / each,
            all / less
        );
    }
}
