//! Standing of a job in the auction: its finish-time fairness, by size and by how far it is spread.

use goodput_env::placement::Placement;
use goodput_env::view::JobView;

/// Standing of a job in the auction.
pub struct AgentStanding<'a> {
    /// Job that may take part in the auction.
    pub job: JobView<'a>,
    /// Accelerators that the job keeps until its lease ends.
    pub leased: u32,
    /// Most accelerators that the job can use.
    pub max: u32,
    age_secs: f64,
    /// Seconds that the job would take alone on its fair share.
    ideal_secs: f64,
    /// `rho` with the leased accelerators, infinite without; then `rho` on the fair share from now
    /// on.
    pub worse: (f64, f64),
}

impl<'a> AgentStanding<'a> {
    /// Standing of `job`, which keeps `leased` accelerators, where `fair_share` is its part of `capacity`.
    pub fn new(job: JobView<'a>, leased: u32, fair_share: f64, capacity: u32) -> Self {
        let max = job.max_gpus().min(capacity);
        let age_secs = job.age().as_secs_f64();
        let speed = speed_on(&job, fair_share, max);
        let left = job.remaining_work().unwrap_or(f64::INFINITY);
        let ideal_secs = (job.state.done(job.request().submit + job.age()) + left) / speed;
        let mut standing = Self { job, leased, max, age_secs, ideal_secs, worse: (f64::INFINITY, 0.0) };
        standing.worse = (standing.rho(leased, 0), (age_secs + left / speed) / ideal_secs);
        standing
    }

    /// Finish-time fairness from now on, on `gpus` accelerators over `more` nodes than they need.
    pub fn rho(&self, gpus: u32, more: u32) -> f64 {
        let rate = if more == 0 { self.job.rate(gpus) } else { self.job.rate_over(self.job.kind(), gpus, more) };
        let secs = rate.and_then(|rate| Some(self.job.remaining_work()? / rate)).filter(|secs| secs.is_finite());
        secs.map_or(f64::INFINITY, |secs| (self.age_secs + secs) / self.ideal_secs)
    }

    /// Valuation `1 / rho` of exactly that placement; zero where the job does not run on it.
    pub fn value_of(&self, placement: &Placement, fewest_nodes: u32) -> f64 {
        match placement.gpus() {
            gpus if gpus >= self.job.min_gpus() => {
                self.rho(gpus, placement.nodes().saturating_sub(fewest_nodes)).recip()
            }
            _ => 0.0,
        }
    }

    /// Accelerators that the job keeps until its lease ends, by node.
    pub fn keeps(&self) -> Option<&'a Placement> {
        (self.leased > 0).then_some(&self.job.state.placement)
    }

    /// Fewest further accelerators that are of use.
    pub fn step(&self, held: u32) -> u32 {
        if held == 0 { self.job.min_gpus() } else { 1 }
    }
}

/// Work per second on a fractional share: linear between sizes, in proportion below the smallest,
/// constant above `max`.
fn speed_on(job: &JobView<'_>, share: f64, max: u32) -> f64 {
    let min = job.min_gpus();
    let share = share.min(f64::from(max));
    let rate = |gpus: u32| job.rate(gpus).unwrap_or(0.0);
    if share <= f64::from(min) {
        return rate(min) * share / f64::from(min);
    }
    let (low, part) = (share.floor(), share.fract());
    let low_rate = rate(low as u32);
    if part > 0.0 { low_rate + part * (rate(low as u32 + 1) - low_rate) } else { low_rate }
}
