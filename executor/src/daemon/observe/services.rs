//! Inference services and loans of a live cluster, in the terms of the environment.
//!
//! A service gets its number when a snapshot first shows it. The rate of requests over the past,
//! which policies forecast from, is recorded here from snapshot to snapshot.

use std::sync::Arc;

use goodput_env::cluster::NodeId;
use goodput_env::job::Workload;
use goodput_env::scenario::Scenario;
use goodput_env::service::{RateSeries, ServiceId};
use goodput_env::state::{Loan, ObservedService, Replica, ReplicaPhase};
use goodput_env::time::SimTime;

use super::ClusterObserver;
use super::load_forecasts::LoadSample;
use crate::engine::{
    ClusterSnapshot, EngineAction, Lender, LoanSeen, NodeSeen, ReplicaSeen, ReplicaStage, ServiceSeen,
};

impl ClusterObserver {
    /// Gives numbers to services that are new, and takes over specifications that have changed.
    pub(super) fn register_services(&mut self, snapshot: &ClusterSnapshot) {
        let mut services = self.scenario.workload.services.clone();
        for seen in &snapshot.services {
            let tenant = self.setting.tenants.iter().position(|group| group.name == seen.spec.tenant);
            let mut service = seen.spec.service(&seen.name, tenant.unwrap_or_default() as u32);
            match services.iter_mut().find(|known| known.name == seen.name) {
                None => services.push(Arc::new(service)),
                Some(known) => {
                    if service.rates.step() == known.rates.step() {
                        service.rates = known.rates.clone();
                    }
                    if **known != service {
                        *known = Arc::new(service);
                    }
                }
            }
        }
        if services != self.scenario.workload.services {
            let Scenario { cluster, workload, options, seed, .. } = &*self.scenario;
            let workload = Workload { services, ..Workload::clone(workload) };
            // The speeds of services on each type of accelerator are worked out anew.
            let scenario = Scenario::new(cluster.clone(), Arc::new(workload), options.clone(), *seed);
            self.scenario = Arc::new(scenario);
        }
    }

    /// Services of the snapshot in ascending order of their numbers. `down` counts the failures of
    /// each node.
    pub(super) fn observe_services(&mut self, snapshot: &ClusterSnapshot, down: &[u32]) -> Vec<ObservedService> {
        self.samples.clear();
        let mut observed = Vec::with_capacity(snapshot.services.len());
        for index in 0..self.scenario.workload.services.len() {
            let name = &self.scenario.workload.services[index].name;
            let Some(seen) = snapshot.services.iter().find(|seen| seen.name == *name) else { continue };
            let rate_milli = self.record_rate(index, seen, snapshot.at_ms);
            let replicas = seen.replicas.iter().filter_map(|replica| self.replica(index, replica));
            observed.push(ObservedService {
                id: ServiceId(index as u32),
                rate_milli,
                backlog: (seen.backlog.unwrap_or(0.0).max(0.0) * 1e6).round() as u64,
                replicas: replicas.filter(|replica| down[replica.node.index()] == 0).collect(),
            });
        }
        observed
    }

    /// Shows a service that an order is under way for as it is going to be: what a new replica
    /// waits for is not free.
    pub(super) fn show_as_scaled(
        &self,
        services: &mut [ObservedService],
        action: &EngineAction,
        down: &[u32],
        idle: &mut [u32],
    ) {
        let EngineAction::Scale { service: name, node, replicas } = action else { return };
        let Some(id) = self.service_id(name) else { return };
        let Some(at) = self.nodes.iter().position(|known| known == node).filter(|&at| down[at] == 0) else { return };
        let node = NodeId(at as u32);
        let Some(seen) = services.iter_mut().find(|seen| seen.id == id) else { return };
        let service = &self.scenario.workload.services[id.index()];
        let lasts = |replica: &Replica| replica.node == node && !matches!(replica.phase, ReplicaPhase::Draining { .. });
        let now = seen.replicas.iter().filter(|replica| lasts(replica)).count();
        for replica in
            seen.replicas.iter_mut().rev().filter(|replica| lasts(replica)).take(now.saturating_sub(*replicas as usize))
        {
            replica.phase = ReplicaPhase::Draining { until: self.now + service.drain };
        }
        for _ in now..*replicas as usize {
            let phase = ReplicaPhase::Starting { until: self.now + service.cold_start };
            seen.replicas.push(Replica { node, phase });
            idle[at] = idle[at].saturating_sub(service.gpus_per_replica);
        }
    }

    /// Takes loads of a service that were measured outside the engine: times of the engine's clock, milliseconds, and
    /// requests per second, oldest first. A service that was named once has no other load from then on.
    pub(in crate::daemon) fn note_loads(&mut self, service: &str, loads: Vec<(i64, f64)>) {
        self.loads.entry(service.to_owned()).or_default().extend(loads);
    }

    /// Loads that the last reading of a snapshot took in. Those measured outside the engine have their own times, and
    /// those that the engine shows have the time of the snapshot.
    pub(in crate::daemon) fn load_samples(&self) -> &[LoadSample] {
        &self.samples
    }

    /// Step of the recorded loads of a service on the engine's clock, milliseconds.
    pub(in crate::daemon) fn load_step_ms(&self, id: ServiceId) -> Option<i64> {
        Some(self.engine_ms(self.scenario.workload.services.get(id.index())?.rates.step()))
    }

    /// Records the rate of a service and returns the rate of now, in thousandths of a request per second. A rate that
    /// is not known stays what it was last. Of a service that is measured outside the engine only measured values are
    /// recorded, each at its own step: those of a silence may still come.
    fn record_rate(&mut self, index: usize, seen: &ServiceSeen, at_ms: i64) -> u32 {
        let known = &self.scenario.workload.services[index];
        let mut rates = known.rates.clone();
        let milli = |rate: f64| (rate.clamp(0.0, RateSeries::MAX) * 1e3).round() as u32;
        let now = seen.rate.map(milli).or(rates.values().last().copied()).filter(|_| !seen.retired);
        let sample = |(at_ms, load)| LoadSample { service: ServiceId(index as u32), at_ms, load };
        if seen.retired {
            rates.close();
        } else if let Some(loads) = self.loads.get_mut(&known.name) {
            let over = loads.partition_point(|(measured_ms, _)| *measured_ms <= at_ms);
            let loads: Vec<(i64, f64)> = loads.drain(..over).collect();
            self.samples.extend(loads.iter().copied().map(sample));
            let since = loads.into_iter().map(|(measured_ms, load)| (self.time(measured_ms), milli(load)));
            rates.record_measured(&since.filter(|(at, _)| *at >= SimTime::ZERO).collect::<Vec<_>>());
        } else if let Some(now) = now {
            rates.record(self.now, now);
            self.samples.extend(seen.rate.map(|load| sample((at_ms, load))));
        }
        // Scenarios are shared with views: a copy is made only for a step or a rate that is new.
        if rates != known.rates {
            let scenario: &mut Scenario = Arc::make_mut(&mut self.scenario);
            let service = &mut Arc::make_mut(&mut scenario.workload).services[index];
            Arc::make_mut(service).rates = rates;
        }
        now.unwrap_or(0)
    }

    /// Replica with the number of its node; `None` on a node that is not known. A start or an end
    /// of unknown length is taken to be as long as the service says, counted from now.
    fn replica(&self, index: usize, seen: &ReplicaSeen) -> Option<Replica> {
        let service = &self.scenario.workload.services[index];
        let node = NodeId::at(self.nodes.iter().position(|name| *name == seen.node)?);
        let until = |at_ms: Option<i64>, usual: SimTime| at_ms.map_or(self.now + usual, |at_ms| self.time(at_ms));
        let phase = match seen.phase {
            ReplicaStage::Starting { ready_ms } => {
                ReplicaPhase::Starting { until: until(ready_ms, service.cold_start) }
            }
            ReplicaStage::Ready => ReplicaPhase::Ready,
            ReplicaStage::Draining { free_ms } => ReplicaPhase::Draining { until: until(free_ms, service.drain) },
        };
        Some(Replica { node, phase })
    }

    /// Name of a service.
    pub fn service(&self, id: ServiceId) -> Option<&str> {
        self.scenario.workload.services.get(id.index()).map(|service| service.name.as_str())
    }

    /// The number of a service.
    pub fn service_id(&self, name: &str) -> Option<ServiceId> {
        let index = self.scenario.workload.services.iter().position(|service| service.name == name)?;
        Some(ServiceId(index as u32))
    }

    /// Loan of a node. An engine that knows no times says only that the node is lent. A node that users
    /// lent is elsewhere for a policy: no order of a policy could call the node back.
    pub(super) fn loan(&self, seen: &NodeSeen) -> Loan {
        match seen.loan {
            _ if !seen.lent => Loan::Home,
            None => Loan::Lent { since: SimTime::ZERO },
            Some(LoanSeen { by: Lender::Users, .. }) => Loan::Elsewhere,
            Some(loan) => {
                let since = self.time(loan.since_ms);
                loan.recall.map_or(Loan::Lent { since }, |recall| Loan::Returning {
                    since,
                    called: self.time(recall.called_ms),
                    deadline: self.time(recall.deadline_ms),
                })
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeMap;

    use goodput_env::scenario::SimOptions;
    use goodput_env::service::Slo;

    use super::*;
    use crate::daemon::observe::Setting;
    use crate::engine::ServiceSpec;

    /// A snapshot with one service, a step of which is a second.
    fn snapshot(at_ms: i64, rate: Option<f64>) -> ClusterSnapshot {
        let spec = ServiceSpec {
            tenant: String::new(),
            gpus_per_replica: 1,
            profiles: BTreeMap::new(),
            reference: String::new(),
            slo: Slo { class: "interactive".into(), latency: SimTime::from_secs(1), target: 0.99 },
            cold_start_ms: 0,
            drain_ms: 0,
            min_replicas: 0,
            max_replicas: 4,
            arrival_cv2: 1.0,
            work_cv2: 0.0,
            rate_step_ms: 1000,
        };
        let service =
            ServiceSeen { name: "web".into(), spec, rate, backlog: None, retired: false, replicas: Vec::new() };
        ClusterSnapshot { version: at_ms as u64, at_ms, services: vec![service], ..ClusterSnapshot::default() }
    }

    fn recorded(observer: &mut ClusterObserver, at_ms: i64, rate: Option<f64>) -> Vec<u32> {
        let state = observer.read(&snapshot(at_ms, rate), &[]).unwrap();
        assert!(state.view().services().all(|service| !service.is_over()), "the service goes on");
        observer.scenario.workload.services[0].rates.values().iter().map(|milli| milli / 1000).collect()
    }

    #[test]
    fn loads_measured_outside_fill_the_past_and_a_silence() {
        let setting = Setting {
            applications: Vec::new(),
            tenants: Arc::default(),
            options: SimOptions::standard(),
            speedup: 1.0,
            start: SimTime::ZERO,
        };
        let mut observer = ClusterObserver::new(setting).since(0);
        // What lies before time zero is left out.
        observer.note_loads("web", vec![(-1000, 9.0), (0, 1.0), (1000, 2.0), (2000, 3.0)]);
        assert_eq!(recorded(&mut observer, 2500, Some(3.0)), [1, 2, 3]);
        // The last value holds for a while, and is no value of a later step.
        assert_eq!(recorded(&mut observer, 4500, Some(3.0)), [1, 2, 3]);
        assert_eq!(recorded(&mut observer, 5500, None), [1, 2, 3]);
        observer.note_loads("web", vec![(3000, 4.0), (4000, 5.0), (7000, 8.0)]);
        assert_eq!(recorded(&mut observer, 5600, Some(5.0)), [1, 2, 3, 4, 5], "a value ahead of the clock waits");
        // A step that was never measured has the value before it, and is a gap for forecasters.
        assert_eq!(recorded(&mut observer, 7100, Some(8.0)), [1, 2, 3, 4, 5, 5, 5, 8]);
        let state = observer.read(&snapshot(7200, Some(8.0)), &[]).unwrap();
        let measured: Vec<Option<f64>> = {
            let view = state.view();
            let service = view.services().next().unwrap();
            (4..8).map(|step| service.measured(step)).collect()
        };
        assert_eq!(measured, [Some(5.0), None, None, Some(8.0)]);
    }
}
