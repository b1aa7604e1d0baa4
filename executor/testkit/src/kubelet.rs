//! Kubelets that are played: pods that are bound to a node become processes of this machine, with
//! their variables, their grace and their exit codes. Every run is written down, so that a test can
//! say that nothing ran twice at one time.

use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use goodput_executor::engine::kubernetes::pods::PodRead;
use goodput_executor::machine::wall_ms;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Client, ResourceExt};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

/// Resource that counts accelerators.
const GPU: &str = "nvidia.com/gpu";
/// Image of pods without a process: they run until they are told to go.
pub const IDLE: &str = "idle:test";
/// Label of a node with the name of its site: tests share a control plane, and each has a site of its own.
pub const SITE: &str = "goodput.test/site";
/// Pause between two looks at the processes.
const TICK: Duration = Duration::from_millis(50);
/// Longest time of one call.
const PATIENCE: Duration = Duration::from_secs(3);

/// One run of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the field of that name")]
pub struct PodRun {
    pub owner: String,
    pub pod: String,
    pub index: u32,
    pub attempt: u32,
    pub node: String,
    pub gpus: u32,
    pub began_ms: i64,
    /// Whether the pod was told to go before the API server knew of its end.
    pub told: bool,
    pub ended_ms: Option<i64>,
    pub code: Option<i32>,
}

/// Runs of pods so far.
#[derive(Clone, Debug, Default)]
pub struct PodHistory {
    /// Runs in the order of their start.
    pub runs: Vec<PodRun>,
    /// Pods that were bound to a node without room for them.
    pub crowded: Vec<String>,
}

impl PodHistory {
    /// Pairs of runs of one pod of one job that overlap: the job ran twice at one time.
    pub fn doubled(&self) -> Vec<(PodRun, PodRun)> {
        let overlap = |a: &PodRun, b: &PodRun| {
            a.owner == b.owner && a.index == b.index && a.ended_ms.is_none_or(|ended_ms| b.began_ms < ended_ms)
        };
        let pairs = self.runs.iter().enumerate().flat_map(|(at, a)| self.runs[at + 1..].iter().map(move |b| (a, b)));
        pairs.filter(|(a, b)| overlap(a, b)).map(|(a, b)| (a.clone(), b.clone())).collect()
    }
}

/// Played kubelets of all nodes; dropping them ends their processes.
#[derive(Debug)]
pub struct Kubelets {
    history: Arc<Mutex<PodHistory>>,
    task: tokio::task::JoinHandle<()>,
}

impl Kubelets {
    /// Plays the kubelets of the nodes of `site` ([`add_nodes`]) with `gpus` accelerators each.
    pub fn play(client: Client, site: &str, gpus: u32) -> Self {
        let history = Arc::<Mutex<PodHistory>>::default();
        let prefix = format!("{site}-");
        let mut player =
            Player { client: client.clone(), prefix, gpus, history: history.clone(), pods: BTreeMap::new() };
        let task = tokio::spawn(async move {
            let wanted = watcher::Config::default().fields("spec.nodeName!=").timeout(30);
            let mut events = Box::pin(watch(Api::<Pod>::all(client), wanted).default_backoff());
            let mut listed = Vec::new();
            let mut ticks = tokio::time::interval(TICK);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    event = events.next() => match event {
                        Some(Ok(Event::Apply(pod))) => player.see(&pod),
                        Some(Ok(Event::Delete(pod))) => player.forget(&pod.uid().unwrap_or_default()),
                        Some(Ok(Event::Init)) => listed.clear(),
                        Some(Ok(Event::InitApply(pod))) => {
                            listed.push(pod.uid().unwrap_or_default());
                            player.see(&pod);
                        }
                        Some(Ok(Event::InitDone)) => player.keep(&listed),
                        Some(Err(_)) => {}
                        None => return,
                    },
                    _ = ticks.tick() => player.tick().await,
                }
            }
        });
        Self { history, task }
    }

    /// Runs so far.
    pub fn history(&self) -> PodHistory {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Creates `count` nodes that are ready, called `SITE-0`, `SITE-1`, ... and labelled with [`SITE`], with
/// `gpus` accelerators of the product `product` each.
///
/// # Errors
/// Where the API server refuses one.
pub async fn add_nodes(client: &Client, site: &str, count: u32, gpus: u32, product: &str) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for at in 0..count {
        let name = format!("{site}-{at}");
        let labels = json!({ "kubernetes.io/hostname": name, "nvidia.com/gpu.product": product, SITE: site });
        let node = serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } }));
        nodes.create(&PostParams::default(), &node.map_err(kube::Error::SerdeError)?).await?;
        let room = json!({ GPU: gpus.to_string(), "cpu": "64", "memory": "512Gi", "pods": "250" });
        let status = json!({ "status": {
            "capacity": room, "allocatable": room,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Played", "message": "",
                "lastHeartbeatTime": now(), "lastTransitionTime": now(),
            }],
        } });
        nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(())
}

fn now() -> String {
    k8s_openapi::jiff::Timestamp::from_millisecond(wall_ms()).map(|at| at.to_string()).unwrap_or_default()
}

struct Player {
    client: Client,
    /// Beginning of the names of the nodes that are played.
    prefix: String,
    gpus: u32,
    history: Arc<Mutex<PodHistory>>,
    pods: BTreeMap<String, PlayedPod>,
}

struct PlayedPod {
    read: PodRead,
    container: String,
    child: Option<Child>,
    devices: Vec<u32>,
    run: Option<usize>,
    began: String,
    code: Option<i32>,
    /// Phase that the API server has taken.
    said: &'static str,
    grace: Duration,
    kill_at: Option<Instant>,
}

impl PlayedPod {
    fn phase(&self) -> &'static str {
        match self.code {
            None => "Running",
            Some(0) => "Succeeded",
            Some(_) => "Failed",
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.as_ref().and_then(|child| Pid::from_raw(child.id() as i32)) {
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for PlayedPod {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
    }
}

impl Player {
    fn history(&self) -> MutexGuard<'_, PodHistory> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&mut self, pod: &Pod) {
        let (read, uid) = (PodRead::of(pod, GPU), pod.uid().unwrap_or_default());
        if !read.node.as_ref().is_some_and(|node| node.starts_with(&self.prefix)) {
            return;
        }
        if let Some(played) = self.pods.get_mut(&uid) {
            let told = read.leaving && !played.read.leaving;
            played.read = read;
            if told && (played.code.is_none() || played.said != played.phase()) {
                let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
                played.run.and_then(|at| history.runs.get_mut(at)).into_iter().for_each(|run| run.told = true);
            }
            if told {
                played.kill_at = Some(Instant::now() + played.grace);
                played.signal(Signal::TERM);
                played.code = played.code.or(played.child.is_none().then_some(143));
            }
        } else if !read.over
            && let Some(spec) = &pod.spec
        {
            let played = self.start(pod, spec, read);
            self.pods.insert(uid, played);
        }
    }

    fn start(&self, pod: &Pod, spec: &PodSpec, read: PodRead) -> PlayedPod {
        let node = read.node.clone().unwrap_or_default();
        let of_node =
            self.pods.values().filter(|other| other.read.node.as_ref() == Some(&node) && other.code.is_none());
        let used: Vec<u32> = of_node.flat_map(|other| other.devices.clone()).collect();
        let devices: Vec<u32> = (0..self.gpus).filter(|at| !used.contains(at)).take(read.gpus as usize).collect();
        let mut history = self.history();
        let crowded = (devices.len() as u32) < read.gpus;
        if crowded {
            history.crowded.push(read.name.clone());
        }
        let began = !crowded && !read.leaving;
        let owner = pod.owner_references().first().map(|owner| owner.uid.clone()).unwrap_or_default();
        if began {
            history.runs.push(PodRun {
                owner,
                pod: read.name.clone(),
                index: read.index.unwrap_or(0),
                attempt: read.attempt.unwrap_or(0),
                node,
                gpus: read.gpus,
                began_ms: wall_ms(),
                told: false,
                ended_ms: None,
                code: None,
            });
        }
        let run = began.then(|| history.runs.len() - 1);
        drop(history);
        let idle = spec.containers.first().is_some_and(|container| container.image.as_deref() == Some(IDLE));
        let child = if began && !idle { launch(pod, spec, &devices) } else { None };
        let failed = (child.is_none() && !idle) || !began;
        PlayedPod {
            container: spec.containers.first().map(|container| container.name.clone()).unwrap_or_default(),
            child,
            devices: if began { devices } else { Vec::new() },
            run,
            began: now(),
            code: failed.then_some(1),
            said: "",
            grace: Duration::from_secs(spec.termination_grace_period_seconds.unwrap_or(30).max(0) as u64),
            kill_at: None,
            read,
        }
    }

    /// A pod that is gone from the API server is killed at once.
    fn forget(&mut self, uid: &str) {
        if let Some(mut played) = self.pods.remove(uid) {
            played.signal(Signal::KILL);
            if let Some(child) = &mut played.child {
                let _ = child.wait();
            }
            self.end(played.run, played.code.unwrap_or(137));
        }
    }

    fn keep(&mut self, listed: &[String]) {
        let gone: Vec<String> = self.pods.keys().filter(|uid| !listed.contains(uid)).cloned().collect();
        gone.iter().for_each(|uid| self.forget(uid));
    }

    fn end(&self, run: Option<usize>, code: i32) {
        let mut history = self.history();
        if let Some(run) = run.and_then(|at| history.runs.get_mut(at)) {
            run.ended_ms = run.ended_ms.or(Some(wall_ms()));
            run.code = run.code.or(Some(code));
        }
    }

    async fn tick(&mut self) {
        let mut ended = Vec::new();
        for played in self.pods.values_mut() {
            if played.kill_at.is_some_and(|at| Instant::now() >= at) {
                played.signal(Signal::KILL);
            }
            if let Some(child) = &mut played.child
                && let Ok(Some(status)) = child.try_wait()
            {
                let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
                played.child = None;
                played.code = Some(code);
            }
            if let Some(code) = played.code {
                ended.push((played.run, code));
            }
        }
        ended.into_iter().for_each(|(run, code)| self.end(run, code));
        let behind = |played: &PlayedPod| played.said != played.phase() || played.read.leaving && played.code.is_some();
        let uids: Vec<String> =
            self.pods.iter().filter(|(_, played)| behind(played)).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            if self.report(&uid).await.is_err() {
                return;
            }
        }
    }

    /// Tells the API server how a pod is; and that it is gone, where it was told to go.
    async fn report(&mut self, uid: &str) -> Result<(), ()> {
        let Some(played) = self.pods.get_mut(uid) else { return Ok(()) };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &played.read.namespace);
        let (name, phase) = (played.read.name.clone(), played.phase());
        if played.said != phase {
            let status = Patch::Merge(status(played));
            let how = PatchParams::default();
            match tokio::time::timeout(PATIENCE, pods.patch_status(&name, &how, &status)).await {
                Ok(Ok(pod)) => {
                    // The API server may have been told first that the pod has to go, and the watch says so later.
                    let told = played.code.is_some() && pod.metadata.deletion_timestamp.is_some();
                    played.said = phase;
                    let run = played.run.filter(|_| told);
                    let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
                    run.and_then(|at| history.runs.get_mut(at)).into_iter().for_each(|run| run.told = true);
                }
                Ok(Err(kube::Error::Api(error))) if error.code == 404 => {
                    self.forget(uid);
                    return Ok(());
                }
                _ => return Err(()),
            }
        }
        if played.read.leaving && played.code.is_some() {
            let only = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
            let how = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }.preconditions(only);
            match tokio::time::timeout(PATIENCE, pods.delete(&name, &how)).await {
                Ok(Ok(_)) => {}
                Ok(Err(kube::Error::Api(error))) if matches!(error.code, 404 | 409) => {}
                _ => return Err(()),
            }
            self.forget(uid);
        }
        Ok(())
    }
}

fn status(played: &PlayedPod) -> Value {
    let state = match played.code {
        None => json!({ "running": { "startedAt": played.began } }),
        Some(code) => json!({ "terminated": {
            "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
            "startedAt": played.began, "finishedAt": now(),
        } }),
    };
    json!({ "status": {
        "phase": played.phase(),
        "podIP": "127.0.0.1", "podIPs": [{ "ip": "127.0.0.1" }],
        "startTime": played.began,
        "containerStatuses": [{
            "name": played.container, "image": "played", "imageID": "", "ready": played.code.is_none(),
            "restartCount": 0, "state": state,
        }],
    } })
}

/// Starts the first container of a pod as a process of this machine.
fn launch(pod: &Pod, spec: &PodSpec, devices: &[u32]) -> Option<Child> {
    let container = spec.containers.first()?;
    let mut words = container.command.iter().chain(&container.args).flatten();
    let mut command = Command::new(words.next()?);
    command.args(words).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(directory) = &container.working_dir {
        command.current_dir(directory);
    }
    let mut known = BTreeMap::<String, String>::new();
    for variable in container.env.iter().flatten() {
        let path = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref()).map(|field| &field.field_path);
        let value = match path {
            Some(path) => field(pod, spec, path),
            None => expanded(variable.value.as_deref().unwrap_or_default(), &known),
        };
        known.insert(variable.name.clone(), value);
    }
    let devices = devices.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    command.envs(known).env("CUDA_VISIBLE_DEVICES", devices);
    command.spawn().ok()
}

/// Field of a pod, as the downward API gives it.
fn field(pod: &Pod, spec: &PodSpec, path: &str) -> String {
    let annotation = path.strip_prefix("metadata.annotations['").and_then(|rest| rest.strip_suffix("']"));
    match (annotation, path) {
        (Some(name), _) => pod.annotations().get(name).cloned().unwrap_or_default(),
        (None, "spec.nodeName") => spec.node_name.clone().unwrap_or_default(),
        (None, "metadata.name") => pod.name_any(),
        (None, "metadata.namespace") => pod.namespace().unwrap_or_default(),
        _ => String::new(),
    }
}

/// A value in which `$(NAME)` stands for a variable before it.
fn expanded(value: &str, known: &BTreeMap<String, String>) -> String {
    known.iter().fold(value.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
}
