//! Kubernetes, driven by its API server beside kube-scheduler and the job controller.
//!
//! A Job is given to the daemon by the label `goodput.dev/managed=true` and handed in suspended. The
//! daemon starts it by one request that names its size and its place and ends the suspension; it
//! stops it by suspending it, and the job controller then deletes the pods with their own grace.
//! kube-scheduler binds the pods: to the node of the template's node selector, or, where a job
//! spreads over several nodes, to the node that the daemon writes into each gated pod.
//!
//! Every change names the version of the object it was made from. The API server refuses one that
//! was made from an older version (409), and the order is tried again by what is seen then: so a
//! job is started once, whatever else writes to it, and whenever the daemon dies. A pod is bound once,
//! by the API server's own rule.
//!
//! Jobs of Kueue are its Workloads ([`kueue`]), where the deployment says so. Jobs without the label and
//! pods of anything else are never touched: the accelerators that they hold are not in service for the
//! daemon. A job that something else starts or suspends is left alone until its specification is again
//! what the daemon wanted.
//!
//! Kubernetes 1.36 or newer is needed: before, a suspended Job cannot change its accelerators.

mod access;
mod calls;
mod claims;
mod ends;
pub mod facts;
pub mod jobs;
pub mod kueue;
mod nodes;
mod per_gpu;
pub mod pods;
mod shape;
mod speaker;
mod steps;
mod submit;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use goodput_configs::live::engine::KubernetesConfig;
use goodput_env::time::SimTime;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};

use super::{
    Capabilities, ClusterSnapshot, Engine, EngineError, JobPhase, JobSeen, Mailbox, NodeSeen, Order, Receipt,
    StepOutcome, Submission,
};
use crate::job::Fence;
pub use access::KubernetesAccess;
use access::unreachable;
use calls::Calls;
use claims::{ClaimWatch, Claims};
use ends::PodEnds;
use facts::MANAGED;
use jobs::JobRead;
use kueue::{AdmissionCheck, KueueSeen, KueueWatch};
use nodes::NodeRead;
use per_gpu::PerGpu;
use pods::PodRead;
use watch::ObjectWatch;

/// Requests that are under way at one time.
const AT_ONCE: usize = 16;
/// Time for which a job that is gone or over is still shown.
const SHOWN: Duration = Duration::from_secs(90);

/// Watches of a cluster, and the client that they go through.
struct Cluster {
    client: Client,
    nodes: ObjectWatch<Node>,
    jobs: Vec<ObjectWatch<Job>>,
    pods: ObjectWatch<Pod>,
    kueue: Option<KueueWatch>,
    claims: Option<ClaimWatch>,
}

/// A Kubernetes cluster.
pub struct KubernetesEngine {
    settings: KubernetesConfig,
    client: Option<Client>,
    cluster: Option<Cluster>,
    version: u64,
    nodes: BTreeMap<String, NodeRead>,
    jobs: BTreeMap<String, JobRead>,
    /// Checks of the daemon that do not say yet that it is there.
    silent_checks: Vec<AdmissionCheck>,
    /// Starts of jobs that were seen to run, by key.
    ran: BTreeMap<String, u32>,
    /// Attempts that have ended well, as their pods told.
    ends: PodEnds,
    /// Jobs as they were last shown, and since when they are over or gone.
    shown: BTreeMap<String, (JobSeen, Option<Instant>)>,
    mailbox: Arc<Mailbox>,
}

impl KubernetesEngine {
    /// The cluster of `settings`; nothing is asked of it yet.
    pub fn new(settings: &KubernetesConfig) -> Self {
        Self {
            settings: settings.clone(),
            client: None,
            cluster: None,
            version: 0,
            nodes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            silent_checks: Vec::new(),
            ran: BTreeMap::new(),
            ends: PodEnds::default(),
            shown: BTreeMap::new(),
            mailbox: Arc::default(),
        }
    }

    /// The engine over a client that exists already.
    #[must_use]
    pub fn with_client(self, client: Client) -> Self {
        Self { client: Some(client), ..self }
    }

    fn calls(&self, client: &Client) -> Calls {
        Calls { client: client.clone(), patience: self.patience() }
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(self.settings.patience_ms)
    }

    /// Client of the cluster, made at the first call.
    async fn client(&mut self) -> Result<Client, EngineError> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let (file, context) = (self.settings.kubeconfig.as_deref(), self.settings.context.as_deref());
        let client = KubernetesAccess { file, context }.connect(self.patience()).await?;
        let calls = self.calls(&client);
        match calls.too_old().await? {
            Some(version) => tracing::warn!(
                version,
                "Kubernetes is older than 1.36: jobs can be watched, and those that change their accelerators are refused"
            ),
            None => tracing::info!("connected to Kubernetes"),
        }
        self.client = Some(client.clone());
        Ok(client)
    }

    /// Begins the watches where they are not there yet.
    async fn watch(&mut self) -> Result<&Cluster, EngineError> {
        let client = self.client().await?;
        let namespaces = &self.settings.namespaces;
        let (has_kueue, has_claims) = (self.settings.kueue.is_some(), self.settings.claims.is_some());
        let ends = self.ends.clone();
        let cluster = self.cluster.get_or_insert_with(|| {
            let jobs = match namespaces.as_slice() {
                [] => vec![Api::all(client.clone())],
                some => some.iter().map(|namespace| Api::namespaced(client.clone(), namespace)).collect(),
            };
            let selector = format!("{MANAGED}=true");
            Cluster {
                nodes: ObjectWatch::begin(Api::all(client.clone()), "", |node: &mut Node| {
                    node.status.iter_mut().for_each(|status| status.images = None);
                }),
                jobs: jobs.into_iter().map(|api| ObjectWatch::begin(api, &selector, |_| {})).collect(),
                // Pods of all users: what they hold is not free.
                pods: ObjectWatch::begin(Api::all(client.clone()), "", move |pod: &mut Pod| {
                    ends.see(pod);
                    pod.spec.iter_mut().for_each(kueue::strip);
                }),
                kueue: has_kueue.then(|| KueueWatch::begin(&client, namespaces)),
                claims: has_claims.then(|| ClaimWatch::begin(&client)),
                client,
            }
        });
        Ok(cluster)
    }

    /// Reads what the watches have, once the API server itself has answered.
    async fn read(&mut self) -> Result<Vec<PodRead>, EngineError> {
        let (patience, settings) = (self.patience(), self.settings.clone());
        let cluster = self.watch().await?;
        let calls = Calls { client: cluster.client.clone(), patience };
        calls.ready().await?;
        let nodes =
            cluster.nodes.objects(patience).await.map_err(|problem| unreachable(format!("nodes: {problem}")))?;
        let pods = cluster.pods.objects(patience).await.map_err(|problem| unreachable(format!("pods: {problem}")))?;
        let mut jobs = Vec::new();
        for watched in &cluster.jobs {
            let more = watched.objects(patience).await.map_err(|problem| unreachable(format!("jobs: {problem}")))?;
            jobs.extend(more);
        }
        let queued = match (&cluster.kueue, &settings.kueue) {
            (Some(watch), Some(kueue)) => Some(watch.read(patience, &kueue.controller).await?),
            _ => None,
        };
        let mut claims = match (&cluster.claims, &settings.claims) {
            (Some(watch), Some(claims)) => watch.read(patience, claims).await?,
            _ => Claims::default(),
        };
        let node = |node: &Arc<Node>| NodeRead::of(node, &settings, claims.devices(node.metadata.name.as_deref()?));
        let nodes = nodes.iter().filter_map(node);
        self.nodes = nodes.map(|node| (node.name.clone(), node)).collect();
        // A Job that Kueue counts is seen as its Workload.
        let counted = queued.as_ref().map(KueueSeen::owners).unwrap_or_default();
        jobs.retain(|job| job.metadata.uid.as_ref().is_none_or(|uid| !counted.contains(uid)));
        let given: BTreeSet<String> = jobs.iter().filter_map(|job| job.metadata.uid.clone()).chain(counted).collect();
        let (mut of_jobs, mut foreign) = (BTreeMap::<String, Vec<PodRead>>::new(), Vec::new());
        let mut pods: Vec<PodRead> = pods.iter().map(|pod| PodRead::of(pod, &settings.resource)).collect();
        claims.add_to(&mut pods);
        for pod in pods {
            match pod.owner.clone().filter(|owner| given.contains(owner)) {
                Some(owner) => of_jobs.entry(owner).or_default().push(pod),
                None => foreign.push(pod),
            }
        }
        let read = |job: &Arc<Job>| {
            let pods = job.metadata.uid.as_ref().and_then(|uid| of_jobs.remove(uid)).unwrap_or_default();
            let template = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
            let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
            let claimed = template.map_or(0, |template| claims.of_template(namespace, template));
            JobRead::of(job, pods, claimed, &settings)
        };
        self.jobs = jobs.iter().map(read).map(|job| (job.key.clone(), job)).collect();
        for job in self.jobs.values_mut() {
            job.settled |= job.emptied && self.ran.get(&job.key) == Some(&job.facts.starts);
        }
        self.ends.mark(self.jobs.values_mut());
        self.silent_checks.clear();
        if let Some(queued) = queued {
            let more = queued.jobs(&mut of_jobs, &claims, &settings);
            self.jobs.extend(more.into_iter().map(|job| (job.key.clone(), job)));
            self.silent_checks.extend(queued.silent_checks().cloned());
        }
        // Pods of Workloads that are not the policy's.
        foreign.extend(of_jobs.into_values().flatten());
        Ok(foreign)
    }

    /// Nodes, with what jobs of the daemon and pods of others hold on them.
    fn nodes_seen(&self, foreign: &[PodRead], jobs: &[JobSeen]) -> Vec<NodeSeen> {
        let (mut ours, mut others) = (BTreeMap::<&str, u32>::new(), BTreeMap::<&str, u32>::new());
        for pod in foreign.iter().filter(|pod| pod.holds()) {
            *others.entry(pod.node.as_deref().unwrap_or_default()).or_default() += pod.gpus;
        }
        for job in jobs {
            let of = if job.hands_off { &mut others } else { &mut ours };
            for on in job.attempt.iter().flat_map(|attempt| &attempt.placement) {
                *of.entry(&on.node).or_default() += on.gpus;
            }
        }
        let held = |by: &BTreeMap<&str, u32>, node: &NodeRead| by.get(node.name.as_str()).copied().unwrap_or(0);
        self.nodes.values().map(|node| node.seen(held(&ours, node), held(&others, node))).collect()
    }

    /// Jobs as they are now, and for a while those that are gone.
    fn jobs_seen(&mut self) -> Vec<JobSeen> {
        for (key, job) in &self.jobs {
            let ran = self.ran.get(key) == Some(&job.facts.starts) && !job.suspended;
            let seen = job.seen(ran);
            if seen.phase == JobPhase::Running {
                self.ran.insert(key.clone(), job.facts.starts);
            }
            let since = self.shown.get(key).and_then(|(_, since)| *since);
            let over = seen.phase.is_over().then(|| since.unwrap_or_else(Instant::now));
            self.shown.insert(key.clone(), (seen, over));
        }
        for (key, (seen, since)) in &mut self.shown {
            if !self.jobs.contains_key(key) && since.is_none() {
                // It was deleted: what it was before is all that is known.
                (seen.phase, seen.attempt, *since) = (JobPhase::Cancelled, None, Some(Instant::now()));
            }
        }
        let fresh = |since: &Option<Instant>| since.is_none_or(|since| since.elapsed() < SHOWN);
        // A Job that is over stays in the cluster for as long as its user likes.
        self.shown.retain(|key, (_, since)| self.jobs.contains_key(key) || fresh(since));
        self.ran.retain(|key, _| self.jobs.contains_key(key));
        self.shown.values().filter(|(_, since)| fresh(since)).map(|(seen, _)| seen.clone()).collect()
    }
}

impl Engine for KubernetesEngine {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { hold: true, ..Capabilities::default() }
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        let foreign = self.read().await?;
        let mut jobs = self.jobs_seen();
        let nodes = self.nodes_seen(&foreign, &jobs);
        self.version += 1;
        let at_ms = crate::machine::wall_ms();
        let speakers = jobs.iter().filter_map(|seen| self.jobs.get(&seen.key)?.speaker(seen));
        let said = self.mailbox.hear(speakers, &nodes);
        for job in jobs.iter_mut().filter(|job| job.batch.is_none()) {
            job.batch = self.mailbox.batch(&job.key);
        }
        Ok(ClusterSnapshot { version: self.version, at_ms, nodes, jobs, services: Vec::new(), said })
    }

    async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        let calls = self.client().await.map(|client| self.calls(&client))?;
        let (jobs, nodes, resource) = (&self.jobs, &self.nodes, self.settings.resource.as_str());
        let mut taken = Vec::with_capacity(orders.len());
        for order in orders {
            let (step, calls) = (steps::next(order, jobs, nodes, resource), calls.clone());
            taken.push(async move {
                let outcome = match step {
                    Err(outcome) => outcome,
                    Ok(step) => calls.take(jobs.get(&order.job), step).await?,
                };
                Ok(Receipt { id: order.id.clone(), outcome })
            });
        }
        stream::iter(taken).buffered(AT_ONCE).try_collect().await
    }

    /// Names the nodes of pods that wait for the daemon, also of those that the job controller made anew. Ends jobs
    /// that ended well without being counted. Evicts pods that are bound where they do not belong.
    async fn maintain(&mut self) -> Result<(), EngineError> {
        let calls = self.client().await.map(|client| self.calls(&client))?;
        let acts_on_kueue = kueue::acts(&self.settings);
        for check in self.silent_checks.iter().filter(|_| acts_on_kueue) {
            let name = check.metadata.name.as_deref().unwrap_or_default();
            match calls.activate(check).await? {
                None => tracing::info!(check = name, "the daemon is the controller of this AdmissionCheck"),
                Some(reason) => {
                    tracing::warn!(check = name, reason, "the AdmissionCheck does not say that it is active")
                }
            }
        }
        let mut opened = Vec::new();
        for job in self.jobs.values().filter(|job| acts_on_kueue || job.queued.is_none()) {
            let step = steps::opened(job, &self.nodes).or_else(|| kueue::waits_again(job));
            let Some(step) = step.or_else(|| steps::uncounted_end(job)) else { continue };
            let calls = calls.clone();
            opened.push(async move { calls.take(Some(job), step).await.map(|outcome| (job, outcome)) });
        }
        let opened: Vec<(&JobRead, StepOutcome)> = stream::iter(opened).buffered(AT_ONCE).try_collect().await?;
        for (job, outcome) in opened {
            if let StepOutcome::Later { reason } | StepOutcome::Refused { reason } = outcome {
                tracing::debug!(job = job.key, reason, "upkeep has to wait");
            }
        }
        let jobs = self.jobs.values().filter(|job| acts_on_kueue || job.queued.is_none());
        for pod in jobs.flat_map(steps::misplaced) {
            let node = pod.node.as_deref().unwrap_or_default();
            match calls.evict(pod).await? {
                None => tracing::warn!(pod = pod.name, node, "evicted: the pod is not where its job belongs"),
                Some(reason) => {
                    tracing::warn!(pod = pod.name, node, reason, "the pod is not where its job belongs, and stays")
                }
            }
        }
        Ok(())
    }

    fn submitted_at(&self, submit_ms: i64) -> Option<String> {
        self.jobs.values().find(|job| job.facts.submit_ms == Some(submit_ms)).map(|job| job.key.clone())
    }

    fn mailbox(&self) -> Option<Arc<Mailbox>> {
        self.settings.report_url.as_ref().map(|_| self.mailbox.clone())
    }

    async fn try_out(&mut self, job: &Submission) -> Result<(), EngineError> {
        self.hand_in(job, true).await.map(drop)
    }

    async fn submit(&mut self, job: &Submission) -> Result<String, EngineError> {
        self.hand_in(job, false).await
    }
}

impl KubernetesEngine {
    /// Hands a job in, or has the control plane check it and keep nothing.
    async fn hand_in(&mut self, job: &Submission, only_checked: bool) -> Result<String, EngineError> {
        let refused = |problem: String| EngineError::Refused { engine: "kubernetes", problem };
        let image = self.settings.image.clone().ok_or_else(|| {
            refused("[engine.kubernetes] image is not set: name the image of submitted jobs, or use kubectl".into())
        })?;
        let each = PerGpu::of(&job.resources, &self.settings).map_err(refused)?;
        let mut job = job.clone();
        if job.spec.request.submit <= SimTime::ZERO {
            job.spec.request.submit = SimTime::from_millis(crate::machine::wall_ms());
        }
        let fence = Fence::random().map_err(|error| refused(error.to_string()))?;
        let name = submit::name_of(&job, &fence);
        let made = submit::job(&job, &name, &fence, each, &self.settings, &image);
        let calls = self.client().await.map(|client| self.calls(&client))?;
        let made = calls.hand_in(&self.settings.namespace, &name, made, only_checked).await?;
        Ok(JobRead::of(&made, Vec::new(), 0, &self.settings).key)
    }
}
