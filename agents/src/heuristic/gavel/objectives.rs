//! Gavel's objectives, each one convex program (Gavel, section 4 and its appendix).
//!
//! Speeds are put on a common scale before they meet the solver: the steps per second of one job
//! may be a thousand times those of another, which a solver's tolerances do not allow for.

use super::instance::{GavelInstance, GavelJob, TimeShares};
use super::isolated::isolated_rate;
use super::program::{ColumnTerms, ShareProgram};

/// Max-min fairness, or least attained service for accelerators that differ. Maximises the smallest
/// speed, relative to the job's speed with an equal share of all accelerators and to its weight,
/// times its accelerators.
pub fn max_min(instance: &GavelInstance) -> Option<TimeShares> {
    let mut program = ShareProgram::new(instance);
    let smallest = program.column(-1.0);
    for job in 0..instance.jobs.len() {
        let mut terms = program.rate(job, -fair_scale(instance, job));
        terms.push((smallest, 1.0));
        program.at_most(terms, 0.0);
    }
    solve(&program)
}

/// Factor that makes speeds of jobs comparable: accelerators over weight and proportional speed.
pub fn fair_scale(instance: &GavelInstance, job: usize) -> f64 {
    let GavelJob { gpus, weight, .. } = instance.jobs[job];
    f64::from(gpus) / (weight * instance.proportional_rate(job))
}

/// Finish-time fairness (Themis): minimises the largest ratio of a job's finish time to its finish
/// time under isolated shares. Finish time is age plus the time for the steps left.
pub fn finish_time_fairness(instance: &GavelInstance) -> Option<TimeShares> {
    let mut program = ShareProgram::new(instance);
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

/// Finish-time ratio of `job`, the largest of which [`finish_time_fairness`] minimises.
pub fn finish_time_ratio(instance: &GavelInstance, allocation: &TimeShares, job: usize) -> f64 {
    let spec = &instance.jobs[job];
    let alone = spec.isolated_secs + spec.steps_left / isolated_rate(instance, job);
    (spec.age_secs + spec.steps_left / allocation.rate(instance, job)) / alone
}

/// Makespan: minimises the time in which all steps left can be done. With its reciprocal as the
/// unknown this is one linear program.
pub fn makespan(instance: &GavelInstance) -> Option<TimeShares> {
    let mut program = ShareProgram::new(instance);
    let pace = program.column(-1.0);
    let unit = time_unit(instance);
    for (job, spec) in instance.jobs.iter().enumerate() {
        let mut terms = program.rate(job, -unit / spec.steps_left);
        terms.push((pace, 1.0));
        program.at_most(terms, 0.0);
    }
    solve(&program)
}

/// Shares under which all steps left are done within `secs`; `None` where there are none.
pub fn within(instance: &GavelInstance, secs: f64) -> Option<TimeShares> {
    let mut program = ShareProgram::new(instance);
    for (job, spec) in instance.jobs.iter().enumerate() {
        program.at_most(program.rate(job, -1.0), -spec.steps_left / secs);
    }
    solve(&program)
}

/// Time in which `allocation` does all steps left, seconds.
pub fn makespan_secs(instance: &GavelInstance, allocation: &TimeShares) -> f64 {
    let times = instance.jobs.iter().enumerate().map(|(job, spec)| spec.steps_left / allocation.rate(instance, job));
    times.fold(0.0, f64::max)
}

/// Total completion time: minimises the sum over jobs of the time for the steps left.
pub fn min_jct(instance: &GavelInstance) -> Option<TimeShares> {
    let mut program = ShareProgram::new(instance);
    let unit = time_unit(instance);
    for (job, spec) in instance.jobs.iter().enumerate() {
        let scale = isolated_rate(instance, job);
        let time = relative_time(&mut program, job, scale);
        program.add_cost(&[(time, spec.steps_left / scale / unit)]);
    }
    solve(&program)
}

/// Throughput: maximises the sum of all jobs' steps per second, which favours jobs with short
/// steps.
pub fn max_throughput(instance: &GavelInstance) -> Option<TimeShares> {
    max_throughput_per_cost(instance, &vec![1.0; instance.kinds()], &[])
}

/// Throughput per cost: as [`max_throughput`], each type's speeds divided by its price. Jobs with a
/// deadline (job, seconds from now) finish by it; where not all of them can, deadlines are ignored
/// altogether.
pub fn max_throughput_per_cost(
    instance: &GavelInstance,
    prices: &[f64],
    deadlines: &[(usize, f64)],
) -> Option<TimeShares> {
    let mut program = ShareProgram::new(instance);
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

/// Efficiency of jobs alone: maximises the sum over jobs of their speed per expense, each relative to that on the job's
/// best type and times its accelerators. The objective lacks of its greatest value what the accelerators in use take
/// beyond what the jobs would take for the same steps on their best types, so no unit of steps counts more than another.
pub fn relative_efficiency(instance: &GavelInstance, expenses: &[f64]) -> Option<TimeShares> {
    let mut program = ShareProgram::new(instance);
    for (job, spec) in instance.jobs.iter().enumerate() {
        let per_expense: Vec<Option<f64>> =
            instance.rates(job).zip(expenses).map(|(rate, expense)| rate.map(|rate| rate / expense)).collect();
        let best = per_expense.iter().flatten().copied().fold(0.0, f64::max);
        for (kind, efficiency) in per_expense.into_iter().enumerate() {
            if let (Some(efficiency), Some(column)) = (efficiency.filter(|_| best > 0.0), program.share(job, kind)) {
                program.add_cost(&[(column, -f64::from(spec.gpus) * efficiency / best)]);
            }
        }
    }
    solve(&program)
}

/// Column that is at least `scale` over the speed of `job`.
fn relative_time(program: &mut ShareProgram<'_>, job: usize, scale: f64) -> usize {
    let time = program.column(0.0);
    let rate: ColumnTerms = program.rate(job, 1.0 / scale);
    program.reciprocal(time, rate);
    time
}

/// Time of the order of the result, seconds, as the unit of the program.
fn time_unit(instance: &GavelInstance) -> f64 {
    let times = instance.jobs.iter().enumerate().map(|(job, spec)| spec.steps_left / isolated_rate(instance, job));
    times.fold(f64::MIN_POSITIVE, f64::max)
}

fn solve(program: &ShareProgram<'_>) -> Option<TimeShares> {
    Some(program.allocation(&program.minimise()?))
}
