//! Names become numbers, for good: a policy keeps state by job and node number.

use std::sync::{Arc, OnceLock};

use goodput_env::cluster::{AcceleratorType, Node, TypeId};
use goodput_env::job::{JobId, JobSpec, Work};
use goodput_env::scenario::Scenario;
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;

use super::ClusterObserver;
use crate::engine::{ClusterSnapshot, JobSeen};

/// Shown as the duration of a job that says nothing about it.
pub(super) const UNKNOWN_DURATION: SimTime = SimTime::from_secs(3600);

impl ClusterObserver {
    pub(super) fn register_nodes(&mut self, snapshot: &ClusterSnapshot) {
        let mut changed = false;
        for seen in &snapshot.nodes {
            let kind = self.cluster.types.iter().position(|kind| kind.name == seen.accelerator).unwrap_or_else(|| {
                let known = self.known_types.iter().find(|kind| kind.name == seen.accelerator).cloned();
                let known = known.map(|kind| AcceleratorType { memory_mib: None, ..kind });
                let named = || AcceleratorType::named(seen.accelerator.as_str());
                self.cluster.types.push(known.unwrap_or_else(named));
                changed = true;
                self.cluster.types.len() - 1
            });
            if seen.memory_mib.is_some() && self.cluster.types[kind].memory_mib != seen.memory_mib {
                // Nodes of a type with different memories: what fits the smallest fits all.
                let known = self.cluster.types[kind].memory_mib;
                let least = known.into_iter().chain(seen.memory_mib).min();
                changed |= known != least;
                self.cluster.types[kind].memory_mib = least;
            }
            let machine = Node::new(TypeId::at(kind), seen.gpus).of(seen.pool);
            match self.node_ids.get(&seen.name).copied() {
                None => {
                    self.node_ids.insert(seen.name.clone(), self.nodes.len());
                    self.nodes.push(seen.name.clone());
                    self.cluster.nodes.push(machine);
                    changed = true;
                }
                Some(at) => {
                    let known = &mut self.cluster.nodes[at];
                    // A node that lost accelerators is still the machine it was.
                    let gpus = known.gpus.max(machine.gpus);
                    let machine = Node { gpus, ..machine };
                    changed |= *known != machine;
                    *known = machine;
                }
            }
        }
        if changed {
            let tenants = self.tenants();
            let scenario = Arc::make_mut(&mut self.scenario);
            Arc::make_mut(&mut scenario.workload).tenants = tenants;
            let cluster = Arc::new(self.cluster.clone());
            let Scenario { workload, options, seed, .. } = &*self.scenario;
            self.scenario = Arc::new(Scenario::new(cluster, workload.clone(), options.clone(), *seed));
        }
    }

    /// The tenants with their quotas in the order of the cluster's types, which are not known
    /// before the cluster is seen. Quotas of types that it does not have come after those.
    fn tenants(&self) -> Arc<Tenants> {
        let given = &self.setting.tenants;
        let groups = || given.iter().chain(given.cohorts());
        if groups().all(|group| group.quotas.is_empty()) {
            return given.clone();
        }
        let mut types: Vec<&str> = self.cluster.types.iter().map(|kind| kind.name.as_str()).collect();
        for name in groups().flat_map(|group| group.quotas.keys()) {
            if !types.contains(&name.as_str()) {
                types.push(name);
            }
        }
        let ordered = Tenants::new(given.iter().cloned().collect(), given.cohorts().to_vec(), Vec::new(), &types);
        // They were checked when they were made; another order does not make them wrong.
        ordered.map_or_else(|_| given.clone(), Arc::new)
    }

    pub(super) fn register_jobs(&mut self, snapshot: &ClusterSnapshot) {
        // A number that comes back with another time of submission is another job: slurmctld gives
        // numbers of jobs that it forgot again.
        let known = |job: &JobSeen| {
            let id = self.ids.get(&job.key);
            let submit = self.time(job.spec.request.submit.as_millis());
            id.is_some_and(|id| self.scenario.workload.jobs[id.index()].request.submit == submit)
        };
        let mut new: Vec<&JobSeen> = snapshot.jobs.iter().filter(|job| !job.phase.is_over() && !known(job)).collect();
        // Numbers follow submission because policies break their last ties by them.
        new.sort_by(|a, b| (a.spec.request.submit, &a.key).cmp(&(b.spec.request.submit, &b.key)));
        for seen in new {
            let spec = self.spec_of(seen);
            let id = JobId(self.keys.len() as u32);
            self.keys.push(seen.key.clone());
            self.ids.insert(seen.key.clone(), id);
            let scenario = Arc::make_mut(&mut self.scenario);
            Arc::make_mut(&mut scenario.workload).jobs.push(spec);
            // What was worked out without this job is worked out again.
            (scenario.shapes, scenario.alone) = (OnceLock::new(), OnceLock::new());
        }
    }

    /// Job in the terms of the environment. A job that names an unknown application is a job of
    /// unknown duration.
    pub(in crate::daemon) fn spec_of(&self, seen: &JobSeen) -> JobSpec {
        let mut spec = seen.spec.clone();
        spec.request.submit = self.time(spec.request.submit.as_millis());
        if !seen.tenant.is_empty() {
            let known = self.setting.tenants.iter().position(|group| group.name == seen.tenant);
            spec.request.tenant = known.unwrap_or_default() as u32;
        }
        let named = |name: &String| self.setting.applications.iter().position(|app| app.name == *name);
        spec.work = match (seen.application.as_ref().map(|name| (name, named(name))), spec.work) {
            (Some((_, Some(index))), _) => Work::application(index as u16),
            (None, Work::Fixed { duration }) if duration > SimTime::ZERO => Work::Fixed { duration },
            (unknown, _) => {
                if let Some((name, _)) = unknown {
                    tracing::warn!(
                        job = seen.key,
                        application = name,
                        "application is not in the catalog: its speed is unknown"
                    );
                }
                Work::Fixed { duration: UNKNOWN_DURATION }
            }
        };
        spec
    }
}
