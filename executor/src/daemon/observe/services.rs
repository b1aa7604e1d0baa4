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

    /// Records the rate of a service and returns it, in thousandths of a request per second. A rate
    /// that the engine does not measure stays what it was last; where it was never measured,
    /// nothing is recorded. Of a rate that is measured outside the engine a silence is not recorded either,
    /// because its values may still come.
    fn record_rate(&mut self, index: usize, seen: &ServiceSeen, at_ms: i64) -> u32 {
        let known = &self.scenario.workload.services[index];
        if seen.retired {
            return 0;
        }
        let milli = |rate: f64| (rate.clamp(0.0, RateSeries::MAX) * 1e3).round() as u32;
        let mut rates = known.rates.clone();
        let outside = self.loads.get_mut(&known.name);
        let measured = outside.is_some();
        if let Some(loads) = outside {
            let over = loads.partition_point(|(measured_ms, _)| *measured_ms <= at_ms);
            let loads: Vec<(i64, f64)> = loads.drain(..over).collect();
            let since = |(measured_ms, load): (i64, f64)| (self.time(measured_ms), milli(load));
            if !loads.is_empty() {
                rates.record_all(loads.into_iter().map(since).filter(|(at, _)| *at >= SimTime::ZERO));
            }
        }
        let last = rates.values().last().copied();
        if let Some(rate_milli) = seen.rate.map(milli).or(last.filter(|_| !measured)) {
            rates.record(self.now, rate_milli);
        }
        // Scenarios are shared with views: a copy is made only for a step or a rate that is new.
        if rates != known.rates {
            let scenario: &mut Scenario = Arc::make_mut(&mut self.scenario);
            let service = &mut Arc::make_mut(&mut scenario.workload).services[index];
            Arc::make_mut(service).rates = rates.clone();
        }
        rates.values().last().copied().unwrap_or(0)
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

    /// Rates of a service by step, thousandths of a request per second.
    pub(in crate::daemon) fn recorded_loads(&self, service: &str) -> &[u32] {
        let services = &self.scenario.workload.services;
        services.iter().find(|known| known.name == service).map_or(&[], |known| known.rates.values())
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
