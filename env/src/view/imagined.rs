//! Start of a simulation of the time to come: the cluster and its jobs as a view shows them, without what
//! the run hides.

use std::sync::Arc;

use super::{ClusterView, JobView};
use crate::application::Application;
use crate::cluster::{Cluster, Node, Pool};
use crate::job::{JobId, JobSpec, Work, Workload};
use crate::scenario::{Scenario, SimOptions};
use crate::state::Observed;
use crate::time::SimTime;

impl JobView<'_> {
    /// Kind of the work of the job: its application or its class where it has one, with no amount.
    pub fn work_kind(&self) -> Work {
        match self.known.scenario.workload.jobs[self.state.id.index()].work {
            Work::Fixed { .. } => Work::Fixed { duration: SimTime::ZERO },
            Work::Application { index, .. } => Work::Application { index, work_milli: 0 },
            Work::Steps { class, .. } => Work::Steps { class, steps: 0.0 },
        }
    }
}

impl ClusterView<'_> {
    /// The cluster at this moment as an observer reports it, with the jobs of the view numbered from 0 in their order.
    /// The cluster has the accelerators that are free and those that these jobs hold, and no others.
    pub fn observed(&self) -> Observed {
        let shown: Vec<JobId> = self.ids().collect();
        let mut jobs: Vec<_> = self.jobs().map(|job| job.state.observe(self.now)).collect();
        let mut held = self.free().to_vec();
        for (at, job) in jobs.iter_mut().enumerate() {
            job.id = JobId::at(at);
            job.partner = job.partner.and_then(|partner| shown.binary_search(&partner).ok().map(JobId::at));
            if job.partner.is_none_or(|partner| job.id < partner) {
                job.placement.slices().iter().for_each(|slice| held[slice.node.index()] += slice.gpus);
            }
        }
        let nodes =
            self.cluster.nodes.iter().zip(held).map(|(node, gpus)| Node { gpus, pool: Pool::default(), ..*node });
        Observed {
            now: self.now,
            trigger: self.trigger,
            cluster: Cluster { types: self.cluster.types.clone(), nodes: nodes.collect() },
            down: Vec::new(),
            idle: self.free().to_vec(),
            loans: Vec::new(),
            jobs,
            services: Vec::new(),
        }
    }

    /// Applications of the run: see [`Self::catalogue`]. On a live cluster the list changes, because a job that reports
    /// speeds has an application of its own.
    pub fn applications(&self) -> &[Arc<Application>] {
        &self.scenario.workload.applications
    }

    /// Applications, classes and tenants of the run, with no jobs, services and requests. Applications are those of
    /// the catalog, so their speeds are secret where the information level is
    /// [`Profiled`](crate::scenario::Information::Profiled).
    pub fn catalogue(&self) -> Workload {
        let Workload { applications, classes, models, tenants, .. } = &*self.scenario.workload;
        Workload {
            applications: applications.clone(),
            classes: classes.clone(),
            models: models.clone(),
            tenants: tenants.clone(),
            ..Workload::default()
        }
    }

    /// Scenario of a time to come until `until` on the machines of `seen`, with `jobs` in place of those of the run.
    /// The options are those of the run, but nothing fails and no node is rented. Where `applications` are given, they
    /// take the place of those of the catalog.
    pub fn imagined(
        &self,
        seen: &Observed,
        applications: Option<Vec<Arc<Application>>>,
        jobs: Vec<JobSpec>,
        until: SimTime,
        seed: u64,
    ) -> Scenario {
        let options = SimOptions {
            information: self.information,
            batching: self.batching,
            faults: None,
            rental: None,
            horizon: Some(until),
            log_allocations: false,
            ..self.scenario.options.clone()
        };
        let mut workload = Workload { jobs, ..self.catalogue() };
        let known = applications.is_none() && seen.cluster == *self.scenario.cluster;
        if let Some(applications) = applications {
            workload.applications = applications;
        }
        let workload = Arc::new(workload);
        match known {
            // The tables of speeds stay, with all that has been looked up in them.
            true => Scenario { options, ..self.scenario.with_jobs(workload, seed) },
            false => Scenario::new(Arc::new(seen.cluster.clone()), workload, options, seed),
        }
    }
}
