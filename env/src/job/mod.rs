//! Jobs: what is asked for, what is true, and what can be observed while they run.

mod class;
mod faults;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use class::{BatchStage, JobClass};

use crate::application::Application;
use crate::placement::ShareRequest;
use crate::request::{InferenceRequest, ServedModel};
use crate::service::Service;
use crate::tenant::{Tenants, UNIT_WEIGHT};
use crate::time::SimTime;

/// Index of a job in its workload, which is sorted by submission: ids ascend with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u32);

impl JobId {
    /// Job at position `index`.
    #[inline]
    pub const fn at(index: usize) -> Self {
        Self(index as u32)
    }

    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Numbers of accelerators that a job can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Elasticity {
    /// Exactly what it asked for.
    Rigid,
    /// Any number in the range.
    Elastic {
        /// Fewest accelerators it runs on, at least 1.
        min: u32,
        /// Most accelerators it can use.
        max: u32,
    },
}

/// Submission of a job by its user. A policy may know all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRequest {
    /// The trace's own name for the job.
    pub name: String,
    /// Tenant that submits the job: an index into the workload's tenants.
    pub tenant: u32,
    /// Time of submission.
    pub submit: SimTime,
    /// Accelerators asked for.
    pub gpus: u32,
    /// Total batch size asked for, samples; `None`: the application's initial one.
    pub batch_size: Option<u32>,
    /// Sizes the job can run at.
    pub elasticity: Elasticity,
    /// The higher the earlier, where a policy goes by it.
    #[serde(default)]
    pub priority: i32,
    /// Weight of the job in a fair share among jobs, in thousandths.
    #[serde(default = "unit_weight")]
    pub weight_milli: u32,
    /// Time by which the job is to be done.
    #[serde(default)]
    pub deadline: Option<SimTime>,
    /// Run time that the user asks for on `gpus` accelerators, as batch systems plan by it. A job that outlives it runs
    /// on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<SimTime>,
    /// Share that is enough for the job: of one accelerator, or in equal parts of all `gpus` on one node. Absent: whole
    /// accelerators. A job that asks for a share may be given whole accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareRequest>,
}

fn unit_weight() -> u32 {
    UNIT_WEIGHT
}

impl Default for JobRequest {
    /// One accelerator at time zero.
    fn default() -> Self {
        Self {
            name: String::new(),
            tenant: 0,
            submit: SimTime::ZERO,
            gpus: 1,
            batch_size: None,
            elasticity: Elasticity::Rigid,
            priority: 0,
            weight_milli: UNIT_WEIGHT,
            deadline: None,
            limit: None,
            share: None,
        }
    }
}

impl JobRequest {
    /// Fewest accelerators the job runs on.
    pub fn min_gpus(&self) -> u32 {
        match self.elasticity {
            Elasticity::Rigid => self.gpus,
            Elasticity::Elastic { min, .. } => min,
        }
    }

    /// Most accelerators the job can use.
    pub fn max_gpus(&self) -> u32 {
        match self.elasticity {
            Elasticity::Rigid => self.gpus,
            Elasticity::Elastic { max, .. } => max,
        }
    }

    /// Speed on `gpus` accelerators relative to that on the requested number, of a job of which
    /// only its duration is known: in proportion, as published simulations of elastic jobs assume
    /// (Lyra, EuroSys'23). `None` where it does not run on that many.
    pub fn linear_rate(&self, gpus: u32) -> Option<f64> {
        self.accepts(gpus).then(|| f64::from(gpus) / f64::from(self.gpus))
    }

    /// Whether the job can run on `gpus` accelerators.
    pub fn accepts(&self, gpus: u32) -> bool {
        (self.min_gpus()..=self.max_gpus()).contains(&gpus)
    }
}

/// Work of a job. Policies learn of it only through an information level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Runs for this long on the accelerators it asked for, as in traces without a model; where it
    /// is elastic, it scales linearly.
    Fixed {
        /// Run time on the requested number.
        duration: SimTime,
    },
    /// Trains an application of the catalog.
    Application {
        /// Index into [`Workload::applications`].
        index: u16,
        /// Part of the application's whole training that the job does, in thousandths: 500 stops
        /// half way, 2000 goes on as the last epoch went for as long again. Users train the same
        /// model for different lengths, and no policy can tell beforehand.
        #[serde(default = "whole")]
        work_milli: u32,
    },
    /// So many steps, on exactly the accelerators it asked for, at the speed its class has on their type. In a class
    /// with stages of batch size, steps of the first batch size are counted.
    Steps {
        /// Index into [`Workload::classes`].
        class: u16,
        /// Number of steps.
        steps: f64,
    },
}

/// The whole training of an application, in thousandths of it.
pub const WHOLE: u32 = 1000;

fn whole() -> u32 {
    WHOLE
}

impl Work {
    /// The whole training of application `index`.
    pub const fn application(index: u16) -> Self {
        Self::Application { index, work_milli: WHOLE }
    }
}

/// A job of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Request of the user.
    pub request: JobRequest,
    /// Work until the job is complete.
    pub work: Work,
}

/// The jobs of one run, the applications they train, and the services beside them.
///
/// # Example
/// Two jobs of known duration, in ascending order of submission whatever order they were given in:
///
/// ```
/// use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
/// use goodput_env::time::SimTime;
///
/// let job = |name: &str, submit, gpus, secs| {
///     let submit = SimTime::from_secs(submit);
///     let request = JobRequest { name: name.into(), submit, gpus, ..JobRequest::default() };
///     JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(secs) } }
/// };
/// let workload = Workload::new(Vec::new(), vec![job("late", 60, 1, 300), job("early", 0, 4, 600)]);
/// assert_eq!(workload.jobs[0].request.name, "early");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// Applications that jobs refer to.
    pub applications: Vec<Arc<Application>>,
    /// Classes of jobs counted in steps.
    pub classes: Vec<Arc<JobClass>>,
    /// Jobs in ascending order of submission.
    pub jobs: Vec<JobSpec>,
    /// Names of models that policies are shown, by name of the job, in place of the name of its application or class.
    /// A job with neither may have one, because a policy may still use the model (placement by tensor sizes does). An
    /// application that goes by several names has one for each job.
    pub models: BTreeMap<String, Arc<str>>,
    /// Tenants that submit the jobs, where the workload knows any.
    pub tenants: Arc<Tenants>,
    /// Inference services that run beside the jobs.
    pub services: Vec<Arc<Service>>,
    /// Inference requests in ascending order of submission.
    pub requests: Vec<InferenceRequest>,
    /// Models that requests ask for.
    pub served: Vec<ServedModel>,
}

impl Workload {
    /// Builds a workload, sorting jobs by submission (stable: equal times keep the trace's order).
    pub fn new(applications: Vec<Arc<Application>>, jobs: Vec<JobSpec>) -> Self {
        Self { applications, ..Self::of_classes(Vec::new(), jobs) }
    }

    /// Workload of jobs that are counted in steps, sorted by submission as in [`Workload::new`].
    pub fn of_classes(classes: Vec<Arc<JobClass>>, mut jobs: Vec<JobSpec>) -> Self {
        jobs.sort_by_key(|job| job.request.submit);
        Self { classes, jobs, ..Self::default() }
    }

    /// The application a job trains, if any.
    pub fn application(&self, job: JobId) -> Option<&Arc<Application>> {
        match self.jobs[job.index()].work {
            Work::Application { index, .. } => self.applications.get(index as usize),
            Work::Fixed { .. } | Work::Steps { .. } => None,
        }
    }

    /// The class of a job that is counted in steps.
    pub fn class(&self, job: JobId) -> Option<&Arc<JobClass>> {
        match self.jobs[job.index()].work {
            Work::Steps { class, .. } => self.classes.get(class as usize),
            Work::Fixed { .. } | Work::Application { .. } => None,
        }
    }

    /// The name of the model a job trains, as policies are shown it: what the workload calls it, else the name of its
    /// application or class; `""` where nothing is known.
    pub fn model_name(&self, job: JobId) -> &str {
        match self.models.get(&self.jobs[job.index()].request.name) {
            Some(model) => model,
            None => self.application_name(job),
        }
    }

    /// The name of what a job runs, application or class; `""` where nothing is known but its duration.
    pub fn application_name(&self, job: JobId) -> &str {
        match self.jobs[job.index()].work {
            Work::Application { index, .. } => self.applications.get(index as usize).map_or("", |app| &app.name),
            Work::Steps { class, .. } => self.classes.get(class as usize).map_or("", |class| &class.name),
            Work::Fixed { .. } => "",
        }
    }
}
