//! Planner: when a window is planned anew, and what its program is made of.

use std::collections::VecDeque;

use goodput_env::job::JobId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::{RoundClaim, rounds_by_job};
use super::finish::FairFinish;
use super::forecast::PlannedJob;
use super::window::{Share, lay_out};

/// Ends of the segments of the piecewise-linear logarithm, as parts of a job's epochs.
const PIECES: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
/// Progress that the logarithm takes for zero.
const ZERO: f64 = 1e-6;
/// Power of the weight of a late job that would be done within one round.
const LAST_ROUND: f64 = 100.0;
/// Largest weight of a job. Beyond it sums of utilities lose their small terms.
const HEAVIEST: f64 = 1e12;

/// Settings of [`Shockwave`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShockwaveConfig {
    /// Length of a round.
    #[schemars(range(min = 1.0, max = 1e7), extend("x-unit" = "s", "x-source" = "NSDI 2023, section 8.1: 2 minutes"))]
    pub round_secs: f64,
    /// Rounds that are planned ahead.
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "rounds", "x-source" = "its artifact, tacc_32gpus.json"))]
    pub window: usize,
    /// Rounds after which the window is planned again although no job has come or gone.
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "rounds", "x-source" = "scheduler.py of its artifact"))]
    pub replan_after: usize,
    /// Weight of the longest run time that is left after the window, against the mean logarithm of progress by job and
    /// round.
    #[schemars(range(min = 0.0), extend("x-unit" = "1/s", "x-source" = "tacc_32gpus.json of the artifact"))]
    pub k: f64,
    /// Power of the ratio of expected to fair finish time, by which a late job counts more.
    #[schemars(range(min = 0.0, max = 100.0), extend("x-source" = "tacc_32gpus.json of the artifact"))]
    pub lambda: f64,
    /// Ratio of expected to fair finish time from which a job is late.
    #[schemars(range(min = 0.001), extend("x-source" = "tacc_32gpus.json of the artifact"))]
    pub most_ratio: f64,
}

impl Default for ShockwaveConfig {
    fn default() -> Self {
        Self { round_secs: 120.0, window: 20, replan_after: 8, k: 1e-3, lambda: 12.0, most_ratio: 1.0 }
    }
}

/// Shockwave's planner. It chooses the jobs of one round after the other.
#[derive(Clone, Debug)]
pub struct Shockwave {
    config: ShockwaveConfig,
    finish: FairFinish,
    known: Vec<JobId>,
    /// Rounds of the window that are ahead.
    window: VecDeque<Vec<JobId>>,
    rounds_since: usize,
}

impl Shockwave {
    /// A planner that has seen no job.
    pub fn new(config: ShockwaveConfig) -> Self {
        Self { config, finish: FairFinish::default(), known: Vec::new(), window: VecDeque::new(), rounds_since: 0 }
    }

    /// Jobs of the next round on `gpus` accelerators, the most important first; `now` is in seconds.
    pub fn next_round(&mut self, jobs: &[PlannedJob], gpus: u32, now: f64) -> Vec<JobId> {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let changed = ids != self.known;
        if changed {
            self.finish.keep(|job| ids.binary_search(&job).is_ok());
            let share = fair_share(gpus, jobs.len());
            for job in jobs {
                let alone = job.first_secs(job.done) + job.remaining_secs();
                self.finish.add(job.id, now, job.submit_secs + alone / share);
            }
            self.known = ids;
        }
        if changed || self.rounds_since >= self.config.replan_after || self.window.is_empty() {
            self.rounds_since = 0;
            self.window = self.plan(jobs, gpus, now).into();
        }
        self.rounds_since += 1;
        self.window.pop_front().unwrap_or_default()
    }

    fn plan(&self, jobs: &[PlannedJob], gpus: u32, now: f64) -> Vec<Vec<JobId>> {
        if jobs.is_empty() {
            return Vec::new();
        }
        let capacity = u64::from(gpus) * self.config.window as u64;
        let remaining: Vec<f64> = jobs.iter().map(PlannedJob::remaining_secs).collect();
        let claims = |weights: &[f64], least: &[usize]| -> Vec<RoundClaim> {
            let claim = |at: usize| self.claim(&jobs[at], jobs.len(), remaining[at], weights[at], least[at]);
            (0..jobs.len()).map(claim).collect()
        };
        let even = vec![1.0; jobs.len()];
        let on_time = self.least_rounds(jobs, &remaining, gpus, now);
        let kept = on_time.and_then(|least| rounds_by_job(&claims(&even, &least), capacity, self.config.k));
        let (weights, counts) = match kept {
            Some(counts) => (even, counts.rounds),
            // Not all jobs can be done by their fair finish times, so late ones count more instead.
            None => {
                let weights = self.weights(jobs, &remaining, gpus, now);
                let free = rounds_by_job(&claims(&weights, &vec![0; jobs.len()]), capacity, self.config.k);
                let rounds = free.map_or_else(|| vec![0; jobs.len()], |counts| counts.rounds);
                (weights, rounds)
            }
        };
        let share = |at: usize| Share {
            gpus: jobs[at].gpus,
            rounds: counts[at],
            weight: weights[at],
            left_secs: remaining[at],
        };
        let shares: Vec<Share> = (0..jobs.len()).map(share).collect();
        let window = lay_out(&shares, self.config.window, gpus);
        window.into_iter().map(|round| round.into_iter().map(|at| jobs[at].id).collect()).collect()
    }

    fn claim(&self, job: &PlannedJob, jobs: usize, remaining: f64, weight: f64, least: usize) -> RoundClaim {
        let epochs = f64::from(job.epochs());
        let epoch_secs = job.mean_epoch_secs();
        let most = (epochs - f64::from(job.done)).max(0.0) * epoch_secs;
        let run = |rounds: usize| (rounds as f64 * self.config.round_secs).min(most);
        let scale = weight / (jobs * self.config.window) as f64;
        let progress = |rounds: usize| ((f64::from(job.done) + run(rounds) / epoch_secs) / epochs).min(1.0);
        let rounds = 0..=self.config.window;
        RoundClaim {
            gpus: job.gpus,
            least,
            utility: rounds.clone().map(|rounds| scale * logarithm(progress(rounds))).collect(),
            left_secs: rounds.map(|rounds| (remaining - run(rounds)).max(0.0)).collect(),
        }
    }

    /// Fewest rounds with which each job can still be done by its fair finish time; `None` where a job cannot.
    fn least_rounds(&self, jobs: &[PlannedJob], remaining: &[f64], gpus: u32, now: f64) -> Option<Vec<usize>> {
        let share = fair_share(gpus, jobs.len());
        let end = now + self.config.round_secs * self.config.window as f64;
        let least = jobs.iter().zip(remaining).map(|(job, &remaining)| {
            let slack = share * (self.finish.of(job.id, now)? * self.config.most_ratio - end);
            let most = f64::from(job.epochs() - job.done) * job.mean_epoch_secs();
            let needed = remaining - slack;
            let rounds = (needed / self.config.round_secs - 1e-9).ceil().max(0.0) as usize;
            (slack >= 0.0 && needed <= most && rounds <= self.config.window).then_some(rounds)
        });
        least.collect()
    }

    /// Weights by job: a power of the ratio of expected to fair finish time where the job is late.
    fn weights(&self, jobs: &[PlannedJob], remaining: &[f64], gpus: u32, now: f64) -> Vec<f64> {
        let share = fair_share(gpus, jobs.len());
        let weight = |(job, &remaining): (&PlannedJob, &f64)| {
            let ratio = self.finish.of(job.id, now).map_or(1.0, |fair| (now + remaining / share) / fair);
            let power = if remaining < self.config.round_secs { LAST_ROUND } else { self.config.lambda };
            if ratio > self.config.most_ratio { ratio.powf(power).min(HEAVIEST) } else { 1.0 }
        };
        jobs.iter().zip(remaining).map(weight).collect()
    }
}

/// Part of its time that a job runs with an equal share of the cluster.
fn fair_share(gpus: u32, jobs: usize) -> f64 {
    (f64::from(gpus) / jobs as f64).min(1.0)
}

/// Logarithm of a part in [0, 1], linear between [`PIECES`].
fn logarithm(part: f64) -> f64 {
    let at = |piece: f64| piece.max(ZERO).ln();
    let high = PIECES.iter().position(|&piece| piece >= part).unwrap_or(PIECES.len() - 1).max(1);
    let (low, high) = (PIECES[high - 1], PIECES[high]);
    at(low) + (at(high) - at(low)) * (part - low) / (high - low)
}

#[cfg(test)]
mod tests {
    use super::super::forecast::EpochRun;
    use super::*;

    fn job(id: u32, gpus: u32, done: u32, epochs: u32, secs: f64) -> PlannedJob {
        PlannedJob { id: JobId(id), gpus, submit_secs: 0.0, done, runs: vec![EpochRun { epochs, secs }] }
    }

    #[test]
    fn the_logarithm_meets_the_true_one_at_its_pieces() {
        for part in [0.2_f64, 0.4, 0.6, 0.8, 1.0] {
            assert!((logarithm(part) - part.ln()).abs() < 1e-12);
        }
        assert!((logarithm(0.3) - f64::midpoint(0.2_f64.ln(), 0.4_f64.ln())).abs() < 1e-12);
    }

    #[test]
    fn a_window_is_kept_until_a_job_comes_or_the_time_is_up() {
        let mut shockwave = Shockwave::new(ShockwaveConfig::default());
        let jobs: Vec<PlannedJob> = (0..3).map(|id| job(id, 1, 0, 50, 60.0)).collect();
        for round in 0..8 {
            let chosen = shockwave.next_round(&jobs, 2, 120.0 * f64::from(round));
            assert_eq!(chosen.len(), 2, "no accelerator is idle");
        }
        assert_eq!(shockwave.window.len(), 12);
        shockwave.next_round(&jobs, 2, 960.0);
        assert_eq!(shockwave.window.len(), 19, "planned again after eight rounds");
        shockwave.next_round(&jobs[..2], 2, 1080.0);
        assert_eq!(shockwave.known.len(), 2);
    }

    #[test]
    fn the_longest_job_is_not_left_for_last() {
        // The penalty for the longest time left outweighs the welfare of short jobs.
        let mut shockwave = Shockwave::new(ShockwaveConfig::default());
        let jobs = [job(0, 1, 0, 400, 60.0), job(1, 1, 0, 30, 60.0), job(2, 1, 0, 30, 60.0)];
        let runs =
            (0..20).filter(|&round| shockwave.next_round(&jobs, 1, 120.0 * f64::from(round)).contains(&JobId(0)));
        assert!(runs.count() >= 10);
    }
}
