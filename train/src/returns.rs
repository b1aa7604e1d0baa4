//! Cost of a run from a moment on: the integral over time of the number of jobs in the system. By
//! Little's law it equals the sum of completion times.

use goodput_env::sim::Outcome;

/// Cost from any moment of a finished run on.
#[derive(Clone, Debug)]
pub struct CostToGo {
    /// Rate of discounting, per second.
    beta: f64,
    /// Seconds at which the number of jobs changes, ascending.
    moments: Vec<f64>,
    /// Jobs from each of them on.
    jobs: Vec<f64>,
    /// Cost from each of them on.
    costs: Vec<f64>,
}

impl CostToGo {
    /// Of `outcome`, the cost of a job `t` seconds ahead counting `exp(-beta t)`. Jobs that were
    /// cut off count up to the end.
    pub fn new(outcome: &Outcome, beta: f64) -> Self {
        let mut changes: Vec<(f64, f64)> = Vec::with_capacity(2 * outcome.jobs.len());
        for job in outcome.jobs.iter().filter(|job| job.submit <= outcome.end) {
            changes.push((job.submit.as_secs_f64(), 1.0));
            changes.push((job.finish.unwrap_or(outcome.end).as_secs_f64(), -1.0));
        }
        // At one moment arrivals come before departures, so the number of jobs never falls below 0.
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut now = 0.0;
        let jobs = changes.iter().map(|change| {
            now += change.1;
            now
        });
        let jobs = jobs.collect();
        let moments: Vec<f64> = changes.into_iter().map(|change| change.0).collect();
        let mut all = Self { beta, costs: vec![0.0; moments.len()], moments, jobs };
        // Backwards, because the cost from a moment on contains the cost from the next one on.
        for at in (0..all.moments.len().saturating_sub(1)).rev() {
            all.costs[at] = all.before(at + 1, all.moments[at]);
        }
        all
    }

    /// From `secs` on.
    pub fn at(&self, secs: f64) -> f64 {
        self.before(self.moments.partition_point(|&moment| moment <= secs), secs)
    }

    /// From `secs` on, the next change being that at `next`.
    fn before(&self, next: usize, secs: f64) -> f64 {
        let Some(moment) = self.moments.get(next) else { return 0.0 };
        let (ahead, jobs) = (moment - secs, next.checked_sub(1).map_or(0.0, |now| self.jobs[now]));
        // `exp_m1` keeps its digits where the discount over the span is tiny.
        let held = if self.beta > 0.0 { -(-self.beta * ahead).exp_m1() / self.beta } else { ahead };
        jobs * held + (-self.beta * ahead).exp() * self.costs[next]
    }
}

/// Advantage of run `own` from `secs` on: the costs of the others on average, less its own.
pub fn advantage(runs: &[CostToGo], own: usize, secs: f64) -> f64 {
    let others = runs.iter().enumerate().filter(|(run, _)| *run != own).map(|(_, run)| run.at(secs));
    others.sum::<f64>() / (runs.len() - 1).max(1) as f64 - runs[own].at(secs)
}

#[cfg(test)]
mod tests {
    use goodput_env::job::JobId;
    use goodput_env::sim::{FaultRecord, JobRecord};
    use goodput_env::time::SimTime;

    use super::*;

    /// Jobs from submission to completion, if they do.
    fn outcome(jobs: &[(f64, Option<f64>)], end: f64) -> Outcome {
        let time = SimTime::from_secs_f64;
        let record = |&(submit, finish): &(f64, Option<f64>)| JobRecord {
            job: JobId(0),
            submit: time(submit),
            start: None,
            finish: finish.map(time),
            restarts: 0,
            attained_gpu_millis: 0,
            executed: SimTime::ZERO,
            restarting: SimTime::ZERO,
            faults: FaultRecord::default(),
            refused: None,
        };
        Outcome { jobs: jobs.iter().map(record).collect(), end: time(end), ..Outcome::default() }
    }

    #[test]
    fn undiscounted_it_is_the_sum_of_completion_times() {
        let run = CostToGo::new(&outcome(&[(0.0, Some(10.0)), (4.0, Some(6.0)), (5.0, None), (30.0, None)], 20.0), 0.0);
        assert!((run.at(0.0) - (10.0 + 2.0 + 15.0)).abs() < 1e-9);
        assert!((run.at(5.5) - (4.5 + 0.5 + 14.5)).abs() < 1e-9);
        assert!(run.at(20.0).abs() < 1e-9 && run.at(99.0).abs() < 1e-9);
    }

    #[test]
    fn discounted_it_is_the_integral() {
        let jobs = [(1.0, Some(10.0)), (4.0, Some(6.5)), (4.0, Some(9.0))];
        let (beta, step) = (0.2, 1e-3);
        let run = CostToGo::new(&outcome(&jobs, 10.0), beta);
        for from in [0.0, 1.0, 3.3, 6.5, 9.9] {
            let integral: f64 = (0..10_000)
                .map(|at| from + (f64::from(at) + 0.5) * step)
                .map(|now| {
                    let here =
                        jobs.iter().filter(|job| job.0 <= now && job.1.is_some_and(|finish| now < finish)).count();
                    here as f64 * (-beta * (now - from)).exp() * step
                })
                .sum();
            assert!((run.at(from) - integral).abs() < 2e-2, "{from}: {} {integral}", run.at(from));
        }
    }

    #[test]
    fn an_advantage_is_what_the_others_cost_more() {
        let runs = [10.0, 12.0, 17.0].map(|finish| CostToGo::new(&outcome(&[(0.0, Some(finish))], finish), 0.0));
        let found: Vec<f64> = (0..3).map(|own| advantage(&runs, own, 0.0)).collect();
        assert!((found[0] - 4.5).abs() < 1e-9 && (found[2] + 6.0).abs() < 1e-9, "{found:?}");
        assert!(found.iter().sum::<f64>().abs() < 1e-9);
    }
}
