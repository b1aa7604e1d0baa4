//! Gavel's objectives, each one convex program (Gavel, section 4 and its appendix).
//!
//! Speeds are put on a common scale before they meet the solver: steps per second of one job may be a thousand times those of
//! another, and a solver's tolerances know nothing of that.

use super::instance::{Allocation, Instance, Job};
use super::isolated::isolated_rate;
use super::program::{Program, Terms};

/// Max-min fairness, or least attained service for accelerators that differ: the smallest speed, relative to the job's speed with
/// an equal share of everything and to its weight and times its accelerators, is as large as possible.
pub fn max_min(instance: &Instance) -> Option<Allocation> {
    let mut program = Program::new(instance);
    let smallest = program.column(-1.0);
    for job in 0..instance.jobs.len() {
        let mut terms = program.rate(job, -fair_scale(instance, job));
        terms.push((smallest, 1.0));
        program.at_most(terms, 0.0);
    }
    solve(&program)
}

/// What a job's speed is multiplied by before it is compared with others': accelerators over weight and proportional speed.
pub fn fair_scale(instance: &Instance, job: usize) -> f64 {
    let Job { gpus, weight, .. } = instance.jobs[job];
    f64::from(gpus) / (weight * instance.proportional_rate(job))
}

/// Finish-time fairness (Themis): the largest ratio of a job's finish time to what it would be under isolated shares is as small
/// as possible. Finish time is age plus the time for what is left.
pub fn finish_time_fairness(instance: &Instance) -> Option<Allocation> {
    let mut program = Program::new(instance);
    let largest = program.column(1.0);
    for (job, spec) in instance.jobs.iter().enumerate() {
        let isolated = isolated_rate(instance, job);
        let alone = spec.isolated_secs + spec.steps_left / isolated;
        let time = relative_time(&mut program, job, isolated);
        let left = spec.steps_left / isolated / alone;
        program.at_most(vec![(time, left), (largest, -1.0)], -spec.age_secs / alone);
    }
    solve(&program)
}

/// The ratio whose largest value [`finish_time_fairness`] makes small.
pub fn finish_time_ratio(instance: &Instance, allocation: &Allocation, job: usize) -> f64 {
    let spec = &instance.jobs[job];
    let alone = spec.isolated_secs + spec.steps_left / isolated_rate(instance, job);
    (spec.age_secs + spec.steps_left / allocation.rate(instance, job)) / alone
}

/// Makespan: the time in which everything left can be done is as small as possible. With its reciprocal as the unknown this is
/// one linear program.
pub fn makespan(instance: &Instance) -> Option<Allocation> {
    let mut program = Program::new(instance);
    let pace = program.column(-1.0);
    let unit = time_unit(instance);
    for (job, spec) in instance.jobs.iter().enumerate() {
        let mut terms = program.rate(job, -unit / spec.steps_left);
        terms.push((pace, 1.0));
        program.at_most(terms, 0.0);
    }
    solve(&program)
}

/// Shares under which everything left is done within `secs`; `None` where there are none.
pub fn within(instance: &Instance, secs: f64) -> Option<Allocation> {
    let mut program = Program::new(instance);
    for (job, spec) in instance.jobs.iter().enumerate() {
        program.at_most(program.rate(job, -1.0), -spec.steps_left / secs);
    }
    solve(&program)
}

/// The time in which `allocation` does everything that is left, seconds.
pub fn makespan_secs(instance: &Instance, allocation: &Allocation) -> f64 {
    let times = instance.jobs.iter().enumerate().map(|(job, spec)| spec.steps_left / allocation.rate(instance, job));
    times.fold(0.0, f64::max)
}

/// Total completion time: the sum over jobs of the time for what is left is as small as possible.
pub fn min_jct(instance: &Instance) -> Option<Allocation> {
    let mut program = Program::new(instance);
    let unit = time_unit(instance);
    for (job, spec) in instance.jobs.iter().enumerate() {
        let scale = isolated_rate(instance, job);
        let time = relative_time(&mut program, job, scale);
        program.add_cost(&[(time, spec.steps_left / scale / unit)]);
    }
    solve(&program)
}

/// Throughput: the sum of all jobs' steps per second is as large as possible. Jobs with short steps win.
pub fn max_throughput(instance: &Instance) -> Option<Allocation> {
    max_throughput_per_cost(instance, &vec![1.0; instance.kinds()], &[])
}

/// Steps per unit of money: as [`max_throughput`], each type's speeds divided by its price. Jobs with a deadline (job, seconds from
/// now) finish by it; where not all of them can, deadlines are ignored altogether.
pub fn max_throughput_per_cost(instance: &Instance, prices: &[f64], deadlines: &[(usize, f64)]) -> Option<Allocation> {
    let mut program = Program::new(instance);
    let largest = (0..instance.jobs.len()).flat_map(|job| instance.rates(job).flatten()).fold(0.0, f64::max);
    for (at, row) in instance.rows.iter().enumerate() {
        for (kind, rates) in row.rates.iter().enumerate() {
            if let (Some([first, second]), Some(column)) = (rates, program.share(at, kind)) {
                program.add_cost(&[(column, -(first + second) / prices[kind] / largest)]);
            }
        }
    }
    let free = program.clone();
    for &(job, secs) in deadlines {
        program.at_most(program.rate(job, -secs / instance.jobs[job].steps_left), -1.0);
    }
    solve(&program).or_else(|| if deadlines.is_empty() { None } else { solve(&free) })
}

/// A column that is at least `scale` over the speed of `job`.
fn relative_time(program: &mut Program<'_>, job: usize, scale: f64) -> usize {
    let time = program.column(0.0);
    let rate: Terms = program.rate(job, 1.0 / scale);
    program.reciprocal(time, rate);
    time
}

/// A time of the order of the result, seconds.
fn time_unit(instance: &Instance) -> f64 {
    let times = instance.jobs.iter().enumerate().map(|(job, spec)| spec.steps_left / isolated_rate(instance, job));
    times.fold(f64::MIN_POSITIVE, f64::max)
}

fn solve(program: &Program<'_>) -> Option<Allocation> {
    Some(program.allocation(&program.minimise()?))
}
