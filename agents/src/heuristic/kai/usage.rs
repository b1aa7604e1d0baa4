//! Past usage of tenants, halved in every half-life: `U = 0.5^(dt / half-life) U + A dt`.

use std::collections::BTreeMap;

use goodput_env::time::SimTime;

/// Decayed accelerator-seconds by tenant.
#[derive(Clone, Debug)]
pub struct DecayedUsage {
    half_life_secs: f64,
    since: SimTime,
    /// Usage, and accelerators held since then.
    tenants: BTreeMap<u32, (f64, u32)>,
}

impl DecayedUsage {
    /// No usage yet.
    pub fn new(half_life: SimTime) -> Self {
        Self { half_life_secs: half_life.as_secs_f64(), since: SimTime::ZERO, tenants: BTreeMap::new() }
    }

    /// Adds the usage of the accelerators held from the last call until `now`.
    pub fn advance(&mut self, now: SimTime) {
        let secs = (now - self.since).as_secs_f64();
        self.since = now;
        let kept = 0.5_f64.powf(secs / self.half_life_secs);
        // Usage at a constant rate decays while it accrues: the integral of the decay over the
        // time.
        let weight = self.half_life_secs / std::f64::consts::LN_2 * (1.0 - kept);
        for (usage, held) in self.tenants.values_mut() {
            *usage = *usage * kept + f64::from(*held) * weight;
        }
    }

    /// Sets the number of accelerators that the tenant holds from now on.
    pub fn hold(&mut self, tenant: u32, gpus: u32) {
        self.tenants.entry(tenant).or_default().1 = gpus;
    }

    /// Usage of the tenant as a fraction of that of all tenants; 0 where no tenant has used anything.
    pub fn part_of_all(&self, tenant: u32) -> f64 {
        let all: f64 = self.tenants.values().map(|(usage, _)| usage).sum();
        self.tenants.get(&tenant).map_or(0.0, |(usage, _)| if all > 0.0 { usage / all } else { 0.0 })
    }

    /// Usage of the tenant as a fraction of that of `capacity` accelerators, always in use.
    pub fn part(&self, tenant: u32, capacity: u32) -> f64 {
        let most = f64::from(capacity.max(1)) * self.half_life_secs / std::f64::consts::LN_2;
        self.tenants.get(&tenant).map_or(0.0, |(usage, _)| usage / most)
    }
}
