//! Observation of a live cluster, in the terms of the environment.
//!
//! A snapshot names jobs and nodes and tells the present; a policy goes by numbers and by the past.
//! The observation gives every node and job a number for good, keeps the service that each job has
//! attained, and turns each snapshot into an [`Observed`] cluster, with the view that a simulation
//! shows.

pub mod load_forecasts;
pub(in crate::daemon) mod loads;
mod parts;
mod past;
mod register;
mod reported_speeds;
pub(in crate::daemon) mod reversals;
mod services;

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_configs::live::policy::ShadowConfig;
use goodput_env::application::Application;
use goodput_env::cluster::{AcceleratorType, Cluster, NodeId};
use goodput_env::job::{JobId, Work, Workload};
use goodput_env::placement::Placement;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::state::{ClusterState, Loan, Observed, ObservedError, ObservedJob, ObservedService, Phase, Trigger};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use thiserror::Error;

use crate::daemon::shadow::RolloutStart;
use crate::engine::{ClusterSnapshot, EngineAction, JobSeen, NodeHealth, OnNode, Order};
use load_forecasts::LoadSample;
use parts::SharedCardsSeen;
pub use past::AttainedService;
use reported_speeds::ReportedApplications;

/// Fixed facts of a deployment.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Applications that jobs may name.
    pub applications: Vec<Arc<Application>>,
    /// Tenants that share the cluster, and their quotas; a job names its tenant by the tenant's
    /// name.
    pub tenants: Arc<Tenants>,
    /// Information for policies, and how jobs choose their batch size; the rest of the options is
    /// the simulator's.
    pub options: SimOptions,
    /// Seconds of the policy's time in a second of the engine's; 1 but in experiments with
    /// compressed traces.
    pub speedup: f64,
    /// Duration of a start, as shown to policies while a start is under way.
    pub start: SimTime,
}

/// Snapshot that cannot be read.
#[derive(Debug, Error)]
pub enum ObservationError {
    /// The snapshot contradicts itself.
    #[error("snapshot {version} contradicts itself: {source}")]
    Contradiction {
        /// Version of the snapshot.
        version: u64,
        /// Contradiction between the snapshot's parts.
        source: ObservedError,
    },
}

/// Observation of one cluster, from snapshot to snapshot.
#[derive(Debug)]
pub struct ClusterObserver {
    setting: Setting,
    /// The engine's clock at the policy's time zero.
    epoch_ms: Option<i64>,
    now: SimTime,
    nodes: Vec<String>,
    /// Number of each node, by name.
    node_ids: BTreeMap<String, usize>,
    cluster: Cluster,
    /// Power and price of accelerator types, where they are known.
    known_types: Vec<AcceleratorType>,
    scenario: Arc<Scenario>,
    ids: BTreeMap<String, JobId>,
    keys: Vec<String>,
    past: BTreeMap<JobId, AttainedService>,
    reported: ReportedApplications,
    /// By service with a query: loads that no snapshot has been read with yet, oldest first.
    loads: BTreeMap<String, Vec<(i64, f64)>>,
    /// Loads that the last reading of a snapshot took in, oldest first for each service.
    samples: Vec<LoadSample>,
    seen: LastObservation,
    /// As last read.
    observed: Option<Observed>,
    generation: u32,
}

/// Facts of the last observation, to tell what has changed.
#[derive(Clone, Debug, Default, PartialEq)]
struct LastObservation {
    active: Vec<JobId>,
    down: Vec<u32>,
    gpus: Vec<u32>,
    /// Services and, by node, loans.
    load: (Vec<ObservedService>, Vec<Loan>),
}

impl ClusterObserver {
    /// Observation before the first snapshot.
    pub fn new(setting: Setting) -> Self {
        let cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
        let mut workload = Workload::new(setting.applications.clone(), Vec::new());
        workload.tenants = setting.tenants.clone();
        let scenario = Scenario::new(Arc::new(cluster.clone()), Arc::new(workload), setting.options.clone(), 0);
        Self {
            setting,
            epoch_ms: None,
            now: SimTime::ZERO,
            nodes: Vec::new(),
            node_ids: BTreeMap::new(),
            cluster,
            known_types: Vec::new(),
            scenario: Arc::new(scenario),
            ids: BTreeMap::new(),
            keys: Vec::new(),
            past: BTreeMap::new(),
            reported: ReportedApplications::default(),
            loads: BTreeMap::new(),
            samples: Vec::new(),
            seen: LastObservation::default(),
            observed: None,
            generation: 0,
        }
    }

    /// With time zero of the policy at `epoch_ms` of the engine's clock, rather than at the first
    /// snapshot.
    #[must_use]
    pub fn since(self, epoch_ms: i64) -> Self {
        Self { epoch_ms: Some(epoch_ms), ..self }
    }

    /// With what is known of accelerator types, by name. The memory of a type is that of its nodes.
    pub(in crate::daemon) fn know(&mut self, types: Vec<AcceleratorType>) {
        self.known_types = types;
    }

    /// Shows jobs as another policy is to see them.
    pub(in crate::daemon) fn tell(&mut self, information: Information, batching: Batching) {
        (self.setting.options.information, self.setting.options.batching) = (information, batching);
        let Scenario { cluster, workload, seed, .. } = &*self.scenario;
        let options = SimOptions { information, batching, ..self.scenario.options.clone() };
        self.scenario = Arc::new(Scenario::new(cluster.clone(), workload.clone(), options, *seed));
    }

    /// The engine's clock at time zero; `None` before the first snapshot.
    pub fn epoch_ms(&self) -> Option<i64> {
        self.epoch_ms
    }

    /// The policy's time of a moment of the engine's clock.
    pub fn time(&self, at_ms: i64) -> SimTime {
        let since = at_ms - self.epoch_ms.unwrap_or(at_ms);
        // Where time is not compressed, whole milliseconds stay exact.
        if self.setting.speedup == 1.0 {
            return SimTime::from_millis(since);
        }
        SimTime::from_millis((since as f64 * self.setting.speedup).round() as i64)
    }

    /// Span of the policy's clock on the engine's clock, milliseconds.
    pub fn engine_ms(&self, span: SimTime) -> i64 {
        if self.setting.speedup == 1.0 {
            return span.as_millis();
        }
        (span.as_millis() as f64 / self.setting.speedup).round() as i64
    }

    /// Whether an application of this name is in the catalog.
    pub fn knows(&self, application: &str) -> bool {
        self.setting.applications.iter().any(|known| known.name == application)
    }

    /// Reason why jobs of the tenant `tenant` are not taken: other tenants are declared, and this
    /// one is not.
    pub fn unknown_tenant(&self, tenant: &str) -> Option<String> {
        let tenants = &self.setting.tenants;
        let known = tenant.is_empty() || tenants.is_empty() || tenants.iter().any(|group| group.name == tenant);
        let names = || tenants.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(", ");
        (!known).then(|| format!("tenant {tenant:?} is not declared; one of: {}", names()))
    }

    /// Names of the applications of the catalog.
    pub fn applications(&self) -> String {
        self.setting.applications.iter().map(|known| known.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The number of a job.
    pub fn id(&self, key: &str) -> Option<JobId> {
        self.ids.get(key).copied()
    }

    /// The key of a job.
    pub fn key(&self, job: JobId) -> Option<&str> {
        self.keys.get(job.index()).map(String::as_str)
    }

    /// The name of a node.
    pub fn node(&self, node: NodeId) -> Option<&str> {
        self.nodes.get(node.index()).map(String::as_str)
    }

    /// A placement with the names of its nodes.
    pub fn named(&self, placement: &Placement) -> Vec<OnNode> {
        let named = |node: NodeId| self.node(node).unwrap_or_default().to_string();
        let cards = placement.share().map_or(&[][..], |(_, share)| &share.cards);
        let accelerators: Vec<String> = cards.iter().map(ToString::to_string).collect();
        let slices = placement.slices().iter();
        let on = |node, gpus| OnNode { node: named(node), gpus, accelerators: accelerators.clone() };
        slices.map(|slice| on(slice.node, slice.gpus)).collect()
    }

    /// The cluster as it was last read, for simulations of what would come of it; `None` before the
    /// first snapshot and where there are no jobs.
    pub fn scene(&self, snapshot: &ClusterSnapshot, settings: &ShadowConfig, round: SimTime) -> Option<RolloutStart> {
        let seen = self.observed.clone().filter(|seen| !seen.jobs.is_empty())?;
        let silent = |job: &&JobSeen| matches!(job.spec.work, Work::Fixed { duration } if duration <= SimTime::ZERO);
        let silent = snapshot.jobs.iter().filter(|job| job.application.is_none()).filter(silent);
        let shown = |id: &JobId| seen.jobs.iter().any(|job| job.id == *id);
        let unknown: Vec<JobId> = silent.filter_map(|job| self.id(&job.key)).filter(shown).collect();
        let keys = seen.jobs.iter().filter_map(|job| Some((job.id, self.key(job.id)?.to_owned()))).collect();
        Some(RolloutStart::new(&self.scenario, seen, &unknown, (self.nodes.clone(), keys), settings, round))
    }

    /// Scenario of the run and the cluster as it was last read; `None` before the first snapshot.
    pub(in crate::daemon) fn last(&self) -> Option<(&Arc<Scenario>, &Observed)> {
        Some((&self.scenario, self.observed.as_ref()?))
    }

    /// Reads a snapshot. `open` are the orders that are under way: their jobs are shown where they
    /// are going to be, and what they wait for is not free.
    ///
    /// # Errors
    /// [`ObservationError`] where the snapshot makes no sense; the observation is then as before but for what
    /// is newly registered.
    pub fn read(&mut self, snapshot: &ClusterSnapshot, open: &[Order]) -> Result<ClusterState, ObservationError> {
        let epoch = *self.epoch_ms.get_or_insert(snapshot.at_ms);
        // The clock of the machines may be set back; that of a policy never is.
        self.now = self.time(snapshot.at_ms.max(epoch)).max(self.now);
        self.register_nodes(snapshot);
        self.register_services(snapshot);
        self.register_jobs(snapshot);
        self.learn(snapshot);
        let observed = self.observe(snapshot, open);
        self.generation = self.generation.wrapping_add(1);
        let contradiction = |source| ObservationError::Contradiction { version: snapshot.version, source };
        let cluster =
            ClusterState::observed(self.scenario.clone(), &observed, self.generation).map_err(contradiction)?;
        self.note_rates(&cluster);
        self.observed = Some(observed);
        Ok(cluster)
    }

    fn observe(&mut self, snapshot: &ClusterSnapshot, open: &[Order]) -> Observed {
        let wanted: BTreeMap<&str, &Order> = open.iter().map(|order| (order.job.as_str(), order)).collect();
        let mut idle = vec![0; self.nodes.len()];
        // A node that the snapshot leaves out counts as down.
        let mut down = vec![1; self.nodes.len()];
        let mut cluster = self.cluster.clone();
        let mut loans = vec![Loan::Home; if cluster.has_pools() { self.nodes.len() } else { 0 }];
        cluster.nodes.iter_mut().for_each(|node| node.gpus = 0);
        for node in &snapshot.nodes {
            let Some(&at) = self.node_ids.get(&node.name) else { continue };
            let open = node.health == NodeHealth::Up;
            idle[at] = if open { node.free } else { 0 };
            down[at] = u32::from(node.health == NodeHealth::Down);
            cluster.nodes[at].gpus = match node.health {
                NodeHealth::Up => node.gpus,
                // What runs there stays; nothing more fits.
                NodeHealth::Drained | NodeHealth::Suspect => node.gpus.saturating_sub(node.free),
                NodeHealth::Down => 0,
            };
            if let Some(loan) = loans.get_mut(at) {
                *loan = self.loan(node);
                if *loan == Loan::Elsewhere {
                    idle[at] = 0;
                }
            }
        }
        let mut jobs: Vec<ObservedJob> = Vec::with_capacity(snapshot.jobs.len());
        let mut parts = SharedCardsSeen::of(self, snapshot);
        for seen in snapshot.jobs.iter().filter(|job| !job.phase.is_over() && !job.hands_off) {
            let Some(id) = self.id(&seen.key) else { continue };
            let held = seen.attempt.as_ref().map_or_else(Placement::none, |attempt| self.held_by(seen, attempt));
            let away = |node: NodeId| loans.get(node.index()) == Some(&Loan::Elsewhere);
            if held.slices().iter().any(|slice| down[slice.node.index()] > 0 || away(slice.node)) {
                continue;
            }
            let mut job = self.past_of(id, seen, &held);
            if let Some(order) = wanted.get(seen.key.as_str()) {
                self.show_as_wanted(&mut job, &order.action, &held, (&mut idle, &mut parts));
            }
            jobs.push(job);
        }
        jobs.sort_unstable_by_key(|job| job.id);
        let mut services = self.observe_services(snapshot, &down);
        open.iter().for_each(|order| self.show_as_scaled(&mut services, &order.action, &down, &mut idle));
        let trigger = self.trigger(&jobs, &down, &cluster, (&services, &loans));
        // Where no node has failed nothing is said of failures, as in a simulation without.
        if down.iter().all(|&down| down == 0) {
            down.clear();
        }
        Observed { now: self.now, trigger, cluster, down, idle, loans, jobs, services }
    }

    /// Shows a job that an order is under way for as it is going to be.
    fn show_as_wanted(
        &self,
        job: &mut ObservedJob,
        action: &EngineAction,
        held: &Placement,
        (idle, parts): (&mut [u32], &mut SharedCardsSeen),
    ) {
        let gpus_on = |on: &Placement, node: NodeId| -> u32 {
            on.slices().iter().filter(|slice| slice.node == node).map(|slice| slice.gpus).sum()
        };
        let wanted = match action {
            EngineAction::Stop { .. } | EngineAction::Cancel { .. } => Placement::none(),
            EngineAction::Place { placement, share: Some(_) } => self.parts_of(job.id, placement),
            action => match action.placement() {
                Some(placement) => self.placement_of(placement),
                None => return,
            },
        };
        if let Some((node, share)) = wanted.share() {
            let opened = share.cards.iter().filter(|&&card| parts.open(node, card)).count() as u32;
            idle[node.index()] = idle[node.index()].saturating_sub(opened);
        }
        for slice in wanted.slices().iter().filter(|_| wanted.share().is_none()) {
            let more = slice.gpus.saturating_sub(gpus_on(held, slice.node));
            let free = &mut idle[slice.node.index()];
            *free = free.saturating_sub(more);
        }
        let starts = !wanted.is_empty();
        job.phase = if starts { Phase::Starting { until: self.now + self.setting.start } } else { Phase::Pending };
        job.placement = wanted;
    }

    fn placement_of(&self, on: &[OnNode]) -> Placement {
        let known = on.iter().filter_map(|on| self.node_ids.get(&on.node).map(|&node| (NodeId::at(node), on.gpus)));
        known.collect()
    }

    /// Changes since the last observation.
    fn trigger(
        &mut self,
        jobs: &[ObservedJob],
        down: &[u32],
        cluster: &Cluster,
        (services, loans): (&[ObservedService], &[Loan]),
    ) -> Trigger {
        let active: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let gpus = cluster.nodes.iter().map(|node| node.gpus).collect();
        let load = (services.to_vec(), loans.to_vec());
        let seen = LastObservation { active, down: down.to_vec(), gpus, load };
        let new = |of: &LastObservation, than: &LastObservation| {
            of.active.iter().any(|id| than.active.binary_search(id).is_err())
        };
        let trigger = Trigger {
            arrival: new(&seen, &self.seen),
            completion: new(&self.seen, &seen),
            load: seen.load != self.seen.load,
            // The first observation has nothing before it to differ from.
            fault: !self.seen.gpus.is_empty() && (&seen.down, &seen.gpus) != (&self.seen.down, &self.seen.gpus),
            ..Trigger::default()
        };
        self.seen = seen;
        trigger
    }

    /// A job's state and past at this moment, by what its engine says of it and by what was recorded.
    fn past_of(&mut self, id: JobId, seen: &JobSeen, held: &Placement) -> ObservedJob {
        if let Some(history) = &seen.history {
            return ObservedJob { id, placement: held.clone(), ..(**history).clone() };
        }
        let submit = self.scenario.workload.jobs[id.index()].request.submit;
        let begun = seen.attempt.as_ref().map(|attempt| self.time(attempt.since_ms));
        let past = self.past.entry(id).or_insert_with(|| AttainedService::new(submit));
        past.advance(self.now, begun, seen, held);
        past.observed(id, seen, held)
    }
}
