//! Calls to the API server, and what their errors mean.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams, Preconditions};
use kube::{Client, Resource};
use serde_json::{Value, json};

use super::access::unreachable;
use super::jobs::JobRead;
use super::kueue::{self, AdmissionCheck, CheckWord, KueueWorkload};
use super::pods::PodRead;
use super::steps::{KubernetesStep, OpenedPod};
use super::submit;
use crate::engine::{EngineError, StepOutcome};

/// Name under which the daemon's changes are kept in the objects that it changes.
const MANAGER: &str = "goodput";
/// Oldest minor version in which a suspended Job may change its accelerators.
const OLDEST_MINOR: u32 = 36;

/// Calls of the daemon, each within a time.
#[derive(Clone)]
pub(super) struct Calls {
    pub client: Client,
    pub patience: Duration,
}

impl Calls {
    /// Answer within the patience; `None` in time means that it may or may not have been carried out.
    async fn within<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        match tokio::time::timeout(self.patience, call).await {
            Ok(answer) => answer.map_err(CallError::from),
            Err(_) => Err(CallError::Away(format!("no answer within {} ms", self.patience.as_millis()))),
        }
    }

    /// Whether the API server and its etcd answer.
    pub async fn ready(&self) -> Result<(), EngineError> {
        let request = http_get("/readyz")?;
        self.within(self.client.request_text(request)).await.map(|_| ()).map_err(|error| unreachable(error.text()))
    }

    /// Version of the API server where it is too old to be driven.
    pub async fn too_old(&self) -> Result<Option<String>, EngineError> {
        let version = self.within(self.client.apiserver_version()).await.map_err(|error| unreachable(error.text()))?;
        let minor: u32 = version.minor.trim_end_matches('+').parse().unwrap_or(0);
        Ok((version.major == "1" && minor < OLDEST_MINOR).then_some(version.git_version))
    }

    /// Carries a step out. 409 and 429 mean another try by what is seen then.
    pub async fn take(&self, job: Option<&JobRead>, step: KubernetesStep) -> Result<StepOutcome, EngineError> {
        let done = match (step, job) {
            (KubernetesStep::Node { node, patch }, _) => {
                let nodes: Api<Node> = Api::all(self.client.clone());
                self.within(nodes.patch(&node, &changes(), &Patch::Strategic(patch))).await.map(|_| ())
            }
            (_, None) => return Ok(StepOutcome::Refused { reason: "there is no such job".into() }),
            (KubernetesStep::Delete, Some(job)) => self.delete(job).await,
            (KubernetesStep::Change { patch, service }, Some(job)) => self.change(job, patch, service).await,
            (KubernetesStep::CountEnd, Some(job)) => self.count_end(job).await,
            (KubernetesStep::Check(word), Some(job)) => self.answer(job, word).await,
            (KubernetesStep::Open(pods), Some(_)) => self.open(pods).await,
        };
        match done {
            Ok(()) => Ok(StepOutcome::Accepted),
            Err(CallError::Later(reason)) => Ok(StepOutcome::Later { reason }),
            Err(CallError::Refused(reason)) => Ok(StepOutcome::Refused { reason }),
            Err(CallError::Away(problem)) => Err(unreachable(problem)),
        }
    }

    async fn change(&self, job: &JobRead, patch: Value, service: bool) -> Result<(), CallError> {
        if let Some(subdomain) = job.subdomain.as_deref().filter(|_| service) {
            let services: Api<Service> = Api::namespaced(self.client.clone(), &job.namespace);
            let wanted = submit::service(job, subdomain);
            self.within(services.patch(subdomain, &PatchParams::apply(MANAGER), &Patch::Apply(wanted))).await?;
        }
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), &job.namespace);
        self.within(jobs.patch(&job.name, &changes(), &Patch::Strategic(patch))).await.map(|_| ())
    }

    /// Counts the end of rank 0 of a Job that is suspended; the job controller then ends the Job.
    async fn count_end(&self, job: &JobRead) -> Result<(), CallError> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), &job.namespace);
        // A Job that is over needs a time at which it began, and a suspended Job has lost its own.
        let began = job.created_ms / 1000;
        let began = k8s_openapi::jiff::Timestamp::from_second(began).map(|at| at.to_string()).unwrap_or_default();
        let status = json!({
            "metadata": { "resourceVersion": job.version },
            "status": { "succeeded": 1, "completedIndexes": "0", "startTime": began },
        });
        self.within(jobs.patch_status(&job.name, &changes(), &Patch::Merge(status))).await.map(|_| ())
    }

    async fn open(&self, pods: Vec<OpenedPod>) -> Result<(), CallError> {
        for OpenedPod { namespace, name, patch } in pods {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
            self.within(api.patch(&name, &changes(), &Patch::Strategic(patch))).await?;
        }
        Ok(())
    }

    /// Says the word of the daemon's check, from the version of the Workload that was read. Notes are written before.
    async fn answer(&self, job: &JobRead, word: CheckWord) -> Result<(), CallError> {
        let workloads: Api<KueueWorkload> = Api::namespaced(self.client.clone(), &job.namespace);
        let mut version = job.version.clone();
        if let Some(notes) = word.notes {
            let patch = json!({ "metadata": { "resourceVersion": version, "annotations": notes } });
            let noted = self.within(workloads.patch(&job.name, &changes(), &Patch::Merge(patch))).await?;
            version = noted.metadata.resource_version.unwrap_or_default();
        }
        let status = applied::<KueueWorkload>(&job.name, &version, json!({ "admissionChecks": [word.state] }));
        let how = PatchParams::apply(MANAGER).force();
        self.within(workloads.patch_status(&job.name, &how, &Patch::Apply(status))).await.map(|_| ())
    }

    /// Says that the controller of a check is there.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] where the API server is away.
    pub async fn activate(&self, check: &AdmissionCheck) -> Result<Option<String>, EngineError> {
        let checks: Api<AdmissionCheck> = Api::all(self.client.clone());
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (name, version) = (text(&check.metadata.name), text(&check.metadata.resource_version));
        let status = applied::<AdmissionCheck>(&name, &version, kueue::active(check));
        let how = PatchParams::apply(MANAGER).force();
        match self.within(checks.patch_status(&name, &how, &Patch::Apply(status))).await {
            Ok(_) => Ok(None),
            Err(CallError::Away(problem)) => Err(unreachable(problem)),
            Err(error) => Ok(Some(error.text())),
        }
    }

    async fn delete(&self, job: &JobRead) -> Result<(), CallError> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), &job.namespace);
        // A job of the same name that was made since stays.
        let only = Preconditions { uid: Some(job.uid.clone()), resource_version: None };
        let how = DeleteParams::foreground().preconditions(only);
        match self.within(jobs.delete(&job.name, &how)).await {
            Ok(_) => Ok(()),
            Err(CallError::Refused(reason)) if reason.starts_with("404") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Evicts a pod by the Eviction API, which keeps to disruption budgets; the reason where it may
    /// not go now.
    pub async fn evict(&self, pod: &PodRead) -> Result<Option<String>, EngineError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        match self.within(api.evict(&pod.name, &EvictParams::default())).await {
            Ok(_) => Ok(None),
            Err(CallError::Away(problem)) => Err(unreachable(problem)),
            Err(error) => Ok(Some(error.text())),
        }
    }

    /// Applies the Job of a submission, and gives what the API server made of it.
    pub async fn hand_in(
        &self,
        namespace: &str,
        name: &str,
        job: Value,
        only_checked: bool,
    ) -> Result<Job, EngineError> {
        let params = PatchParams { dry_run: only_checked, ..PatchParams::apply(MANAGER) };
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), namespace);
        let answer = self.within(jobs.patch(name, &params, &Patch::Apply(job))).await;
        answer.map_err(|error| match error {
            CallError::Away(problem) => unreachable(problem),
            error => EngineError::Refused { engine: "kubernetes", problem: error.text() },
        })
    }
}

/// Status of an object, as it is applied to the version that was read.
fn applied<K: Resource<DynamicType = ()>>(name: &str, version: &str, status: Value) -> Value {
    json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": name, "resourceVersion": version },
        "status": status,
    })
}

fn changes() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() }
}

fn http_get(path: &str) -> Result<hyper::Request<Vec<u8>>, EngineError> {
    hyper::Request::get(path).body(Vec::new()).map_err(unreachable)
}

/// Meaning of an error for an order.
#[derive(Debug)]
enum CallError {
    /// The order is to be tried again by what is seen then.
    Later(String),
    /// The order is never taken.
    Refused(String),
    /// Nothing is known: the API server is away.
    Away(String),
}

impl CallError {
    fn text(self) -> String {
        match self {
            Self::Later(text) | Self::Refused(text) | Self::Away(text) => text,
        }
    }
}

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = &error else { return Self::Away(error.to_string()) };
        let text = format!("{} {}: {}", status.code, status.reason, status.message);
        match status.code {
            409 | 429 => Self::Later(text),
            400..=499 => Self::Refused(text),
            _ => Self::Away(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_conflict_is_a_retry_and_a_server_that_fails_is_away() {
        let of = |code: u16| CallError::from(kube::Error::Api(Status { code, ..Status::default() }.boxed()));
        assert!(matches!(of(409), CallError::Later(_)), "another hand was faster");
        assert!(matches!(of(429), CallError::Later(_)), "a disruption budget, or too many requests");
        assert!(matches!(of(403), CallError::Refused(_)), "a right is missing");
        assert!(matches!(of(422), CallError::Refused(_)));
        assert!(matches!(of(503), CallError::Away(_)) && matches!(of(500), CallError::Away(_)));
    }
}
