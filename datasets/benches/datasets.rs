//! Cost of what stands before every simulation: profiles, step times, catalog, workloads.
//! Run with `cargo xtask bench datasets`.
#![allow(clippy::print_stdout)] // a benchmark is a table on stdout

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use goodput_datasets::catalog::Catalog;
use goodput_datasets::import::{pollux_profiles, step_times};
use goodput_datasets::synth::{DiurnalSynth, PolluxSynth, SynthConfig};
use goodput_datasets::{fit, inspect, read_jobs, read_workload};

const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");

fn main() {
    let path = |name: &str| Path::new(SHARED).join(name);
    let profiles = path("data/pollux/traces");
    let exact = path("reference/pollux/interpolated_step_times.parquet");
    let workload = path("data/pollux/workloads/workload-6.csv");
    let philly = path("data/philly/philly.csv");
    let text = include_str!("../catalog/applications.toml");
    let catalog = Catalog::shipped();

    println!("{:<58} {:>12}", "what", "mean_cpu_us");
    time("parse the shipped catalog", 500, || Catalog::parse(Path::new("c"), text).map(drop));
    time("read six profiles, raw", 50, || pollux_profiles::read(&profiles).map(drop));
    time("catalog from profiles", 50, || pollux_profiles::catalog(&profiles, None).map(drop));
    time("step times alone, all rows", 20, || step_times::read(&exact, |_| u32::MAX).map(drop));
    time("catalog from profiles and step times", 20, || pollux_profiles::catalog(&profiles, Some(&exact)).map(drop));
    let shipped = |name: &str| catalog.get(name).map_or(0, |application| application.limits.max);
    let rows = step_times::read(&exact, shipped).expect("readable");
    let thin = std::env::temp_dir().join(format!("goodput-bench-{}.parquet", std::process::id()));
    step_times::table(&rows).write_parquet(&thin).expect("the temporary directory can be written");
    time("catalog from profiles and thinned step times", 20, || {
        pollux_profiles::catalog(&profiles, Some(&thin)).map(drop)
    });
    println!("{:<58} {:>12}", "rows of thinned step times", rows.values().map(Vec::len).sum::<usize>());
    std::fs::remove_file(&thin).expect("it was written above");
    time("workload-6 (160 jobs)", 1000, || read_workload(&workload, catalog).map(drop));
    time("philly.csv (82,247 jobs) to rows", 10, || read_jobs(&philly).map(drop));
    time("philly.csv to a workload", 5, || read_workload(&philly, catalog).map(drop));
    time("fit the catalog", 3, || fit::fit_catalog(&profiles).map(drop));
    for config in [SynthConfig::Pollux(PolluxSynth::default()), SynthConfig::Diurnal(DiurnalSynth::default())] {
        let generator = config.build(catalog).expect("the defaults are valid");
        let mut seed = 0;
        time(&format!("generate {} (160 jobs)", config.name()), 5000, || {
            seed += 1;
            black_box(generator.generate(seed));
            Ok::<(), ()>(())
        });
    }
    let jobs = read_jobs(&philly).expect("readable").jobs;
    time("inspect philly", 5, || {
        black_box(inspect::summarise(&jobs, catalog, Some(2500)));
        Ok::<(), ()>(())
    });
    time("philly as Parquet in memory", 3, || {
        goodput_datasets::store::jobs::table(&jobs).to_parquet(Path::new("p")).map(drop)
    });
}

/// Prints the mean CPU time of several runs after a first one.
fn time<E: std::fmt::Debug>(what: &str, times: u32, mut run: impl FnMut() -> Result<(), E>) {
    if std::env::args().skip(1).any(|filter| !filter.starts_with('-') && !what.contains(&filter)) {
        return;
    }
    let mut run = || run().expect("the benchmark's inputs are valid");
    run();
    let began = Instant::now();
    let start = cpu_micros(began);
    for _ in 0..times {
        run();
    }
    println!("{what:<58} {:>12.1}", (cpu_micros(began) - start) / f64::from(times));
}

/// CPU time of this thread where the system tells (Linux; it counts in ticks of 4 ms), wall time
/// elsewhere.
fn cpu_micros(began: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanos.map_or_else(|| began.elapsed().as_secs_f64() * 1e6, |nanos| nanos / 1e3)
}
