//! Max-min fairness by water-filling: once the worst-off jobs cannot gain any more, the others go
//! on rising (Gavel, section 4.3).
//!
//! Plain max-min fairness says nothing about jobs above the minimum, and may leave accelerators
//! idle. Here all levels rise together, each at the rate of its job's weight. A job that cannot
//! rise any further is frozen at its level, and the rest go on. Jobs belong to entities (tenants),
//! which share by their weights; inside an entity jobs share alike, or the oldest goes first.

use super::instance::{GavelInstance, TimeShares};
use super::program::{ColumnTerms, ShareProgram};

/// Division of an entity's share among its jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// Shared in proportion to the jobs' weights; a frozen job's part goes to the others.
    #[default]
    Fair,
    /// All to the first job that can still rise, in the order of the instance.
    Fifo,
}

/// Entity: a group of jobs that shares with other groups by weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Weight among entities.
    pub weight: f64,
    /// Division among the jobs.
    pub inside: Inside,
    /// Indices of the jobs, ascending.
    pub jobs: Vec<usize>,
}

/// Relative rise of a level for its job to count as able to rise (as in the artifact's bottleneck
/// search).
const SLACK: f64 = 1e-4;

/// Allocation by water-filling. Without entities each job is its own, with its own weight.
pub fn water_filling(instance: &GavelInstance, entities: &[Entity]) -> Option<TimeShares> {
    let jobs = instance.jobs.len();
    let mut frozen = vec![false; jobs];
    let mut level = vec![0.0; jobs];
    let mut allocation = None;
    // Each turn freezes at least one job.
    for _ in 0..jobs {
        let rise = level_rates(instance, entities, &frozen);
        let Some((shares, risen)) = raise(instance, &level, &rise) else { break };
        allocation = Some(shares);
        for job in 0..jobs {
            level[job] += risen * rise[job];
        }
        let Some(able) = can_increase(instance, &level, &rise) else { break };
        let mut some = false;
        for job in (0..jobs).filter(|&job| rise[job] > 0.0 && !able[job]) {
            (frozen[job], some) = (true, true);
        }
        if !some || frozen.iter().all(|&frozen| frozen) {
            break;
        }
    }
    allocation
}

/// Rate at which each job's level rises; zero for jobs that are frozen or wait for their turn.
fn level_rates(instance: &GavelInstance, entities: &[Entity], frozen: &[bool]) -> Vec<f64> {
    let mut rise = vec![0.0; frozen.len()];
    let per_gpu = |job: usize| 1.0 / f64::from(instance.jobs[job].gpus);
    if entities.is_empty() {
        for job in (0..frozen.len()).filter(|&job| !frozen[job]) {
            rise[job] = instance.jobs[job].weight * per_gpu(job);
        }
    }
    for entity in entities {
        let left = || entity.jobs.iter().copied().filter(|&job| !frozen[job]);
        match entity.inside {
            Inside::Fair => {
                let sum: f64 = left().map(|job| instance.jobs[job].weight).sum();
                for job in left() {
                    rise[job] = entity.weight * instance.jobs[job].weight / sum * per_gpu(job);
                }
            }
            Inside::Fifo => {
                if let Some(job) = left().next() {
                    rise[job] = entity.weight * per_gpu(job);
                }
            }
        }
    }
    rise
}

/// Speed of `job` relative to its proportional speed, times `factor`, as terms.
fn level_terms(program: &ShareProgram<'_>, instance: &GavelInstance, job: usize, factor: f64) -> ColumnTerms {
    program.rate(job, factor / instance.proportional_rate(job))
}

/// Largest `c` such that every job can be at its level plus `c` times its rate of rise, with an
/// allocation that attains it.
fn raise(instance: &GavelInstance, level: &[f64], rise: &[f64]) -> Option<(TimeShares, f64)> {
    let mut program = ShareProgram::new(instance);
    let risen = program.column(-1.0);
    for job in 0..level.len() {
        let mut terms = level_terms(&program, instance, job, -1.0);
        if rise[job] > 0.0 {
            terms.push((risen, rise[job]));
        }
        program.at_most(terms, -floor(level[job]));
    }
    let solution = program.minimise()?;
    Some((program.allocation(&solution), solution.value(risen).max(0.0)))
}

/// Jobs that can be above their levels by [`SLACK`] while none falls below. Feasible allocations
/// are convex, so jobs that can rise one by one can rise together, and one program finds them all.
fn can_increase(instance: &GavelInstance, level: &[f64], rise: &[f64]) -> Option<Vec<bool>> {
    let mut program = ShareProgram::new(instance);
    let mut gains = vec![None; level.len()];
    for job in 0..level.len() {
        let mut terms = level_terms(&program, instance, job, -1.0);
        if rise[job] > 0.0 {
            let gain = program.column(-1.0);
            // A gain in [0, 1] is the fraction of `SLACK` by which the job rises: about 0 or about
            // 1, since the slack is tiny.
            program.at_most(vec![(gain, -1.0)], 0.0);
            program.at_most(vec![(gain, 1.0)], 1.0);
            terms.push((gain, SLACK * level[job]));
            gains[job] = Some(gain);
        }
        program.at_most(terms, -floor(level[job]));
    }
    let solution = program.minimise()?;
    Some(gains.into_iter().map(|gain| gain.is_some_and(|gain| solution.value(gain) > 0.5)).collect())
}

/// Lower bound of a level, with room for the solver's tolerance.
fn floor(level: f64) -> f64 {
    level * (1.0 - 1e-7)
}
