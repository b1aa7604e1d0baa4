//! Features of a job's weight: ratios and logarithms of order one, none of them a constant of an
//! application.

use super::group::Group;

/// Features that all utilities have; they are the first ones.
pub const COMMON: usize = 14;

/// Features of a job, in order.
pub const FEATURES: [&str; 16] = [
    "log_attained_gpu_secs",
    "log_remaining_gpu_secs",
    "log_age_secs",
    "log_speedup_at_fair_share",
    "log_speedup_on_a_node",
    "log_speedup_at_most",
    "waiting",
    "never_ran",
    "log_restarts",
    "log_remaining_by_pressure",
    "log_attained_by_pressure",
    "log_share_done",
    "log_remaining_squared",
    "log_spread_of_types",
    "log_share_of_tenant",
    "log_failures",
];

/// The group of parameters that the weight of the feature at a place belongs to; `None` for those
/// that all utilities have.
pub(super) fn group_of(at: usize) -> Option<Group> {
    match at.checked_sub(COMMON) {
        None => None,
        Some(0) => Some(Group::Tenants),
        Some(_) => Some(Group::Faults),
    }
}

/// Facts about a job at a decision.
#[derive(Clone, Copy, Debug)]
pub struct JobFacts {
    /// Accelerator seconds held so far.
    pub attained_gpu_secs: f64,
    /// Accelerator seconds that it may have left on its smallest size.
    pub remaining_gpu_secs: f64,
    /// Accelerator seconds on its smallest size that its progress so far was worth.
    pub done_gpu_secs: f64,
    /// Seconds since submission.
    pub age_secs: f64,
    /// Speed relative to that of its smallest size: at an equal share of the cluster, on a whole
    /// node, at the most it may have.
    pub speedups: [f64; 3],
    /// Whether the job holds no accelerator.
    pub waiting: bool,
    /// Nothing has been measured of it.
    pub never_ran: bool,
    /// Restarts so far.
    pub restarts: u32,
    /// Logarithm of jobs per node.
    pub pressure: f64,
    /// Speed of the job's smallest size on the fastest type of accelerator relative to the slowest;
    /// 1 where there is one.
    pub spread: f64,
    /// Accelerators of its tenant relative to the tenant's due; 1 where there is one tenant.
    pub share_of_tenant: f64,
    /// Number of attempts of the job that failed by themselves.
    pub failures: u32,
}

impl JobFacts {
    /// Features in the order of [`FEATURES`].
    pub fn features(&self) -> [f64; FEATURES.len()] {
        // Hours, with a minute as the shortest time that matters.
        let hours = |secs: f64| ((secs + 60.0) / 3600.0).ln();
        let flag = |on: bool| f64::from(u8::from(on));
        // The floor keeps the logarithm finite where a speed is unknown.
        let [fair, node, most] = self.speedups.map(|speedup| speedup.max(0.05).ln());
        let (attained, remaining) = (hours(self.attained_gpu_secs), hours(self.remaining_gpu_secs));
        let done = (self.done_gpu_secs + 1.0) / (self.done_gpu_secs + self.remaining_gpu_secs + 1.0);
        [
            attained,
            remaining,
            hours(self.age_secs),
            fair,
            node,
            most,
            flag(self.waiting),
            flag(self.never_ran),
            f64::from(self.restarts).ln_1p(),
            remaining * self.pressure,
            attained * self.pressure,
            done.max(1e-3).ln(),
            remaining * remaining * 0.1,
            self.spread.max(1.0).ln(),
            self.share_of_tenant.ln(),
            f64::from(self.failures).ln_1p(),
        ]
    }
}

/// The weight of a job, from the logarithm that the features add up to; bounded, so that no job is
/// beyond comparison.
pub fn weight(theta: &[f64], features: &[f64]) -> f64 {
    theta.iter().zip(features).map(|(weight, feature)| weight * feature).sum::<f64>().clamp(-30.0, 30.0).exp()
}
