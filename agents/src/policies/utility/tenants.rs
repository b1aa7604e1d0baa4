//! Accelerators of tenants relative to their due.

use goodput_env::view::ClusterView;

/// By tenant, of a round; empty where fewer than two are declared.
#[derive(Clone, Debug, Default)]
pub(super) struct Tenants {
    shares: Vec<f64>,
}

impl Tenants {
    /// Of `capacity` accelerators, each tenant with active jobs is due a part in proportion to its
    /// weight. One accelerator is added to what it holds and to what it is due, so that shares of a
    /// few do not jump.
    pub fn of(view: &ClusterView<'_>, capacity: u32) -> Self {
        let declared = view.tenants().len();
        if declared < 2 {
            return Self::default();
        }
        let mut held = vec![None::<u32>; declared];
        for job in view.jobs() {
            if let Some(held) = held.get_mut(job.request().tenant as usize) {
                *held = Some(held.unwrap_or(0) + job.gpus());
            }
        }
        let weight = |tenant: usize| f64::from(view.tenants().weight_milli(tenant as u32));
        let active = held.iter().enumerate().filter(|(_, held)| held.is_some());
        // Tenants without active jobs leave their part to the others.
        let all = active.map(|(tenant, _)| weight(tenant)).sum::<f64>().max(1.0);
        let share = |(tenant, held): (usize, &Option<u32>)| {
            let due = f64::from(capacity) * weight(tenant) / all;
            (f64::from(held.unwrap_or(0)) + 1.0) / (due + 1.0)
        };
        Self { shares: held.iter().enumerate().map(share).collect() }
    }

    /// Accelerators of `tenant` relative to its due.
    pub fn share(&self, tenant: u32) -> f64 {
        self.shares.get(tenant as usize).copied().unwrap_or(1.0)
    }
}
