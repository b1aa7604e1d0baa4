//! Shortest job first of Gavel: a case worked by hand, the sequence of linear programs, and its place among policies.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::{fixed, jcts};
use goodput_agents::compose::by_name;
use goodput_agents::heuristic::gavel::instance::{GavelInstance, GavelJob};
use goodput_agents::heuristic::gavel::program::ShareProgram;
use goodput_agents::heuristic::gavel::{objectives, shortest_first};
use goodput_env::seed::{Stream, rng};
use rand::RngExt;

/// One fast and one slow accelerator. The first job takes 5 s on the fast one, which the second would need for
/// 10 s; that one gets the slow accelerator, and the third job nothing.
#[test]
fn the_shortest_job_has_the_fastest_type() {
    let jobs = [10.0, 30.0, 50.0].map(|steps| GavelJob::new(1, steps));
    let rates = [[2.0, 1.0], [3.0, 1.0], [1.0, 1.0]].map(|rates| rates.map(Some).to_vec());
    let instance = GavelInstance::new(vec![1, 1], jobs.to_vec(), rates.to_vec());
    let shares = shortest_first(&instance);
    assert_eq!([shares.row(0), shares.row(1), shares.row(2)], [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]);
}

/// A job of two accelerators has all of the fast type for half of its time, and the rest of its time on the
/// slow one.
#[test]
fn a_job_fills_its_time_from_the_fastest_type_on() {
    let jobs = vec![GavelJob::new(1, 1.0), GavelJob::new(2, 100.0)];
    let rates = vec![vec![Some(4.0), Some(1.0)], vec![Some(4.0), Some(1.0)]];
    let instance = GavelInstance::new(vec![2, 2], jobs, rates);
    let shares = shortest_first(&instance);
    assert_eq!([shares.row(0), shares.row(1)], [[1.0, 0.0], [0.5, 0.5]]);
}

/// Shortest job by linear programs: the largest rate of each job that is not decided yet, with the rates of those
/// that are. Returns jobs and rates in the order of their times.
fn by_programs(instance: &GavelInstance) -> Vec<(usize, f64)> {
    let mut decided: Vec<(usize, f64)> = Vec::new();
    while decided.len() < instance.jobs.len() {
        let best = |job: usize| {
            let mut program = ShareProgram::new(instance);
            for &(before, rate) in &decided {
                program.at_most(program.rate(before, -1.0), -rate * (1.0 - 1e-9));
            }
            program.add_cost(&program.rate(job, -1.0));
            let solution = program.minimise().unwrap();
            solution.sum(&program.rate(job, 1.0))
        };
        let open = (0..instance.jobs.len()).filter(|job| !decided.iter().any(|(before, _)| before == job));
        let rates = open.map(|job| (job, best(job).max(0.0)));
        let secs = |&(job, rate): &(usize, f64)| instance.jobs[job].steps_left / rate;
        decided.push(rates.min_by(|one, other| secs(one).total_cmp(&secs(other))).unwrap());
    }
    decided
}

#[test]
fn shares_are_those_of_one_program_after_another() {
    for seed in 0..40 {
        let mut rng = rng(seed, Stream::Workload);
        let (kinds, count) = (rng.random_range(1..4), rng.random_range(1..6));
        let counts: Vec<u32> = (0..kinds).map(|_| rng.random_range(3..6)).collect();
        let jobs: Vec<GavelJob> =
            (0..count).map(|_| GavelJob::new(rng.random_range(1..4), 10.0 + 100.0 * rng.random::<f64>())).collect();
        let rates = (0..count).map(|_| (0..kinds).map(|_| Some(0.5 + rng.random::<f64>())).collect()).collect();
        let instance = GavelInstance::new(counts, jobs, rates);
        let shares = shortest_first(&instance);
        assert!(shares.violation(&instance) < 1e-9);
        for (turn, (job, rate)) in by_programs(&instance).into_iter().enumerate() {
            let ours = shares.rate(&instance, job);
            assert!((ours - rate).abs() < 1e-5, "seed {seed}, turn {turn}, job {job}: {ours} is not {rate}");
        }
    }
}

/// The least sum of times as a static program gives long jobs the larger shares: in proportion to the square root
/// of their work.
#[test]
fn the_static_program_favours_long_jobs() {
    let jobs = vec![GavelJob::new(1, 100.0), GavelJob::new(1, 900.0)];
    let instance = GavelInstance::new(vec![1], jobs, vec![vec![Some(1.0)], vec![Some(1.0)]]);
    let shares = objectives::min_jct(&instance).unwrap();
    assert!((shares.row(0)[0] - 0.25).abs() < 1e-3 && (shares.row(1)[0] - 0.75).abs() < 1e-3, "{shares:?}");
    let shares = shortest_first(&instance);
    assert_eq!([shares.row(0), shares.row(1)], [[1.0], [0.0]]);
}

/// A long job and four short ones on one accelerator: the short ones are done first.
#[test]
fn short_jobs_do_not_wait_for_long_ones() {
    let jobs = || {
        let mut jobs = vec![fixed("long", 1, 20_000, 0)];
        jobs.extend((0..4).map(|at| fixed(&format!("short{at}"), 1, 1_000, 0)));
        jobs
    };
    let mean = |name: &str| {
        let jcts = jcts(&mut *by_name(name, 0).unwrap(), 1, jobs());
        jcts.values().sum::<f64>() / jcts.len() as f64
    };
    let (shortest, fixed_shares) = (mean("gavel-sjf"), mean("gavel-min-jct"));
    assert!(shortest < 0.8 * fixed_shares, "{shortest} s by the shortest, {fixed_shares} s by fixed shares");
}
