//! Priorities and quotas that adapt by themselves, around any policy that queues by priority or keeps to quotas.
//!
//! - [`Adaptation`]: both rules as a file states them, `[adaptation]`.
//! - [`Ageing`]: priorities that grow with the time waited and fall with the past use of the tenant.
//! - [`Shifts`]: quotas that move from tenants that do not use them to tenants that wait.

mod ageing;
mod peaks;
mod shifts;
mod terms;

pub use ageing::Ageing;
pub use shifts::Shifts;
pub use terms::{Adaptation, PriorityTerms, QuotaTerms};

use goodput_env::plan::Plan;
use goodput_env::policy::{ExpectedLoad, Look, Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::{Adapted, ClusterView};

use super::resilience::earlier;

/// A policy that is shown adapted priorities and quotas.
pub struct Adapting {
    inner: Box<dyn Policy>,
    ageing: Option<Ageing>,
    shifts: Option<Shifts>,
    wake: Option<SimTime>,
}

impl std::fmt::Debug for Adapting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adapting").field("ageing", &self.ageing).field("shifts", &self.shifts).finish_non_exhaustive()
    }
}

impl Adapting {
    /// Adaptation around the policy `inner`.
    pub fn new(inner: Box<dyn Policy>, terms: &Adaptation) -> Self {
        let (ageing, shifts) = (terms.priority.as_ref().map(Ageing::new), terms.quota.as_ref().map(Shifts::new));
        Self { inner, ageing, shifts, wake: None }
    }
}

impl Policy for Adapting {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let priorities = self.ageing.as_mut().map(|ageing| ageing.priorities(view)).unwrap_or_default();
        let quotas = self.shifts.as_mut().and_then(|shifts| shifts.quotas(view));
        self.wake = self.shifts.as_ref().and_then(|shifts| shifts.next_change(view.now));
        let adapted = Adapted { priorities, quotas };
        let plan = self.inner.decide(&view.adapted(&adapted));
        if let Some(ageing) = &mut self.ageing {
            ageing.observe(view, &plan);
        }
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        earlier(self.wake, self.inner.wake_at())
    }

    fn expected_loads(&self) -> &[ExpectedLoad] {
        self.inner.expected_loads()
    }

    fn last_look(&self) -> Option<&Look> {
        self.inner.last_look()
    }

    fn scope(&self) -> Scope {
        self.inner.scope()
    }

    fn round(&self) -> Option<SimTime> {
        self.inner.round()
    }

    fn batching(&self) -> Batching {
        self.inner.batching()
    }

    fn information(&self) -> Information {
        self.inner.information()
    }

    fn needs(&self) -> Information {
        self.inner.needs()
    }
}
