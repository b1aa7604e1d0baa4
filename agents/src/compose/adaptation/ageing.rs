//! Priorities of waiting jobs as Slurm's multifactor plugin computes them (slurm.schedmd.com/priority_multifactor.html
//! and classic_fair_share.html):
//!
//! ```text
//! priority = request + age_weight min(waited / max_age, 1) + fair_share_weight 2^(-(U / S) / dampening)
//! ```
//!
//! `U` is the tenant's part of all past use, which decays with a half-life, and `S` is its part of the weights. Parts
//! are of the tenants that have had jobs. As in Slurm, the sum orders the queue and evicts no job: Slurm preempts by
//! partition and quality of service, and this project by the priorities of the requests.

use std::collections::{BTreeMap, BTreeSet};

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::PriorityTerms;
use crate::heuristic::kai::usage::DecayedUsage;

/// Priorities of a queue, with the past use that they depend on.
#[derive(Clone, Debug)]
pub struct Ageing {
    terms: PriorityTerms,
    usage: DecayedUsage,
    /// Tenants that have had jobs.
    known: BTreeSet<u32>,
}

impl Ageing {
    /// Priorities without any past use.
    pub fn new(terms: &PriorityTerms) -> Self {
        let usage = DecayedUsage::new(SimTime::from_secs_f64(terms.half_life_secs));
        Self { terms: terms.clone(), usage, known: BTreeSet::new() }
    }

    /// Priorities of the jobs that wait, ascending by job.
    pub fn priorities(&mut self, view: &ClusterView<'_>) -> Vec<(JobId, i32)> {
        self.usage.advance(view.now);
        self.known.extend(view.jobs().map(|job| job.request().tenant));
        let weight = |tenant: u32| f64::from(view.tenants().weight_milli(tenant));
        let weights: f64 = self.known.iter().map(|&tenant| weight(tenant)).sum();
        let factor = |&tenant: &u32| {
            let share = weight(tenant) / weights.max(f64::MIN_POSITIVE);
            (tenant, self.fair_share(self.usage.part_of_all(tenant), share))
        };
        let fair_share: BTreeMap<u32, f64> = self.known.iter().map(factor).collect();
        let waiting = view.jobs().filter(|job| !job.state.is_allocated());
        let priority = |job: JobView<'_>| {
            let request = job.request();
            let waited = (job.age() - job.executed()).as_secs_f64();
            let age = f64::from(self.terms.age_weight) * (waited / self.terms.max_age_secs).clamp(0.0, 1.0);
            let fair = f64::from(self.terms.fair_share_weight) * fair_share[&request.tenant];
            // Slurm's priorities are whole numbers as well.
            (job.id(), request.priority.saturating_add((age + fair) as i32))
        };
        waiting.map(priority).collect()
    }

    /// Takes note of what tenants hold once `plan` is carried out.
    pub fn observe(&mut self, view: &ClusterView<'_>, plan: &Plan) {
        let mut held: BTreeMap<u32, u32> = self.known.iter().map(|&tenant| (tenant, 0)).collect();
        let changed: BTreeMap<JobId, u32> = plan
            .changes
            .iter()
            .map(|change| (change.job, if change.counts() { change.placement.gpus() } else { 0 }))
            .collect();
        for job in view.jobs() {
            let before = if job.state.counts() { job.gpus() } else { 0 };
            *held.entry(job.request().tenant).or_default() += changed.get(&job.id()).copied().unwrap_or(before);
        }
        held.into_iter().for_each(|(tenant, gpus)| self.usage.hold(tenant, gpus));
    }

    /// Fair-share factor of a tenant that has had this part of all use, and has this part of the weights.
    fn fair_share(&self, usage: f64, share: f64) -> f64 {
        if share > 0.0 { (-usage / share / self.terms.dampening).exp2() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slurm's own figures: a tenant that has used its share has a factor of one half, one that has used twice its
    /// share a quarter, and one without use has 1 (classic_fair_share.html).
    #[test]
    fn fair_share_factors_are_those_of_slurm() {
        let ageing = Ageing::new(&PriorityTerms::default());
        for (usage, share, factor) in [(0.0, 0.5, 1.0), (0.5, 0.5, 0.5), (0.5, 0.25, 0.25), (1.0, 0.25, 0.0625)] {
            assert_eq!(ageing.fair_share(usage, share), factor);
        }
        let damped = Ageing::new(&PriorityTerms { dampening: 5.0, ..PriorityTerms::default() });
        assert!((damped.fair_share(0.5, 0.5) - 0.5_f64.powf(0.2)).abs() < 1e-12);
    }
}
